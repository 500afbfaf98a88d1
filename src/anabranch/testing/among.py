"""Random queries for rows among others: the best of windows, rows before and after, running numbers.

What cannot be compared exactly is left out: sums of floats, and the order of rows of another query with the
same time.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.language.aggregate import avg, count, max_, min_, sum_
from anabranch.language.builder import Query
from anabranch.language.expression import col
from anabranch.language.over import (
    NamedRowCall,
    Sort,
    dense_rank,
    desc,
    first_value,
    lag,
    last_value,
    lead,
    nth_value,
    over_frame,
    rank,
    row_number,
)
from anabranch.testing.chooser import Chooser, Clock

SIZES = [5, 1, 2, 10, 30]
LONG = 60


def draw_among(chooser: Chooser, source: Query, keys: Sequence[str], clock: Clock) -> Query:
    """A query over a stream with the columns of `cases.SCHEMA`."""
    some = [key for key in keys if chooser.flag(0.4)][:2]
    source, numbers = _narrowed(source, keys)
    match chooser.choice(["best", "best", "window", "time", "time", "distinct"]):
        case "best":
            return _best(chooser, source, some, clock)
        case "window":
            calls = _calls(chooser, numbers, windowed=True)
            over = source.over(*some, window=_length(chooser, clock), by=_order(chooser, source))
            return over.add(*calls)
        case "distinct":
            few = source.select("time", *some)
            return few.group_by(*few.node.schema).agg().select(*few.node.schema)
    return source.over(*some).add(*_calls(chooser, numbers, windowed=False))


def draw_line(chooser: Chooser, source: Query, keys: Sequence[str]) -> Query:
    """One in the order of time, by one key."""
    source, numbers = _narrowed(source, keys)
    return source.over(chooser.choice(keys)).add(*_calls(chooser, numbers, windowed=False))


def draw_best(chooser: Chooser, source: Query, keys: Sequence[str], clock: Clock) -> Query:
    """The three best rows of a key in a window that is open for several epochs."""
    source, _ = _narrowed(source, keys)
    over = source.over(chooser.choice(keys), window=clock.length(LONG), by=_order(chooser, source))
    return over.add(row_number().alias("place")).where(col("place") <= 3)


def _narrowed(source: Query, keys: Sequence[str]) -> tuple[Query, list[str]]:
    """The rows with their keys and some whole numbers, and the names of these."""
    numbers = [
        name for name, kind in source.node.schema.items() if kind.is_integer() and name != "time"
    ][:3]
    return source.select("time", *dict.fromkeys([*keys, *numbers])), numbers


def _length(chooser: Chooser, clock: Clock) -> int | str:
    return clock.length(chooser.choice(SIZES))


def _order(chooser: Chooser, source: Query) -> list[Sort]:
    names = [name for name, kind in source.node.schema.items() if not kind.is_float()]
    found = []
    for _ in range(chooser.integer(1, 2)):
        name = chooser.choice(names)
        first = chooser.flag(0.3)
        found.append(desc(name, first) if chooser.flag() else Sort(col(name), False, first))
    return found


def _best(chooser: Chooser, source: Query, keys: Sequence[str], clock: Clock) -> Query:
    """The best rows of a window; sometimes of what was grouped before."""
    if chooser.flag(0.3):
        grouped = source.group_by("time", *keys).agg(count().alias("times"))
        assert grouped.node.ordered
        over = grouped.over(window=_one(grouped), by=[desc("times"), *map(Sort, map(col, keys))])
    else:
        over = source.over(*keys, window=_length(chooser, clock), by=_order(chooser, source))
    number = chooser.choice([row_number(), rank(), dense_rank()])
    return over.add(number.alias("place")).where(col("place") <= chooser.integer(1, 4))


def _one(query: Query) -> int | str:
    ordered = query.node.ordered
    return "1 microsecond" if ordered is not None and ordered.timestamps else 1


def _calls(chooser: Chooser, numbers: Sequence[str], windowed: bool) -> list[NamedRowCall]:
    value = col(chooser.choice(numbers))
    before, after = chooser.integer(0, 3), chooser.integer(0, 2)
    small = value.cast("int64") % 1000
    options = [
        row_number(), rank(), dense_rank(), lag(value, chooser.integer(1, 3)), lag(value, 1, 7),
        over_frame(first_value(value), before, 0), over_frame(nth_value(value, 2), before, 0),
        over_frame(sum_(small), None, 0), over_frame(count(), None, 0, by_time=True),
        over_frame(max_(value), None, -1), over_frame(min_(value), None, 0, by_time=True),
        over_frame(sum_(small), 3, -1), over_frame(avg(small), None, 0),
    ]  # fmt: skip
    if windowed or chooser.flag(0.3):
        options += [
            lead(value, chooser.integer(1, 2)), over_frame(last_value(value), before, after),
            over_frame(sum_(small), before, after),
        ]  # fmt: skip
    elif chooser.flag(0.5):
        options += [over_frame(sum_(small), chooser.choice([1, 4, 20]), 0, by_time=True)] * 3
    if windowed:
        options += [over_frame(sum_(small), None, None), over_frame(count(), None, None)]
    return [chooser.choice(options).alias(f"w{number}") for number in range(chooser.integer(1, 3))]
