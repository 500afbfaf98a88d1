"""CURRENT_TIMESTAMP: one time in each epoch, that of its manifest, whatever is run again."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session
from anabranch.engine import ordering
from anabranch.errors import AnabranchError
from anabranch.operators.told import Stamp
from anabranch.state.place import place
from anabranch.state.store import read_latest
from anabranch.testing.oracle import EpochSource

START = datetime(2024, 2, 28, 23, 59, 59, tzinfo=UTC)
FRAMES = [
    pl.DataFrame({"time": [10 * at, 10 * at + 1], "k": ["a", "b"]}).with_columns(
        seen=START.replace(tzinfo=None) + timedelta(hours=at)
    )
    for at in range(6)
]
QUERIES = {
    "q": "SELECT time, CURRENT_TIMESTAMP AS at, now() AS again, CURRENT_DATE AS day FROM s",
    "fresh": "SELECT time FROM s WHERE seen > NOW() - INTERVAL '3 hours' AND k = 'a'",
    "grouped": "SELECT w, MAX(at) AS last FROM (SELECT time // 30 AS w, NOW() AS at FROM s) GROUP BY w",
    "behind": "SELECT w, n, NOW() AS at FROM (SELECT time // 10 AS w, COUNT(*) AS n FROM s "
    "GROUP BY time // 10)",
}


class Clock:
    """Goes on by half an hour whenever it is asked, and is set back now and then."""

    def __init__(self) -> None:
        self.asked = 0

    def time(self) -> float:
        self.asked += 1
        return START.timestamp() + (self.asked % 7) * 1800


class Crash(BaseException):
    pass


def run(folder: Path, crashes: dict[int, str]) -> dict[int, datetime]:
    """The time of each epoch by its manifest."""
    times: dict[int, datetime] = {}

    def crash(at: str, epoch: int) -> None:
        if at == "after-commit":
            manifest = read_latest(place(str(folder / "checkpoint")))
            assert manifest is not None
            times[epoch] = datetime.fromtimestamp(manifest.now / 1e6, UTC).replace(tzinfo=None)
        if crashes.get(epoch) == at:
            del crashes[epoch]
            raise Crash

    while True:
        session = Session.in_process(2, {"poll_interval_seconds": 0.0})
        session.stream("s", EpochSource(FRAMES), ordered="time")
        for name, sql in QUERIES.items():
            session.query(name, sql)
        sinks = {name: folder / name for name in QUERIES}
        going = session.start(
            sinks=sinks, checkpoint=folder / "checkpoint", on_step=crash, at_end="close"
        )
        try:
            going.await_termination()
            return times
        except AnabranchError:
            continue


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    return sorted(pl.read_parquet(folder / query / "**" / "*.parquet").rows())


CRASHES = {1: "before-commit", 2: "after-commit", 3: "before-tasks", 4: "after-publish"}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "time", Clock())


@pytest.mark.parametrize("crashes", [{}, CRASHES], ids=["plain", "crashes"])
def test_every_epoch_has_the_time_of_its_manifest(tmp_path: Path, crashes: dict[int, str]) -> None:
    times = run(tmp_path, dict(crashes))
    assert sorted(times.values()) == [times[epoch] for epoch in sorted(times)]
    known = {row[0]: times[at] for at, frame in enumerate(FRAMES) for row in frame.rows()}
    assert rows(tmp_path, "q") == sorted((t, at, at, at.date()) for t, at in known.items())
    fresh = [
        (t,) for frame in FRAMES for t, k, seen in frame.rows()
        if k == "a" and seen > known[t] - timedelta(hours=3)
    ]  # fmt: skip
    assert rows(tmp_path, "fresh") == fresh
    last = [(w, max(at for t, at in known.items() if t // 30 == w)) for w in (0, 1)]
    assert rows(tmp_path, "grouped") == last
    for w, n, at in rows(tmp_path, "behind"):
        assert (n, at in times.values()) == (2, True)
        assert at >= known[10 * w]


def test_a_time_that_differs_from_the_manifest_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = pl.lit(datetime(2025, 1, 1))
    monkeypatch.setattr(
        Stamp, "__call__", lambda step, rows: rows.with_columns(late.alias(step.name))
    )
    with pytest.raises(AssertionError):
        test_every_epoch_has_the_time_of_its_manifest(tmp_path, {})


def test_a_column_of_that_name_comes_first() -> None:
    session = Session.in_process(1)
    frame = pl.DataFrame({"time": [1], "current_date": [date(2020, 1, 1)]})
    session.stream("s", EpochSource([frame]), ordered="time")
    session.query(
        "q", "SELECT current_date AS d, NOW() >= TIMESTAMP '2024-02-28 00:00:00' AS up FROM s"
    )
    going = session.start(sinks={"q": "memory"})
    going.await_termination()
    assert going.results("q").rows() == [(date(2020, 1, 1), True)]
