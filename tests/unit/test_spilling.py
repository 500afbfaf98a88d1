"""State that is put aside: what is missing is owed, and comes once, whatever happens in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Session
from anabranch.control.aside import Aside
from anabranch.engine import remembering, sampling
from anabranch.engine.run import Run
from anabranch.errors import RunError
from anabranch.observe.checkpoints import described
from anabranch.plan.subquery import Subquery
from anabranch.settings import AUTO
from anabranch.state.group import PIECE_BYTES, SiteState
from anabranch.state.packing import Written, put_away
from anabranch.state.segment import SegmentRef
from anabranch.testing.faults import Schedule, small_memory
from anabranch.testing.sources import EpochSource
from helpers import Rows, in_soak, oracle, plain

EPOCHS = 8


def frames(seed: int, column: str) -> list[pl.DataFrame]:
    draw = random.Random(f"{seed} {column}")
    return [
        pl.DataFrame(
            {
                "t": [10 * epoch + draw.randrange(10) for _ in range(30)],
                "k": [draw.randrange(6) for _ in range(30)],
                column: [draw.randrange(100) for _ in range(30)],
            }
        )
        for epoch in range(EPOCHS)
    ]


INPUTS = {name: frames(1, column) for name, column in (("a", "x"), ("b", "y"), ("c", "z"))}
WITHIN = " AND b.t BETWEEN a.t - 25 AND a.t + 12"
TWO = "SELECT a.t AS t, a.k AS k, x, y FROM a JOIN b ON a.k = b.k"
THREE = (
    "SELECT a.t AS t, a.k AS k, x, y, z FROM a JOIN b ON a.k = b.k AND b.t BETWEEN a.t - 15 AND a.t + 5 "
    "JOIN c ON a.k = c.k AND c.t BETWEEN a.t - 10 AND a.t + 10"
)
QUERIES = {
    "unbounded": TWO,
    "bounded": TWO + WITHIN,
    "with a condition": TWO + WITHIN + " AND a.x < b.y",
    "three": THREE,
    "left": TWO.replace(" JOIN", " LEFT JOIN") + WITHIN,
    "full": TWO.replace("a.t AS t, a.k AS k", "a.t AS t, b.t AS u").replace(" JOIN", " FULL JOIN")
    + WITHIN,
    "semi": "SELECT a.t AS t, a.k AS k, x FROM a SEMI JOIN b ON a.k = b.k" + WITHIN,
    "aggregate": "SELECT tb, k, COUNT(*) AS n, SUM(x) AS s FROM a GROUP BY t/25 AS tb, k",
    "aggregate of a join": "SELECT tb, k, COUNT(*) AS n, MAX(y) AS m FROM (" + TWO + WITHIN + ") "
    "GROUP BY t/20 AS tb, k",
}


def started(
    query: str, tmp_path: Path, steps: dict[int, Any], settings: dict[str, Any] | None = None,
    **options: Any,
) -> Run:  # fmt: skip
    settings = {
        "allow_unbounded_state": True,
        "fsync": False,
        "partitions_per_site": 4,
        "policy": "none",
        **(settings or {}),
    }
    session = Session.in_process(2, settings)
    for name, epochs in INPUTS.items():
        session.stream(name, EpochSource(epochs), ordered="t", lateness=20)
    session.query("q", query)
    runs: list[Run] = []

    def on_step(step: str, epoch: int) -> None:
        if step == "begin" and epoch in steps and runs:
            steps[epoch](runs[0])

    run = session.start(
        sinks={"q": "memory"}, checkpoint=tmp_path / "c", on_step=on_step,
        **{"at_end": "close", **options},
    )  # fmt: skip
    runs.append(run)
    assert run.await_termination(60)
    return run


def expected(query: str) -> Rows:
    tables = {name: pl.concat(epochs) for name, epochs in INPUTS.items()}
    for size in (20, 25):
        grouped = f" GROUP BY t/{size} AS tb, k"
        if query.endswith(grouped):
            query = query.removesuffix(grouped).replace("SELECT tb", f"SELECT t//{size} AS tb", 1)
            query = query.replace("SUM(x)", "SUM(x)::BIGINT") + " GROUP BY ALL"
    return oracle(query, **tables)


def spill_all(run: Run) -> None:
    for name, exchange in run.plan.exchanges.items():
        if not exchange.in_grid:
            for start in run.partition_map(name).starts:
                run.spill(name, start)


@pytest.mark.parametrize("name", QUERIES)
def test_results_that_are_owed_come_once(tmp_path: Path, name: str) -> None:
    """Everything is put aside three times, cleaned up in between, and at the end."""
    steps = {2: spill_all, 3: spill_all, 5: lambda run: run.clean_up(), 6: spill_all}
    run = started(QUERIES[name], tmp_path, steps)
    assert plain(run.results("q")) == expected(QUERIES[name])


def test_some_results_are_owed_meanwhile(tmp_path: Path) -> None:
    owed: list[int] = []
    steps = {2: spill_all, 7: lambda run: owed.append(len(run._checkpoint.manifest.spilled))}
    run = started(TWO, tmp_path, steps)
    assert owed == [1]
    assert not run._checkpoint.manifest.spilled


def test_a_checkpoint_tells_what_is_aside(tmp_path: Path) -> None:
    found: list[dict[str, Any]] = []
    steps = {2: spill_all, 5: lambda run: found.append(described(run._checkpoint.manifest))}
    started(TWO, tmp_path, steps)
    (told,), (state,) = (found[0][part].values() for part in ("exchanges", "subqueries"))
    assert {one["generations"] for one in told["aside"]} == {1}
    assert sum(one["end"] - one["first"] for one in told["aside"]) == told["partitions"][-1]["end"]
    assert 0 < state["asideBytes"] < state["bytes"]


def test_what_went_before_is_not_looked_at_when_more_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With much more aside than in memory, every later generation would take longer to go."""
    packed: list[int] = []

    def going(state: SiteState, *rest: Any) -> Written:
        packed.append(sum(ref.packed for ref in state.refs))
        return put_away(state, *rest)

    def noted(aside: Aside, member: Subquery, refs: list[SegmentRef], *rest: Any) -> None:
        packed.append(sum(ref.packed for ref in refs))
        note_dues(aside, member, refs, *rest)

    note_dues = Aside._note_dues
    monkeypatch.setattr(remembering, "put_away", going)
    monkeypatch.setattr(Aside, "_note_dues", noted)
    run = started(TWO, tmp_path, {2: spill_all, 4: spill_all, 6: spill_all})
    assert plain(run.results("q")) == expected(TWO)
    assert packed
    assert not any(packed)


