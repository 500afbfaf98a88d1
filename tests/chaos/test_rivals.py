"""Two drivers on one checkpoint: one line of manifests, right results, and nothing deleted by the loser."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing as mp
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anabranch.errors import AnabranchError, StateError
from anabranch.state.ledger import Ledger, read_newest
from anabranch.state.place import place
from anabranch.state.store import Store
from helpers import Stage, manifests, missing, sample

FILES = 6
GOOD = [sample(number) for number in range(FILES)]
RIVAL = Path(__file__).with_name("rival.py")
ROUNDS = 6


def filled(root: Path) -> Stage:
    stage = Stage(root)
    for number, rows in enumerate(GOOD):
        stage.write(number, rows)
    return stage


def rival(stage: Stage, checkpoint: str, *stop: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(RIVAL), str(stage.root), checkpoint, *stop]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@contextlib.contextmanager
def stopped(stage: Stage, checkpoint: str, step: str, epoch: int) -> Iterator[Any]:
    """A driver that has stopped itself in the middle."""
    process = rival(stage, checkpoint, step, str(epoch))
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait(60)


def contents(*folders: Path) -> dict[Path, str]:
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def one_line(stage: Stage) -> None:
    """The kept manifests follow one another, all of the last run."""
    entries = manifests(stage.checkpoint)
    first = entries[0].serial
    assert [entry.serial for entry in entries] == list(range(first, first + len(entries)))
    assert len({entry.token for entry in entries}) == 1
    assert missing(stage.checkpoint) == set()


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("step", "spelling"),
    [
        ("begin", "{0}"),
        ("before-tasks", "file://{0}"),
        ("before-commit", "{0}"),
        ("link", "{0}"),
        ("link", "file://{0}"),
        ("after-commit", "{0}"),
        ("after-publish", "{0}"),
    ],
)
def test_a_driver_that_was_stopped_loses_to_the_one_that_took_over(
    tmp_path: Path, step: str, spelling: str
) -> None:
    stage = filled(tmp_path)
    checkpoint = spelling.format(stage.checkpoint)
    with stopped(stage, checkpoint, step, 2) as loser:
        assert "is in use by process" in stage.refused(StateError, checkpoint=checkpoint)
        (stage.checkpoint / "lock").unlink()
        stage.finish(checkpoint=checkpoint)
        assert stage.results() == stage.expected(*GOOD)
        before = contents(stage.checkpoint, stage.out, stage.dead)
        one_line(stage)
        os.kill(loser.pid, signal.SIGCONT)
        said, _ = loser.communicate(timeout=60)
        after = contents(stage.checkpoint, stage.out, stage.dead)
        assert "Another run has taken over the checkpoint" in said
        assert f"process {os.getpid()} on " in said
        assert {path: after.get(path) for path in before} == before, (
            "the loser has deleted something"
        )
    assert stage.results() == stage.expected(*GOOD)
    one_line(stage)
    stage.run(checkpoint=checkpoint)
    assert stage.results() == stage.expected(*GOOD)


@pytest.mark.chaos
def test_a_loser_whose_epoch_fails_deletes_nothing_of_the_winner(tmp_path: Path) -> None:
    """It fails because the winner swept its files away; its own sweep must not touch the winner's."""
    stage = filled(tmp_path)
    with stopped(stage, str(stage.checkpoint), "before-tasks", 3) as loser:
        (stage.checkpoint / "lock").unlink()
        held: list[dict[Path, str]] = []

        def step(name: str, epoch: int) -> None:
            if (name, epoch) == ("before-commit", 3):
                # The winner has written segments that no manifest names yet
                held.append(contents(stage.checkpoint))
                os.kill(loser.pid, signal.SIGCONT)
                said, _ = loser.communicate(timeout=60)
                assert "Another run has taken over" in said
                after = contents(stage.checkpoint)
                assert {path: after.get(path) for path in held[0]} == held[0]

        stage.finish(on_step=step)
        assert held
    assert stage.results() == stage.expected(*GOOD)
    one_line(stage)


