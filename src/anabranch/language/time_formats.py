"""Formats of times as other systems write them, in the one that is used here: strftime's.

Java's (`yyyy-MM-dd HH:mm:ss`: Spark, Flink) and PostgreSQL's (`YYYY-MM-DD HH24:MI:SS`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from anabranch.errors import LanguageError

_JAVA: Mapping[str, str] = {
    "yyyy": "%Y", "uuuu": "%Y", "yy": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%-m", "dd": "%d",
    "d": "%-d", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M", "ss": "%S", "a": "%p",
    "EEEE": "%A", "EEE": "%a", "E": "%a", "DDD": "%j", "SSSSSS": "%6f", "SSS": "%3f",
}  # fmt: skip
_POSTGRES: Mapping[str, str] = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DDD": "%j", "DD": "%d", "HH24": "%H", "HH12": "%I", "HH": "%I",
    "MI": "%M", "SS": "%S", "MS": "%3f", "US": "%6f", "AM": "%p", "PM": "%p", "MON": "%b", "DY": "%a",
}  # fmt: skip
_KNOWN = frozenset("YmdHMSjaAbBypI%")
_SPECIFIERS = re.compile(r"%(-?)([A-Za-z%])")


def from_java(written: str) -> str:
    """The strftime format of a pattern of Java's.

    >>> from_java("yyyy-MM-dd HH:mm:ss")
    '%Y-%m-%d %H:%M:%S'
    """
    made = []
    for found in re.finditer(r"'([^']*)'|(([a-zA-Z])\3*)|(.)", written, re.DOTALL):
        quoted, letters, other = found[1], found[2], found[4]
        if letters and letters not in _JAVA:
            raise LanguageError(
                f"the format '{written}' has '{letters}', which is not known; expected "
                f"{', '.join(_JAVA)}."
            )
        plain = (quoted if quoted is not None else other or "").replace("%", "%%")
        made.append(_JAVA[letters] if letters else plain)
    return "".join(made)


def from_postgres(written: str) -> str:
    """The strftime format of a template of PostgreSQL's.

    >>> from_postgres("YYYY-MM-DD HH24:MI:SS")
    '%Y-%m-%d %H:%M:%S'
    """
    names = sorted(_POSTGRES, key=len, reverse=True)
    made = []
    at = 0
    while at < len(written):
        known = next((name for name in names if written[at:].upper().startswith(name)), None)
        if known is not None:
            made.append(_POSTGRES[known])
            at += len(known)
            continue
        if written[at] == '"' and '"' in written[at + 1 :]:
            end = written.index('"', at + 1)
            made.append(written[at + 1 : end].replace("%", "%%"))
            at = end + 1
            continue
        if written[at].isalnum() and written[at] != "T":
            raise LanguageError(
                f"the format '{written}' has '{written[at:]}', which is not known; expected "
                f"{', '.join(_POSTGRES)}."
            )
        made.append("%%" if written[at] == "%" else written[at])
        at += 1
    return "".join(made)


def from_strftime(written: str, reading: bool) -> str:
    """A strftime format as it is used here: `%f` are microseconds; what engines differ in is refused.

    >>> from_strftime("%H:%M:%S.%f", reading=True)
    '%H:%M:%S%.f'
    """
    long = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S"}
    written = re.sub(r"%[%FT]", lambda found: long.get(found[0], found[0]), written)
    for found in _SPECIFIERS.finditer(written.replace("%f", "").replace("%g", "")):
        if found[2] not in _KNOWN:
            raise LanguageError(
                f"the format '{written}' has '{found[0]}', which is not known; expected % and one of "
                f"{', '.join(sorted(_KNOWN - {'%'}))}, f."
            )
    if reading:
        return written.replace(".%f", "%.f").replace(".%g", "%.f")
    return written.replace("%f", "%6f").replace("%g", "%3f")
