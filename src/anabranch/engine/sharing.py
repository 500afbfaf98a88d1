"""Rows that several subqueries behind one exchange want: sent once, taken in by each of them on its site.

A sender decides for every batch of rows, by the bytes: one copy with the columns of all, of the rows that one
of them wants, or a copy for each. What is sub-aggregated before it is sent goes on its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from anabranch.engine.orders import Orders
from anabranch.language.expression import Named
from anabranch.operators.base import Spread
from anabranch.operators.changes import without_replaced
from anabranch.operators.stateless import Where, apply, compute, needed
from anabranch.plan.exchange import Common
from anabranch.plan.subquery import BY_LANE, Path, Subquery
from anabranch.routing.frame import Frame, Inlet, alike
from anabranch.routing.hashing import hash_columns
from anabranch.routing.locator import slot_of, slot_of_locator
from anabranch.state.segment import LOCATOR

SLOT = "__slot"
"""The slot of a row that is sent once for several."""
SHARED = "*"
"""What the inlets of such rows begin with; then comes the number of their readers among the plan's."""
_ROW = "__row"
LOCATOR_BYTES, SLOT_BYTES, UNKNOWN_BYTES = 8, 2, 8


def exchange_of(orders: Orders, inlet: Inlet) -> str:
    """The exchange through which rows come to an inlet."""
    if inlet[0].startswith(SHARED):
        return orders.plan.common[int(inlet[0][len(SHARED) :])].exchange
    return orders.plan.subqueries[inlet[0]].exchange


def slots_in(rows: pl.DataFrame) -> np.ndarray:
    """The slot of each row on its way."""
    if SLOT in rows.columns:
        return rows[SLOT].to_numpy().astype(np.uint64)
    return slot_of_locator(rows[LOCATOR].to_numpy())


@dataclass(frozen=True)
class _Reader:
    """One of those that want the rows."""

    bit: int
    rows: np.ndarray | None
    """Which rows it keeps; None: all."""
    kept: int
    """How many these are."""
    columns: set[str]
    """What it reads of the rows before its steps."""
    alone: float
    """The bytes of a copy of its own."""


def share(
    orders: Orders, number: int, rows: pl.DataFrame, lane: int | None
) -> tuple[Inlet, pl.DataFrame] | None:
    """One copy of the rows for those readers for whom that takes the fewest bytes; None if it takes more."""
    common = orders.plan.common[number]
    if orders.reach[common.exchange].behind or orders.scattered.get(common.exchange):
        return None
    hot = orders.hot.get(common.exchange)
    widths = {name: rows[name].estimated_size() / max(1, rows.height) for name in rows.columns}
    readers = []
    for bit, (subquery, path) in enumerate(common.readers):
        if subquery.name not in orders.combine and not (hot and subquery.combines):
            readers.append(_reader(bit, subquery, path, rows, widths))
    chosen = _chosen(readers, widths, rows.height)
    if len(chosen) < 2:
        return None
    columns = [name for name in rows.columns if any(name in one.columns for one in chosen)]
    slots = _slots(common, rows, lane, orders.maps[common.exchange].hashed)
    copy = rows.select(columns).with_columns(pl.Series(SLOT, slots.astype(np.uint16)))
    kept = [one.rows for one in chosen if one.rows is not None]
    if len(kept) == len(chosen):
        copy = copy[pl.Series(np.unique(np.concatenate(kept)).astype(np.uint32))]
    return (f"{SHARED}{number}", sum(1 << one.bit for one in chosen)), copy


def _reader(
    bit: int, subquery: Subquery, path: Path, rows: pl.DataFrame, widths: dict[str, float]
) -> _Reader:
    read = subquery.columns[path.input]
    last = max((n for n, step in enumerate(path.steps) if isinstance(step, Where)), default=-1)
    kept = None
    if last >= 0:
        numbered = rows.with_columns(pl.int_range(pl.len(), dtype=pl.UInt32).alias(_ROW))
        kept = apply(path.steps[: last + 1], numbered)[_ROW].to_numpy()
    count = rows.height if kept is None else len(kept)
    alone = count * (sum(widths.get(name, UNKNOWN_BYTES) for name in read) + LOCATOR_BYTES)
    own = {name for name in read if name.startswith("__")}  # these pass through any steps
    return _Reader(bit, kept, count, needed(path.steps, read) | own, alone)


def _chosen(readers: list[_Reader], widths: dict[str, float], rows: int) -> list[_Reader]:
    """The readers that share: all but those, of fewest rows first, without whom it takes fewer bytes."""

    def together(some: list[_Reader]) -> float:
        count = min(rows, sum(one.kept for one in some))
        columns = set().union(*(one.columns for one in some))
        return count * (sum(widths.get(name, 0.0) for name in columns) + SLOT_BYTES)

    sharing = sorted(readers, key=lambda one: one.kept)
    for one in list(sharing):
        others = [other for other in sharing if other is not one]
        if len(others) > 1 and together(others) + one.alone < together(sharing):
            sharing = others
    if len(sharing) < 2 or together(sharing) >= sum(one.alone for one in sharing):
        return []
    return sharing


def _slots(common: Common, rows: pl.DataFrame, lane: int | None, slots: int) -> np.ndarray:
    if common.spread == BY_LANE:
        return np.full(rows.height, lane, dtype=np.uint64)
    named = [Named(f"term{number}", term) for number, term in enumerate(common.terms)]
    columns = compute(rows, named).get_columns() if named else []
    return slot_of(hash_columns(columns, rows.height), slots)


def readers_of(orders: Orders, inlet: Inlet) -> list[tuple[Subquery, Path]]:
    """Those for whom a shared copy is meant."""
    common = orders.plan.common[int(inlet[0][len(SHARED) :])]
    return [one for bit, one in enumerate(common.readers) if inlet[1] >> bit & 1]


class Copies:
    """The shared copies that have come to a site, from which each reader takes its own."""

    def __init__(
        self,
        orders: Orders,
        level: int,
        frames: dict[Inlet, list[Frame]],
        sizes: Mapping[Inlet, int],
    ) -> None:
        """Takes those for subqueries of this level out of the frames."""
        self._orders, self._sizes = orders, sizes
        mine = [
            inlet
            for inlet in frames
            if inlet[0].startswith(SHARED)
            and orders.plan.exchanges[exchange_of(orders, inlet)].level == level
        ]
        self._copies = {
            inlet: [frame.wide() for frame in alike(frames.pop(inlet))] for inlet in mine
        }

    def take(self, subquery: Subquery, received: Sequence[list[Frame]]) -> int:
        """Adds what a subquery wants of them to its inputs, as if it had been sent to it alone.

        Returns its share of their bytes.
        """
        size = 0
        for inlet, copies in self._copies.items():
            readers = readers_of(self._orders, inlet)
            for path in (path for reader, path in readers if reader.name == subquery.name):
                size += self._sizes[inlet] // len(readers)
                for copy in copies:
                    taken = self._taken(subquery, path, copy)
                    if taken.height:
                        received[path.input].append(Frame(taken))
        return size

    def _taken(self, subquery: Subquery, path: Path, rows: pl.DataFrame) -> pl.DataFrame:
        stepped = without_replaced(apply(path.steps, rows))
        spread = Spread(self._orders.maps[subquery.exchange].hashed, placed=slots_in(stepped))
        return subquery.operator.intake(stepped.drop(SLOT), spread, path.input)
