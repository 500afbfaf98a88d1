"""The simulator: rows are conserved, a seed gives a run again, and small experiments come out as in Flux."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from anabranch.adapt.actions import Move
from anabranch.cli import app
from anabranch.errors import RunError
from anabranch.simulate.cluster import LOADED, Cluster, Event
from anabranch.simulate.demand import even, skewed
from anabranch.simulate.governing import EXCHANGE, as_published, self_tuning
from anabranch.simulate.model import Simulation as Unchecked
from anabranch.simulate.movement import Movement
from anabranch.simulate.producers import Exchange, SkewBuffer
from anabranch.simulate.record import Record

CLUSTER = Cluster(sites=8, partitions=256, lanes=8)
FULL_RATE = CLUSTER.sites / (CLUSTER.row_seconds + CLUSTER.produce_seconds)


class Simulation(Unchecked):
    """Says after every step whether all is where the movement protocol has it."""

    def _step(self, now: float, record: Record) -> None:
        super()._step(now, record)
        self.validate()


@pytest.mark.parametrize("exchange", [False, True])
def test_an_unloaded_cluster_does_what_its_sites_can(exchange: bool) -> None:
    record = Simulation(CLUSTER, even(256), 1, exchange=exchange).run(2)
    assert record.rate(1) == pytest.approx(FULL_RATE, rel=0.02)


def test_a_seed_gives_a_run_again() -> None:
    def rows(seed: int) -> list[float]:
        events = [Event(0.0, 2, rate=LOADED)]
        return Simulation(CLUSTER, even(256), seed, self_tuning(), events).run(2).rows.tolist()

    assert rows(4) == rows(4)
    assert rows(4) != rows(5)


def test_one_slow_site_holds_up_all_unless_partitions_move() -> None:
    events = [Event(0.0, 2, rate=LOADED)]
    static = Simulation(CLUSTER, even(256), 1, None, events).run(12)
    adaptive = Simulation(CLUSTER, even(256), 1, self_tuning(), events).run(12)
    published = Simulation(CLUSTER, even(256), 1, as_published(), events).run(16)
    best = FULL_RATE * (7 + LOADED) / 8
    assert static.rate(10) == pytest.approx(LOADED * FULL_RATE, rel=0.1)
    assert adaptive.rate(8) >= 0.95 * best
    assert published.rate(14) >= 0.85 * best


def test_the_skew_buffer_holds_what_an_exchange_cannot() -> None:
    turns = [
        event
        for at in range(8)
        for event in (Event(at / 4, at, rate=LOADED), Event((at + 1) / 4, at, rate=1.0))
    ]
    small = replace(CLUSTER, buffer_rows=256, step=1e-3)
    flux = Simulation(small, even(256), 1, events=turns).run(2).rate()
    exchange = Simulation(small, even(256), 1, events=turns, exchange=True).run(2).rate()
    assert flux > 1.1 * exchange


def test_rows_of_a_paused_partition_wait_and_none_is_lost() -> None:
    rng = np.random.default_rng(2)
    chances = skewed(256, rng)
    site = np.arange(256) * 8 // 256
    popular, other = int(np.argmax(chances)), int(np.argmin(chances))
    for partition in (popular, other):
        buffer = SkewBuffer(CLUSTER, chances, site.copy(), rng)
        produced = buffer.produce()
        buffer.pause(partition, int(site[partition]))
        taken = 0.0
        for _ in range(20):
            produced += buffer.produce()
            taken += buffer.queued.sum() / 2
            buffer.take(np.full(8, 0.5))
        buffer.resume(partition, 3)
        held = buffer._held.sum()
        assert produced == pytest.approx(taken + buffer.queued.sum() + held)
        assert buffer.by_site.sum() == pytest.approx(1)


def test_an_exchange_does_not_move_partitions() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(RunError, match="skew buffer"):
        Exchange(CLUSTER, even(256), np.arange(256) // 32, rng).pause(1, 0)


def test_a_move_drains_extracts_transfers_and_arrives() -> None:
    movement = Movement(CLUSTER)
    move = Move(EXCHANGE, 1, "test", source=0, target=3)
    movement.add(move)
    on_disk = np.zeros(256, bool)
    assert movement.begin({0}, on_disk) == [], "a site at its disk does not answer"
    assert movement.begin(set(), on_disk) == [move]
    movement.fetch([move], np.full(8, 100.0))
    seconds, served, arrived = 0.0, np.full(8, 20.0), []
    while not movement.idle:
        assert not arrived
        movement.handle(np.full(8, 1e-3))
        arrived = movement.advance(served, 1e-3)
        seconds += 1e-3
    assert arrived == [move]
    transfer = CLUSTER.partition_bytes / CLUSTER.moving
    assert seconds == pytest.approx(transfer + 0.005 + 2 * 0.002, abs=0.006)


def test_validate_finds_what_was_not_carried_out() -> None:
    events = [Event(0.0, 2, rate=LOADED)]
    simulation = Unchecked(CLUSTER, even(256), 1, as_published(), events)
    step, record = 0, Record(8)
    while not simulation._movement.travelling:
        simulation._step(step * CLUSTER.step, record)
        step += 1
    partition = min(simulation._movement.travelling)[1]
    simulation.validate()
    simulation._producers.paused.remove(partition)
    with pytest.raises(RunError, match="is paused, but its rows do not wait"):
        simulation.validate()
    simulation._producers.paused.add(partition)
    simulation.site[partition] += 1
    with pytest.raises(RunError, match="is being moved from site"):
        simulation.validate()
    simulation.site[partition] -= 1
    assert simulation.governor is not None
    simulation.governor.holdings.transitions.moves.moving.clear()
    with pytest.raises(RunError, match="that are not paused"):
        simulation.validate()
    simulation._producers.paused.clear()
    with pytest.raises(RunError, match="State travels"):
        simulation.validate()
    simulation._movement._travels.clear()
    simulation.site[partition] += 1
    with pytest.raises(RunError, match="not where the governor has them"):
        simulation.validate()


def test_memory_that_is_cut_stops_a_site_until_partitions_have_moved() -> None:
    cluster = replace(CLUSTER, partitions=8 * 32, partition_rows=75_000, memory=250e6)
    events = [Event(0.5, 2, memory=128e6)]
    static = Simulation(cluster, even(256), 1, None, events).run(24)
    adaptive = Simulation(cluster, even(256), 1, self_tuning("hybrid"), events).run(24)
    assert static.rate(18) < 0.5 * FULL_RATE
    assert static.latency[-1] > 1e-3
    # The site has memory for 21 partitions of an even share of 32, so that the others have more to do
    assert adaptive.rate(20) == pytest.approx(FULL_RATE * 7 / 8 * 256 / (256 - 21), rel=0.03)
    assert adaptive.latency[-1] == pytest.approx(45e-6, rel=0.1)


def test_80_20_makes_flux_shift_the_popular_partition_and_ours_not() -> None:
    chances = skewed(2048, np.random.default_rng(1))
    popular = int(np.argmax(chances))
    cluster = Cluster()
    flux = Simulation(cluster, chances, 1, as_published()).run(6)
    ours = Simulation(cluster, chances, 1, self_tuning()).run(6)
    assert sum(move.partition == popular for move in flux.moves) > 10
    assert not any(move.partition == popular for move in ours.moves)
    assert ours.rate(3) > flux.rate(3)


def test_the_command_prints_json() -> None:
    command = [
        sys.executable,
        "-m",
        "anabranch",
        "simulate",
        "cluster",
        "--sites",
        "4",
        "--partitions",
        "64",
    ]
    shown = subprocess.run(
        [*command, "--seconds", "4", "--json"], capture_output=True, text=True, check=True
    ).stdout
    found = json.loads(shown)
    assert len(found["rows_per_s"]) == 4
    assert found["rows_per_s_after"] <= found["rows_per_s_before"]


def test_the_lines_of_the_command_fit_into_a_terminal() -> None:
    arguments = ["simulate", "cluster", "--sites", "4", "--partitions", "64", "--seconds", "4"]
    lines = CliRunner().invoke(app, arguments).stdout.splitlines()
    assert "1 site loaded" in lines[0]
    assert max(map(len, lines)) <= 80
