"""Faults on purpose: one hook, of which a run without faults has nothing."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Session, count
from anabranch.engine import transport
from anabranch.engine.faults import Burden, Faults, SiteFaults
from anabranch.testing.sources import EpochSource

ENGINE = Path(transport.__file__).parent


def test_only_the_hook_knows_of_faults() -> None:
    for path in ENGINE.glob("*.py"):
        told = path.read_text().lower()
        if path.name != "faults.py":
            assert "burden" not in told, path.name
            assert "sigkill" not in told, path.name


@pytest.mark.parametrize("burdened", [False, True])
def test_tasks_get_only_what_weighs_on_them(
    monkeypatch: pytest.MonkeyPatch, burdened: bool
) -> None:
    right, seen = transport.run_site, []

    def watched(orders: Any, *rest: Any) -> Any:
        seen.append((orders.epoch, orders.faults))
        return right(orders, *rest)

    monkeypatch.setattr(transport, "run_site", watched)
    session = Session.in_process(sites=2)
    frames = [pl.DataFrame({"time": [at] * 4, "k": range(4)}) for at in range(3)]
    rows = session.stream("rows", EpochSource(frames), ordered="time")
    session.query("n", rows.group_by("time", "k").agg(count().alias("n")))
    weighs = {1: Burden(memory=5)}
    burdens = (lambda epoch: weighs if epoch == 1 else {}) if burdened else None
    run = session.start(sinks={"n": "memory"}, at_end="close", burdens=burdens)
    assert run.await_termination(60)
    told = {epoch for epoch, faults in seen if faults is not None}
    assert told == ({1} if burdened else set())
    assert all(faults.memory() == {1: 5} for _, faults in seen if faults is not None)


def test_a_step_hook_alone_burdens_no_site(tmp_path: Path) -> None:
    faults = Faults(on_step=lambda step, epoch: None)
    assert faults.of_sites(0, "a", tmp_path) is None


def test_a_worker_is_killed_once(tmp_path: Path) -> None:
    faults = SiteFaults({1: Burden(kill=True)}, os.getpid(), tmp_path / ".killed-4-a")
    codes = []
    for site in (0, 1, 1):
        process = mp.get_context("fork").Process(target=faults.worked, args=(site, 10, 0.0))
        process.start()
        process.join(60)
        codes.append(process.exitcode)
    assert codes == [0, -signal.SIGKILL, 0]
    faults.worked(1, 10, 0.0)  # the driver lives
    assert [mark.name for mark in tmp_path.iterdir()] == [".killed-4-a-1"]


def test_a_burden_takes_its_time(tmp_path: Path) -> None:
    faults = SiteFaults({0: Burden(seconds_per_row=0.001, slowdown=2.0)}, 0, tmp_path / "mark")
    began = time.perf_counter()
    faults.worked(0, 20, 0.01)
    assert time.perf_counter() - began >= 0.05
