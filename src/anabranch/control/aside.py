"""What is known of the state that is put aside: how much it is, and when it has results to give.

It stays as it is until it is brought together again, so it is looked at once, when it goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from anabranch.plan.exchange import Exchange
from anabranch.plan.plan import Plan
from anabranch.plan.subquery import Subquery
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import expand, intersect, ranges_of
from anabranch.routing.reach import Reach, Spilled
from anabranch.state.manifest import Manifest
from anabranch.state.segment import NEVER, SegmentRef, slots_in
from anabranch.state.shelf import Shelf

Slots = Sequence[tuple[int, int]]
AT_ONCE = 1 << 10
"""Segments that are looked at at once: each may lie in all slots."""
NOTHING = -NEVER
"""Where the latest time of a slot is looked for: that there is no row yet."""


class Aside:
    """The bytes of each slot that are put aside, and the watermark at which they are to come back."""

    def __init__(self, plan: Plan, manifest: Manifest) -> None:
        self._plan = plan
        self._bytes: dict[str, np.ndarray] = {}
        self._dues: dict[str, np.ndarray] = {}
        """By subquery, for each slot."""
        self._since: dict[str, np.ndarray] = {}
        self._generations: dict[str, np.ndarray] = {}
        for exchange, spilled in manifest.spilled.items():
            for one in spilled:
                self.put(exchange, [(one.first, one.end)], manifest, one)

    def put(
        self, exchange: str, slots: Slots, manifest: Manifest, only: Spilled | None = None
    ) -> None:
        """Takes in what goes: all state of these slots, or that of generations that have gone."""
        count = manifest.exchanges[exchange].map().slots
        gone = _grown(self._bytes, exchange, count, 0.0)
        where = slots_in(slots)
        gone[where] = 0
        since = _grown(self._since, exchange, count, NEVER)
        fresh = ranges_of(where[since[where] == NEVER])
        since[where] = np.minimum(since[where], only.since if only else manifest.epoch + 1)
        generations = _grown(self._generations, exchange, count, 0)
        generations[where] += max(1, len(only.cuts)) if only else 1
        for member in self._plan.exchanges[exchange].members:
            shelf = manifest.subqueries[member.name].shelf
            refs = shelf.within(slots)
            if only is not None and only.cuts:
                refs = [ref for ref in refs if ref.born[1] <= only.cuts[-1]]
                shelf = Shelf(refs)
            known = shelf.bytes_by_slot
            mine = where[where < len(known)]
            gone[mine] += known[mine]
            if member.stateful:
                dues = _grown(self._dues, member.name, count, NEVER)
                if _prompt(member):
                    dues[where] = NEVER
                else:
                    # What went before is known, and there may be very much of it
                    dues[slots_in(fresh)] = NOTHING
                    refs = [ref for ref in refs if not ref.packed or intersect(ref.live, fresh)]
                self._note_dues(member, refs, slots, manifest)

    def follow(self, manifest: Manifest) -> None:
        """Takes in what the last epoch has added in slots that owe results: windows that began there."""
        for exchange, spilled in manifest.spilled.items():
            owing = [(one.first, one.end) for one in spilled if one.cuts]
            for member in self._plan.exchanges[exchange].members if owing else ():
                if member.name in self._dues and _prompt(member):
                    added = manifest.subqueries[member.name].shelf.made_by.added
                    self._note_dues(member, added, owing, manifest)

    def _note_dues(
        self, member: Subquery, refs: Iterable[SegmentRef], slots: Slots, manifest: Manifest
    ) -> None:
        refs = list(refs)
        for begin in range(0, len(refs), AT_ONCE):
            self._note_some(member, refs[begin : begin + AT_ONCE], slots, manifest)

    def _note_some(
        self, member: Subquery, refs: Sequence[SegmentRef], slots: Slots, manifest: Manifest
    ) -> None:
        dues = self._dues[member.name]
        passed = member.watermark(manifest.reach[member.exchange].watermark)
        chosen = np.zeros(len(dues), dtype=bool)
        chosen[slots_in(slots)] = True
        first_due = np.asarray([ref.min_due for ref in refs], dtype=np.int64)
        last_due = np.asarray([ref.max_due for ref in refs], dtype=np.int64)
        # Rows that have had their time may still lie there
        gone = np.zeros(len(refs), dtype=bool) if passed is None else first_due <= passed
        due = np.where(gone, last_due, first_due) if _prompt(member) else last_due
        counts = np.asarray([len(ref.live) for ref in refs], dtype=np.int64)
        live = np.asarray([pair for ref in refs for pair in ref.live], dtype=np.int64)
        live, due = live.reshape(-1, 2), np.repeat(due, counts)
        widths = live[:, 1] - live[:, 0]
        where, due = expand(live[:, 0], widths), np.repeat(due, widths)
        # There may be cells of hot keys by now
        mine = where < len(chosen)
        mine[mine] = chosen[where[mine]]
        nearer = np.minimum if _prompt(member) else np.maximum
        nearer.at(dues, where[mine], due[mine])

    def take(self, exchange: str, slots: Slots) -> None:
        """These slots are brought together."""
        if exchange in self._bytes:
            self._bytes[exchange][slots_in(slots)] = 0
            self._since[exchange][slots_in(slots)] = NEVER
            self._generations[exchange][slots_in(slots)] = 0
            for member in self._plan.exchanges[exchange].members:
                if member.name in self._dues:
                    self._dues[member.name][slots_in(slots)] = NEVER

    def bytes(self, exchange: str, known: PartitionMap) -> np.ndarray:
        """The bytes of each partition that are put aside."""
        return _each(np.add, self._bytes.get(exchange, np.zeros(0)), known, 0.0)

    def since(self, exchange: str, known: PartitionMap) -> np.ndarray:
        """The epoch since which something of each partition is put aside; NEVER if nothing is."""
        none = np.zeros(0, dtype=np.int64)
        return _each(np.minimum, self._since.get(exchange, none), known, NEVER)

    def since_by_slot(self, exchange: str) -> np.ndarray:
        """The same for each slot, as far as there is any."""
        return self._since.get(exchange, np.zeros(0, dtype=np.int64))

    def generations(self, exchange: str, known: PartitionMap) -> np.ndarray:
        """How many generations of each partition are put aside."""
        none = np.zeros(0, dtype=np.int64)
        return _each(np.maximum, self._generations.get(exchange, none), known, 0)

    def total(self) -> dict[str, int]:
        """The bytes that are put aside, by exchange."""
        found = {exchange: round(float(some.sum())) for exchange, some in self._bytes.items()}
        return {exchange: size for exchange, size in found.items() if size}

    def bytes_by_slot(self, exchange: str) -> np.ndarray:
        """The same for each slot, as far as there is any."""
        return self._bytes.get(exchange, np.zeros(0))

    def closing(self, exchange: Exchange, known: PartitionMap, manifest: Manifest) -> np.ndarray:
        """Whether each partition has something aside whose time has come."""
        found = np.zeros(known.partitions, dtype=bool)
        reached = manifest.reach.get(exchange.name, Reach()).watermark
        for member in (one for one in exchange.members if one.name in self._dues):
            watermark = member.watermark(reached)
            if watermark is not None:
                dues = self._dues[member.name]
                dues = np.where(dues == NOTHING, NEVER, dues)
                found |= _each(np.minimum, dues, known, NEVER) <= watermark
        return found


def _prompt(member: Subquery) -> bool:
    """Whether its windows close one after another. What a join owes is given when no more can come."""
    return any(table.open for table in member.operator.tables)


def _grown(known: dict[str, np.ndarray], name: str, count: int, otherwise: float) -> np.ndarray:
    """What is known of each slot, for so many: there are more once hot keys have been in cells."""
    by_slot = known.get(name, np.zeros(0, dtype=type(otherwise)))
    missing = np.full(max(0, count - len(by_slot)), otherwise, dtype=by_slot.dtype)
    known[name] = np.append(by_slot, missing)
    return known[name]


def _each(
    put_together: np.ufunc, by_slot: np.ndarray, known: PartitionMap, otherwise: float
) -> np.ndarray:
    """For each partition what its slots have together; there may be more slots by now, cells of hot keys."""
    missing = known.slots - len(by_slot)
    padded = np.append(by_slot, np.full(max(0, missing), otherwise, dtype=by_slot.dtype))
    found: np.ndarray = put_together.reduceat(padded[: known.slots], np.asarray(known.starts))
    return found
