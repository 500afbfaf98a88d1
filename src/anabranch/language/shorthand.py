"""Other names of functions, and functions that are short for an expression of others.

What is short for something becomes that, so that the planner sees `ip_prefix(srcIP, 24)` as the mask it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from anabranch.errors import LanguageError, suggest
from anabranch.language.functions import DOTTED
from anabranch.language.names import ALIASES
from anabranch.language.tree import Call, Expression, Literal

PARTS: Mapping[str, str] = {
    part: part
    for part in ("year", "quarter", "month", "week", "day", "dow", "doy", "hour", "minute", "second", "epoch",
                 "isodow", "isoyear", "millisecond", "microsecond")
} | {"dayofweek": "dow", "dayofyear": "doy", "years": "year", "months": "month", "days": "day",
     "hours": "hour", "minutes": "minute", "seconds": "second", "weeks": "week",
     "milliseconds": "millisecond", "microseconds": "microsecond"}  # fmt: skip
"""The parts of a time that EXTRACT and date_part take, with the function of each."""


def _nullif(value: Expression, unwanted: Expression) -> Expression:
    return Call("case", (value == unwanted, Literal(None), value))


def _if(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    return Call("case", (condition, then, otherwise))


def _left(text: Expression, count: Expression) -> Expression:
    if not isinstance(count, Literal) or type(count.value) is not int or count.value < 0:
        raise LanguageError(f"LEFT needs a constant number of characters, got {count}.")
    return Call("substring", (text, Literal(1), count))


def date_part(part: Expression, time: Expression) -> Expression:
    """One part of a time: date_part('hour', ts)."""
    name = str(part.value).lower() if isinstance(part, Literal) else ""
    if name not in PARTS:
        raise LanguageError(f"there is no part '{name or part}' of a time.{suggest(name, PARTS)}")
    return Call(PARTS[name], (time,))


def _ip_prefix(address: Expression, bits: Expression) -> Expression:
    if not isinstance(bits, Literal) or type(bits.value) is not int or not 0 <= bits.value <= 32:
        raise LanguageError(f"IP_PREFIX needs a constant number of bits from 0 to 32, got {bits}.")
    if isinstance(address, Literal) and isinstance(address.value, str):
        address = _ip_number(address)
    return Call("&", (address, Literal(2**32 - 2 ** (32 - bits.value))))


def _ip_number(text: Expression) -> Expression:
    if not isinstance(text, Literal):
        return Call("ip_number", (text,))
    if not isinstance(text.value, str) or not re.fullmatch(DOTTED, text.value):
        raise LanguageError(f"{text} is not an IPv4 address such as '10.0.0.1'.")
    octets = [int(part) for part in text.value.split(".")]
    return Literal(sum(octet << shift for octet, shift in zip(octets, (24, 16, 8, 0), strict=True)))


__all__ = ["ALIASES", "PARTS", "SHORTHANDS", "date_part"]

SHORTHANDS: Mapping[str, Callable[..., Expression]] = {
    "nullif": _nullif,
    "ifnull": lambda value, default: Call("coalesce", (value, default)),
    "if": _if,
    "mod": lambda value, by: Call("%", (value, by)),
    "left": _left,
    "date_part": date_part,
    "ip_prefix": _ip_prefix,
    "ip_number": _ip_number,
}
