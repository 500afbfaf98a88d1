"""State that is put aside comes back in time: for windows, for rows that wait, after restarts and changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anabranch import Session
from anabranch.engine.run import Run
from anabranch.testing.sources import EpochSource
from helpers import oracle, plain

EPOCHS = 12
UNBOUNDED_LEFT = "SELECT a.t AS t, a.k AS k, x, y FROM a LEFT JOIN b ON a.k = b.k"
LEFT = UNBOUNDED_LEFT + " AND b.t BETWEEN a.t - 500 AND a.t + 500"
SETTINGS = {
    "allow_unbounded_state": True, "fsync": False, "partitions_per_site": 4, "policy": "none",
}  # fmt: skip
Step = Callable[[Run], None]


def frames(column: str, epochs: int = EPOCHS, first: int = 0) -> list[pl.DataFrame]:
    random = np.random.default_rng([ord(column), first])
    return [
        pl.DataFrame(
            {
                "t": random.integers(10 * epoch, 10 * epoch + 10, 20),
                "k": random.integers(0, 8, 20),
                column: random.integers(0, 100, 20),
            }
        )
        for epoch in range(first, first + epochs)
    ]


A, B = frames("x"), frames("y")


def run_of(
    queries: dict[str, str], inputs: dict[str, Sequence[pl.DataFrame]],
    steps: dict[tuple[str, int], Step], settings: dict[str, Any] | None = None, sites: int = 2,
    **options: Any,
) -> Run:  # fmt: skip
    session = Session.in_process(sites, {**SETTINGS, **(settings or {})})
    for name, epochs in inputs.items():
        session.stream(name, EpochSource(list(epochs)), ordered="t", lateness=10)
    for name, text in queries.items():
        session.query(name, text)
    runs: list[Run] = []

    def on_step(step: str, epoch: int) -> None:
        if runs and (step, epoch) in steps:
            steps[step, epoch](runs[0])

    run = session.start(
        sinks=dict.fromkeys(queries, "memory"), on_step=on_step, **{"at_end": "close", **options}
    )
    runs.append(run)
    assert run.await_termination(60)
    return run


def spill(query: str, number: int) -> Step:
    return lambda run: run.spill(query, run.partition_map(query).starts[number])


def spill_all(run: Run) -> None:
    for name in run.plan.exchanges:
        for start in run.partition_map(name).starts:
            run.spill(name, start)


def put_aside(run: Run) -> None:
    """As a site does that is over its memory: what users put aside stays so."""
    for name in run.plan.exchanges:
        run._governor.holdings.spilling.spill(name, [(0, run.partition_map(name).slots)])


def test_what_is_asked_to_go_with_the_last_rows_stays(tmp_path: Path) -> None:
    """The epoch that lets go what waits puts nothing aside: it would be packed and merged at once."""
    kept = {
        **{("begin", 2): spill("q@1", 0)},
        **{("after-commit", EPOCHS - 1): lambda run: [spill("q@1", n)(run) for n in range(1, 8)]},
    }
    checkpoint = tmp_path / "c"
    settings = {"compaction_fan": 2, "compaction_floor_rows": 1 << 30}
    first = run_of(
        {"q": UNBOUNDED_LEFT},
        {"a": A, "b": B},
        kept,
        settings,
        at_end="keep",
        checkpoint=checkpoint,
    )
    later = {"a": [*A, *frames("x", 3, EPOCHS)], "b": [*B, *frames("y", 3, EPOCHS)]}
    second = run_of({"q": UNBOUNDED_LEFT}, later, {}, settings, checkpoint=checkpoint)
    found = sorted([*plain(first.results("q")), *plain(second.results("q"))], key=repr)
    tables = {name: pl.concat(some) for name, some in later.items()}
    assert found == sorted(oracle(UNBOUNDED_LEFT, **tables), key=repr)


def test_rows_that_wait_for_state_wait_in_the_checkpoint_when_the_input_ends(
    tmp_path: Path,
) -> None:
    checkpoint = tmp_path / "c"
    first = run_of(
        {"q": LEFT},
        {"a": A, "b": B},
        {("begin", 3): spill_all},
        at_end="keep",
        checkpoint=checkpoint,
    )
    manifest = first._checkpoint.manifest
    assert manifest.held
    assert manifest.spilled
    second = run_of({"q": LEFT}, {"a": A, "b": B}, {}, checkpoint=checkpoint)
    found = sorted([*plain(first.results("q")), *plain(second.results("q"))], key=repr)
    assert found == sorted(oracle(LEFT, a=pl.concat(A), b=pl.concat(B)), key=repr)


def test_windows_do_not_close_again_when_nothing_waits_any_more(tmp_path: Path) -> None:
    """Rows waited for the outer join; without it windows go on by themselves, and time never goes back."""
    windows = "SELECT tb, k, COUNT(*) AS n FROM a GROUP BY t/20 AS tb, k"
    checkpoint = tmp_path / "c"
    both = {"w": windows, "l": LEFT}
    first = run_of(
        both,
        {"a": A[:6], "b": B[:6]},
        {("begin", 3): spill_all},
        at_end="keep",
        checkpoint=checkpoint,
    )
    again = {("begin", 9): spill_all, ("begin", 10): lambda run: run.clean_up()}
    second = run_of({"w": windows}, {"a": A}, again, checkpoint=checkpoint, changed="keep-same")
    found = sorted([*plain(first.results("w")), *plain(second.results("w"))], key=repr)
    counted = "SELECT t // 20 AS tb, k, COUNT(*) AS n FROM a GROUP BY ALL"
    assert found == sorted(oracle(counted, a=pl.concat(A)), key=repr)


def test_windows_above_a_join_close_while_its_state_is_aside() -> None:
    """A join without bounds never has to close by itself: what reads it would wait for ever."""
    counted = (
        "SELECT tb, g, COUNT(*) AS n FROM (SELECT b.t AS t, x % 3 AS g FROM a JOIN b ON a.k = b.k AND "
        "b.t >= a.t) GROUP BY t/20 AS tb, g"
    )
    long = 30
    inputs = {"a": frames("x", long), "b": frames("y", long)}
    early: list[int] = []
    look = {("begin", long - 1): lambda run: early.append(run.results("q").height)}
    run = run_of({"q": counted}, inputs, look, {"site_memory_bytes": 8_000, "spill_share": 0.5})
    assert any(line["kind"] == "spill" for line in run.history())
    assert any("waited for" in line["cause"] for line in run.history())
    assert early[0] > 0.3 * run.results("q").height
    plain_text = (
        "SELECT b.t // 20 AS tb, x % 3 AS g, COUNT(*) AS n FROM a JOIN b ON a.k = b.k AND b.t >= a.t "
        "GROUP BY ALL"
    )
    tables = {name: pl.concat(some) for name, some in inputs.items()}
    assert plain(run.results("q")) == oracle(plain_text, **tables)


def test_windows_that_begin_after_their_partition_went_close_in_time() -> None:
    """The partition has no open window when it goes; those that come later are its own to close."""
    both = {
        "j": "SELECT a.t AS t, a.k AS k, x, y FROM a JOIN b ON a.k = b.k",
        "w": "SELECT tb, k, COUNT(*) AS n FROM a GROUP BY t/20 AS tb, k",
    }
    a, b = frames("x", 20), frames("y", 20)
    gap = [frame if not 4 <= n < 9 else frame.filter(pl.col("k") == 0) for n, frame in enumerate(a)]
    early: list[int] = []
    steps = {
        ("begin", 8): put_aside,
        ("begin", 19): lambda run: early.append(run.results("w").filter(pl.col("tb") >= 5).height),
    }
    run = run_of(both, {"a": gap, "b": b}, steps, {"site_memory_bytes": 1 << 40})
    assert early[0] > 0
    counted = "SELECT t // 20 AS tb, k, COUNT(*) AS n FROM a GROUP BY ALL"
    assert plain(run.results("w")) == oracle(counted, a=pl.concat(gap))


def test_a_site_that_is_always_over_its_memory_still_closes_windows() -> None:
    """What may never go aside is more than the limit alone: windows beside it must not wait for the end."""
    both = {
        "grid": "SELECT a.t AS t, x, y FROM a JOIN b ON x < y AND b.t BETWEEN a.t - 500 AND a.t + 500",
        "w": "SELECT tb, k, COUNT(*) AS n FROM a GROUP BY t/20 AS tb, k",
    }
    inputs = {"a": frames("x", 16), "b": frames("y", 16)}
    early: list[int] = []
    look = {("begin", 15): lambda run: early.append(run.results("w").height)}
    run = run_of(both, inputs, look, {"site_memory_bytes": 300})
    assert early[0] > 20
    counted = "SELECT t // 20 AS tb, k, COUNT(*) AS n FROM a GROUP BY ALL"
    assert plain(run.results("w")) == oracle(counted, a=pl.concat(inputs["a"]))


def test_rows_that_wait_are_let_go_when_streams_fall_silent(tmp_path: Path) -> None:
    settings = {**SETTINGS, "poll_interval_seconds": 0.01, "max_files_per_epoch": 1}
    session = Session.in_process(2, settings)
    for name, epochs in {"a": A[:6], "b": B[:6]}.items():
        (tmp_path / name).mkdir()
        for number, frame in enumerate(epochs):
            frame.write_parquet(tmp_path / name / f"{number}.parquet")
        session.stream(name, path=tmp_path / name, ordered="t", file_order="name")
    session.query("q", LEFT)
    runs: list[Run] = []

    def on_step(step: str, epoch: int) -> None:
        if runs and (step, epoch) == ("begin", 3):
            put_aside(runs[0])

    run = session.start(sinks={"q": "memory"}, trigger="continuous", on_step=on_step)
    runs.append(run)
    waited = False
    for _ in range(1200):
        manifest = run._checkpoint.manifest
        waited |= bool(manifest.held)
        if manifest.epoch > 6 and not manifest.held:
            break
        assert not run.await_termination(0.02)
    assert waited
    assert not run._checkpoint.manifest.held
    run.stop()


def test_recall_takes_back_what_was_only_asked_for() -> None:
    aside: list[bool] = []
    steps = {
        ("begin", 3): lambda run: (spill("q@1", 0)(run), run.recall("q@1", 0)),
        ("begin", 6): lambda run: aside.append(bool(run._checkpoint.manifest.spilled)),
    }
    run_of({"q": UNBOUNDED_LEFT}, {"a": A, "b": B}, steps)
    assert aside == [False]


@pytest.mark.parametrize("query", [LEFT, LEFT.replace("LEFT JOIN", "JOIN")], ids=["left", "inner"])
def test_many_generations_are_brought_together(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.adapt.policies.spill.MOST_GENERATIONS", 10)
    steps = {("begin", epoch): spill_all for epoch in range(2, 38)}
    inputs = {"a": frames("x", 40), "b": frames("y", 40)}
    most: list[int] = []
    for epoch in range(2, 40):
        steps["after-commit", epoch] = lambda run: most.extend(
            len(one.cuts) for some in run._checkpoint.manifest.spilled.values() for one in some
        )
    run = run_of({"q": query}, inputs, steps, {"site_memory_bytes": 1})
    # One partition of each site at a time
    assert max(most, default=0) <= 17
    tables = {name: pl.concat(some) for name, some in inputs.items()}
    assert plain(run.results("q")) == oracle(query, **tables)
