"""How the query set of a checkpoint differs from another one, in the words in which users write them.

What is compared are the identities of `plan/compile.py`: texts, with a hash where they are long. What is told
is only what differs in them, with types and lengths of time by the names that `session.stream` takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher

from anabranch.errors import shorten
from anabranch.language.window import UNITS

CONTEXT = 3
"""Words shown before and after those that differ."""
LONGEST_STEP = 200
"""Characters shown of a step."""
_STREAM = re.compile(r"\((?P<columns>.*)\) ordered by (?P<ordered>.+), lateness (?P<lateness>\d+)")
_TYPES = (
    (r"Datetime\(time_unit='\w+', time_zone=None\)", "timestamp"),
    (r"Datetime\(time_unit='\w+', time_zone='([^']*)'\)", r"timestamp in \1"),
    (r"Decimal\(precision=(\w+), scale=(\w+)\)", r"decimal(\1, \2)"),
)
_WINDOW = re.compile(r"\b(TUMBLE|HOP|SESSION)\(([\d, ]+)")
_STEP = re.compile(r"(?:^|; )\d+: (?=[A-Z]{4})")
_INPUTS = re.compile(r" of \d+(, \d+)*$")
_HASH = re.compile(r" \[[0-9a-f]{32}\]$")


def differences(stored: Mapping[str, str], asked: Mapping[str, str]) -> list[str]:
    """What differs between the query set of a checkpoint and the one of a session."""
    told = []
    timed = {**_timestamps(stored), **_timestamps(asked)}
    for name in sorted({*stored, *asked}):
        if name not in asked:
            told.append(f"{name} is in the checkpoint but not in this session")
        elif name not in stored:
            told.append(f"{name} is new: the checkpoint does not have it")
        elif stored[name] != asked[name]:
            told.append(f"{name}: {'; '.join(_changes(name, stored[name], asked[name], timed))}")
    return told


def _changes(name: str, before: str, now: str, timed: Mapping[str, bool]) -> list[str]:
    streams = _STREAM.fullmatch(before), _STREAM.fullmatch(now)
    if name.startswith("stream ") and streams[0] and streams[1]:
        return list(_stream_changes(streams[0], streams[1]))
    if name.startswith("query "):
        return list(_query_changes(_steps(before, timed), _steps(now, timed)))
    return [f"was «{before}» and is now «{now}»"]


def _stream_changes(before: re.Match[str], now: re.Match[str]) -> Iterator[str]:
    old, new = _columns(before["columns"]), _columns(now["columns"])
    for column in [*old, *(column for column in new if column not in old)]:
        if column not in new:
            yield f"column '{column}' is gone"
        elif column not in old:
            yield f"column '{column}' is new"
        elif old[column] != new[column]:
            yield f"column '{column}' was {old[column]} and is now {new[column]}"
    if old == new and list(old) != list(new):
        yield "its columns are in another order"
    if before["ordered"] != now["ordered"]:
        yield f"it was ordered by {before['ordered']} and is now by {now['ordered']}"
    was, is_now = _lateness(before), _lateness(now)
    if was != is_now:
        yield f"lateness was {was} and is now {is_now}"


def _columns(text: str) -> dict[str, str]:
    """The columns of a stream's description with their types, as users name them."""
    for written, shown in _TYPES:
        text = re.sub(written, shown, text)
    columns = (
        column.rsplit(" ", 1)
        for column in _outer_commas(text.replace("timestamp in ", "timestamp\0"))
    )
    return {
        name: kind.lower() if "\0" not in kind else kind.replace("\0", " in ")
        for name, kind in ((pair[0], pair[-1]) for pair in columns)
    }  # fmt: skip


def _outer_commas(text: str) -> list[str]:
    """The parts between commas that are not in parentheses; blanks in parentheses are left out."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        elif letter != " " or not depth:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _lateness(stream: re.Match[str]) -> str:
    kind = _columns(stream["columns"]).get(stream["ordered"], "")
    length = int(stream["lateness"])
    return in_units(length) if kind.startswith("timestamp") else str(length)


def in_units(microseconds: int) -> str:
    """A length of time as users write it.

    >>> in_units(300_000_000), in_units(1_500_000), in_units(0)
    ('5 minutes', '1500 milliseconds', '0 seconds')
    """
    if not microseconds:
        return "0 seconds"
    unit = max((unit for unit in UNITS if microseconds % UNITS[unit] == 0), key=UNITS.__getitem__)
    count = microseconds // UNITS[unit]
    return f"{count} {unit}{'' if count == 1 else 's'}"


def _timestamps(identity: Mapping[str, str]) -> dict[str, bool]:
    """Of each stream, whether its time is a timestamp."""
    streams = {
        name.removeprefix("stream "): _STREAM.fullmatch(text)
        for name, text in identity.items()
        if name.startswith("stream ")
    }
    return {
        name: _columns(found["columns"]).get(found["ordered"], "").startswith("timestamp")
        for name, found in streams.items()
        if found
    }


def _steps(query: str, timed: Mapping[str, bool]) -> list[str]:
    """The steps of a query's description, without their numbers."""
    steps = [_INPUTS.sub("", step) for step in _STEP.split(_HASH.sub("", query)) if step]
    streams = [step.split()[1] for step in steps if step.startswith("STREAM ")]
    if not any(timed.get(name) for name in streams):
        return steps
    return [_WINDOW.sub(_in_units, step) for step in steps]


def _in_units(window: re.Match[str]) -> str:
    sizes = (f"'{in_units(int(size))}'" for size in window[2].split(", "))
    return f"{window[1]}({', '.join(sizes)}"


def _query_changes(before: list[str], now: list[str]) -> Iterator[str]:
    if before == now:
        yield "what it reads has changed, or what it does beyond the part that is kept of it"
    for kind, a, b, c, d in SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        if b - a == d - c:
            for was, is_now in zip(before[a:b], now[c:d], strict=True):
                yield "was «{}» and is now «{}»".format(*_apart(was, is_now))
            continue
        for step in before[a:b]:
            yield f"«{shorten(step, LONGEST_STEP)}» is gone"
        for step in now[c:d]:
            yield f"«{shorten(step, LONGEST_STEP)}» is new"


def _apart(was: str, is_now: str) -> tuple[str, str]:
    """Two texts without most of what they begin and end with alike."""
    old, new = was.split(" "), is_now.split(" ")
    shorter = min(len(old), len(new))
    first = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - first
    last = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    begin, end = max(0, first - CONTEXT), max(0, last - CONTEXT)

    def shown(words: list[str]) -> str:
        middle = " ".join(words[begin : len(words) - end])
        return shorten(f"{'… ' if begin else ''}{middle}{' …' if end else ''}", LONGEST_STEP)

    return shown(old), shown(new)
