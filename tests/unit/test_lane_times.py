"""Time by lane: folders that go on unevenly lose nothing; silent ones hold nobody up for ever."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Session
from anabranch.engine.run import Run
from anabranch.errors import SourceError
from anabranch.routing.lane_times import come_together
from anabranch.spec.file import read_spec
from helpers import SCHEMA, Stage, manifests, sample, source_metrics


def write(stage: Stage, lane: str, number: int, rows: pl.DataFrame | None = None) -> pl.DataFrame:
    """File `number` of a lane; files of lane a are older than those of lane b, as when b was copied later."""
    rows = sample(number) if rows is None else rows
    folder = stage.input / lane
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:04d}.parquet"
    rows.write_parquet(folder / "_new")
    stamp = (ord(lane[0]) * 1000 + number) * 10**9
    os.utime(folder / "_new", ns=(stamp, stamp))
    (folder / "_new").rename(path)
    return rows


def lanes_of(stage: Stage) -> dict[str, int | None]:
    times = stage.manifest().streams["rows"].lane_times
    return {lane: one.newest for lane, one in sorted(times.items())}


def watermark(stage: Stage) -> int | None:
    return stage.manifest().watermarks["rows"]


@pytest.mark.parametrize("lanes", [True, False])
def test_lanes_that_go_on_unevenly_lose_nothing(tmp_path: Path, lanes: bool) -> None:
    """All of lane a is read before anything of lane b, file by file."""
    stage = Stage(tmp_path)
    frames = [write(stage, lane, number) for lane in "ab" for number in range(6)]
    run = stage.finish(stage.session(lanes=lanes))
    if lanes:
        assert source_metrics(run)["lateRowsTotal"] == 0
        assert stage.results() == stage.expected(*frames)
    else:
        assert source_metrics(run)["lateRowsTotal"] > 0


def test_parts_of_a_partitioned_stream_are_lanes(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    frames = []
    for at, lane in enumerate("ab"):
        for number in range(4):
            rows = sample(number).with_columns(k=pl.lit(f"key of {lane}"), v=pl.lit(at, pl.Int64))
            frames.append(write(stage, lane, number, rows))
    run = stage.finish(stage.session(partitioned_by=["k"]))
    assert source_metrics(run)["lateRowsTotal"] == 0
    assert stage.results() == stage.expected(*frames)


def test_the_time_of_a_stream_is_that_of_its_slowest_lane(tmp_path: Path) -> None:
    """Over restarts, and told by progress and manifest; windows close when all lanes have passed them."""
    stage = Stage(tmp_path, settings={"max_files_per_epoch": 9})
    session = stage.session(lanes=True)
    frames = [write(stage, "a", 0), write(stage, "b", 0)]
    stage.run(session)
    assert (lanes_of(stage), watermark(stage)) == ({"a": 9, "b": 9}, 9)
    frames.append(write(stage, "a", 5))
    run = stage.run(stage.session(lanes=True))
    assert (lanes_of(stage), watermark(stage)) == ({"a": 59, "b": 9}, 9)
    told = source_metrics(run)["lanes"]
    assert told == {"a": {"max": 59, "idle": False}, "b": {"max": 9, "idle": False}}
    assert stage.results() == []
    frames.append(write(stage, "b", 3))
    stage.run(stage.session(lanes=True))
    assert watermark(stage) == 39
    assert {row[0] for row in stage.results()} == {0}
    stage.finish(stage.session(lanes=True))
    assert stage.results() == stage.expected(*frames)
    assert stage.manifest().streams["rows"].late == 0


def test_a_lane_whose_files_wait_holds_before_its_first_row(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for number in range(3):
        write(stage, "a", number)
    write(stage, "b", 0)
    marks: list[int | None] = []

    def step(name: str, epoch: int) -> None:
        if name == "after-commit":
            marks.append(watermark(stage))

    stage.run(stage.session(lanes=True), on_step=step)
    assert marks == [None, None, None, 9]


def test_a_lane_that_is_new_has_to_be_as_new_as_the_others(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    write(stage, "a", 3)
    stage.run(stage.session(lanes=True))
    assert watermark(stage) == 39
    write(stage, "b", 0, pl.concat([sample(0).head(5), sample(7).head(3)]))
    run = stage.run(stage.session(lanes=True))
    assert source_metrics(run)["lateRowsTotal"] == 5
    assert (lanes_of(stage), watermark(stage)) == ({"a": 39, "b": 70}, 39)


def test_rows_out_of_order_within_a_lane_are_late_by_its_own_time(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for lane in "ab":
        write(stage, lane, 0)
    stage.run(stage.session(lanes=True, lateness=5))
    write(stage, "a", 5)
    stage.run(stage.session(lanes=True, lateness=5))
    early = sample(5).with_columns(time=pl.lit(20, pl.Int64))
    write(stage, "a", 6, early)
    write(stage, "b", 6, early)
    run = stage.run(stage.session(lanes=True, lateness=5))
    assert source_metrics(run)["lateRowsTotal"] == 40, "those of lane a, which has come to 59"


def wait(run: Run, what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert run.is_active, run.exception()
        assert time.monotonic() < deadline, f"waited too long; {run.status}"
        time.sleep(0.01)


@pytest.mark.parametrize("idle", [None, 1.0])
def test_an_idle_lane_does_not_hold_the_watermark(tmp_path: Path, idle: float | None) -> None:
    settings: dict[str, Any] = {"poll_interval_seconds": 0.01, "idle_after_seconds": idle}
    stage = Stage(tmp_path, settings=settings)
    write(stage, "b", 0, sample(0).head(1))
    run = stage.start(stage.session(lanes=True), trigger="continuous")

    def rows() -> int:
        return run._checkpoint.manifest.streams["rows"].rows

    def mark() -> int | None:
        return run._checkpoint.manifest.watermarks["rows"]

    try:
        for number in range(3):
            write(stage, "a", number)
            wait(run, lambda: rows() == 1 + 40 * (number + 1))  # noqa: B023
        if idle is None:
            time.sleep(0.5)
            assert mark() == 0
        else:
            wait(run, lambda: mark() == 29)
            # What it brings from the past is late now; awake again, it holds the watermark again
            write(stage, "b", 1, pl.concat([sample(0).head(3), sample(3).head(2)]))
            write(stage, "a", 9)
            wait(run, lambda: rows() == 166)
            assert run._checkpoint.manifest.streams["rows"].late == 3
            assert mark() == 30
    finally:
        run.stop()
    assert run.exception() is None


def test_lanes_that_are_no_longer_asked_for_hold_nobody(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    write(stage, "a", 5)
    write(stage, "b", 0)
    stage.run(stage.session(lanes=True))
    assert watermark(stage) == 9
    write(stage, "a", 6)
    stage.run()
    assert (lanes_of(stage), watermark(stage)) == ({}, 69)


def test_what_has_no_folders_has_no_lanes(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"lanes= is for files"):
        Session.in_process().stream("s", generator="packets", ordered="time", lanes=True)
    stage = Stage(tmp_path)
    stage.write(0)
    assert "0000.parquet' is in none" in stage.refused(SourceError, stage.session(lanes=True))


SPECS = {
    "a.sql": """CREATE STREAM rows (time BIGINT, k TEXT, v BIGINT) ORDERED BY time
        WITH (path = 'FOLDER', format = 'parquet', lanes = true);
        CREATE QUERY q AS SELECT time, k FROM rows;""",
    "a.yml": """
