"""Moves, splits, merges, slow sites, other numbers of sites and crashes, all at once, by seeds.

`make test` runs twenty seeds, `make test-all` two hundred; `anabranch chaos` runs any. A protocol that is
broken on purpose must be caught by the same seeds: a test that cannot fail says nothing.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from anabranch.cli import app
from anabranch.engine import exchange
from anabranch.engine.epoch import Orders
from anabranch.engine.pins import Pins
from anabranch.engine.run import Run
from anabranch.routing.partition_map import PartitionMap, ranges_where, subtract
from anabranch.state.segment import SegmentRef
from anabranch.testing import chaos
from anabranch.testing.chaos import ChaosReport, SeedReport, draw_seed, run_seed, run_seeds
from anabranch.testing.disturbances import DISTURBANCES, Meddling

pytestmark = pytest.mark.chaos

SEEDS = range(20)


@functools.cache
def report_of(seed: int) -> SeedReport:
    """Two tests look at the same runs."""
    return run_seed(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_results_are_those_of_the_oracle(seed: int) -> None:
    report = report_of(seed)
    assert report.failure is None, report.failure


@pytest.mark.soak
def test_two_hundred_seeds() -> None:
    report = run_seeds(range(200))
    told = "\n\n".join(one.failure for one in report.seeds if one.failure)
    assert not report.failed, told
    assert report.seconds < 600
    counts = report.plain()
    for what in ("moves", "splits", "merges", "site_changes", "crashes", "by_controller"):
        assert counts[what] >= 100, counts


def test_all_of_it_happens() -> None:
    """In these few seeds there is everything: aggregates and joins, crashes, decisions of the controller."""
    counts = ChaosReport([report_of(seed) for seed in SEEDS]).plain()
    for what in ("moves", "splits", "merges", "pins", "rebalances", "site_changes", "crashes"):
        assert counts[what] >= 5, counts
    assert counts["by_controller"] >= 20, counts
    drawn = [draw_seed(seed) for seed in SEEDS]
    joins = sum("joined" in case.queries for case, _ in drawn)
    assert 3 <= joins <= 17
    steps = {leg.step for _, trial in drawn for leg in trial.legs}
    assert len(steps) >= 6, steps


def test_a_seed_asks_for_the_same_again() -> None:
    one, other = (draw_seed(11) for _ in range(2))
    assert one[0].describe() == other[0].describe()
    assert one[1].legs == other[1].legs
    assert one[1].settings == other[1].settings
    assert one[1].burdens == other[1].burdens


# -- broken on purpose ------------------------------------------------------------------------------


def install_without_drain(patch: pytest.MonkeyPatch) -> None:
    """The new site of a partition does not see what the last epoch wrote."""
    whole = Run._orders

    def forgetful(run: Run, *arguments: Any) -> Orders:
        orders = whole(run, *arguments)
        manifest, segments = run._checkpoint.manifest, {}
        for name, refs in orders.segments.items():
            before, after = (
                manifest.subqueries[name].map(),
                orders.maps[run.plan.subqueries[name].home],
            )
            moved = moved_slots(before, after)
            last = f"/{manifest.epoch:012d}-"
            segments[name] = tuple(without(ref, moved) if last in ref.file else ref for ref in refs)
        return replace(orders, segments=segments)

    patch.setattr(Run, "_orders", forgetful)


def moved_slots(before: PartitionMap, after: PartitionMap) -> list[tuple[int, int]]:
    slots = np.arange(after.slots)
    return ranges_where(before.site_of(slots) != after.site_of(slots))


def without(ref: SegmentRef, slots: list[tuple[int, int]]) -> SegmentRef:
    # One that owns nothing may not be empty, or it could not be read at all
    return msgspec.structs.replace(ref, live=tuple(subtract(ref.live, slots)) or ((0, 0),))


def sites_keep_the_old_map(patch: pytest.MonkeyPatch) -> None:
    """Rows are sent by the new map, but sites look after what they had in the epoch before."""
    whole, known = exchange.run_site, {}

    def stale(orders: Orders, level: int, site: int, parcels: Any) -> Any:
        before = known.get((orders.root, orders.epoch - 1), orders.maps)
        known[orders.root, orders.epoch] = orders.maps
        return whole(replace(orders, maps=before), level, site, parcels)

    patch.setattr(exchange, "run_site", stale)


class Greedy(PartitionMap):
    """A map by which a site still has what it had by the map before."""

    before: PartitionMap

    def owned_by(self, site: int) -> list[tuple[int, int]]:
        own = np.zeros(self.slots, dtype=bool)
        for first, end in [*super().owned_by(site), *self.before.owned_by(site)]:
            own[first:end] = True
        return ranges_where(own)


def two_owners(patch: pytest.MonkeyPatch) -> None:
    """The site that a partition has left goes on with the state that it had there."""
    whole, known = exchange.run_site, {}

    def greedy(orders: Orders, level: int, site: int, parcels: Any) -> Any:
        before = known.get((orders.root, orders.epoch - 1), orders.maps)
        known[orders.root, orders.epoch] = orders.maps
        maps = {}
        for home, after in orders.maps.items():
            maps[home] = Greedy(after.sites, after.starts, after.slots)
            object.__setattr__(maps[home], "before", before[home])
        return whole(replace(orders, maps=maps), level, site, parcels)

    patch.setattr(exchange, "run_site", greedy)


def pins_do_not_hold(patch: pytest.MonkeyPatch) -> None:
    """Other numbers of sites move what is pinned."""
    patch.setattr(Pins, "keep", lambda self, maps, alive: dict(maps))


BREAKS = {
    install_without_drain: "rows, expected",
    sites_keep_the_old_map: "rows, expected",
    two_owners: "rows, expected",
    pins_do_not_hold: "is pinned to site",
}
"""What some failure must say."""


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.__name__)
def test_a_broken_protocol_is_caught(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    failed = caught(BREAKS[broken])
    assert failed, "no seed noticed it"
    assert failed.failure
    assert failed.failure.startswith(f"Seed {failed.seed} failed")
    assert f"anabranch chaos --seeds {failed.seed}..{failed.seed}" in failed.failure
    assert "stream one: rows per epoch" in failed.failure


def caught(words: str) -> SeedReport | None:
    """The first seed that fails with these words."""
    reports = (run_seed(seed) for seed in SEEDS)
    return next((r for r in reports if r.failure and words in r.failure.splitlines()[0]), None)


def test_a_disturbance_that_is_refused_fails_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the handle is not taken for something that happens."""

    def wrong(it: Meddling) -> None:
        it.run.set_sites(0)

    monkeypatch.setattr(chaos, "DISTURBANCES", (wrong,) * 20)
    monkeypatch.setattr(chaos, "BY_MAP", ())
    report = run_seed(3)
    assert "at least one site" in (report.failure or "")


