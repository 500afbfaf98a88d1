"""What is remembered of the files that were read: never read twice or lost, and not more than it takes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch.engine.run import Run
from anabranch.errors import StateError
from anabranch.sources import seen, tree
from anabranch.sources.base import EpochLimits, Offer, ReadContext
from anabranch.sources.file_reader import FileReader
from anabranch.sources.files import file_source
from anabranch.state.place import Place
from helpers import SCHEMA, Stage, sample

LIMITS = EpochLimits(1_000, 1 << 40, 1 << 40, 1)


class Reading:
    """A stream of empty files, read by one run after the other, without the runs."""

    def __init__(self, root: Path) -> None:
        self.input, self.place = root / "in", Place(root / "checkpoint")
        self.input.mkdir(parents=True)
        self.offset: dict[str, Any] | None = None
        self.taken: list[str] = []
        self.reader: FileReader | None = None

    def put(self, *names: str) -> None:
        for name in names:
            (self.input / name).parent.mkdir(exist_ok=True)
            (self.input / name).touch()

    def start(self) -> None:
        if self.reader is not None:
            self.reader.stop()
        source = file_source("s", str(self.input), "csv", SCHEMA)
        self.reader = source.open(ReadContext(self.offset, False, ("time",), self.place))

    def take(self, limits: EpochLimits = LIMITS) -> list[str]:
        """The names of the files that the next epoch reads."""
        assert self.reader
        offer = self.reader.poll(limits, len(self.taken))
        if offer is None:
            return []
        self.commit(offer)
        names = [piece.path.removeprefix(f"{self.input}/") for piece in offer.pieces]
        self.taken += names
        return names

    def commit(self, offer: Offer) -> None:
        assert self.reader
        self.offset = json.loads(json.dumps(offer.offset))
        self.reader.committed(offer.offset)

    def remembered(self) -> int:
        """The names in the manifest and in the logs it names."""
        assert self.offset
        logs = [json.loads(self.place.read(log))["files"] for log, _ in self.offset["logs"]]
        return len(self.offset["recent"]) + sum(map(len, logs))


@pytest.fixture
def reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reading]:
    # The times of folders are counted in steps, which tests are faster than
    monkeypatch.setattr(tree, "LARGE", 0)
    reading = Reading(tmp_path)
    yield reading
    if reading.reader is not None:
        reading.reader.stop()


def test_what_is_remembered_of_files_that_come_and_go_does_not_grow(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are deleted once they are old; so are their names, and the manifest stays small."""
    monkeypatch.setattr(seen, "RECENT", 4)
    monkeypatch.setattr(seen, "KEPT", 50)
    reading.start()
    names, sizes = [], []
    for number in range(0, 1_200, 3):
        fresh = [f"{number + one:05d}.csv" for one in range(3)]
        reading.put(*fresh)
        assert reading.take() == fresh
        names += fresh
        for name in names[-23:-20]:
            (reading.input / name).unlink()
        if number % 60 == 0:
            reading.start()
        sizes.append((reading.remembered(), len(json.dumps(reading.offset))))
    assert reading.taken == names
    early, late = sizes[100:200], sizes[-100:]
    assert max(late)[0] <= 2 * (23 + 50) + 60, (
        "those that are there, and some of those that are not"
    )
    assert max(size for _, size in late) <= 1.1 * max(size for _, size in early)
    assert reading.offset
    assert reading.offset["forgotten"] > 900
    assert reading.offset["files"] == 1_200


@pytest.mark.parametrize("restart", [True, False])
def test_a_name_that_was_taken_away_is_known_for_a_while(
    reading: Reading, monkeypatch: pytest.MonkeyPatch, restart: bool
) -> None:
    monkeypatch.setattr(seen, "RECENT", 1)
    monkeypatch.setattr(seen, "KEPT", 20)
    reading.put("a.csv")
    reading.start()
    assert reading.take() == ["a.csv"]
    for number in range(200):
        reading.put(f"{number}.csv")
        assert reading.take() == [f"{number}.csv"]
        if number == 3:
            (reading.input / "a.csv").unlink()
        if number == 15:
            reading.put("a.csv")
            assert reading.take() == [], "it is back, and was read"
        if number == 17:
            (reading.input / "a.csv").unlink()
        if restart:
            reading.start()
        assert reading.offset
        if reading.offset["forgotten"]:
            break
    assert 17 + 20 < number < 199
    reading.put("a.csv")
    assert reading.take() == ["a.csv"], "so much came since then that it is another one"


@pytest.mark.parametrize("restart", [True, False])
def test_a_folder_that_is_away_for_a_while_is_not_read_again(
    reading: Reading, restart: bool, tmp_path: Path
) -> None:
    """Moved away and back, as one that is not mounted is; other folders are read meanwhile."""
    reading.put("a/1.csv", "a/2.csv", "b/1.csv")
    reading.start()
    assert len(reading.take()) == 3
    (reading.input / "a").rename(tmp_path / "away")
    reading.put("b/2.csv")
    assert reading.take() == ["b/2.csv"]
    if restart:
        reading.start()
    (tmp_path / "away" / "3.csv").touch()
    (tmp_path / "away").rename(reading.input / "a")
    assert reading.take() == ["a/3.csv"]
    assert reading.take() == []


