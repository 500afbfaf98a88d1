"""Two drivers on one checkpoint on a real S3 server, on two machines: one commits, always; kills included.

Each machine has a temporary folder of its own, so that neither sees the lock of the other.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from crash import Crashing
from rivalry import GOOD, LOSING, contents, filled, one_line, stopped

from anabranch.errors import AnabranchError
from anabranch.state.ledger import Ledger
from anabranch.state.place import place
from helpers import Stage, manifests, missing
from s3_server import ServedBucket

pytestmark = pytest.mark.chaos

ROUNDS = 3
PUTS = 100


@pytest.mark.parametrize("step", ["before-commit", "after-commit"])
def test_a_driver_that_was_stopped_loses_to_the_one_that_took_over(
    s3_bucket: ServedBucket, s3_root: Path, tmp_path: Path, step: str
) -> None:
    stage = filled(s3_root)
    checkpoint = s3_bucket.uri(stage.checkpoint)
    with stopped(stage, checkpoint, step, 2, machine(tmp_path, "one")) as loser:
        stage.finish(checkpoint=checkpoint)
        assert stage.results() == stage.expected(*GOOD)
        one_line(stage)
        before = contents(stage.checkpoint, stage.out)
        os.kill(loser.pid, signal.SIGCONT)
        said, _ = loser.communicate(timeout=60)
        after = contents(stage.checkpoint, stage.out)
    assert "Another run has taken over the checkpoint" in said
    assert f"process {os.getpid()} on " in said
    assert {path: after.get(path) for path in before} == before, "the loser has deleted something"
    assert stage.results() == stage.expected(*GOOD)
    one_line(stage)


def test_an_entry_on_its_way_does_not_overwrite_the_claim_that_came_before_it(
    s3_bucket: ServedBucket, s3_root: Path, tmp_path: Path
) -> None:
    """Both are of the same number, and nothing comes after them."""
    stage = filled(s3_root)
    checkpoint = s3_bucket.uri(stage.checkpoint)
    with stopped(stage, checkpoint, "link", 2, machine(tmp_path, "one")) as loser:
        winner = Ledger(place(checkpoint), fsync=True)
        newest = winner.latest()
        assert newest
        winner.claim(newest)
        os.kill(loser.pid, signal.SIGCONT)
        said, _ = loser.communicate(timeout=60)
    assert "Another run has taken over the checkpoint" in said
    assert winner.leads()
    last = manifests(stage.checkpoint)[-1]
    assert (last.serial, last.epoch) == (newest.serial + 1, 1)
    stage.finish(checkpoint=checkpoint)
    assert stage.results() == stage.expected(*GOOD)
    one_line(stage)


def machine(tmp_path: Path, name: str) -> dict[str, str]:
    """The environment of a driver on a machine of this name."""
    (tmp_path / name).mkdir()
    return {"TMPDIR": str(tmp_path / name)}


def _each_at_once(target: Any, tmp_path: Path, *arguments: Any) -> list[Any]:
    """What two processes on two machines tell that do the same at the same time."""
    context = mp.get_context("spawn")
    barrier, told = context.Barrier(2), context.Queue()
    rivals = [
        context.Process(
            target=target, args=(machine(tmp_path, name), *arguments, barrier, told), daemon=True
        )
        for name in ("one", "other")
    ]
    for process in rivals:
        process.start()
    answers = [told.get(timeout=120) for _ in rivals]
    for process in rivals:
        process.join(60)
    return answers


def _rounds(here: Mapping[str, str], stages: Any, barrier: Any, told: Any) -> None:
    """A process that starts a run on one checkpoint after another, at the same time as its rival."""
    os.environ.update(here)
    answers = []
    for root, checkpoint in stages:
        barrier.wait()
        try:
            Stage(Path(root)).finish(checkpoint=checkpoint)
            answers.append("done")
        except AnabranchError as error:
            answers.append(str(error))
        except BaseException as error:
            answers.append(f"not an error of ours: {error!r}")
    told.put(answers)


def test_of_two_drivers_started_at_once_one_comes_through(
    s3_bucket: ServedBucket, s3_root: Path, tmp_path: Path
) -> None:
    stages = [filled(s3_root / str(number)) for number in range(ROUNDS)]
    orders = [(str(stage.root), s3_bucket.uri(stage.checkpoint)) for stage in stages]
    for stage, *said in zip(stages, *_each_at_once(_rounds, tmp_path, orders), strict=True):
        loser, winner = sorted(said, key=lambda words: words == "done")
        assert winner == "done", said
        assert any(words in loser for words in LOSING), said
        assert stage.results() == stage.expected(*GOOD)
        assert missing(stage.checkpoint) == set()
        one_line(stage)


def _puts(here: Mapping[str, str], uri: str, barrier: Any, told: Any) -> None:
    os.environ.update(here)
    durable, own = place(uri), str(os.getpid()).encode()
    succeeded = []
    for number in range(PUTS):
        barrier.wait()
        if durable.put(f"manifests/{number}", own, True):
            succeeded.append(number)
    told.put((own, succeeded))


def test_of_two_that_put_the_same_entry_at_once_one_succeeds(
    s3_bucket: ServedBucket, s3_root: Path, tmp_path: Path
) -> None:
    uri = s3_bucket.uri(s3_root)
    answers = dict(_each_at_once(_puts, tmp_path, uri))
    writers = {number: own for own, numbers in answers.items() for number in numbers}
    assert sorted(number for numbers in answers.values() for number in numbers) == [*range(PUTS)]
    assert {n: place(uri).read(f"manifests/{n}") for n in range(PUTS)} == writers


def test_killed_at_steps_and_at_changes_of_the_store(
    s3_bucket: ServedBucket, s3_root: Path
) -> None:
    """Between the objects of an epoch, before and after its entry, amid clearing away."""
    checkpoint = s3_bucket.uri(s3_root / "run" / "checkpoint")
    crashing = Crashing(s3_root / "run", 61, 4, options={"checkpoint": checkpoint})
    with crashing.watched():
        crashing.kill_exactly("before-commit", 1)
        assert crashing.kill_at_change(30)
        assert crashing.kill_at_change(31)
        crashing.kill_exactly("after-commit", crashing.end)
        crashing.finish()
    crashing.check()
    assert manifests(crashing.checkpoint)[-1].ended
