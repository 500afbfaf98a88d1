"""Random conditions and computed values over columns of every type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping

import polars as pl

from anabranch.language.expression import Expression, call, col, when
from anabranch.testing.chooser import Chooser


def comparison(chooser: Chooser, usable: Mapping[str, pl.DataType]) -> Expression:
    """A condition on one of these columns."""
    if not usable:
        return call("coalesce", True)
    name = chooser.choice(list(usable))
    column, kind = col(name), usable[name]
    number = chooser.integer(-3, 8)
    options = [column.is_not_null(), column.is_null()]
    if kind.is_integer() or kind.is_float():
        options = [
            column >= number,
            column < number + 3,
            column.between(number - 5, number + 5),
        ]
    if kind == pl.Int64:
        options += [column % 3 == 1, (column & 3) != 2, column.is_in([0, 1, number])]
        options += [column.is_in([number, None]), column != number, column // 4 == 0]
    if kind == pl.String:
        options += [column == "a", column >= "A", call("starts_with", column, "a")]
        options += [call("length", column) > 1, column.is_in(["a", "abc", "ü"])]
        options += [column.like("a%"), ~column.like("_"), call("ends_with", column, "c")]
        options.append(column.is_distinct_from("a"))
    if kind == pl.Boolean:
        options.append(column)
    if kind == pl.Date:
        options += [column > dt.date(1970, 1, 1), call("year", column) == 1969]
    return chooser.choice(options)


def computed(chooser: Chooser, of_kind: Callable[[pl.DataType], list[Expression]]) -> Expression:
    """A value computed from a column; `of_kind` has those of a type."""
    options: list[Expression] = []
    for x in of_kind(pl.Int64()):
        options += [x + 3, x * 2 - 1, x // 3, x % 5, x & 7, x ^ 3, -x, x >> 1, x << 2, ~x]
        options += [call("abs", x), call("coalesce", x, 0), x / 4, x.cast("float64")]
        options.append(when((x > 0, "more"), (x == 0, "none"), otherwise="less"))
        options += [
            call("sign", x),
            call("greatest", x, 3),
            call("least", x, 0),
            call("nullif", x, 1),
        ]
        options += [x.is_distinct_from(1), call("ip_text", x), call("ip_prefix", x, 30)]
    for x in of_kind(pl.Float64()):
        options += [x * 2.0, x // 2.0, call("floor", x), call("round", x), x > 0.5]
        options += [call("ceil", x), call("sign", x), call("round", x, 1), call("sqrt", x)]
    for x in of_kind(pl.String()):
        options += [call("concat", x, "-", x), call("substring", x, 1, 2), call("length", x)]
        options += [call("right", x, 2), call("trim", x, "a"), call("replace", x, "a", "bb")]
        options += [call("split_part", x, "s", 2), call("ip_number", x), x.like("%a%_")]
    for x in of_kind(pl.Date()):
        options += [call("month", x), x.cast("string"), call("dow", x), call("doy", x)]
        options += [call("week", x), call("quarter", x), call("epoch", x)]
    for x in of_kind(pl.Datetime("ms")):
        options += [
            call("date_trunc", "hour", x),
            call("date_trunc", "week", x),
            call("second", x),
        ]
    return chooser.choice(options) if options else call("coalesce", 1)
