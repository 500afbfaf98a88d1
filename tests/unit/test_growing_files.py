"""Files that change after they were read: refused, followed line by line, or left alone."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from anabranch import Session
from anabranch.errors import SourceError
from anabranch.sources import cutting

SCHEMA = {"time": "bigint", "v": "string"}


def read(folder: Path, checkpoint: Path, **options: Any) -> list[int]:
    """The times that one start gives, at its end."""
    with Session.in_process(sites=2) as session:
        options = {"schema": SCHEMA, "format": "csv", **options}
        session.stream("s", path=folder, ordered="time", lateness=10_000, **options)
        session.query("q", "SELECT time, v FROM s")
        run = session.start(checkpoint=checkpoint, sinks={"q": "memory"})
        assert run.await_termination(60)
        return sorted(run.results("q")["time"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    (made / "a.csv").write_text("time,v\n1,x\n2,x\n")
    return made


def grow(folder: Path, text: str) -> None:
    with open(folder / "a.csv", "a") as file:
        file.write(text)


def test_a_file_that_grew_after_it_was_read_ends_the_run(folder: Path, tmp_path: Path) -> None:
    assert read(folder, tmp_path / "ckpt") == [1, 2]
    grow(folder, "3,x\n")
    with pytest.raises(SourceError, match=r"had 15 bytes when it was read and has 19 now.*follow"):
        read(folder, tmp_path / "ckpt")
    assert read(folder, tmp_path / "ckpt", growing="ignore") == []
    (folder / "b.csv").write_text("time,v\n4,x\n")
    assert read(folder, tmp_path / "ckpt", growing="ignore") == [4]


def test_a_run_that_goes_on_notices_it_too(folder: Path, tmp_path: Path) -> None:
    with Session.in_process() as session:
        session.stream("s", path=folder, schema=SCHEMA, format="csv", ordered="time")
        session.query("q", "SELECT time FROM s")
        run = session.start(trigger="continuous", sinks={"q": "memory"})
        until(lambda: run.results("q").height == 2)
        grow(folder, "3,x\n")
        with pytest.raises(SourceError, match=r"a\.csv' had 15 bytes when it was read"):
            run.await_termination(60)


def until(holds: Any) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come to hold")


def test_whole_lines_of_a_file_that_is_followed_are_read_once(folder: Path, tmp_path: Path) -> None:
    def follow() -> list[int]:
        return read(folder, tmp_path / "ckpt", growing="follow")

    grow(folder, "3,not who")
    assert follow() == [1, 2]
    assert follow() == []
    grow(folder, "le\n4,x\n")
    (folder / "b.csv").write_text("time,v\n")
    assert follow() == [3, 4]
    (folder / "b.csv").write_text("time,v\n5,x\n")
    grow(folder, '6,"a line\nbreak"\n7,"open\n')
    assert follow() == [5, 6]
    grow(folder, 'closed"\n')
    assert follow() == [7]


def test_a_stream_can_begin_to_follow_what_it_has_read(folder: Path, tmp_path: Path) -> None:
    assert read(folder, tmp_path / "ckpt") == [1, 2]
    grow(folder, "3,x\n")
    assert read(folder, tmp_path / "ckpt", growing="follow") == [3]


def test_a_file_that_is_followed_may_only_grow(folder: Path, tmp_path: Path) -> None:
    def follow() -> list[int]:
        return read(folder, tmp_path / "ckpt", growing="follow")

    assert follow() == [1, 2]
    (folder / "a.csv").rename(folder / "a.csv.1")
    with pytest.raises(SourceError, match=r"a\.csv\.1' was called 'a\.csv' when 15 bytes"):
        follow()
    (folder / "a.csv").write_text("time,v\n9,x\n10,x\n")
    with pytest.raises(SourceError, match="is another one than that of which 15 bytes were read"):
        follow()
    os.replace(folder / "a.csv.1", folder / "a.csv")
    grow(folder, "3,x\n")
    assert follow() == [3]
    (folder / "a.csv").write_text("time,v\n")
    with pytest.raises(SourceError, match="was cut short"):
        follow()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"growing": "maybe"}, "growing is 'maybe'; expected one of stop, follow, ignore"),
        ({"growing": "follow", "format": "parquet"}, "for CSV and JSON files"),
        ({"growing": "follow", "clean_source": "delete"}, "cannot be cleaned away"),
        ({"growing": "follow", "comment": "#"}, "cannot be followed: texts that are compressed"),
    ],
)
def test_what_cannot_be_followed_is_refused(
    folder: Path, tmp_path: Path, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(SourceError, match=reason):
        read(folder, tmp_path / "ckpt", **options)


def test_a_log_that_grows_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written in bursts that end anywhere, read by many small takes over several starts."""
    monkeypatch.setattr(cutting, "MOST_AT_ONCE", 2_000)
    monkeypatch.setattr(cutting, "MIN_PIECE_BYTES", 300)
    random.seed(7)
    folder = tmp_path / "in"
    folder.mkdir()
    text = "".join(
        json.dumps({"time": n, "v": "x" * random.randrange(30)}) + "\n" for n in range(3_000)
    )
    path = folder / "log.json"
    path.touch()

    def write() -> None:
        at = 0
        with open(path, "a", buffering=1) as file:
            while at < len(text):
                burst = random.randrange(1, 5_000)
                file.write(text[at : at + burst])
                file.flush()
                at += burst
                time.sleep(0.002)

    writer = threading.Thread(target=write)
    writer.start()
    times: list[int] = []
    for _ in range(3):
        times += read(folder, tmp_path / "ckpt", format="json", growing="follow")
    writer.join()
    times += read(folder, tmp_path / "ckpt", format="json", growing="follow")
    assert sorted(times) == list(range(3_000))
