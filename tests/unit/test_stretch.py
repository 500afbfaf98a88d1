"""Stretches of time asked of keys: what is found in rows sorted by locator and time."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from anabranch.routing.sorting import changes
from anabranch.state.segment import LOCATOR, sort_by_locator
from anabranch.state.stretch import BLOCK, around, bisect, order_within, runs, together

NUMBERS = np.random.default_rng(11)


def some_rows(count: int, keys: int, times: int) -> pl.DataFrame:
    rows = pl.DataFrame(
        {
            LOCATOR: NUMBERS.integers(0, keys, count).astype(np.uint64),
            "time": NUMBERS.integers(-times, times, count),
            "n": np.arange(count),
        }
    )
    return sort_by_locator(rows, "time")


def test_rows_with_one_locator_lie_by_time_and_equal_times_as_they_came() -> None:
    rows = some_rows(5000, 7, 40)
    assert rows.equals(rows.sort(LOCATOR, "time", "n"))


def test_an_order_by_time_is_left_alone_where_nothing_is_wrong() -> None:
    order = np.array([2, 0, 1])
    order_within(order, np.array([True, False, True]), np.array([5, 1, 4]))
    assert order.tolist() == [2, 0, 1]
    order_within(order, np.array([True, False, False]), np.array([5, 1, 4]))
    assert order.tolist() == [1, 2, 0]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("longest", [0, 1, 2, 3, 50])
def test_halving_finds_what_searching_each_run_finds(longest: int, after: bool) -> None:
    lengths = NUMBERS.integers(0, longest + 1, 300)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    values = np.concatenate(
        [np.empty(0, np.int64), *(np.sort(NUMBERS.integers(0, 20, n)) for n in lengths)]
    )
    wanted = NUMBERS.integers(-1, 21, len(lengths))
    side = "right" if after else "left"
    expected = [
        start + int(np.searchsorted(values[start:end], value, side=side))
        for start, end, value in zip(starts, ends, wanted, strict=True)
    ]
    assert bisect(values, starts, ends, wanted, after).tolist() == expected


@pytest.mark.parametrize("keys", [1, 7, 300, 20_000])
def test_runs_begin_and_end_where_searching_from_both_sides_says(keys: int) -> None:
    locators = np.sort(NUMBERS.integers(1, keys + 1, 500)).astype(np.uint64) * np.uint64(1 << 47)
    asked = np.sort(NUMBERS.integers(0, keys + 3, 400)).astype(np.uint64) * np.uint64(1 << 47)
    hit, start, end = runs(locators, asked)
    assert hit.tolist() == np.flatnonzero(np.isin(asked, locators)).tolist()
    assert start.tolist() == np.searchsorted(locators, asked[hit], side="left").tolist()
    assert end.tolist() == np.searchsorted(locators, asked[hit], side="right").tolist()


def test_halving_of_more_runs_than_fit_in_a_block() -> None:
    values = np.arange(10)
    runs = 2 * BLOCK + 1
    wanted = np.arange(runs) % 12 - 1
    found = bisect(values, np.zeros(runs, np.int64), np.full(runs, 10), wanted)
    assert found.tolist() == np.clip(wanted, 0, 10).tolist()


@pytest.mark.parametrize("earlier", [None, 0, 3, -2])
@pytest.mark.parametrize("later", [None, 0, 5, -4])
@pytest.mark.parametrize("others", [1, 2])
def test_stretches_have_the_rows_within_reach_and_no_others(
    earlier: int | None, later: int | None, others: int
) -> None:
    rows = some_rows(400, 6, 60)
    asking = [some_rows(25, 8, 60) for _ in range(others)]
    asked = together(
        [
            around("time", one[LOCATOR].to_numpy(), one["time"].to_numpy(), earlier, later)
            for one in asking
        ]
    )
    places = asked.places(rows[LOCATOR].to_numpy(), rows["time"].to_numpy())
    reach = pl.lit(True)
    if earlier is not None:
        reach = reach & (pl.col("time") >= pl.col("time_right") - earlier)
    if later is not None:
        reach = reach & (pl.col("time") <= pl.col("time_right") + later)
    met = rows.join(pl.concat(asking), on=LOCATOR).filter(reach)["n"].unique()
    assert (
        rows[places]["n"].to_list() == rows.filter(pl.col("n").is_in(met.implode()))["n"].to_list()
    )


def test_rows_near_each_other_ask_for_one_stretch() -> None:
    locators = np.array([1, 1, 1, 1, 2], dtype=np.uint64)
    times = np.array([0, 4, 8, 30, 31])
    asked = around("time", locators, times, 2, 3)
    assert asked.low.tolist() == [-2, 28, 29]
    assert asked.high.tolist() == [11, 33, 34]
    assert changes(asked.locators).tolist() == [True, False, True]
