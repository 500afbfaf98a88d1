"""The governor by itself: the engine's reports and the simulator's figures lead it to the same decisions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from anabranch import Session, count
from anabranch.adapt.collector import Collector, Sample, Traffic
from anabranch.adapt.policies.combine import Intake, propose_combine
from anabranch.adapt.protocols.moving import Fetch, Install, Pause, Queue
from anabranch.control.governor import Governor
from anabranch.control.manner import Manner
from anabranch.control.observed import Observed
from anabranch.control.transitions import Order
from anabranch.engine.orders import Orders, StandingOrders
from anabranch.engine.report import Counts, EpochReport, SiteReport, SubqueryReport
from anabranch.engine.sampling import observed as from_reports
from anabranch.routing.partition_map import even_map
from anabranch.settings import Settings
from anabranch.simulate.cluster import Cluster
from anabranch.simulate.epochs import Epochs
from anabranch.simulate.governing import (
    AS_PUBLISHED,
    EXCHANGE,
    SIMULATED,
    as_published,
    begin_with,
    self_tuning,
    the_plan,
)
from anabranch.testing.sources import EpochSource
from helpers import at_rest

CLUSTER = Cluster(sites=4, partitions=32)
SLOWNESS = np.array([1.0, 1.0, 2.5, 1.0])
SECONDS_PER_ROW = 2.0**-12
"""A power of two, as are all factors: sums of such times are exact in whatever order."""
MEMORY = np.full(CLUSTER.sites, 1e9)


class Exactly(np.random.Generator):
    """Draws what is to be expected, so that the simulator counts the rows that the senders report."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def multinomial(self, total: Any, chances: Any, size: Any = None) -> Any:
        return np.rint(total * chances).astype(int)


def rows_of(epoch: int) -> np.ndarray:
    """Rows of every partition: some are popular, and a little more or less come each time."""
    popular = np.where(np.arange(CLUSTER.partitions) % 5 == 0, 300, 100)
    return popular + (np.arange(CLUSTER.partitions) * 7 + epoch * 3) % 11


def counts_of(partitions: np.ndarray, rows: np.ndarray) -> Counts:
    """The rows of a site's partitions, each of which is one slot."""
    counted = rows[partitions].astype(np.int64).tobytes()
    return Counts(counted, counted, np.arange(CLUSTER.partitions)[partitions].tobytes())


def as_engine(governor: Governor, epoch: int, now: float, busy: np.ndarray) -> Observed:
    """What the reports of an epoch show: what every site had to do, and what came to its partitions."""
    known, rows = governor.maps[EXCHANGE], rows_of(epoch)
    served = np.bincount(known.sites, rows, CLUSTER.sites)
    sites = [
        SiteReport(
            level=1,
            site=site,
            seconds=float(busy[site]),
            arrived={EXCHANGE: counts_of(known.partitions_of(site), rows)},
            subqueries={
                EXCHANGE: SubqueryReport(rows_in=int(served[site]), seconds=float(busy[site]))
            },
        )
        for site in range(CLUSTER.sites)
    ]
    orders = Orders(
        standing=StandingOrders(the_plan(), "", Settings()), epoch=epoch, attempt="",
        sites=CLUSTER.sites, maps=governor.maps, shelves={}, combine=frozenset(), newest={},
        watermarks={}, idle=frozenset(), ended=False, cleaning_all=False, streams={}, results={},
        pieces=((), ()),
    )  # fmt: skip
    report = EpochReport([], sites, seconds=float(busy.max()))
    memory = dict(enumerate(MEMORY.astype(int).tolist()))
    return replace(from_reports(orders, report), ended=now, memory=memory)


def as_simulator(governor: Governor, epochs: Epochs, epoch: int, now: float, busy: Any) -> Observed:
    """What the steps of a simulation show, the last of which ends now."""
    known, rows = governor.maps[EXCHANGE], rows_of(epoch)
    served = np.bincount(known.sites, rows, CLUSTER.sites)
    for _ in range(4):
        epochs.add(served / 4, (busy.max() - busy) / 4, rows.sum() / 4)
    assert epochs.over(now, 0.0, set())
    on_disk = np.zeros(CLUSTER.partitions, dtype=bool)
    return epochs.observed(now, rows / rows.sum(), known, on_disk, MEMORY, Exactly())


def carry_out(governor: Governor, orders: list[Order], epoch: int, now: float) -> list[Order]:
    """Lets every move have its turn and arrive, one after another; all orders."""
    every = list(orders)
    for order in orders:
        if isinstance(order, Queue):
            every += governor.turn_came(order.move.subject, epoch)
            every += governor.arrived([order.move.subject], now + 0.25)
    return every


