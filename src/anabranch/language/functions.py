"""Scalar functions as Polars computes them: one entry for each name a tree may hold.

`CONSTANTS` says which arguments must be constants: those reach the function as plain values, the others
as Polars expressions. NULL gives NULL unless said otherwise.
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Callable, Mapping

import polars as pl

from anabranch.language.nested_functions import NESTED, NESTED_CONSTANTS
from anabranch.language.text_functions import TEXT_CONSTANTS, TEXTS, text_misuse
from anabranch.language.time_functions import TIMES

SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""What `trim` takes away unless told: spaces of all widths, not tabs or ends of lines, as DuckDB does."""

TRUNCATIONS = {
    "second": "1s", "minute": "1m", "hour": "1h", "day": "1d", "week": "1w", "month": "1mo",
    "quarter": "1q", "year": "1y",
}  # fmt: skip
"""The units of `date_trunc`; a week begins on Monday."""

_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
DOTTED = r"\.".join([_OCTET] * 4)
"""An IPv4 address as text. Leading zeros are not taken: some read them as octal."""


def like_pattern(pattern: str) -> str:
    """The regular expression of a LIKE pattern: `%` is any text, `_` one character, nothing escapes."""
    special = {"%": ".*", "_": "."}
    plain = r"\.+*?()|[]{}^$#&-~"
    parts = [special.get(c) or (f"\\{c}" if c in plain else c) for c in pattern]
    return f"(?s)^{''.join(parts)}$"


