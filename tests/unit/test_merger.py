"""Both mergers, by themselves and in a run: what waits, in which order it comes, who is told of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session, col, count_window, first, last, sum_, tumble
from anabranch.engine import transport
from anabranch.engine.run import Run
from anabranch.errors import SettingsError, StateError
from anabranch.explain.json import describe_plan
from anabranch.operators.base import END_OF_TIME, Moment
from anabranch.operators.merger import PENDING, merge_as_they_come, merge_transparently
from anabranch.operators.partials import SEQ, TIME
from anabranch.settings import MERGERS, Settings, read_settings
from anabranch.sources.base import ReadContext, Reader
from anabranch.state.group import SiteState
from anabranch.state.place import Place
from anabranch.state.segment import DUE, LOCATOR, SegmentRef
from anabranch.testing.sources import EpochReader, EpochSource

EVERYWHERE = [(0, 4)]


def rows(*pairs: tuple[int, int]) -> pl.DataFrame:
    """Rows with these times and arrival numbers, over a few partitions."""
    schema = {TIME: pl.Int64, SEQ: pl.Int64}
    frame = pl.DataFrame(list(pairs), schema=schema, orient="row")
    partition = pl.col(SEQ).cast(pl.UInt64) % 4 * 2**48
    return frame.with_columns(partition.alias(LOCATOR), pl.col(SEQ).cast(pl.String).alias("v"))


def pairs(frame: pl.DataFrame | None) -> list[tuple[int, int]]:
    return [] if frame is None else frame.select(TIME, SEQ).rows()


class Site:
    """A site from epoch to epoch, with the segments a manifest would name."""

    def __init__(self, folder: Path) -> None:
        self.place = Place(folder)
        self.refs: list[SegmentRef] = []
        self.files: Iterator[int] = itertools.count()

    def merge(self, frame: pl.DataFrame | None, moment: Moment) -> list[tuple[int, int]]:
        state = SiteState(self.place, tuple(self.refs), EVERYWHERE)
        ready = merge_transparently(frame, state, moment)
        assert ready is None or DUE not in ready.columns
        self.refs += state.write(lambda name: f"{next(self.files)}-{name}", 1 << 40, fsync=False)
        return pairs(ready)


# -- by themselves ----------------------------------------------------------------------------------


def test_rows_come_by_time_then_arrival_once_the_watermark_has_passed(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert site.merge(rows((7, 2), (5, 1), (5, 0), (9, 3)), Moment(None, 6)) == [(5, 0), (5, 1)]
    # The watermark is 6: a row of that time may still come, so one must wait
    assert site.merge(rows((6, 5), (7, 4), (8, 6)), Moment(6, 7)) == [(6, 5)]
    assert site.merge(None, Moment(7, 8)) == [(7, 2), (7, 4)]
    assert site.merge(rows((8, 7)), Moment(8, END_OF_TIME)) == [(8, 6), (8, 7), (9, 3)]
    assert {ref.table for ref in site.refs} == {PENDING}


def test_everything_waits_while_there_is_no_watermark(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert site.merge(rows((2, 1), (1, 0)), Moment(None, None)) == []
    assert site.merge(None, Moment(None, None)) == []
    assert sum(ref.rows for ref in site.refs) == 2
    assert site.merge(rows((0, 2)), Moment(None, 3)) == [(0, 2), (1, 0), (2, 1)]


def test_every_cut_into_epochs_gives_the_same_order(tmp_path: Path) -> None:
    """Rows of three times, out of order by at most the lateness, in every cut and turned around."""
    wanted = [(time, number) for number, time in enumerate([3, 1, 2, 3, 1, 2, 2])]
    lateness = 2
    for cut in range(len(wanted) + 1):
        site = Site(tmp_path / str(cut))
        found: list[tuple[int, int]] = []
        mark: int | None = None
        for part in (wanted[:cut], wanted[cut:]):
            newest = max((time for time, _ in part), default=None)
            after = mark if newest is None else max(mark or newest - lateness, newest - lateness)
            found += site.merge(rows(*reversed(part)) if part else None, Moment(mark, after))
            mark = after
        found += site.merge(None, Moment(mark, END_OF_TIME))
        assert found == sorted(wanted)


def test_best_effort_takes_rows_as_they_come(tmp_path: Path) -> None:
    state = SiteState(Place(tmp_path), (), EVERYWHERE)
    came = rows((7, 2), (5, 1), (5, 0))
    assert pairs(merge_as_they_come(came, state, Moment(None, None))) == [(7, 2), (5, 1), (5, 0)]
    assert merge_as_they_come(None, state, Moment(5, 9)) is None
    assert state.new == {}


# -- in a run ---------------------------------------------------------------------------------------


def history(merge: str, frames: list[list[int]], sites: int = 2) -> Session:
    """A history of two rows over times that are their own values, in these epochs."""
    session = Session.in_process(sites, {"merge": merge, "fsync": False, "split_tasks": 2})
    source = EpochSource([pl.DataFrame({"time": t}, schema={"time": pl.Int64}) for t in frames])
    stream = session.stream("rows", source, ordered="time", lateness=10)
    session.query("past", stream.history(rows=2).agg(sum_("time").alias("sum")))
    return session


def finish(session: Session, checkpoint: Path | None = None, at_end: str = "close") -> Run:
    run = session.start(sinks={"past": "memory"}, checkpoint=checkpoint, at_end=at_end)
    assert run.await_termination(60)
    return run


def test_transparent_waits_and_sorts_and_best_effort_does_neither() -> None:
    epochs = [[4, 1, 3], [2]]
    waiting = finish(history("transparent", epochs), at_end="keep")
    assert waiting.results("past").rows() == []
    closed = finish(history("transparent", epochs)).results("past")
    assert closed.rows() == [(1, 1), (2, 3), (3, 5), (4, 7)]
    at_once = finish(history("best-effort", epochs), at_end="keep").results("past")
    # The first of the two senders has read the larger piece, the rows 1 and 3
    assert at_once.rows() == [(1, 1), (3, 4), (4, 7), (2, 6)]


def test_count_windows_tell_their_times_in_order_whatever_the_merger() -> None:
    session = Session.in_process(1, {"merge": "best-effort", "fsync": False})
    source = EpochSource([pl.DataFrame({"time": [9, 3], "v": [1, 2]})])
    stream = session.stream("rows", source, ordered="time", lateness=10)
    made = stream.group_by(count_window(2)).agg(first("v").alias("a"), last("v").alias("b"))
    session.query("past", made)
    # first and last go by time: the row at 3 came second
    assert finish(session).results("past").rows() == [(3, 9, 2, 1)]


@pytest.mark.parametrize("merge", MERGERS)
def test_a_task_that_is_run_again_gives_the_same(
    merge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the parcels of its senders come to it in another order."""
    epochs = [[4, 1, 3, 9, 2, 7], [5, 6]]
    wanted = finish(history(merge, epochs)).results("past")
    whole = transport.run_site

    def turned(orders: object, level: int, site: int, parcels: Iterable[bytes]) -> Iterator[bytes]:
        return whole(orders, level, site, list(parcels)[::-1])  # type: ignore[arg-type]

    monkeypatch.setattr(transport, "run_site", turned)
    assert finish(history(merge, epochs)).results("past").rows() == wanted.rows()


