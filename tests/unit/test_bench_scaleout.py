"""`bench scaleout` on few rows: emulated time, results equal to DuckDB's, a model beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anabranch.bench import scaleout
from anabranch.bench.scaleout_runs import ScalePoint, run_scaled
from anabranch.observe.steps import silent
from anabranch.simulate.scaleout import OPERATORS, Hosts, ScaledOperator, ScaleModel

SMALL = {
    "map": OPERATORS["map"],
    "filter": OPERATORS["filter"],
    "join": replace(OPERATORS["join"], window=4.0, keys=50, epoch=2.0),
    "aggregate": replace(OPERATORS["aggregate"], keys=200),
    "product": replace(OPERATORS["product"], window=4.0, epoch=2.0),
    "fixed": replace(OPERATORS["fixed"], window_rows=40, epoch=2.0),
}


@pytest.mark.parametrize("name", SMALL)
def test_an_operator_gives_what_duckdb_gives(name: str) -> None:
    operator = SMALL[name]
    point = run_scaled(operator, 2, 0.2 * operator.capacity(1), (4.0, 4.0))
    assert point.equal
    assert point.waiting == 0
    assert 0 < point.busy_share < 1


def test_sites_that_get_more_than_they_can_do_let_rows_wait() -> None:
    operator = SMALL["aggregate"]
    load = 1.5 * operator.capacity(1)
    first, second = (run_scaled(operator, 1, load, (2.0, 4.0)) for _ in range(2))
    assert first == second, "emulated time is the same each time"
    assert first.throughput == pytest.approx(operator.capacity(1), rel=0.01)
    assert first.busy_share == pytest.approx(1.0, abs=0.01)
    assert first.waiting > 0


@pytest.mark.parametrize("name", ["map", "join", "product", "fixed"])
def test_capacity_is_where_all_sites_are_busy(name: str) -> None:
    operator = OPERATORS[name]
    rate, ask = operator.capacity(8), operator.service
    spent = rate * operator.copies(8) * ask.row + operator.pairs(rate) * ask.pair
    if not operator.joins:
        spent = rate * ask.row
    assert spent == pytest.approx(8)


def test_hosts_share_their_cores() -> None:
    seconds = np.ones(8)
    assert Hosts(cores=4, sites=4).lasts(seconds) == 1
    assert Hosts(cores=4, sites=8).lasts(seconds) == 2
    assert Hosts(cores=4, sites=1).lasts(seconds) == 1


def test_the_load_policy_moves_partitions_of_the_model() -> None:
    operator = OPERATORS["join"]
    load = 1.3 * operator.capacity(64)
    fixed = ScaleModel(operator, 64, load, balances=False)
    moving = ScaleModel(operator, 64, load)
    alone = fixed.run(60.0, 60.0)["throughput"]
    assert moving.run(60.0, 60.0)["throughput"] > alone
    assert moving.moved > fixed.moved == 0


@pytest.mark.parametrize("quick", [False, True])
def test_streams_end_with_an_epoch(quick: bool) -> None:
    """Else time goes on for which no rows came, and throughput is less than the load."""
    bench = scaleout.ScaleOut(quick, silent())
    for operator in OPERATORS.values():
        for part in bench._span(operator, 0.4 * operator.capacity(8)):
            assert part % operator.epoch == pytest.approx(0)


def test_the_figures_of_scaleout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each figure has its curves; what is measured of 8 sites is held against the bar."""

    def measured(
        operator: ScaledOperator, sites: int, load: float, span: tuple[float, float], hosts: Hosts
    ) -> ScalePoint:
        able = min(sites, sites // hosts.sites * hosts.cores)
        done = 100.0 * able * (0.95 if operator.name == "aggregate" and sites == 8 else 1.0)
        return ScalePoint(load, done, done, done, 1.0, 0, operator.name != "filter")

    monkeypatch.setattr(scaleout, "run_scaled", measured)
    result = scaleout.run_scaleout(True, silent())
    figures = result.figures
    assert {*scaleout.FIGURES, "fig10"} <= {*figures}
    assert figures["least_efficiency"] == pytest.approx(0.95)
    assert figures["fig10"]["cores_used"] == pytest.approx(1.0)
    assert figures["fig10"]["beyond_cores"] == pytest.approx(1.0)
    assert not result.sound, "a run that is not equal to DuckDB's makes the figures mean nothing"
    assert result.bars[0].name == "least_efficiency"
    assert any("fig7e" in line for line in scaleout.scaleout_lines(figures))