def test_what_can_neither_do_without_it_nor_wait_is_refused(tmp_path: Path) -> None:
    def refused(run: Run) -> None:
        with pytest.raises(RunError, match="cannot do without it, nor wait"):
            run.spill("q@1", 0)

    started("SELECT a.t AS t, x, y FROM a JOIN b ON a.x < b.y" + WITHIN, tmp_path, {2: refused})


# -- by itself --------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [1, *in_soak([700, 2_500])])
@pytest.mark.parametrize("name", QUERIES)
def test_sites_with_little_memory_give_the_same_results(
    tmp_path: Path, name: str, memory: int
) -> None:
    run = started(QUERIES[name], tmp_path, {}, settings={"site_memory_bytes": memory})
    assert plain(run.results("q")) == expected(QUERIES[name])
    if memory == 1 or name != "aggregate":  # which has next to no state
        assert "spill" in {line["kind"] for line in run.history()}


@pytest.mark.parametrize("limit", [AUTO, 1 << 40, None])
def test_a_piece_is_never_more_than_a_site_may_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: Any
) -> None:
    """Also where a site tells what it may keep, in a small container with many others."""
    told, pieces = 16 << 20, set[tuple[int, int]]()

    def cut(state: SiteState) -> Iterator[SiteState]:
        pieces.add((state.epoch, state.piece_bytes))
        return in_pieces(state)

    in_pieces = SiteState.in_pieces
    monkeypatch.setattr(SiteState, "in_pieces", cut)
    few = [] if limit == AUTO else [small_memory(site, told, from_epoch=2) for site in range(3)]
    monkeypatch.setattr(sampling, "_memory", lambda *_: dict.fromkeys(range(3), told))
    steps = {0: spill_all, 3: spill_all, 6: lambda run: run.clean_up()}
    started(TWO, tmp_path, steps, settings={"site_memory_bytes": limit}, burdens=Schedule(few))
    assert {size for epoch, size in pieces if epoch > 3} == {told // 4}
    assert all(size <= PIECE_BYTES for _, size in pieces)


def test_what_is_put_aside_is_compressed_and_comes_back_plain(tmp_path: Path) -> None:
    packed: list[tuple[int, int]] = []

    def look(run: Run) -> None:
        refs = [ref for one in run._checkpoint.manifest.subqueries.values() for ref in one.shelf]
        packed.append((sum(ref.packed for ref in refs), len(refs)))

    steps = {
        2: spill_all, 4: look, 5: lambda run: run.clean_up(), 7: look,
    }  # fmt: skip
    started(TWO, tmp_path, steps)
    assert packed[0][0] > 0
    assert packed[1][0] == 0


@pytest.mark.parametrize("sites", [1, 2])
def test_what_gives_most_stays_in_memory(sites: int) -> None:
    """Half of the keys meet nothing: if these go, results come as if nothing had."""
    early = {first: given_early(sites, first) for first in ("poor", "rich")}
    assert early["poor"] > 1.5 * early["rich"]


def given_early(sites: int, first: str) -> int:
    settings = {
        "allow_unbounded_state": True, "fsync": False, "partitions_per_site": 64 // sites,
        "policy": "none",
        "site_memory_bytes": 16_000 // sites, "spill_first": first, "spill_share": 0.2,
    }  # fmt: skip
    session = Session.in_process(sites, settings)
    for number, name in enumerate("ab"):
        rows = [
            pl.DataFrame({"t": [epoch] * 80, "k": [k if k % 2 else 1000 * number + k for k in range(80)]})
            for epoch in range(10)
        ]  # fmt: skip
        session.stream(name, EpochSource(rows), ordered="t")
    session.query("q", "SELECT a.t AS t, a.k AS k FROM a JOIN b ON a.k = b.k")
    run = session.start(sinks={"q": "memory"}, at_end="keep")
    assert run.await_termination(120)
    assert any(line["kind"] == "spill" for line in run.history())
    return run.results("q").height
