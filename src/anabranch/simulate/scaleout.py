"""The operators of StreamCloud's scale-out, what they take, and a model of them on more sites than fit here.

Rows are drawn by chance and counted; hashing, grids and the load policy are those of the engine. Sites work
at the same time, and an epoch takes as long as the busiest host. The service and the streams are the same as
in `bench scaleout`, which runs the engine itself on few sites.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from anabranch.adapt.actions import Move
from anabranch.adapt.arbiter import Arbiter, Limits
from anabranch.adapt.controller import POLICIES, Controller
from anabranch.adapt.tuning import by_itself
from anabranch.routing.grid import choose_grid
from anabranch.routing.hashing import hash_columns
from anabranch.routing.locator import slot_of
from anabranch.routing.partition_map import even_map, slots_for
from anabranch.simulate.plan_model import ROW_BYTES, view_of
from anabranch.simulate.service import Service

PARTITIONS = 32
"""Of each site."""
NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class ScaledOperator:
    """An operator, and what its sites take for it. A join has two streams of equal rates."""

    name: str
    service: Service
    unit: str = "rows"
    """What its throughput counts: rows of the streams, or pairs of rows compared."""
    epoch: float = 2.0
    """Seconds of the streams in an epoch."""
    keys: int = 0
    """Keys that rows are hashed by; none: they are dealt out."""
    window: float = 0.0
    """Seconds within which rows of a join meet ..."""
    window_rows: int = 0
    """... or how many rows of the other stream."""

    @property
    def joins(self) -> bool:
        return bool(self.window or self.window_rows)

    @property
    def in_grid(self) -> bool:
        return self.joins and not self.keys

    def copies(self, sites: int) -> float:
        """How many sites get a row."""
        return choose_grid(sites).sent(0.5, 0.5) if self.in_grid else 1.0

    def pairs(self, rate: float) -> float:
        """The pairs that are compared in a second, with so many rows of all streams in it."""
        if self.window_rows:
            return rate * self.window_rows
        return (rate / 2) ** 2 * 2 * self.window / max(1, self.keys)

    def capacity(self, sites: int) -> float:
        """The rows a second at which all sites are busy, were the work divided without any rest."""
        row, pair = self.service.row * self.copies(sites), self.service.pair
        if not self.joins or self.window_rows:
            return sites / (row + pair * self.window_rows)
        square = pair * self.pairs(1.0)
        return (math.sqrt(row * row + 4 * square * sites) - row) / (2 * square)


OPERATORS = {
    one.name: one
    for one in (
        ScaledOperator("map", Service(1 / 1500, 0.0, 0.0, 0.0)),
        ScaledOperator("filter", Service(1 / 1500, 0.0, 0.0, 0.0)),
        ScaledOperator(
            "join", Service(5e-4, 2e-3, 0.0, 1e-4), "pairs", 5.0, keys=10_000, window=60.0
        ),
        ScaledOperator("aggregate", Service(1 / 2000, 0.0, 0.0, 1e-4), keys=20_000),
        ScaledOperator("product", Service(5e-4, 1e-5, 0.0, 1e-4), "pairs", 5.0, window=60.0),
        ScaledOperator("fixed", Service(5e-4, 1e-5, 0.0, 1e-4), "rows", 5.0, window_rows=2_000),
    )
}
"""Those of the paper's Fig 7, with its service where it states a rate; pairs are fewer and dearer."""


@dataclass(frozen=True)
class Hosts:
    """Sites on hosts of several cores: a core that is done with one site takes the next."""

    cores: int = 1
    sites: int = 1
    """Of each host."""

    def lasts(self, seconds: np.ndarray) -> float:
        """How long the busiest host takes for the work of its sites.

        >>> Hosts(cores=2, sites=3).lasts(np.array([1.0, 2.0, 1.5, 1.0, 1.0, 1.0]))
        2.5
        """
        work = np.append(seconds, np.zeros(-len(seconds) % self.sites)).reshape(-1, self.sites)
        free = np.zeros((len(work), self.cores))
        for one in work.T:
            first = free.argmin(axis=1)
            free[np.arange(len(free)), first] += one
        return float(free.max())


ALONE = Hosts()


