"""Which rows are late: the stream's own matter, whatever else runs."""

from __future__ import annotations

import polars as pl
import pytest

from anabranch import Session
from anabranch.testing.sources import EpochSource


def epochs(*times: list[int]) -> list[pl.DataFrame]:
    return [
        pl.DataFrame({"time": part, "v": part}, schema={"time": pl.Int64, "v": pl.Int64})
        for part in times
    ]


FAST = epochs([100, 200], [150, 210], [195, 220])
SLOW = epochs([10], [20], [30])


@pytest.mark.parametrize("joined", [False, True])
def test_a_row_is_late_by_its_own_stream_whatever_it_is_joined_with(joined: bool) -> None:
    session = Session.in_process(sites=2)
    session.stream("a", EpochSource(FAST), ordered="time", lateness=10)
    session.stream("b", EpochSource(SLOW), ordered="time", lateness=10)
    session.query("plain", "SELECT time, v FROM a")
    sinks = {"plain": "memory"}
    if joined:
        session.query("both", "SELECT a.time, b.v FROM a JOIN b ON a.v = b.v AND a.time = b.time")
        sinks["both"] = "memory"
    run = session.start(sinks=sinks, at_end="close")
    assert run.await_termination()
    assert sorted(run.results("plain")["time"]) == [100, 200, 210, 220]
    assert run.last_progress["sources"][0]["customMetrics"]["lateRowsTotal"] == 2


@pytest.mark.parametrize("joined", [False, True])
def test_windows_close_to_late_rows_by_their_own_streams(joined: bool) -> None:
    """The join waits for its slow stream with windows open; 149 and 195 are late all the same."""
    session = Session.in_process(sites=2)
    late = EpochSource(epochs([100, 200], [149, 210], [195, 220]))
    for name, source in (("a", late), ("b", EpochSource(SLOW))):
        session.stream(name, source, ordered="time", lateness=10, late="closed-windows")
    session.query("counts", "SELECT tb, COUNT(*) AS c FROM a GROUP BY time/50 AS tb")
    sinks = {"counts": "memory"}
    if joined:
        session.query("both", "SELECT a.time, b.v FROM a JOIN b ON a.v = b.v AND a.time = b.time")
        sinks["both"] = "memory"
    run = session.start(sinks=sinks, at_end="close")
    assert run.await_termination()
    assert sorted(run.results("counts").rows()) == [(2, 1), (4, 3)]