@pytest.mark.parametrize("restart", [True, False])
def test_files_that_come_late_are_read_once(reading: Reading, restart: bool) -> None:
    """With a name before all others, with the time of 1970, and after the clock was set back."""
    reading.put(*(f"m{number}.csv" for number in range(5)))
    reading.start()
    assert len(reading.take()) == 5
    reading.put("a.csv", "m1b.csv", "_z.csv")
    os.utime(reading.input / "m1b.csv", ns=(0, 0))
    os.utime(reading.input, ns=(0, 0))
    if restart:
        reading.start()
    assert reading.take() == ["m1b.csv", "a.csv"]
    (reading.input / "_z.csv").rename(reading.input / "m0a.csv")
    assert reading.take() == ["m0a.csv"]
    reading.put("m1.csv")
    os.replace(reading.input / "m1.csv", reading.input / "m2.csv")
    assert reading.take() == [], "one that is put in the place of one that was read was read"


def test_another_folder_that_is_empty_at_first_is_refused_with_its_first_file(
    tmp_path: Path, reading: Reading
) -> None:
    reading.put("1.csv")
    reading.start()
    assert reading.take() == ["1.csv"]
    reading.input.rename(tmp_path / "before")
    (tmp_path / "other").mkdir()
    reading.input.symlink_to(tmp_path / "other")
    assert reading.take() == []
    reading.put("2.csv")
    with pytest.raises(
        StateError, match=r"the last file it has read, '1\.csv', is not to be found"
    ):
        reading.take()


def test_files_that_wait_are_taken_in_order_also_if_others_come(reading: Reading) -> None:
    for number in (1, 3, 5):
        reading.put(f"{number}.csv")
        os.utime(reading.input / f"{number}.csv", ns=(number, number))
    reading.start()
    one = EpochLimits(1, 1 << 40, 1 << 40, 1)
    assert reading.take(one) == ["1.csv"]
    reading.put("2.csv")
    os.utime(reading.input / "2.csv", ns=(2, 2))
    (reading.input / "3.csv").unlink()
    assert [reading.take(one) for _ in range(3)] == [["2.csv"], ["5.csv"], []]


def test_a_file_that_was_gone_when_it_was_measured_is_read_when_it_is_back(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was listed, deleted, and written again: its name neither came nor went between two looks."""
    reading.start()
    reading.put("a.csv")
    stat = os.stat

    def gone(path: Any, *rest: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("a.csv"):
            raise FileNotFoundError(2, "No such file or directory")
        return stat(path, *rest, **options)

    with monkeypatch.context() as context:
        context.setattr(os, "stat", gone)
        assert reading.take() == []
    assert reading.take() == ["a.csv"]


def test_an_epoch_that_failed_does_not_forget_its_files(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "RECENT", 1)
    reading.put("1.csv", "2.csv", "3.csv")
    reading.start()
    assert reading.reader
    assert reading.reader.poll(LIMITS, 0)
    reading.put("4.csv")
    reading.start()
    assert reading.take() == ["1.csv", "2.csv", "3.csv", "4.csv"]


def wait(run: Run, what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert run.is_active, run.exception()
        assert time.monotonic() < deadline, f"waited too long; {run.status}"
        time.sleep(0.01)


@pytest.mark.parametrize("large", [0, 1_000_000])
def test_a_run_over_folders_that_change_reads_each_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    """New folders, renamed files, deleted ones; with the system's notices and without."""
    monkeypatch.setattr(tree, "LARGE", large)
    monkeypatch.setattr(tree, "SETTLING", 0.05)
    stage = Stage(tmp_path, settings={"poll_interval_seconds": 0.01, "max_files_per_epoch": 3})
    run = stage.start(stage.session(path=f"{stage.input}/**/*.parquet"), trigger="continuous")
    frames: list[pl.DataFrame] = []
    for number in range(12):
        frames.append(sample(number))
        folder = stage.input / f"day={number // 4}"
        folder.mkdir(exist_ok=True)
        # Made elsewhere: a run that has seen a file expects it to stay
        made = tmp_path / "made.parquet"
        sample(number).write_parquet(made)
        made.rename(folder / f"{number}.parquet")
        if number % 4 == 3:
            wait(run, lambda: run._checkpoint.manifest.streams["rows"].rows == 40 * len(frames))
            (folder / f"{number}.parquet").unlink()
    run.stop()
    assert run.exception() is None
    stage.finish(stage.session(path=f"{stage.input}/**/*.parquet"))
    assert stage.results() == stage.expected(*frames)
    assert stage.manifest().streams["rows"].late == 0
