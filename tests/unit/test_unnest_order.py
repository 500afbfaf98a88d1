"""Elements of one row keep their order: what depends on it sees them by their position in the list."""

from __future__ import annotations

import random

import polars as pl
import pytest

from anabranch import Session
from anabranch.language.aggregate import last
from anabranch.language.collecting import array_agg
from anabranch.language.expression import col
from anabranch.operators.collected import Collected
from anabranch.operators.partials import SEQ, TIME, FirstOrLast
from anabranch.sinks.driver import MemorySink
from anabranch.testing.sources import EpochSource

Row = tuple[int, int, list[int]]
ELEMENTS = "FROM s CROSS JOIN UNNEST(xs) AS u(x)"


def arrivals(seed: int) -> list[Row]:
    """Rows out of order, many of the same time, with many elements each."""
    rng = random.Random(seed)
    rows = [
        (place // 20, rng.randrange(2), [rng.randrange(9) for _ in range(rng.randrange(30))])
        for place in range(120)
    ]
    rng.shuffle(rows)
    return rows


def results(text: str, rows: list[Row], strategy: str = "subquery") -> list[tuple[object, ...]]:
    schema = {"time": pl.Int64, "k": pl.Int64, "xs": pl.List(pl.Int64)}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    session = Session.in_process(sites=3, settings={"strategy": strategy, "compaction_fan": 2})
    source = EpochSource([frame[:50], frame[50:51], frame[51:90], frame[90:]])
    session.stream("s", source, ordered="time", lateness=100)
    sink = MemorySink()
    session.query("q", text)
    session.start(sinks={"q": sink}, at_end="close").await_termination()
    return sorted(sink.rows().rows(), key=str)


def elements(rows: list[Row]) -> list[tuple[int, int, int]]:
    """Time, key and element: by time, then arrival, then position."""
    return [(time, k, x) for time, k, xs in sorted(rows, key=lambda row: row[0]) for x in xs]


@pytest.mark.parametrize("strategy", ["subquery", "operator"])
def test_first_last_and_lists_go_by_position(strategy: str) -> None:
    rows = arrivals(1)
    groups: dict[tuple[int, int], list[int]] = {}
    for time, k, x in elements(rows):
        groups.setdefault((time // 3, k), []).append(x)
    calls = "FIRST(x) AS a, LAST(x) AS b, ARRAY_AGG(x) AS c, ARRAY_AGG(x ORDER BY x/3 DESC) AS d"
    found = results(f"SELECT tb, k, {calls} {ELEMENTS} GROUP BY time/3 AS tb, k", rows, strategy)
    assert found == sorted(
        (
            (*place, xs[0], xs[-1], xs, sorted(xs, key=lambda x: -(x // 3)))
            for place, xs in groups.items()
        ),
        key=str,
    )


@pytest.mark.parametrize("strategy", ["subquery", "operator"])
def test_rows_before_go_by_position(strategy: str) -> None:
    rows = arrivals(2)
    before: dict[int, list[int]] = {}
    expected = []
    for time, k, x in elements(rows):
        earlier = before.setdefault(k, [])
        earlier.append(x)
        expected.append((time, k, x, earlier[-2] if len(earlier) > 1 else None, len(earlier)))
    over = "OVER (PARTITION BY k ORDER BY time)"
    asked = f"SELECT time, k, x, LAG(x) {over} AS l, ROW_NUMBER() {over} AS n {ELEMENTS}"
    assert results(asked, rows, strategy) == sorted(expected, key=str)


@pytest.mark.parametrize("strategy", ["subquery", "operator"])
def test_elements_of_elements_go_by_both_positions(strategy: str) -> None:
    rows = arrivals(3)
    pairs = "(SELECT time, k, x, [x, 10 - x, x + 1] AS ys FROM s CROSS JOIN UNNEST(xs) AS u(x))"
    groups: dict[tuple[int, int], list[int]] = {}
    for time, k, x in elements(rows):
        groups.setdefault((time // 3, k), []).extend((x, 10 - x, x + 1))
    found = results(
        f"SELECT tb, k, ARRAY_AGG(y) AS l, LAST(y) AS b FROM {pairs} AS p CROSS JOIN UNNEST(ys) AS v(y) "
        "GROUP BY time/3 AS tb, k",
        rows,
        strategy,
    )
    assert found == sorted(((*place, ys, ys[-1]) for place, ys in groups.items()), key=str)


def test_partials_keep_the_order_of_rows_that_arrived_as_one() -> None:
    """Whatever way Polars goes: groups here are not known to be sorted."""
    rows = pl.DataFrame(
        {"g": [0] * 400, TIME: [0] * 400, SEQ: [place // 40 for place in range(400)][::-1]}
    ).with_columns(v=pl.int_range(400))
    ordered = sorted(range(400), key=lambda place: rows[SEQ][place])
    newest = FirstOrLast("p", "v", last("v"))
    (found,) = rows.group_by("g").agg(newest.update(rows)[0]).get_column("p")
    assert found == ordered[-1]
    held = rows.with_columns(a=pl.struct(value=pl.col("v")))
    every = Collected("p", "a", array_agg(col("v")))
    lists = held.group_by("g").agg(every.update(held)).select(every.finish())
    assert lists.to_series().to_list() == [ordered]
