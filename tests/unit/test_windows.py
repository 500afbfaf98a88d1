"""Windows: which sizes are taken, by which names, and what they may cost before the first row."""

from __future__ import annotations

import datetime as dt
import time
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session, count, count_window, hop
from anabranch.errors import LanguageError
from anabranch.language.over import MOST_ROWS
from anabranch.language.window import MOST_COUNTED, MOST_WINDOWS, Hop, duration
from anabranch.testing.sources import EpochSource


def session(ordered: str = "time") -> Session:
    made = Session.in_process(sites=2)
    made.stream("tcp", generator="packets", rows=1000, ordered=ordered)
    return made


def window_of(sql: str) -> object:
    node = session().query("q", f"SELECT window_start, COUNT(*) AS n FROM tcp GROUP BY {sql}").node
    return node.inputs[0].window  # type: ignore[attr-defined]


def test_a_slide_above_the_size_is_refused_with_the_order_of_the_two() -> None:
    with pytest.raises(LanguageError, match="the size comes first, hop"):
        window_of("HOP(time, 5, 10)")
    with pytest.raises(LanguageError, match="rows between two windows would be in none"):
        session().from_stream("tcp").group_by(hop(5, 10)).agg(count())
    with pytest.raises(LanguageError, match="the size comes first, count_window"):
        session().from_stream("tcp").group_by(count_window(2, 3)).agg(count())


def test_so_it_is_for_lengths_of_time(tmp_path: Path) -> None:
    """Where other systems have the slide first, this is a text that comes along."""
    pl.DataFrame({"ts": [datetime(2026, 1, 1)]}).write_parquet(tmp_path / "one.parquet")
    made = Session.in_process(sites=2)
    made.stream("at", path=tmp_path, ordered="ts")
    grouped = "SELECT window_start, COUNT(*) AS n FROM at GROUP BY HOP(ts, {})"
    with pytest.raises(LanguageError, match="the size comes first, hop"):
        made.query("q", grouped.format("'5 seconds', '10 seconds'"))
    made.query("q", grouped.format("'10 seconds', '5 seconds'"))


def test_sizes_of_windows_may_be_named_in_any_order() -> None:
    assert window_of("HOP(time, slide => 5, size => 10)") == Hop(10, 5)
    with pytest.raises(LanguageError, match="size => …, slide => …"):
        window_of("HOP(time, 10, slide => 5)")
    with pytest.raises(LanguageError, match="size => …, slide => …"):
        window_of("HOP(time, size => 10, step => 5)")


def test_windows_per_row_are_bounded_and_the_number_is_told() -> None:
    with pytest.raises(LanguageError, match="100,000,000 windows; expected at most 10,000"):
        window_of("HOP(time, 100000000, 1)")
    with pytest.raises(LanguageError, match="windows; expected at most 10,000"):
        session().from_stream("tcp").group_by(count_window(10**12, 1)).agg(count())


def test_the_most_windows_per_row_are_planned_in_seconds() -> None:
    made = session()
    made.query(
        "q", f"SELECT window_start, COUNT(*) AS n FROM tcp GROUP BY HOP(time, {MOST_WINDOWS}, 1)"
    )
    begun = time.monotonic()
    made.explain()
    assert time.monotonic() - begun < 5


def test_rows_that_are_counted_are_bounded() -> None:
    """A history beyond any number of rows overflowed once it ran; a long one took a chunk a row."""
    over = "SELECT time, SUM(len) OVER (ORDER BY time ROWS {} PRECEDING) AS s FROM tcp"
    for rows in (MOST_ROWS, 10**9, 10**23):
        with pytest.raises(LanguageError, match="rows: expected at most 10,000"):
            session().query("q", over.format(rows))
    for size in (MOST_COUNTED + 1, 2**62, 2**70):
        with pytest.raises(LanguageError, match="expected at most 1,000,000 rows"):
            session().from_stream("tcp").group_by(count_window(size, size)).agg(count())


def test_the_most_rows_that_are_counted_are_computed_in_seconds() -> None:
    made = session()
    histories = "SUM(len) OVER (PARTITION BY srcIP ORDER BY time ROWS {} PRECEDING) AS s"
    made.query("q", f"SELECT time, srcIP, len, {histories.format(MOST_ROWS - 1)} FROM tcp")
    counted = count_window(MOST_COUNTED, MOST_COUNTED)
    made.query("w", made.from_stream("tcp").group_by(counted).agg(count()))
    run = made.start(sinks={"q": "memory", "w": "memory"}, at_end="close")
    assert run.await_termination(30)
    rows = run.results("q")
    last = rows.group_by("srcIP").agg(pl.col("len").sum(), pl.col("s").max())
    assert last["len"].equals(last["s"].cast(last["len"].dtype))
    assert run.results("w").is_empty()


@pytest.mark.parametrize("digits", [12, 30, 400, 5_000])
@pytest.mark.parametrize(
    "length",
    ["INTERVAL '{}' DAY", "INTERVAL '{}:00:00'", "INTERVAL '{} 00:00:00'", "INTERVAL '{}.5' DAY",
     "INTERVAL '{}:30' HOUR TO MINUTE", "INTERVAL '{}' MONTH", "INTERVAL {} DAY"],
)  # fmt: skip
def test_lengths_that_cannot_be_counted_with_are_refused(length: str, digits: int) -> None:
    made = Session.in_process(sites=2)
    times = pl.DataFrame({"ts": [dt.datetime(2026, 1, 1)]})
    made.stream("t", EpochSource([times]), ordered="ts")
    with pytest.raises(LanguageError, match=r"INTERVAL.*(at most|too long|not a)|digits"):
        made.query("q", f"SELECT ts, ts + {length.format('9' * digits)} AS then FROM t")


def test_numbers_of_more_digits_than_can_be_read_are_refused() -> None:
    endless = "9" * 5_000
    for sql in (
        f"SELECT time, len + {endless} AS x FROM tcp",
        f"SELECT time, LAG(len, {endless}) OVER (ORDER BY time) AS x FROM tcp",
        f"SELECT time FROM tcp LIMIT {endless} BY len",
        f"SELECT time, SUM(len) OVER (ORDER BY time ROWS {endless} PRECEDING) AS s FROM tcp",
    ):
        with pytest.raises(LanguageError, match="number of 5,000 digits does not fit 64 bits"):
            session().query("q", sql)
    with pytest.raises(LanguageError, match="too long to count with"):
        duration(f"{endless} minutes", True, "retain")
