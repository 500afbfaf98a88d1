"""Functions that mean something else in some dialects by the same name and arguments."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.expression import Call, Expression, Literal
from anabranch.language.shorthand import PARTS, date_part
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.time_rewrites import Arguments, Rewrite, date_trunc


def _substring(arguments: Arguments, scope: Scope) -> Expression:
    text, start, *length = arguments
    known = start.value if isinstance(start, Literal) else None
    if isinstance(known, int) and known > 0:
        return Call("substring", tuple(arguments))
    if scope.spelling.name in ("spark", "flink"):
        # Place 0 is the first, too
        begin = Literal(known or 1) if isinstance(known, int) else _first_for_zero(start)
        return Call("substring", (text, begin, *length))
    if scope.spelling.name in ("postgres", "risingwave"):
        # Places before the text count, and are empty
        begin = Call("greatest", (start, Literal(1)))
        kept = [Call("greatest", (one - (begin - start), Literal(0))) for one in length]
        return Call(
            "case", (start.is_null(), Literal(None), Call("substring", (text, begin, *kept)))
        )
    return Call("substring", tuple(arguments))


def _first_for_zero(start: Expression) -> Expression:
    return Call("case", (start == Literal(0), Literal(1), start))


def _extreme(name: str) -> Rewrite:
    def extreme(arguments: Arguments, scope: Scope) -> Expression:
        found = Call(name, tuple(arguments))
        if scope.spelling.name != "flink":
            return found
        absent = [one.is_null() for one in arguments if not isinstance(one, Literal)]
        return (
            Call("case", (*(part for one in absent for part in (one, Literal(None))), found))
            if absent
            else found
        )

    return extreme


def _round(arguments: Arguments, scope: Scope) -> Expression:
    spelling = scope.spelling
    if not spelling.rounds_away or not scope.kind(arguments[0]).is_float():
        return Call("round", tuple(arguments))
    # Those on Java round the digits that a float is written with
    java = spelling.name in ("spark", "flink")
    return Call("round_digits" if java else "round_away", tuple(arguments))


def _date_part(arguments: Arguments, scope: Scope) -> Expression:
    part, time = arguments
    spelling = scope.spelling
    name = PARTS.get(str(part.value).lower() if isinstance(part, Literal) else "", "")
    if name == "dow" and spelling.least_date_part:
        return Call("+", (Call("dow", (time,)), Literal(spelling.least_date_part)))
    clock = isinstance(scope.kind(time), pl.Datetime)
    if name in ("second", "millisecond") and clock and not spelling.whole_seconds:
        within = Call("%", (Call("epoch_us", (time,)), Literal(60_000_000)))
        return Call("/", (within, Literal(1e6 if name == "second" else 1e3)))
    return date_part(part, time)


def _isnan(arguments: Arguments, scope: Scope) -> Expression:
    asked = Call("isnan", tuple(arguments))
    return Call("coalesce", (asked, Literal(False))) if scope.spelling.name == "spark" else asked


def _initcap(arguments: Arguments, scope: Scope) -> Expression:
    # Words of Spark are what lies between spaces
    return Call("initcap_words" if scope.spelling.name == "spark" else "initcap", tuple(arguments))


def _add_months(arguments: Arguments, scope: Scope) -> Expression:
    moved = Call("add_months", tuple(arguments))
    return moved.cast("date") if scope.spelling.name == "spark" else moved


def _trunc(arguments: Arguments, scope: Scope) -> Expression:
    value, *unit = arguments
    if unit and scope.kind(value).is_temporal():
        return date_trunc([unit[0], value], scope).cast("date")
    if unit:
        raise LanguageError("TRUNC of a number takes 1 argument: ROUND has digits.")
    return Call("trunc", tuple(arguments))


def _concat_ws(arguments: Arguments, scope: Scope) -> Expression:
    separator, *parts = arguments
    if len(parts) == 1 and isinstance(scope.kind(parts[0]), pl.List):
        return Call("list_join", (parts[0], separator))
    return Call("concat_ws", tuple(arguments))


MEANINGS: Mapping[str, tuple[int, int, Rewrite]] = {
    "substring": (2, 3, _substring), "greatest": (1, 999, _extreme("greatest")),
    "least": (1, 999, _extreme("least")), "round": (1, 2, _round), "date_part": (2, 2, _date_part),
    "isnan": (1, 1, _isnan), "initcap": (1, 1, _initcap), "add_months": (2, 2, _add_months),
    "trunc": (1, 2, _trunc), "concat_ws": (2, 999, _concat_ws),
}  # fmt: skip
"""The least and the most arguments of each, and what it stands for."""
