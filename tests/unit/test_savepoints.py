"""Kept epochs of a checkpoint: listed, described, verified, copied, and gone on from."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from anabranch import Session
from anabranch.cli import app
from anabranch.testing.sources import EpochSource

EPOCHS = [
    pl.DataFrame(
        {"t": [10 * n + i % 10 for i in range(50)], "k": [(7 * n + i) % 11 for i in range(50)]}
    )
    for n in range(6)
]
QUERY = "SELECT tb, k, COUNT(*) AS c FROM rows GROUP BY t/30 AS tb, k"


def run(checkpoint: Path, out: Path, epochs: int, end: bool = False) -> None:
    session = Session.in_process(2, {"fsync": False, "keep_manifests": 4})
    session.stream("rows", EpochSource(EPOCHS[:epochs]), ordered="t")
    session.query("q", QUERY)
    started = session.start(
        sinks={"q": out}, checkpoint=checkpoint, at_end="close" if end else "keep"
    )
    assert started.await_termination(60)


def results(out: Path) -> list[Any]:
    return sorted(pl.read_parquet(sorted(out.glob("epoch=*/*.parquet"))).rows())


def ask(*arguments: str | Path, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["checkpoint", *map(str, arguments), "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    run(tmp_path / "ck", tmp_path / "out", 4)
    return tmp_path / "ck"


def test_kept_epochs_are_listed_and_described(checkpoint: Path) -> None:
    listed = ask("list", checkpoint)
    assert [one["epoch"] for one in listed] == [0, 1, 2, 3]
    told = ask("describe", checkpoint)
    assert told["epoch"] == 3
    assert told["streams"]["rows"]["rows"] == 200
    assert told["subqueries"]["q@1"]["rows"] > 0
    partitions = told["exchanges"]["q@1"]["partitions"]
    assert {part["site"] for part in partitions} == {0, 1}
    assert all(a["end"] == b["first"] for a, b in itertools.pairwise(partitions))
    kept = sum(one["bytes"] for one in told["subqueries"].values())
    assert sum(part["bytes"] for part in partitions) == pytest.approx(kept, abs=len(partitions))
    assert told["exchanges"]["q@1"]["aside"] == []
    assert ask("describe", checkpoint, "--epoch", "1")["streams"]["rows"]["rows"] == 100


def test_every_byte_is_verified(checkpoint: Path) -> None:
    whole = ask("verify", checkpoint)
    assert whole["damaged"] == []
    assert whole["files"] > 0
    segment = max((checkpoint / "state").rglob("*.arrow"))
    contents = bytearray(segment.read_bytes())
    contents[len(contents) // 2] ^= 1
    segment.write_bytes(contents)
    (fault,) = ask("verify", checkpoint, code=1)["damaged"]
    assert segment.name in fault["file"]
    manifest = max((checkpoint / "manifests").glob("*.json"))
    manifest.write_bytes(manifest.read_bytes().replace(b'"epoch": 3', b'"epoch": 2'))
    named = [fault["file"] for fault in ask("verify", checkpoint, code=1)["damaged"]]
    assert f"manifests/{manifest.name}" in named


def test_a_run_goes_on_from_a_copy_as_from_the_epoch_that_was_copied(
    checkpoint: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "saved"
    assert ask("copy", checkpoint, saved, "--epoch", "1")["epoch"] == 1
    assert ask("verify", saved)["damaged"] == []
    run(checkpoint, tmp_path / "out", 6, end=True)
    for later in (2, 3, 4, 5, 6):
        assert not (saved / "manifests" / f"{later:012d}.json").exists()
    # The same results, but for the epochs that the copy has not come to: these are made again
    for folder in (tmp_path / "out").glob("epoch=*"):
        if int(folder.name.removeprefix("epoch=")) <= 1:
            (tmp_path / "again").mkdir(exist_ok=True)
            folder_copy = tmp_path / "again" / folder.name
            folder_copy.mkdir()
            for part in folder.iterdir():
                (folder_copy / part.name).write_bytes(part.read_bytes())
    for owner in (tmp_path / "out").glob("_run=*"):
        (tmp_path / "again").mkdir(exist_ok=True)
        (tmp_path / "again" / owner.name).touch()
    run(saved, tmp_path / "again", 6, end=True)
    assert results(tmp_path / "again") == results(tmp_path / "out")


def test_what_is_not_kept_or_no_checkpoint_is_told(checkpoint: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    for arguments, words in (
        (["describe", str(checkpoint), "--epoch", "9"], "Kept are the epochs: 0, 1, 2, 3"),
        (["list", str(tmp_path)], "There is no checkpoint"),
        (["copy", str(checkpoint), str(checkpoint)], "already is a checkpoint"),
        (["copy", str(checkpoint), str(checkpoint / "sub")], "is in the checkpoint itself"),
        (["copy", str(checkpoint), str(tmp_path)], "is not empty"),
        (["copy", str(checkpoint), "/proc/x"], "The checkpoint '/proc/x' cannot be used"),
    ):
        done = runner.invoke(app, ["checkpoint", *arguments])
        assert done.exit_code == 1
        assert words in " ".join(done.output.split())


def test_an_older_epoch_goes_on_whatever_the_sink(tmp_path: Path) -> None:
    """Its results were published before the next epoch: nobody has to have them still."""

    def start(checkpoint: Path, epochs: int, taken: list[Any], **options: Any) -> None:
        session = Session.in_process(2, {"fsync": False, "keep_manifests": 6})
        session.stream("rows", EpochSource(EPOCHS[:epochs]), ordered="t")
        session.query("q", "SELECT t, k FROM rows")
        sink = options.pop(
            "sink", lambda rows, epoch: taken.extend(zip(*rows.to_pydict().values(), strict=True))
        )
        assert session.start(sinks={"q": sink}, checkpoint=checkpoint).await_termination(60)

    first: list[Any] = []
    start(tmp_path / "ck", 5, first)
    ask("copy", tmp_path / "ck", tmp_path / "older", "--epoch", "2")
    again: list[Any] = []
    start(tmp_path / "older", 5, again)
    assert sorted(again) == sorted(first[3 * len(EPOCHS[0]) :])
    ask("copy", tmp_path / "ck", tmp_path / "for a folder", "--epoch", "3")
    start(tmp_path / "for a folder", 5, [], sink=tmp_path / "out")
    assert results(tmp_path / "out") == sorted(first[4 * len(EPOCHS[0]) :])
