"""One run of `bench scaleout`: an operator on so many sites under a load, in emulated time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from anabranch.bench.duck import connect
from anabranch.bench.plan_service import (
    TICKS,
    ArrivalReader,
    ArrivalSource,
    PlanClock,
    ServiceTwin,
)
from anabranch.engine.orders import Orders
from anabranch.engine.preparing import Ahead
from anabranch.engine.report import EpochReport
from anabranch.engine.transport import Transport
from anabranch.operators.numbering import Numbering
from anabranch.session import Session
from anabranch.simulate.scaleout import ALONE, PARTITIONS, Hosts, ScaledOperator
from anabranch.sources.base import EpochLimits, Offer, ReadContext, Reader
from anabranch.testing.sources import FramePiece, cut

QUERY = "results"
NUMBERING = 0.1
"""What the time of a row takes where rows are numbered, against the whole row where it is joined."""
DURATION = 120
"""Seconds that a call lasts, at most."""
PLACES = 500
OVERLAP = "a.t < b.t + 1000 * b.duration AND b.t < a.t + 1000 * a.duration AND ABS(a.x - b.x) < 1"
"""Calls that intersect in time, and began in one column of places: few results of many pairs."""
TEXTS = {
    "map": "SELECT t, caller, duration * 1000 AS ms, x + y AS place FROM a",
    "filter": "SELECT t, caller, duration FROM a WHERE duration > 60",
    "aggregate": (
        "SELECT window_start AS w, caller AS district, COUNT(*) AS calls, SUM(duration) AS total "
        "FROM HOP(a, t, 10000, 60000) GROUP BY window_start, caller"
    ),
    "join": (
        "SELECT a.t AS t, b.t - a.t AS apart, a.x - b.x AS dx FROM a JOIN b ON a.caller = b.caller AND "
        "b.t BETWEEN a.t - {w} AND a.t + {w}"
    ),
    "product": f"SELECT a.t AS t, b.t AS u FROM a JOIN b ON ABS(a.t - b.t) <= {{w}} AND {OVERLAP}",
    "fixed": f"SELECT a.t AS t, b.t AS u FROM a JOIN b ON WITHIN_ROWS({{n}}) AND {OVERLAP}",
}
HOPS = (
    "SELECT s AS w, caller AS district, COUNT(*) AS calls, SUM(duration) AS total FROM (SELECT *, "
    "unnest(generate_series(t // 10000 * 10000 - 50000, t // 10000 * 10000, 10000)) AS s FROM a) GROUP BY ALL"
)
LAST_ROWS = (
    f"SELECT a.t AS t, b.t AS u FROM a JOIN b ON {OVERLAP} AND "
    "(b.t < a.t AND b.mine >= a.theirs - {n} OR a.t < b.t AND a.mine >= b.theirs - {n})"
)
"""`mine`: the rows of the same stream before a row; `theirs`: those of the other."""


class CutSource(ArrivalSource):
    """Rows that come by a clock, in as many pieces as there are splits."""

    def open(self, context: ReadContext) -> Reader:
        return CutReader(self.rows, self.clock)


class CutReader(ArrivalReader):
    """What one run has read of them."""

    def poll(self, limits: EpochLimits, ordinal: int) -> Offer | None:
        whole = super().poll(limits, ordinal)
        if whole is None:
            return None
        (piece,) = whole.pieces
        assert isinstance(piece, FramePiece)
        parts = cut(piece.rows, limits.pieces)
        pieces = [FramePiece(rows, ordinal + at, piece.label) for at, rows in enumerate(parts)]
        return Offer(tuple(pieces), whole.offset, ordinal + len(pieces))


class ScaleTwin(ServiceTwin):
    """The in-process twin whose sites are on hosts; stateless operators take their time in splits."""

    def __init__(self, session: ScaleSession) -> None:
        super().__init__(session.operator.service, session.clock)
        self._session = session

    def run(self, orders: Orders, ahead: Ahead | None = None) -> EpochReport:
        subqueries = orders.plan.subqueries.items()
        self._numbering = {name for name, one in subqueries if isinstance(one.operator, Numbering)}
        return super().run(orders, ahead)

    def _lasts(self, report: EpochReport) -> float:
        session, ask = self._session, self._service
        compared = received = 0
        levels: dict[int, np.ndarray] = {}
        for split in report.splits if not report.sites else ():
            split.seconds = ask.row * sum(stream.rows for stream in split.streams.values())
            levels.setdefault(0, np.zeros(0))
            levels[0] = np.append(levels[0], split.seconds)
        for part in report.sites:
            for name, done in part.subqueries.items():
                if name in self._numbering:
                    part.seconds -= done.seconds * (1 - NUMBERING)
                    done.seconds *= NUMBERING
                else:
                    compared, received = compared + done.compared, received + done.rows_in
            level = levels.setdefault(part.level, np.zeros(session.sites))
            level[part.site] = part.seconds
        worked = sum(float(level.sum()) for level in levels.values())
        session.done.append((compared, received, worked))
        # A level begins when all sites are done with the one before
        return sum(session.hosts.lasts(level) for level in levels.values())


class ScaleSession(Session):
    """A session without Spark for one operator, and what its epochs did."""

    operator: ScaledOperator
    clock: PlanClock
    hosts: Hosts
    done: list[tuple[int, int, float]]
    """Pairs compared, rows received and seconds of all sites, by epoch."""

    def _transport(self) -> Transport:
        return ScaleTwin(self)


@dataclass(frozen=True)
class ScalePoint:
    """What so many sites did under a load of rows a second."""

    load: float
    throughput: float
    """Of rows or pairs, as the operator counts."""
    rows_per_s: float
    received_per_s: float
    """Rows that sites took in, copies with them."""
    busy_share: float
    waiting: int
    """Rows that have come and were not read by the end."""
    equal: bool


def calls(operator: ScaledOperator, load: float, seconds: float) -> dict[str, pl.DataFrame]:
    """Call records in the order of their arrival, two streams for a join."""
    names = ("a", "b") if operator.joins else ("a",)
    random = np.random.default_rng(round(load))
    counts = random.poisson(load / len(names) * seconds, len(names))
    ticks, total = round(seconds * TICKS), int(counts.sum())
    # Where the last rows count, no two come at the same time: so it is known which they are
    alone = operator.window_rows > 0
    times = random.permutation(ticks)[:total] if alone else random.integers(0, ticks, total)
    found = {}
    for name, count, mine in zip(names, counts, np.split(times, counts.cumsum()), strict=False):
        found[name] = pl.DataFrame(
            {
                "t": np.sort(mine),
                "caller": random.integers(0, max(1, operator.keys), count),
                "duration": random.integers(1, DURATION, count),
                "x": random.integers(0, PLACES, count),
                "y": random.integers(0, PLACES, count),
            }
        )
    return found


def text_of(operator: ScaledOperator) -> str:
    """The query that is asked."""
    window = round(operator.window * TICKS)
    return TEXTS[operator.name].format(w=window, n=operator.window_rows)


def run_scaled(
    operator: ScaledOperator, sites: int, load: float, span: tuple[float, float], hosts: Hosts = ALONE,
) -> ScalePoint:  # fmt: skip
    """Runs until the streams are read up to the end of the span; what lies in the span counts."""
    settling, seconds = span[0], sum(span)
    rows = calls(operator, load, seconds)
    clock = ReadClock(operator.epoch, seconds)
    settings: dict[str, Any] = {
        "partitions_per_site": PARTITIONS,
        "split_tasks": sites if not operator.joins and not operator.keys else 1,
        # The emulated time is that of rows which arrive; sub-aggregates would make it one of senders
        "combine_reduction": 1e9,
        "skew_buffer": "none",
        "site_memory_bytes": 1 << 50,
        "fsync": False,
    }
    session = ScaleSession.in_process(sites, settings)
    assert isinstance(session, ScaleSession)
    session.operator, session.clock, session.hosts, session.done = operator, clock, hosts, []
    for name, frame in rows.items():
        session.stream(name, CutSource(frame, clock), ordered="t")
    session.query(QUERY, text_of(operator))
    run = session.start(sinks={QUERY: "memory"}, at_end="close")
    run.await_termination()
    results = run.results(QUERY)
    ends = np.array(clock.ends)
    first = int(np.searchsorted(ends[:, 0], settling))
    # The epoch that closes the windows has no rows of its own
    whole = np.array(session.done[: len(ends)], dtype=float)[first + 1 :].sum(axis=0)
    lasted = ends[-1, 1] - ends[first, 1]
    read = sum(((frame["t"] / TICKS) >= ends[first, 0]).sum() for frame in rows.values())
    counted = {"rows": read, "pairs": whole[0]}[operator.unit]
    cores = min(sites, sites / hosts.sites * hosts.cores)
    return ScalePoint(
        load=round(load, 1), throughput=_round(counted / lasted), rows_per_s=_round(read / lasted),
        received_per_s=_round(whole[1] / lasted), busy_share=_round(whole[2] / lasted / cores, 4),
        waiting=round(load * max(0.0, ends[-1, 1] - ends[-1, 0] - operator.epoch)),
        equal=_digest(results) == _expected(operator, rows),
    )  # fmt: skip


def _round(value: float, digits: int = 1) -> float:
    return round(float(value), digits)


class ReadClock(PlanClock):
    """Emulated time that is over once the streams are read to their end."""

    def __init__(self, epoch: float, end: float) -> None:
        super().__init__(epoch, end)
        self.ends: list[tuple[float, float]] = []
        """After each epoch, up to when the streams were read, and what time it was."""

    @property
    def over(self) -> bool:
        return self.read >= self.end

    def pass_epoch(self, seconds: float) -> None:
        if not self.over:
            super().pass_epoch(seconds)
            self.ends.append((self.read, self.now))


def _digest(results: pl.DataFrame) -> tuple[int, ...]:
    """How many rows, and sums that tell whether they are the same."""
    mixed = results.select(pl.sum_horizontal(pl.all().cast(pl.Int64) % 9973)).to_series()
    return results.height, *results.sum().cast(pl.Int64).row(0), int((mixed * mixed).sum())


def _expected(operator: ScaledOperator, rows: dict[str, pl.DataFrame]) -> tuple[int, ...]:
    """What DuckDB makes of the rows."""
    text = text_of(operator)
    if operator.name == "aggregate":
        text = HOPS
    elif operator.window_rows:
        text, rows = LAST_ROWS.format(n=operator.window_rows), _numbered(rows)
    with connect() as duck:
        # An equality that DuckDB can hash
        text = text.replace("ABS(a.x - b.x) < 1", "a.x = b.x")
        for name, frame in rows.items():
            duck.register(name, frame.to_arrow())
        return _digest(duck.sql(text).pl())


def _numbered(rows: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The rows of two streams with the numbers that tell which are the last."""
    found = {}
    for name, other in (("a", "b"), ("b", "a")):
        before = np.searchsorted(rows[other]["t"].to_numpy(), rows[name]["t"].to_numpy())
        found[name] = (
            rows[name]
            .with_row_index("mine")
            .with_columns(pl.col("mine").cast(pl.Int64), theirs=before)
        )
    return found