def _rounds(folders: list[str], spelling: str, barrier: Any, told: Any) -> None:
    """A process that starts a run on one folder after another, at the same time as its rival."""
    for folder in folders:
        stage = Stage(Path(folder))
        barrier.wait()
        removing = threading.Timer(
            0.002, lambda at=stage.checkpoint / "lock": at.unlink(missing_ok=True)
        )
        removing.start()
        try:
            stage.finish(checkpoint=spelling.format(stage.checkpoint))
            told.put((folder, "done"))
        except AnabranchError as error:
            told.put((folder, str(error)))
        except BaseException as error:
            told.put((folder, f"not an error of ours: {error!r}"))
        removing.join()


@pytest.mark.chaos
@pytest.mark.parametrize("other", ["{0}", "{0}/../checkpoint", "file://{0}", "{0}-link"])
def test_of_two_drivers_started_at_once_one_comes_through(tmp_path: Path, other: str) -> None:
    """The lock is deleted all the time, so that only the ledger keeps them apart."""
    stages = [filled(tmp_path / str(number)) for number in range(ROUNDS)]
    for stage in stages:
        stage.checkpoint.mkdir()
        Path(f"{stage.checkpoint}-link").symlink_to(stage.checkpoint)
    context = mp.get_context("spawn")
    barrier, told = context.Barrier(2), context.Queue()
    folders = [str(stage.root) for stage in stages]
    rivals = [
        context.Process(target=_rounds, args=(folders, spelling, barrier, told))
        for spelling in ("{0}", other)
    ]
    for process in rivals:
        process.start()
    answers: dict[str, list[str]] = {}
    for _ in range(2 * ROUNDS):
        folder, said = told.get(timeout=120)
        answers.setdefault(folder, []).append(said)
    for process in rivals:
        process.join(60)
    for stage in stages:
        said = sorted(answers[str(stage.root)], key=lambda words: words == "done")
        assert said[1] == "done", said
        # The other was overtaken, refused by the ledger or by the result folder, or came when all was over
        allowed = (
            "Another run has taken over",
            "is in use by process",
            "Stop that run first",
            "done",
        )
        assert any(words in said[0] for words in allowed), said
        assert stage.results() == stage.expected(*GOOD)
        assert missing(stage.checkpoint) == set()


def test_a_number_that_was_cleared_away_cannot_be_taken_again(tmp_path: Path) -> None:
    """A driver that slept while others came far beyond its next entry."""
    stage = filled(tmp_path)
    stage.run(session=stage.session())
    folder = place(str(stage.checkpoint))
    sleeper = Ledger(folder, fsync=False)
    entry = sleeper.latest()
    assert entry
    sleeper.claim(entry)
    for _ in range(5):
        stage.run()
    before = contents(stage.checkpoint)
    assert not (stage.checkpoint / f"manifests/{entry.serial + 2:012d}.json").exists()
    with pytest.raises(StateError, match="Another run has taken over"):
        sleeper.commit(entry)
    assert sleeper.sweep() == 0
    with pytest.raises(StateError, match="Another run has taken over"):
        sleeper.clear()
    assert contents(stage.checkpoint) == before


def test_a_claim_comes_before_anything_is_swept(tmp_path: Path) -> None:
    stage = filled(tmp_path)
    stage.run()
    newest = read_newest(place(str(stage.checkpoint)))
    assert newest
    one, other = (Ledger(place(str(stage.checkpoint)), fsync=False) for _ in range(2))
    assert one.latest() == other.latest() == newest
    one.claim(newest)
    with pytest.raises(StateError, match="Another run has taken over"):
        other.claim(newest)
    claimed = read_newest(place(str(stage.checkpoint)))
    assert claimed
    assert (claimed.epoch, claimed.serial) == (newest.epoch, newest.serial + 1)
    assert claimed.token != newest.token


@pytest.mark.parametrize("spelling", ["{0}/../checkpoint", "file://{0}", "{0}-link"])
def test_the_lock_is_the_same_however_the_folder_is_spelt(tmp_path: Path, spelling: str) -> None:
    stage = filled(tmp_path)
    stage.checkpoint.mkdir()
    Path(f"{stage.checkpoint}-link").symlink_to(stage.checkpoint)
    first = Store(place(str(stage.checkpoint)))
    try:
        with pytest.raises(StateError, match=f"in use by process {os.getpid()}"):
            Store(place(spelling.format(stage.checkpoint)))
    finally:
        first.close()