def shift(value: pl.Expr, bits: pl.Expr | int, left: bool, unsigned: bool = False) -> pl.Expr:
    """64-bit integers shifted: to the right rounding down, to the left wrapping around.

    By fewer than no bits, or more than 63, there is nothing left of a number to the right; to the left it
    is NULL.
    """
    kind = pl.UInt64 if unsigned else pl.Int64
    highest = pl.lit(2**63 if unsigned else -(2**63), kind)
    signs = value // highest if unsigned else pl.when(value < 0).then(-1).otherwise(value * 0)
    nothing = pl.lit(None, kind) if left else value * 0
    if isinstance(bits, int):
        if not 0 <= bits <= 63:
            return nothing
        power = highest if bits == 63 else pl.lit(2**bits, kind)
        return value * power if left else signs if bits == 63 else value // power
    last, powers = bits == 63, pl.lit(2, kind).pow(bits.clip(0, 62).cast(pl.UInt32))
    if left:
        shifted = value * pl.when(last).then(highest).otherwise(powers)
    else:
        shifted = pl.when(last).then(signs).otherwise(value // powers)
    return pl.when(bits.is_between(0, 63)).then(shifted).when(bits.is_not_null()).then(nothing)


def _case(*parts: pl.Expr) -> pl.Expr:
    result = parts[-1]
    for condition, value in reversed(list(zip(parts[0:-1:2], parts[1:-1:2], strict=True))):
        result = pl.when(condition).then(value).otherwise(result)
    return result


def _extreme(parts: tuple[pl.Expr, ...], greatest: bool) -> pl.Expr:
    """The greatest or least that is not NULL. Compared, not max_horizontal: NaN is above all numbers."""
    result = parts[0]
    for part in parts[1:]:
        first = result >= part if greatest else result <= part
        result = pl.when(part.is_null() | first).then(result).otherwise(part)
    return result


def _substring(text: pl.Expr, start: pl.Expr, length: pl.Expr | None = None) -> pl.Expr:
    """From character 1 on; below zero it counts from the end, and place 0 is the one before the text.

    A length below zero is that of the text before the start.
    """
    offset = pl.when(start > 0).then(start - 1).otherwise(start)
    if length is None:
        return text.str.slice(offset)
    before = pl.when(start > 0).then((start - 1).clip(0, -length)).otherwise(-length)
    before = pl.when(start == 0).then(0).otherwise(before)
    ahead = pl.when((start == 0) & (length > 0)).then(length - 1).otherwise(length)
    backwards = length < 0
    cut = text.str.slice(
        pl.when(backwards).then(offset - before).otherwise(offset),
        pl.when(backwards).then(before).otherwise(ahead),
    )
    # Polars takes all that follows for a length of NULL
    return pl.when(length.is_not_null()).then(cut)


def _split_part(text: pl.Expr, separator: str, number: int) -> pl.Expr:
    part = text.str.split(separator).list.get(number - 1, null_on_oob=True)
    return pl.when(text.is_not_null()).then(part.fill_null(""))


def _ip_number(text: pl.Expr) -> pl.Expr:
    parts = text.str.extract_groups(f"^{DOTTED}$")
    octets = [parts.struct[number].cast(pl.Int64) for number in range(4)]
    return octets[0] * 2**24 + octets[1] * 2**16 + octets[2] * 2**8 + octets[3]


def _ip_text(number: pl.Expr) -> pl.Expr:
    whole = number.cast(pl.Int64)
    octets = [(whole // 2**shift % 256).cast(pl.String) for shift in (24, 16, 8, 0)]
    known = (whole >= 0) & (whole < 2**32)
    return pl.when(known).then(pl.concat_str(*octets, separator="."))


def as_column(constant: pl.Expr, beside: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """A number in every row, NULL where the value beside it is: Polars has shortcuts for one alone."""
    return (beside == beside).cast(kind) * constant


def _power(base: pl.Expr, exponent: pl.Expr) -> pl.Expr:
    """As the library of C has it. With one exponent, as in a batch of one row, Polars multiplies instead."""
    double = pl.Float64()
    bases, exponents = (
        as_column(one.cast(double), other, double)
        for one, other in ((base, exponent), (exponent, base))
    )
    nothing = pl.lit(None, double)
    return bases.append(nothing).pow(exponents.append(nothing)).slice(0, bases.len())


FUNCTIONS: Mapping[str, Callable[..., pl.Expr]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: shift(a, b, True),
    ">>": lambda a, b: shift(a, b, False),
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "not": lambda a: ~a,
    "negate": lambda a: -a,
    "is_null": lambda a: a.is_null(),
    "is_not_null": lambda a: a.is_not_null(),
    "is_distinct": lambda a, b: a.ne_missing(b),
    "case": _case,
    "like": lambda a, pattern: a.str.contains(like_pattern(pattern)),
    "coalesce": lambda *parts: pl.coalesce(*parts),
    "greatest": lambda *parts: _extreme(parts, True),
    "least": lambda *parts: _extreme(parts, False),
    "abs": lambda a: a.abs(),
    "sign": lambda a: a.cast(pl.Float64).sign().fill_nan(0.0).cast(pl.Int64),
    "round": lambda a, digits=0: a.round(digits),
    # These round as `rounding.py` has it for the types of their numbers
    "round_away": lambda a, digits=0: a.round(digits, mode="half_away_from_zero"),
    "round_digits": lambda a, digits=0: a.round(digits, mode="half_away_from_zero"),
    "bround": lambda a, digits=0: a.round(digits),
    "floor": lambda a: a.floor(),
    "ceil": lambda a: a.ceil(),
    "sqrt": lambda a: a.sqrt(),
    "exp": lambda a: a.exp(),
    "ln": lambda a: a.cast(pl.Float64).log(),
    "log10": lambda a: a.cast(pl.Float64).log10(),
    "power": _power,
    "upper": lambda a: a.str.to_uppercase(),
    "lower": lambda a: a.str.to_lowercase(),
    "length": lambda a: a.str.len_chars().cast(pl.Int64),
    "substring": _substring,
    "right": lambda a, count: a.str.tail(count),
    "trim": lambda a, characters=SPACES: a.str.strip_chars(characters),
    "ltrim": lambda a, characters=SPACES: a.str.strip_chars_start(characters),
    "rtrim": lambda a, characters=SPACES: a.str.strip_chars_end(characters),
    "replace": lambda a, old, new: a.str.replace_all(old, new, literal=True),
    "split_part": _split_part,
    "starts_with": lambda a, b: a.str.starts_with(b),
    "ends_with": lambda a, b: a.str.ends_with(b),
    "contains": lambda a, b: a.str.contains(b, literal=True),
    "concat": lambda *parts: pl.concat_str(*parts),
    "year": lambda a: a.dt.year().cast(pl.Int64),
    "quarter": lambda a: a.dt.quarter().cast(pl.Int64),
    "month": lambda a: a.dt.month().cast(pl.Int64),
    "week": lambda a: a.dt.week().cast(pl.Int64),
    "day": lambda a: a.dt.day().cast(pl.Int64),
    "dow": lambda a: a.dt.weekday().cast(pl.Int64) % 7,
    "doy": lambda a: a.dt.ordinal_day().cast(pl.Int64),
    "hour": lambda a: a.dt.hour().cast(pl.Int64),
    "minute": lambda a: a.dt.minute().cast(pl.Int64),
    "second": lambda a: a.dt.second().cast(pl.Int64),
    "epoch": lambda a: (
        a.cast(pl.Datetime("us")).dt.epoch("us") / as_column(pl.lit(1e6), a, pl.Float64())
    ),
    "date_trunc": lambda unit, a: a.dt.truncate(TRUNCATIONS[unit]),
    "ip_number": _ip_number,
    "ip_text": _ip_text,
    "trunc": lambda a: pl.when(a < 0).then(a.ceil()).otherwise(a.floor()),
    "cbrt": lambda a: a.cast(pl.Float64).cbrt(),
    "sin": lambda a: a.cast(pl.Float64).sin(),
    "cos": lambda a: a.cast(pl.Float64).cos(),
    "tan": lambda a: a.cast(pl.Float64).tan(),
    "asin": lambda a: a.cast(pl.Float64).arcsin(),
    "acos": lambda a: a.cast(pl.Float64).arccos(),
    "atan": lambda a: a.cast(pl.Float64).arctan(),
    "atan2": lambda a, b: pl.arctan2(a.cast(pl.Float64), b.cast(pl.Float64)),
    "degrees": lambda a: a.cast(pl.Float64).degrees(),
    "radians": lambda a: a.cast(pl.Float64).radians(),
    "isnan": lambda a: a.is_nan(),
    "isfinite": lambda a: a.is_finite(),
    "bit_count": lambda a: a.bitwise_count_ones().cast(pl.Int64),
    **TIMES,
    **TEXTS,
    **NESTED,
}

CONSTANTS: Mapping[str, tuple[int, ...]] = {
    "like": (1,), "round": (1,), "round_away": (1,), "round_digits": (1,), "bround": (1,), "right": (1,),
    "trim": (1,), "ltrim": (1,), "rtrim": (1,), "replace": (1, 2), "split_part": (1, 2), "date_trunc": (0,),
    "time_bucket": (0, 2), "local_trunc": (0, 2),
    **TEXT_CONSTANTS, **NESTED_CONSTANTS,
    "to_zone": (1,), "at_zone": (1,), "strftime": (1,), "strptime": (1,), "try_strptime": (1,),
    "strpdate": (1,),
}  # fmt: skip


def misuse(function: str, place: int, value: object) -> str | None:
    """What is expected of a constant argument, if this value is not it."""
    if function in TEXT_CONSTANTS:
        return text_misuse(function, place, value)
    whole = type(value) is int
    match function, place:
        case "date_trunc", 0:
            fits, wanted = value in TRUNCATIONS, f"one of {', '.join(TRUNCATIONS)}"
        case (("round" | "round_away" | "round_digits" | "bround"), 1):
            fits, wanted = whole and -15 <= value <= 15, "a number of digits from -15 to 15"  # type: ignore[operator]
        case "right", 1:
            fits, wanted = whole and value >= 0, "a number of characters"  # type: ignore[operator]
        case "split_part", 2:
            fits, wanted = whole and value >= 1, "the number of a part, from 1"  # type: ignore[operator]
        case "map_extract_value", 1:
            fits, wanted = whole or isinstance(value, str), "a text or a whole number"
        case ("time_bucket", _):
            fits, wanted = isinstance(value, dt.timedelta), "a length of time"
        case ("to_zone" | "at_zone", 1) | ("local_trunc", 2):
            fits, wanted = (
                value in zoneinfo.available_timezones(),
                "a time zone such as 'Europe/Berlin'",
            )
        case ("replace" | "split_part", 1):
            fits, wanted = isinstance(value, str) and value != "", "a text that is not empty"
        case _:
            fits, wanted = isinstance(value, str), "a text"
    return None if fits else wanted