@pytest.mark.parametrize("before", MERGERS)
def test_a_checkpoint_keeps_to_its_merger(before: str, tmp_path: Path) -> None:
    (other,) = set(MERGERS) - {before}
    frames = [[4, 1, 3], [2], [30]]
    finish(history(before, frames[:2]), tmp_path, "keep")
    with pytest.raises(StateError) as refused:
        history(other, frames).start(sinks={"past": "memory"}, checkpoint=tmp_path)
    assert f"another merger: merger of past@1: was «{before}» and is now «{other}»" in str(
        refused.value
    )
    assert "Give the same setting merge as then" in str(refused.value)
    again = finish(history(before, frames), tmp_path).results("past")
    assert again.height == (5 if before == "transparent" else 1)


def test_a_query_set_without_order_does_not_know_of_mergers(tmp_path: Path) -> None:
    for merge in MERGERS:
        session = Session.in_process(2, {"merge": merge, "fsync": False})
        stream = session.stream("rows", EpochSource([pl.DataFrame({"time": [1]})]), ordered="time")
        session.query("past", stream.group_by(tumble(5)).agg(last("time").alias("l")))
        assert "merger" not in session.explain()
        finish(session, tmp_path, "keep")


def test_explain_names_the_merger() -> None:
    told = history("transparent", [[1]]).explain()
    assert "    transparent merger: rows by time, once the watermark has passed them\n" in told
    session = history("best-effort", [[1]])
    assert "    best-effort merger: rows as they come" in session.explain()
    (part,) = describe_plan(session.explanation())["subqueries"]
    assert part["merger"] == "best-effort"


def test_another_merger_is_refused_by_name() -> None:
    with pytest.raises(SettingsError) as refused:
        Settings(merge="besteffort")
    assert str(refused.value) == (
        "Setting 'merge' is 'besteffort'; expected one of transparent, best-effort. "
        "Did you mean 'best-effort'?"
    )
    assert read_settings({"merge": "best-effort"}).merge == "best-effort"


# -- idle streams -----------------------------------------------------------------------------------


class Endless(EpochSource):
    """A source that is silent after its last frame, but has not ended."""

    def open(self, context: ReadContext) -> Reader:
        return EndlessReader(self.frames, int(context.offset or 0))


class EndlessReader(EpochReader):
    def finished(self) -> bool:
        return False


def two_streams(one: list[list[int]], two: list[list[int]], idle: float | None) -> Session:
    values = {"idle_after_seconds": idle, "poll_interval_seconds": 0.01, "fsync": False}
    session = Session.in_process(2, values)
    streams = [
        session.stream(
            name,
            Endless([pl.DataFrame({"time": t}, schema={"time": pl.Int64}) for t in frames]),
            ordered="time",
        )
        for name, frames in (("one", one), ("two", two))
    ]
    both = streams[0].union(streams[1])
    session.query("past", both.history(rows=2).agg(sum_(col("time")).alias("sum")))
    return session


def wait(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize(
    ("one", "two", "released"),
    [
        # Never had a row; falls behind; and all fall silent at once, the one behind holds up nobody
        ([[10, 30], [32, 40]], [[]], [10, 30, 32]),
        ([[10], [30, 20], [40]], [[5]], [5, 10, 20, 30]),
        ([[10, 30, 20]], [[5]], [5, 10, 20]),
    ],
)
def test_an_idle_stream_does_not_hold_rows_back_for_ever(
    one: list[list[int]], two: list[list[int]], released: list[int]
) -> None:
    run = two_streams(one, two, idle=0.2).start(sinks={"past": "memory"}, trigger="continuous")
    try:
        assert wait(lambda: run.results("past").height >= len(released))
        assert run.results("past")["time"].to_list() == released
    finally:
        run.stop()


def test_without_the_setting_rows_wait_for_a_silent_stream() -> None:
    run = two_streams([[10, 30], [20, 40]], [[]], None).start(
        sinks={"past": "memory"}, trigger="continuous"
    )
    try:
        assert wait(lambda: len(run.recent_progress) == 2)
        assert not wait(lambda: run.results("past").height > 0, seconds=0.5)
    finally:
        run.stop()
