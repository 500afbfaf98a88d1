"""Parts of Spark die while the driver lives: Python workers, an executor. The run goes on, exactly.

Each run has a Spark of its own in a child process, whose sums take their time, so that a task can be met
at work.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from crash import SHORT_LIVED, Crashing, Meddler

from helpers import manifests

pytestmark = [pytest.mark.spark, pytest.mark.chaos]

NAP = 0.4


def descendants(process: subprocess.Popen[str], word: str) -> list[psutil.Process]:
    """The living processes below this one that have the word in their command line."""
    found = []
    for each in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if any(word in part for part in each.cmdline()):
                found.append(each)
    return found


def workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Python workers: the children of Spark's daemons, which are called the same."""
    daemons = descendants(process, "pyspark.daemon")
    numbers = {daemon.pid for daemon in daemons}
    return [each for each in daemons if each.ppid() in numbers]


def executors(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return descendants(process, "CoarseGrainedExecutorBackend")


def sweep_and_check(crashing: Crashing) -> None:
    """Tasks that were begun twice left segments nobody names; the next start clears them away."""
    crashing.finish(engine="twin")
    crashing.check()


def kill_a_worker(epochs: set[int], killed: list[int]) -> Meddler:
    """Kills, in each of these epochs, the worker that has worked most."""

    def kill(process: subprocess.Popen[str], told: dict[str, Any]) -> None:
        if told.get("step") == "before-tasks" and told["epoch"] in epochs:
            time.sleep(NAP)
            victim = max(workers(process), key=lambda each: sum(each.cpu_times()[:2]))
            victim.kill()
            killed.append(victim.pid)

    return kill


def kill_workers(epoch: int, killed: list[int]) -> Meddler:
    """Kills every worker from this epoch on, until the run ends: one of them was at work."""

    def kill(process: subprocess.Popen[str], told: dict[str, Any]) -> None:
        if told.get("step") == "before-tasks" and told["epoch"] == epoch:
            while process.poll() is None:
                with contextlib.suppress(psutil.NoSuchProcess):
                    for victim in workers(process):
                        victim.kill()
                        killed.append(victim.pid)
                time.sleep(0.05)

    return kill


@pytest.mark.soak
def test_python_workers_are_killed(tmp_path: Path) -> None:
    """With Spark's usual number of tries for a task, the run does not even stop."""
    crashing = Crashing(tmp_path, seed=41, files=3, engine="local[2,4]", options={"naps": NAP})
    killed: list[int] = []
    with crashing.watched():
        crashing.finish(kill_a_worker({1, 2}, killed))
    assert len(set(killed)) == 2
    sweep_and_check(crashing)


def test_a_python_worker_is_killed_and_tasks_are_tried_once(tmp_path: Path) -> None:
    """The epoch fails whole, with the reason; the next start, here without Spark, does it again."""
    crashing = Crashing(tmp_path, seed=43, files=3, engine="local[2]", options={"naps": NAP})
    killed: list[int] = []
    with crashing.watched():
        words = crashing.finish(kill_workers(1, killed), code=1)
        assert (words[-1]["step"], words[-1]["epoch"]) == ("before-tasks", 1)
        errors = (tmp_path / "stderr").read_text().splitlines()
        (error,) = [line for line in errors if line.startswith("anabranch.errors.RunError")]
        assert "Spark could not finish the epoch" in error
        # At work it exits unexpectedly; between two tasks Spark finds its socket closed
        assert re.search("Python worker|Broken pipe|Connection reset|EOFException", error), error
        # A task of the failed job may still be writing, but only where nobody will look
        assert list((tmp_path / "out").glob("*/epoch=000000000001")) == []
        assert manifests(crashing.checkpoint)[-1].epoch == 0
    assert killed
    sweep_and_check(crashing)


@pytest.mark.soak
def test_an_executor_is_killed(tmp_path: Path) -> None:
    """Sites run where the driver says; when that executor dies, elsewhere; then on its successor."""
    crashing = Crashing(
        tmp_path, seed=42, files=5, engine="local-cluster[2,1,1024]",
        # Patience: on a busy machine Spark would rather move a task than wait for its executor
        options={"naps": NAP, "sites": 3, "await_executors": [0, 4],
                 "conf": {**SHORT_LIVED, "spark.locality.wait": "30s"}},
    )  # fmt: skip
    killed: list[psutil.Process] = []
    folders: set[Path] = set()

    def kill(process: subprocess.Popen[str], told: dict[str, Any]) -> None:
        if told.get("step") == "before-tasks":
            running = executors(process)
            folders.update(Path(each.cwd()).parent for each in running)
            if told["epoch"] == 2:
                time.sleep(NAP)
                running[0].kill()
                killed.append(running[0])

    try:
        with crashing.watched():
            words = crashing.finish(kill)
    finally:
        for folder in folders:
            assert folder.name.startswith("app-")
            shutil.rmtree(folder, ignore_errors=True)
    assert len(killed) == 1
    asked = {
        word["epoch"]: {int(site): place for site, place in word["placement"].items()}
        for word in words
        if word.get("step") == "before-commit"
    }
    ran = {(entry["epoch"], entry["site"]): entry["executor"] for entry in words[-1]["sites"]}
    for epoch in (0, 1, 4, crashing.end):
        assert len(asked[epoch]) == 3, f"epoch {epoch}: the driver placed no site"
        for site, place in asked[epoch].items():
            assert place == f"executor_127.0.0.1_{ran[epoch, site]}"
        assert ran[epoch, 0] != ran[epoch, 1], "two executors take turns"
    assert {ran[0, 0], ran[0, 1]} == {"0", "1"}
    assert {ran[crashing.end, 0], ran[crashing.end, 1]} in ({"0", "2"}, {"1", "2"}), "a successor"
    sweep_and_check(crashing)
