"""Whose a result folder is, when checkpoints are copied, moved, lost, or have long names."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from anabranch.errors import RunError, StateError
from helpers import Stage, sample


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    for number in range(3):
        stage.write(number)
    return stage


def right(stage: Stage) -> bool:
    return stage.results() == stage.expected(*(sample(number) for number in range(3)))


@pytest.mark.parametrize("kind", ["sink", "dead letters"])
def test_a_copy_of_a_checkpoint_cannot_write_beside_the_original(stage: Stage, kind: str) -> None:
    copy = stage.root / "copy"
    options: dict[str, Any] = {} if kind == "sink" else {"dead_letter": stage.dead}
    own: dict[str, Any] = {} if kind == "sink" else {"sinks": {"sums": stage.root / "out2"}}
    refused: list[StateError] = []

    def second(step: str, epoch: int) -> None:
        if step == "before-tasks" and epoch == 2:
            shutil.copytree(stage.checkpoint, copy)
            with pytest.raises(StateError, match="is a copy of that one") as caught:
                stage.start(checkpoint=copy, **options, **own)
            refused.append(caught.value)

    run = stage.start(on_step=second, at_end="close", **options)
    assert run.await_termination(60)
    assert str(stage.checkpoint) in str(refused[0])
    assert "Stop that run first" in str(refused[0])
    assert right(stage)


def test_a_checkpoint_that_was_moved_or_restored_goes_on_in_its_folder(stage: Stage) -> None:
    """Nobody else holds the folder; the older place is no longer the one it is known by."""

    def fail(step: str, epoch: int) -> None:
        if step == "begin" and epoch == 1:
            raise RuntimeError("the power fails")

    with pytest.raises(RunError, match="the power fails"):
        stage.run(on_step=fail)
    shutil.copytree(stage.checkpoint, stage.root / "backup")
    shutil.rmtree(stage.checkpoint)
    stage.run(checkpoint=stage.root / "backup")
    (stage.root / "backup").rename(stage.root / "moved")
    stage.finish(checkpoint=f"file://{stage.root}/moved")
    assert right(stage)
    (marker,) = stage.out.glob("_run=*")
    assert marker.name.endswith("moved")


@pytest.mark.parametrize("letters", ["点" * 20, "é" * 120, "x" * 240, "a/" * 100])
def test_whatever_a_checkpoint_is_called_its_folders_can_be_claimed(
    stage: Stage, letters: str
) -> None:
    stage.finish(checkpoint=stage.root / letters, dead_letter=stage.dead)
    assert right(stage)
    message = stage.refused(StateError, checkpoint=stage.root / "another")
    assert letters[-3:].strip("/") in message


def test_two_checkpoints_whose_long_names_end_alike_are_told_apart(stage: Stage) -> None:
    one, other = (stage.root / name / ("y" * 200) for name in ("one", "other"))
    refused: list[StateError] = []

    def second(step: str, epoch: int) -> None:
        if step == "before-tasks" and epoch == 1:
            shutil.copytree(one, other)
            with pytest.raises(StateError, match="is a copy of that one") as caught:
                stage.start(checkpoint=other)
            refused.append(caught.value)

    stage.finish(checkpoint=one, on_step=second)
    assert refused
    assert right(stage)


def test_a_second_run_without_a_checkpoint_is_told_to_empty_the_folder(stage: Stage) -> None:
    stage.finish(checkpoint=None)
    message = stage.refused(StateError, checkpoint=None)
    assert "which had no checkpoint" in message
    assert "Empty the folder" in message
    assert "anabranch-" not in message
    shutil.rmtree(stage.out)
    stage.finish(checkpoint=None)
    assert right(stage)


def test_a_checkpoint_that_was_removed_is_told_as_that(stage: Stage) -> None:
    stage.finish()
    shutil.rmtree(stage.checkpoint)
    message = stage.refused(StateError)
    assert "was it removed?" in message
    assert "empty the result folder to begin anew" in message
    assert "another run" not in message
    for epoch in stage.out.glob("epoch=*"):
        shutil.rmtree(epoch)
    stage.finish()
    assert right(stage)


@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_function_that_fails_is_called_again_only_with_a_checkpoint(
    stage: Stage, checkpoint: bool
) -> None:
    def take(rows: Any, epoch: int) -> None:
        raise ValueError("the other side is down")

    options = {} if checkpoint else {"checkpoint": None}
    message = stage.refused(RunError, sinks={"sums": take}, **options)
    assert "the other side is down" in message
    assert ("will be handed over again at the next start" in message) == checkpoint
    assert ("will not be handed over again" in message) == (not checkpoint)


@pytest.mark.parametrize("mine", ["out/extra/more", "."])
@pytest.mark.parametrize("kind", ["sink", "dead letters"])
def test_a_folder_within_that_of_another_run_is_refused(stage: Stage, mine: str, kind: str) -> None:
    """Whoever reads the outer folder would read the results of both."""
    stage.finish(sinks={"sums": stage.root / "out"})
    inner = stage.root / mine
    options: dict[str, Any] = {"sinks": {"sums": inner}}
    if kind == "dead letters":
        options = {
            "sinks": {"sums": stage.root.parent / f"{stage.root.name}b"},
            "dead_letter": inner,
        }
    if mine == ".":
        # Nothing else of this run is beside it
        stage.input.rename(stage.root.parent / f"{stage.root.name}-in")
        stage.input = stage.root.parent / f"{stage.root.name}-in"
    message = stage.refused(StateError, checkpoint=None, **options)
    assert "another run" in message
    assert not (stage.root / "out/extra").exists()
    assert not list(stage.root.glob("_*"))
    assert stage.results() == stage.expected(*(sample(number) for number in range(3)))


def test_a_folder_within_one_that_a_run_has_left_empty_may_be_had(stage: Stage) -> None:
    stage.finish(sinks={"sums": stage.root / "out"})
    for epoch in stage.out.glob("epoch=*"):
        shutil.rmtree(epoch)
    stage.finish(checkpoint=None, sinks={"sums": stage.out / "extra"})
    assert list((stage.out / "extra").glob("epoch=*"))
