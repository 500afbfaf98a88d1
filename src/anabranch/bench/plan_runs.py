"""One run of `bench plans`: the three-way join of the paper on plan-aware balancing, in emulated time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event
from typing import Any

import numpy as np
import polars as pl

from anabranch.bench.duck import connect
from anabranch.bench.plan_service import TICKS, ArrivalSource, PlanClock, ServiceSession
from anabranch.engine.run import Run
from anabranch.simulate.service import EPOCH, HALF, PARTITIONS, SERVICE, Service

SITES = 7
"""The paper's ten machines less those of manager, generator and application."""
STREAMS = ("a", "b", "c")
QUERY = "joined"
SQL = (
    "SELECT a.t AS t, a.v AS x, b.v AS y, c.v AS z FROM a "
    "JOIN b ON a.k = b.k AND b.t BETWEEN a.t - {w} AND a.t + {w} "
    "JOIN c ON a.k = c.k AND c.t BETWEEN a.t - {w} AND a.t + {w} AND c.t BETWEEN b.t - {w} AND b.t + {w}"
)
CHAIN = (
    "SELECT a.t AS t, a.v AS x, b.v AS y, c.v AS z FROM a "
    "JOIN b ON a.k = b.k AND b.t BETWEEN a.t - {w} AND a.t + {w} "
    "JOIN c ON b.k = c.k AND c.t BETWEEN b.t - {w} AND b.t + {w}"
)
"""Bounds from one stream to the next alone: a row of A can be in a result with one of C two windows later."""
LEFT_DEEP = "((0,1),2)"
RIGHT_DEEP = "(0,(1,2))"


@dataclass(frozen=True)
class PlanTraffic:
    """What the three streams bring, with Poisson arrivals."""

    rates: Sequence[float]
    """Rows a second of A, B and C at first."""
    window: float
    """Seconds within which rows meet."""
    seconds: float
    """How long the run is."""
    keys: int
    change: float = 0.0
    """When the rates change, if they do ..."""
    later: Sequence[float] = ()
    """... to these."""
    query: str = SQL
    seed: int = 7

    @cached_property
    def rows(self) -> dict[str, pl.DataFrame]:
        """The rows of each stream, in the order of their arrival."""
        random = np.random.default_rng(self.seed)
        return {name: self._rows(number, random) for number, name in enumerate(STREAMS)}

    def _rows(self, number: int, random: np.random.Generator) -> pl.DataFrame:
        change = self.change or self.seconds
        stretches = [(0.0, change, self.rates[number])]
        if self.later:
            stretches.append((change, self.seconds, self.later[number]))
        # Of a Poisson process, as many as come fall anywhere in the time
        times = [
            random.uniform(begin, end, random.poisson((end - begin) * rate))
            for begin, end, rate in stretches
        ]
        ticks = np.sort((np.concatenate(times) * TICKS).astype(np.int64))
        return pl.DataFrame(
            {
                "t": ticks,
                "k": random.integers(0, self.keys, len(ticks)),
                "v": random.integers(0, 1 << 40, len(ticks)),
            }
        )

    @property
    def text(self) -> str:
        return self.query.format(w=round(self.window * TICKS))

    def digest(self, upto: float) -> tuple[int, ...]:
        """What DuckDB makes of the rows up to a time."""
        with connect() as duck:
            for name, rows in self.rows.items():
                duck.register(name, rows.filter(pl.col("t") < upto * TICKS).to_arrow())
            found = pl.from_arrow(duck.sql(self.text).to_arrow_table())
        assert isinstance(found, pl.DataFrame)
        return digest(found)


def digest(results: pl.DataFrame) -> tuple[int, ...]:
    """How many rows, and sums that tell whether they are the same."""
    whole = results.select(pl.col("t", "x", "y", "z").cast(pl.Int64))
    mixed = whole.select(
        (pl.col("x") % 9973) * (pl.col("y") % 9967) + (pl.col("z") % 9949) * (pl.col("t") % 9941)
    ).to_series()
    return results.height, *whole.sum().row(0), int(mixed.sum())