@dataclass
class ScaleModel:
    """One operator on so many sites under a load of rows a second."""

    operator: ScaledOperator
    sites: int
    load: float
    hosts: Hosts = ALONE
    balances: bool = True
    seed: int = 1
    moved: int = 0
    _recent: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng([self.seed, self.sites])
        count = PARTITIONS * self.sites
        known = even_map(count, self.sites, slots_for(count))
        self._site = np.asarray(known.sites)
        hashes = hash_columns(
            [pl.Series(range(self.operator.keys), dtype=pl.Int64)], self.operator.keys
        )
        slots = slot_of(hashes, known.slots).view(np.int64)
        self._partition = np.searchsorted(known.starts, slots, "right") - 1
        self._debt = np.zeros(self.sites)
        self._controller = Controller(
            (POLICIES["load"],), by_itself(self.operator.epoch, self.operator.epoch),
            Arbiter(Limits(NO_LIMIT)),
        )  # fmt: skip

    def run(self, settling: float, seconds: float) -> dict[str, float]:
        """Throughput, the share of the sites' time that they work, and rows that wait at the end."""
        epoch = self.operator.epoch
        now, read, rows, pairs, busy, since = epoch, 0.0, 0.0, 0.0, 0.0, 0.0
        begun = False
        while read < settling + seconds:
            upto = min(now, read + epoch)
            came, compared, spent = self._epoch(upto - read)
            read = upto
            lasts = self.hosts.lasts(spent)
            now = max(now + lasts, read + epoch)
            if begun:
                rows, pairs, busy = rows + came, pairs + compared, busy + float(spent.sum())
            elif read >= settling:
                begun, since = True, now
        span = now - since
        done = {"rows": rows, "pairs": pairs}[self.operator.unit]
        cores = self.sites / self.hosts.sites * self.hosts.cores
        return {
            "throughput": round(done / span, 1), "rows_per_s": round(rows / span, 1),
            "busy_share": round(busy / span / min(cores, self.sites), 4),
            "waiting": round((now - read - epoch) * self.load),
        }  # fmt: skip

    def _epoch(self, seconds: float) -> tuple[float, float, np.ndarray]:
        """Rows that come in so many seconds, pairs of them, and the seconds that sites take."""
        if self.operator.keys:
            return self._hashed(seconds)
        ask, sites = self.operator.service, self.sites
        came = self._rng.poisson(self.load * seconds)
        if not self.operator.joins:
            # Cut into as many parts as there are sites
            return came, 0.0, np.full(sites, math.ceil(came / sites) * ask.row)
        if self.operator.window_rows:
            compared = float(came * self.operator.window_rows)
        else:
            # Half of the rows are of either stream
            compared = came / 2 * sum(map(float, self._recent)) + came / 2 * came / 2
            self._remember(np.array(float(came)))
        each = came * self.operator.copies(sites) / sites * ask.row + compared / sites * ask.pair
        return came, compared, np.full(sites, each)

    def _hashed(self, seconds: float) -> tuple[float, float, np.ndarray]:
        operator, ask = self.operator, self.operator.service
        streams = 2 if operator.joins else 1
        expected = self.load * seconds / streams / operator.keys
        fresh = self._rng.poisson(expected, (streams, operator.keys)).astype(float)
        rows, pairs = fresh.sum(axis=0), np.zeros(operator.keys)
        kept = np.sum(self._recent, axis=0) if self._recent else np.zeros_like(fresh)
        if operator.joins:
            pairs = fresh[0] * kept[1] + fresh[1] * kept[0] + fresh[0] * fresh[1]
            self._remember(fresh)
        count = len(self._site)
        work = np.bincount(self._partition, rows * ask.row + pairs * ask.pair, count)
        spent = np.bincount(self._site, work, self.sites) + self._debt
        self._debt = np.zeros(self.sites)
        if self.balances:
            state = np.bincount(self._partition, kept.sum(axis=0), count)
            self._balance(
                work, np.bincount(self._partition, rows, count), state, float(spent.max())
            )
        return float(rows.sum()), float(pairs.sum()), spent

    def _remember(self, rows: np.ndarray) -> None:
        self._recent.append(rows)
        self._recent = self._recent[-round(self.operator.window / self.operator.epoch) :]

    def _balance(
        self, work: np.ndarray, rows: np.ndarray, state: np.ndarray, seconds: float
    ) -> None:
        """Moves what the policy proposes and the arbiter accepts; it costs both sites."""
        seen = view_of(self._site, self.sites, work, rows, rows, state * ROW_BYTES, seconds)
        for verdict in self._controller.decide(seen):
            move = verdict.action
            if verdict.accepted and isinstance(move, Move):
                cost = state[move.partition] * self.operator.service.moved
                self._debt[[move.source, move.target]] += cost
                self._site[move.partition] = move.target
                self.moved += 1
        self._controller.finished(0.0)
