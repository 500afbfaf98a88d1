"""What leaves a task for the sites of the next level: frames, by the site that each goes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from anabranch.engine.computing import computing
from anabranch.engine.counting import count
from anabranch.engine.orders import Orders
from anabranch.engine.report import Counts
from anabranch.engine.sharing import SHARED, exchange_of, readers_of, share, slots_in
from anabranch.engine.waiting import hold_back, read_held
from anabranch.errors import RunError
from anabranch.language.expression import Named
from anabranch.operators.base import Operator, Spread
from anabranch.operators.changes import without_replaced
from anabranch.operators.partials import SEQ
from anabranch.operators.stateless import apply, compute
from anabranch.plan.subquery import BY_LANE, EVENLY, IN_GRID, Subquery
from anabranch.plan.subquery import Path as RowPath
from anabranch.routing.frame import Frame, Inlet, alike, concat, narrow
from anabranch.routing.hashing import hash_columns, hashable
from anabranch.routing.locator import runs_in_turn, slot_of_locator
from anabranch.routing.reach import slots_of, within
from anabranch.routing.sorting import distinct
from anabranch.state.manifest import HeldRef
from anabranch.state.scattering import scatter
from anabranch.state.segment import LOCATOR

FEW_SITES = 6
"""Up to so many sites it is faster to look for the rows of each than to sort rows by site."""


@dataclass
class Outbox:
    """Frames gathered for the subqueries of the next levels."""

    orders: Orders
    level: int = 0
    """The level of the task that fills it."""
    local: dict[Inlet, list[Frame]] = field(default_factory=dict)
    """Frames for subqueries of the same level: they run on these partitions, without an exchange."""
    frames: dict[Inlet, list[Frame]] = field(default_factory=dict)
    forwarded: dict[Inlet, list[Frame]] = field(default_factory=dict)
    """Frames for a later level than the next: already taken in, only passed on."""
    combined: dict[str, tuple[int, int]] = field(default_factory=dict)
    _sent: dict[str, tuple[np.ndarray, ...]] = field(default_factory=dict)
    """Counts for each partition, by exchange of the next level."""
    held: list[HeldRef] = field(default_factory=list)
    """Rows that wait."""
    condensed: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Rows of hot slots before and after sub-aggregation, by exchange."""
    copied: dict[str, dict[int, int]] = field(default_factory=dict)
    """Copies that were made for cells of hot keys, by subquery and input."""

    def route(self, origin: str, rows: pl.DataFrame, lane: int | None = None) -> None:
        """Takes rows of a stream or subquery along every path that reads it.

        `lane` is the slot of all of them, if the stream comes partitioned.
        """
        served = self._share(origin, rows, lane)
        for subquery, path in self.orders.plan.reading(origin):
            if (subquery.name, path) in served:
                continue
            self.take(subquery, path, without_replaced(apply(path.steps, rows)), lane)

    def take(
        self, subquery: Subquery, path: RowPath, stepped: pl.DataFrame, lane: int | None
    ) -> None:
        """Takes rows that have been through the steps of a path to its end."""
        taken = self._intake(subquery, path, stepped, lane)
        if taken.height:
            box = self.local if subquery.level == self.level else self.frames
            box.setdefault((subquery.name, path.input), []).append(narrow(taken))

    def _share(self, origin: str, rows: pl.DataFrame, lane: int | None) -> set[tuple[str, RowPath]]:
        """Takes rows once for all readers behind one exchange that want them so; who these are."""
        served: set[tuple[str, RowPath]] = set()
        for number, common in enumerate(self.orders.plan.common):
            if common.origin == origin and rows.height:
                shared = share(self.orders, number, rows, lane)
                if shared is not None:
                    inlet, copy = shared
                    self.frames.setdefault(inlet, []).append(narrow(copy))
                    served |= {
                        (subquery.name, path) for subquery, path in readers_of(self.orders, inlet)
                    }
        return served

    def _intake(
        self, subquery: Subquery, path: RowPath, stepped: pl.DataFrame, lane: int | None
    ) -> pl.DataFrame:
        if SEQ in subquery.columns[path.input] and SEQ not in stepped.columns:
            # Results of another subquery have no arrival order: equal times are told apart by content
            known = [
                c for c in stepped.drop(LOCATOR, strict=False).get_columns() if hashable(c.dtype)
            ]
            number = hash_columns(known, stepped.height).view(np.int64)
            stepped = stepped.with_columns(pl.Series(SEQ, number))
        if subquery.spread == IN_GRID:
            grid = self.orders.grids[subquery.exchange]
            which, cells = grid.places(stepped.height, path.input, start=self.orders.epoch)
            stepped = stepped[pl.Series(which.astype(np.uint32))]
            placed = Spread(grid.cells, placed=cells.astype(np.uint64))
            return subquery.operator.intake(stepped, placed, path.input)
        spread = self._spread(subquery, path.input, stepped, lane)
        taken = subquery.operator.intake(stepped, spread, path.input)
        scattered = self.orders.scattered.get(subquery.exchange, ())
        if scattered:
            places = slot_of_locator(taken[LOCATOR].to_numpy())
            found = set(distinct(places[np.isin(places, [one.slot for one in scattered])]).tolist())
            for one in scattered:
                if one.slot in found:
                    before = taken.height
                    taken = scatter(taken, one, path.input, self.orders.epoch)
                    copies = self.copied.setdefault(subquery.name, {})
                    more = taken.height - before
                    copies[path.input] = copies.get(path.input, 0) + more
        return taken

    def _spread(
        self, subquery: Subquery, input: int, rows: pl.DataFrame, lane: int | None
    ) -> Spread:
        slots = self.orders.maps[subquery.exchange].hashed
        if self.level and subquery.level == self.level:
            # Without an exchange, results stay on the slot that they were made on
            return Spread(slots, placed=slot_of_locator(rows[LOCATOR].to_numpy()))
        if subquery.spread == BY_LANE:
            return Spread(slots, placed=lane)
        if subquery.spread == EVENLY:
            arrival = rows[SEQ].to_numpy() if SEQ in rows.columns else np.arange(rows.height)
            return Spread(slots, placed=runs_in_turn(arrival, slots))
        # Results stay where they are made for what shares the exchange: then rows must be with their like
        readers = self.orders.plan.reading(subquery.name)
        anywhere = all(reader.level != subquery.level for reader, _ in readers)
        if subquery.partitioned_by_keys:
            return Spread(slots, anywhere=anywhere)
        named = [Named(f"term{n}", term) for n, term in enumerate(subquery.terms[input])]
        return Spread(slots, compute(rows, named).get_columns(), anywhere=anywhere)

    def combine(self) -> None:
        """Sub-aggregates where the driver has seen that it shrinks the rows."""
        for inlet, frames in self.frames.items():
            frame = self._hold_back(inlet, concat(frames))
            if frame.rows.height == 0:
                continue
            fewer = self._combined(inlet[0], frame)
            if inlet[0] in self.orders.combine:
                before, after = self.combined.get(inlet[0], (0, 0))
                rows = before + frame.rows.height, after + sum(f.rows.height for f in fewer)
                self.combined[inlet[0]] = rows
            self.forwarded.setdefault(inlet, []).extend(fewer)
        self.frames.clear()

    def _hold_back(self, inlet: Inlet, frame: Frame) -> Frame:
        """The rows that flow; those that are to wait are written beside the state."""
        exchange = exchange_of(self.orders, inlet)
        holds = self.orders.reach[exchange].behind
        if not holds:
            return frame
        waits = within(slot_of_locator(frame.rows[LOCATOR].to_numpy()), slots_of(holds))
        if waits.any():
            rows = frame.wide().filter(pl.Series(waits))
            self.held.append(hold_back(self.orders, exchange, inlet, rows, holds))
        return Frame(frame.rows.filter(pl.Series(~waits)), frame.narrowed)

    def let_go(self, held: Sequence[HeldRef]) -> None:
        """Takes in rows that waited, before any others."""
        for ref in held:
            rows = read_held(self.orders, ref)
            self.frames.setdefault((ref.subquery, ref.input), []).append(narrow(rows))

    def _combined(self, name: str, frame: Frame) -> list[Frame]:
        """The rows, all sub-aggregated or none; or those of hot keys, and the others as they are."""
        if name.startswith(SHARED):
            return [frame]
        subquery = self.orders.plan.subqueries[name]
        hot = self.orders.hot.get(subquery.exchange, ()) if subquery.combines else ()
        if name in self.orders.combine:
            return [self._fewer(subquery, frame)]
        if not hot:
            return [frame]
        popular = within(slot_of_locator(frame.rows[LOCATOR].to_numpy()), hot)
        if not popular.any():
            return [frame]
        others = Frame(frame.rows.filter(pl.Series(~popular)), frame.narrowed)
        few = self._fewer(subquery, Frame(frame.rows.filter(pl.Series(popular)), frame.narrowed))
        before, after = self.condensed.get(subquery.exchange, (0, 0))
        counts = before + int(popular.sum()), after + few.rows.height
        self.condensed[subquery.exchange] = counts
        return [few, others] if others.rows.height else [few]

    def _fewer(self, subquery: Subquery, frame: Frame) -> Frame:
        operator: Operator = subquery.operator
        with computing(f"Sub-aggregates for '{subquery.name}'"):
            return narrow(operator.combine(frame))

    def take_local(self, inlet: Inlet) -> list[Frame]:
        """What this task has made for a subquery of its own level, in the form of what it is sent."""
        frames = self.local.pop(inlet, [])
        return self._combined(inlet[0], concat(frames)) if frames else []

    def by_site(self, sites: int) -> list[list[tuple[Inlet, Frame]]]:
        """What goes to each site."""
        self.combine()
        boxes: list[list[tuple[Inlet, Frame]]] = [[] for _ in range(sites)]
        slots: dict[str, list[np.ndarray]] = {}
        for inlet, ready in self.forwarded.items():
            exchange = self.orders.plan.exchanges[exchange_of(self.orders, inlet)]
            for frame in alike(ready):
                places = slots_in(frame.rows)
                if exchange.level == self.level + 1:
                    slots.setdefault(exchange.name, []).append(places)
                if sites == 1:
                    boxes[0].append((inlet, frame))
                    continue
                owners = self.orders.maps[exchange.name].site_of(places)
                if int(owners.max()) >= sites:
                    raise RunError(
                        f"The map of '{exchange.name}' has site {int(owners.max())}, but this epoch has "
                        f"only {sites} sites. Nothing of it is counted; please report this."
                    )
                for site, part in split_by_site(frame.rows, owners, sites):
                    boxes[site].append((inlet, Frame(part, frame.narrowed)))
        self._sent = {
            exchange: count(self.orders.maps[exchange], found) for exchange, found in slots.items()
        }
        return boxes

    def sent(self, site: int) -> dict[str, Counts]:
        """What goes to each partition of a site."""
        return {
            exchange: Counts(*(array[mine].tobytes() for array in arrays))
            for exchange, arrays in self._sent.items()
            for mine in [self.orders.maps[exchange].partitions_of(site)]
        }


def split_by_site(
    rows: pl.DataFrame, owners: np.ndarray, sites: int
) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows of each site that has any, by the sites that own them."""
    if sites <= FEW_SITES:
        order = [np.flatnonzero(owners == site) for site in range(sites)]
    else:
        edges = np.cumsum(np.bincount(owners, minlength=sites))
        order = np.split(np.argsort(owners, kind="stable"), edges[:-1])
    for site, mine in enumerate(order):
        if len(mine):
            yield site, rows[pl.Series(mine.astype(np.uint32))]