@pytest.mark.parametrize(
    ("settings", "manner"),
    [
        (self_tuning(), SIMULATED),
        (self_tuning(), Manner()),
        (self_tuning("hybrid"), Manner(far=True)),
        (as_published(), AS_PUBLISHED),
        (as_published(), Manner(warm_up=0, convinced=1)),
    ],
    ids=["tuned", "tuned-between-epochs", "hybrid-far", "published", "published-between-epochs"],
)
def test_reports_and_simulated_figures_lead_to_the_same_decisions(
    settings: Settings, manner: Manner
) -> None:
    manifests = begin_with(CLUSTER), begin_with(CLUSTER)
    governors = [Governor(the_plan(), settings, 4, one, manner) for one in manifests]
    epochs = Epochs(CLUSTER, settings.self_tuning)
    now = 0.0
    for epoch in range(8):
        rows, known = rows_of(epoch), governors[0].maps[EXCHANGE]
        busy = np.bincount(known.sites, rows, CLUSTER.sites) * SLOWNESS * SECONDS_PER_ROW
        now += float(busy.max())
        shown = (
            as_engine(governors[0], epoch, now, busy),
            as_simulator(governors[1], epochs, epoch, now, busy),
        )
        done = [
            carry_out(governor, governor.adapt(observed, manifest), epoch, now)
            for governor, observed, manifest in zip(governors, shown, manifests, strict=True)
        ]
        epochs.begin(now)
        assert done[0] == done[1]
        one, other = governors
        assert one.maps == other.maps
        assert one.collecting == other.collecting
        assert [line.plain() for line in one.history] == [line.plain() for line in other.history]
        for before, after in zip(one.views().values(), other.views().values(), strict=True):
            assert before.sites.busy.tolist() == after.sites.busy.tolist()
            assert before.partitions.work.tolist() == after.partitions.work.tolist()
    accepted = [line for line in governors[0].history if line.accepted]
    assert accepted, "something was decided"
    assert any(line.action.plain()["source"] == 2 for line in accepted), "the slow site is relieved"


def test_a_move_in_turn_is_queued_paused_fetched_and_installed() -> None:
    manifest = begin_with(CLUSTER)
    governor = Governor(the_plan(), as_published(), 4, manifest, AS_PUBLISHED)
    busy = np.array([1.0, 1.0, 4.0, 1.0])
    orders = governor.adapt(as_engine(governor, 0, 4.0, busy), manifest)
    (first, *_) = [order for order in orders if isinstance(order, Queue)]
    assert orders == [Queue(order.move) for order in cast(list[Queue], orders)]
    collecting = governor.collecting
    assert governor.turn_came(first.move.subject, 5) == [Pause(first.move), Fetch(first.move)]
    assert first.move.subject in governor.holdings.transitions.paused
    assert governor.turn_came(first.move.subject, 6) == [], "it has begun"
    others = [order.move for order in cast(list[Queue], orders[1:])]
    for move in others:
        governor.turn_came(move.subject, 6)
        governor.arrived([move.subject], 6.0)
    assert governor.collecting == collecting, "the round goes on"
    assert governor.arrived([first.move.subject], 7.0) == [Install(first.move, 5)]
    assert not governor.holdings.transitions.paused
    assert governor.collecting == 3.0, "as long as the moves took"
    assert governor.maps[EXCHANGE].sites[first.move.partition] == first.move.target


def test_little_work_is_not_taken_for_what_an_epoch_costs_anyway() -> None:
    """Or the busiest site looks slower than the others, and what makes it busy moves to and fro."""
    known = even_map(4, 4)
    collector = Collector(4, smooth=True)
    rows = np.array([900.0, 100, 100, 10])
    traffic = Traffic(rows, rows, np.arange(4), rows.sum() / 1000)
    collector.add(Sample(0.9, rows / 1000, np.zeros(4), rows, {"x": traffic}), {"x": known}, 1)
    view = collector.view(at_rest("x", known, 4))
    assert view.sites.slowness.tolist() == pytest.approx([1.0] * 4)
    assert view.sites.busy.tolist() == pytest.approx([0.9, 0.1, 0.1, 0.01])


def test_senders_sub_aggregate_where_it_pays_and_cease_where_it_does_not() -> None:
    intake = Intake("x", rows=1200, groups=100, senders=4, before=0, after=0)
    begun = list(propose_combine((), {"q": intake}, reduction=3.0))
    assert [(one.subquery, one.on) for one in begun] == [("q", True)]
    assert not list(propose_combine((), {"q": intake}, reduction=3.1)), "a sender would gain less"
    poor = replace(intake, before=1200, after=600)
    assert not list(propose_combine({"q"}, {"q": poor}, 2.6)), "a little less does not end it"
    ended = list(propose_combine({"q"}, {"q": poor}, 2.7))
    assert [one.words() for one in ended] == ["no longer sub-aggregate for q before rows are sent"]
    assert not list(propose_combine({"q"}, {"q": intake}, 9.0)), "nothing was sent"


def test_what_is_combined_stands_in_the_history_and_is_kept_through_a_restart(
    tmp_path: Path,
) -> None:
    frames = [pl.DataFrame({"time": [at] * 400, "k": [n % 2 for n in range(400)]}) for at in (0, 1)]
    combining = []
    for count_of in (1, 2):
        session = Session.in_process(2, {"fsync": False})
        rows = session.stream("rows", EpochSource(frames[:count_of]), ordered="time", lateness=9)
        session.query("n", rows.group_by("time", "k").agg(count().alias("n")))
        run = session.start(sinks={"n": "memory"}, checkpoint=tmp_path)
        assert run.await_termination(60)
        told = [line for line in run.history() if line["kind"] == "combine"]
        assert [line["epoch"] for line in told] == ([0] if count_of == 1 else [])
        combining.append(run.recent_progress[-1]["customMetrics"]["combining"])
    assert combining == [[], ["n@1"]]
