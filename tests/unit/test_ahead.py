"""Rows too far ahead of the clock: bad rows, so that one wrong clock does not make all others late."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import SettingsError, SourceError
from anabranch.testing.sources import EpochSource


def stamps(*offsets: timedelta) -> pl.DataFrame:
    now = datetime.now(UTC).replace(tzinfo=None)
    return pl.DataFrame({"ts": [now + offset for offset in offsets], "v": range(len(offsets))})


def run(frames: list[pl.DataFrame], tmp_path: Path, **options: object) -> tuple[list[int], int]:
    session = Session.in_process(sites=2)
    ordered = frames[0].columns[0]
    session.stream("s", EpochSource(frames), ordered=ordered, on_bad="dead-letter", **options)
    session.query("q", "SELECT v FROM s")
    started = session.start(sinks={"q": "memory"}, dead_letter=tmp_path / "dead")
    assert started.await_termination()
    told = started.last_progress["sources"][0]["customMetrics"]
    return sorted(started.results("q")["v"]), told["badRowsTotal"]


YEARS = timedelta(days=365 * 900)


def test_a_row_of_a_far_year_is_bad_and_the_rows_of_now_stay_in_time(tmp_path: Path) -> None:
    frames = [stamps(timedelta(0), YEARS), stamps(timedelta(seconds=1), timedelta(seconds=2))]
    assert run(frames, tmp_path, max_ahead="1 day") == ([0, 0, 1], 1)
    (kept,) = (tmp_path / "dead").rglob("*.parquet")
    assert pl.read_parquet(kept)["v"].to_list() == [1]


def test_without_max_ahead_every_time_counts(tmp_path: Path) -> None:
    frames = [stamps(timedelta(0), YEARS), stamps(timedelta(seconds=1), timedelta(seconds=2))]
    assert run(frames, tmp_path) == ([0, 1], 0)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_integers_say_what_they_count(unit: str, tmp_path: Path) -> None:
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    now = int(time.time() * ticks)
    frame = pl.DataFrame({"t": [now, now + 3_500 * ticks, now + 3_700 * ticks], "v": [0, 1, 2]})
    assert run([frame], tmp_path, max_ahead="1 hour", time_unit=unit) == ([0, 1], 1)
    assert run([frame], tmp_path / "2", max_ahead=3_600 * ticks, time_unit=unit) == ([0, 1], 1)


def test_a_run_that_stops_at_bad_rows_says_how_far_ahead_they_are() -> None:
    session = Session.in_process(sites=2)
    session.stream("s", EpochSource([stamps(YEARS)]), ordered="ts", max_ahead="1 day")
    session.query("q", "SELECT v FROM s")
    started = session.start(sinks={"q": "memory"})
    with pytest.raises(SourceError, match="further ahead of the clock than max_ahead allows"):
        started.await_termination()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"max_ahead": 60}, "time_unit='s' or 'ms' or 'us' or 'ns'"),
        ({"max_ahead": 60, "time_unit": "h"}, "not 'h'"),
        ({"time_unit": "s"}, "goes with max_ahead"),
        ({"max_ahead": -1, "time_unit": "s"}, "max_ahead"),
    ],
)
def test_what_cannot_be_measured_is_refused(options: dict[str, object], problem: str) -> None:
    session = Session.in_process()
    frame = pl.DataFrame({"t": [1], "v": [1]})
    with pytest.raises(SettingsError, match=problem):
        session.stream("s", EpochSource([frame]), ordered="t", **options)