@dataclass(frozen=True)
class PlanWay:
    """How a run goes about it."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    epoch: float = EPOCH
    """Seconds of the streams in an epoch."""
    service: Service = SERVICE
    replan: tuple[float, str] | None = None
    """When a change of shape is asked for, in seconds of the streams, and to which."""


@dataclass
class PlanCourse:
    """What a run did: values after each epoch."""

    times: list[float]
    reads: list[float]
    """Up to which time of the streams."""
    spent: list[float]
    """The seconds that the epoch took; it may have waited for its rows before."""
    results: list[int]
    """So far."""
    waiting: list[int]
    """Rows that have come and were not read."""
    state: list[int]
    """Rows of inputs and intermediates that are kept."""
    busiest: list[float]
    """The service of the busiest site against the mean."""
    shapes: list[dict[str, int]]
    lines: list[dict[str, Any]]
    equal: bool

    @property
    def total(self) -> int:
        """The results by the end of the run."""
        return self.results[-1]

    @property
    def in_system(self) -> list[int]:
        """All rows that are somewhere: the paper's total tuples."""
        return [some + kept for some, kept in zip(self.waiting, self.state, strict=True)]

    def at(self, moments: Sequence[float]) -> list[int]:
        """The results by each of some times."""
        done = np.searchsorted(self.times, moments, "right")
        return [int(one) for one in np.append(0, self.results)[done]]


class PlanHand:
    """Gives partitions their first sites, and asks for another shape when it is time."""

    def __init__(self, clock: PlanClock, replan: tuple[float, str] | None) -> None:
        self._ready = Event()
        self._clock, self._replan = clock, replan

    def take(self, run: Run) -> None:
        """Takes hold of the run, whose first epoch waits for it."""
        self._run = run
        self._ready.set()

    def step(self, name: str, epoch: int) -> None:
        if name != "begin":
            return
        self._ready.wait()
        (subquery,) = self._run.plan.subqueries
        if epoch == 0:
            known = self._run.partition_map(subquery)
            self._run.repartition(subquery, known.on(first_sites(len(known.starts))))
            self._run.release(subquery)
        if self._replan is not None and self._clock.read >= self._replan[0]:
            self._run.replan(subquery, self._replan[1])
            self._replan = None


def first_sites(partitions: int) -> list[int]:
    """Half of the partitions on one site, the others shared by all."""
    alone = round(partitions * HALF)
    return [0] * alone + [number % SITES for number in range(partitions - alone)]


def run_plan(traffic: PlanTraffic, way: PlanWay) -> PlanCourse:
    """Runs the join for so many emulated seconds."""
    clock = PlanClock(way.epoch, traffic.seconds)
    settings: dict[str, Any] = {
        "partitions_per_site": PARTITIONS,
        "split_partitions": False,
        "join_shape": LEFT_DEEP,
        "recent_progress": 100_000,
        "skew_buffer": "none",
        "site_memory_bytes": 1 << 50,
        "fsync": False,
    }
    session = ServiceSession.in_process(SITES, settings | dict(way.settings))
    assert isinstance(session, ServiceSession)
    session.service, session.clock = way.service, clock
    for name, rows in traffic.rows.items():
        session.stream(name, ArrivalSource(rows, clock), ordered="t")
    session.query(QUERY, traffic.text)
    hand, times, reads = PlanHand(clock, way.replan), list[float](), list[float]()

    def step(name: str, epoch: int) -> None:
        hand.step(name, epoch)
        if name == "after-publish":
            times.append(clock.now)
            reads.append(clock.read)

    run = session.start(sinks={QUERY: "memory"}, on_step=step)
    hand.take(run)
    run.await_termination()
    results = run.results(QUERY)
    told = run.recent_progress
    arrived = [rows["t"].to_numpy() / TICKS for rows in traffic.rows.values()]
    busy = [[site["busySeconds"] for site in one["customMetrics"]["sites"]] for one in told]
    return PlanCourse(
        times=times,
        reads=reads,
        spent=clock.spent,
        results=np.cumsum([one["sinks"][0]["numOutputRows"] for one in told]).tolist(),
        waiting=[
            sum(int(np.diff(np.searchsorted(some, [read, now]))[0]) for some in arrived)
            for read, now in zip(reads, times, strict=True)
        ],
        state=[one["stateOperators"][0]["numRowsTotal"] for one in told],
        busiest=[max(some) * len(some) / max(sum(some), 1e-12) for some in busy],
        shapes=[
            next(iter(one["customMetrics"]["adaptation"]["shapes"].values()), {}) for one in told
        ],
        lines=run.history(),
        equal=digest(results) == traffic.digest(reads[-1]),
    )