# -- the command ------------------------------------------------------------------------------------


def test_the_command() -> None:
    shown = CliRunner().invoke(app, ["chaos", "--seeds", "3..5", "--json"])
    assert shown.exit_code == 0, shown.output
    told = json.loads(shown.stdout)
    assert (told["passed"], told["failed"]) == (3, [])
    assert told["seconds"] > 0
    assert {"moves", "splits", "merges", "site_changes", "crashes"} <= {*told}
    shown = CliRunner().invoke(app, ["chaos", "--seeds", "3"])
    assert "1 of 1 seeds passed" in shown.stdout


def test_the_command_tells_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    install_without_drain(monkeypatch)
    found = caught("rows, expected")
    assert found
    failed = found.seed
    shown = CliRunner().invoke(app, ["chaos", "--seeds", f"{failed}..{failed}"])
    assert shown.exit_code == 1
    assert f"Seed {failed} failed" in shown.stdout
    assert f"anabranch chaos --seeds {failed}..{failed}" in shown.stdout
    assert "decisions:" in shown.stdout
    shown = CliRunner().invoke(app, ["chaos", "--seeds", str(failed), "--json"])
    assert shown.exit_code == 1
    assert json.loads(shown.stdout)["failed"] == [failed]
    assert f"Seed {failed} failed" in shown.stderr


@pytest.mark.parametrize("seeds", ["", "x", "5..1", "-3..2", "1..2..3"])
def test_seeds_that_are_none(seeds: str) -> None:
    shown = CliRunner().invoke(app, ["chaos", "--seeds", seeds])
    assert shown.exit_code == 1
    assert "Seeds are given as a range such as 0..199" in shown.output


def test_every_disturbance_is_met() -> None:
    """Each kind comes up in the seeds of this file often enough to matter."""
    met: Counter[str] = Counter()
    for seed in SEEDS:
        _, trial = draw_seed(seed)
        met.update(kind.__name__ for kind in trial.watchers[1].kinds)
    assert all(met[kind.__name__] >= 2 for kind in DISTURBANCES), met