streams: {rows: {path: "FOLDER", format: parquet, ordered: time, lanes: true,
    schema: {time: int64, k: string, v: int64}}}
queries: {q: "SELECT time, k FROM rows"}
""",
}


@pytest.mark.parametrize("file", SPECS)
def test_files_for_the_command_line_can_ask_for_lanes(tmp_path: Path, file: str) -> None:
    stage = Stage(tmp_path)
    write(stage, "a", 0)
    path = tmp_path / file
    path.write_text(SPECS[file].replace("FOLDER", str(stage.input)))
    session = read_spec(path).session(in_process=True)
    assert "in lanes" in " ".join(session.explain().split())


def test_how_far_several_have_come_together() -> None:
    assert come_together({}, []) is None
    assert come_together({"a": 3, "b": 7}, []) == 3
    assert come_together({"a": 3, "b": None}, []) is None
    assert come_together({"a": 3, "b": None}, ["b"]) == 3
    assert come_together({"a": 3, "b": 7}, ["a"]) == 7
    assert come_together({"a": 3, "b": 7, "c": None}, ["a", "b", "c"]) == 7


@pytest.mark.parametrize("seed", range(12))
def test_lanes_at_random_give_what_the_whole_input_gives(tmp_path: Path, seed: int) -> None:
    """Lanes of different pace, files of different size, runs that end and go on with other sites."""
    rng = random.Random(seed)
    lateness = rng.choice([0, 4])
    stage = Stage(tmp_path, settings={"max_files_per_epoch": rng.choice([1, 2, 5])})
    clocks = {lane: rng.randrange(10, 30) for lane in "abcd"[: rng.randrange(2, 5)]}
    frames = []
    numbers = dict.fromkeys(clocks, 0)
    for lane, now in clocks.items():
        # A lane that is not there from the beginning cannot be waited for
        first = pl.DataFrame({"time": [now], "k": ["x"], "v": [0]}, schema=SCHEMA)
        frames.append(write(stage, lane, 0, first))
    for _ in range(4):
        for _ in range(rng.randrange(1, 8)):
            lane = rng.choice(list(clocks))
            numbers[lane] += 1
            count = rng.randrange(1, 30)
            begin, clocks[lane] = clocks[lane], clocks[lane] + rng.choice([0, 3, 40])
            times = [rng.randint(begin - lateness, clocks[lane]) for _ in range(count)]
            rows = pl.DataFrame(
                {"time": times, "k": rng.choices("xyz", k=count), "v": range(count)}, schema=SCHEMA
            )
            frames.append(write(stage, lane, numbers[lane], rows))
        stage.run(stage.session(lanes=True, lateness=lateness))
        entries = [entry.watermarks["rows"] for entry in manifests(stage.checkpoint)]
        known = [mark for mark in entries if mark is not None]
        assert known == sorted(known), "time never goes back"
    stage.finish(stage.session(lanes=True, lateness=lateness))
    assert stage.manifest().streams["rows"].late == 0
    assert stage.results() == stage.expected(*frames)


def test_a_lane_whose_first_file_has_no_rows_counts(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    frames = [write(stage, "a", 0), write(stage, "b", 0, sample(0).clear())]
    stage.run(stage.session(lanes=True))
    frames.append(write(stage, "a", 1))
    stage.run(stage.session(lanes=True))
    assert watermark(stage) is None
    frames.append(write(stage, "b", 1, sample(0)))
    run = stage.finish(stage.session(lanes=True))
    assert source_metrics(run)["lateRowsTotal"] == 0
    assert stage.results() == stage.expected(*frames)


def test_an_epoch_writes_of_lanes_what_has_changed(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.settings = {"max_files_per_epoch": 1000, "keep_manifests": 100}
    for at in range(60):
        write(stage, f"lane-{at:02d}", 0)
    stage.run(stage.session(lanes=True))
    for number in range(1, 4):
        stage.settings = {"max_files_per_epoch": 1, "keep_manifests": 100}
        write(stage, "lane-07", number)
    stage.run(stage.session(lanes=True))
    entries = [json.loads(path.read_bytes()) for path in stage.checkpoint.glob("manifests/*.json")]
    deltas = [entry["state"]["streams"]["rows"] for entry in entries if entry["kind"] == "delta"]
    assert deltas
    assert all([*record["lane_times"]] == ["lane-07"] for record in deltas)
    assert len(stage.manifest().streams["rows"].lane_times) == 60
