"""Two drivers on one checkpoint: one line of manifests, right results, and nothing deleted by the loser."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from rivalry import GOOD, LOSING, contents, filled, one_line, stopped

from anabranch.errors import AnabranchError, StateError
from anabranch.state.ledger import Ledger, read_newest
from anabranch.state.place import place
from anabranch.state.store import Store
from helpers import Stage, in_soak, missing

ROUNDS = 6


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
@pytest.mark.parametrize(
    "other", ["file://{0}", "{0}-link", *in_soak(["{0}", "{0}/../checkpoint"])]
)
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
        assert any(words in said[0] for words in LOSING), said
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
