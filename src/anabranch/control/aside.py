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
from anabranch.routing.ranges import intersect
from anabranch.routing.reach import Spilled
from anabranch.state.manifest import Manifest
from anabranch.state.segment import NEVER, SegmentRef, slots_in
from anabranch.state.shelf import Shelf

Slots = Sequence[tuple[int, int]]


class Aside:
    """The bytes of each slot that are put aside, and the watermark at which they are to come back."""

    def __init__(self, plan: Plan, manifest: Manifest) -> None:
        self._plan = plan
        self._bytes: dict[str, np.ndarray] = {}
        self._dues: dict[str, np.ndarray] = {}
        """By subquery, for each slot."""
        self._since: dict[str, np.ndarray] = {}
        for exchange, spilled in manifest.spilled.items():
            for one in spilled:
                self.put(exchange, [(one.first, one.end)], manifest, one)

    def put(
        self, exchange: str, slots: Slots, manifest: Manifest, only: Spilled | None = None
    ) -> None:
        """Takes in what goes: all state of these slots, or that of generations that have gone."""
        count = manifest.exchanges[exchange].map().slots
        gone = self._bytes.setdefault(exchange, np.zeros(count))
        where = slots_in(slots)
        gone[where] = 0
        since = self._since.setdefault(exchange, np.full(count, NEVER))
        since[where] = np.minimum(since[where], only.since if only else manifest.epoch + 1)
        for member in self._plan.exchanges[exchange].members:
            shelf = manifest.subqueries[member.name].shelf
            refs = shelf.within(slots)
            if only is not None and only.cuts:
                refs = [ref for ref in refs if ref.born[1] <= only.cuts[-1]]
                shelf = Shelf(refs)
            known = shelf.bytes_by_slot
            mine = where[where < len(known)]
            gone[mine] += known[mine]
            self._note_dues(member, refs, slots, count)

    def _note_dues(
        self, member: Subquery, refs: Iterable[SegmentRef], slots: Slots, count: int
    ) -> None:
        if not member.stateful:
            return
        # Windows close one after another; what a join owes is given at once, when no more can come
        prompt = any(table.open for table in member.operator.tables)
        dues = self._dues.setdefault(member.name, np.full(count, NEVER))
        dues[slots_in(slots)] = NEVER if prompt else -NEVER
        for ref in refs:
            mine = slots_in(intersect(ref.live, slots))
            dues[mine] = (np.minimum if prompt else np.maximum)(dues[mine], ref.max_due)
        dues[dues == -NEVER] = NEVER

    def take(self, exchange: str, slots: Slots) -> None:
        """These slots are brought together."""
        if exchange in self._bytes:
            self._bytes[exchange][slots_in(slots)] = 0
            self._since[exchange][slots_in(slots)] = NEVER
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
        reached = manifest.reach.get(exchange.name)
        for member in exchange.members if reached is not None else ():
            watermark = member.watermark(reached.watermark) if reached is not None else None
            if watermark is not None and member.name in self._dues:
                dues = _each(np.minimum, self._dues[member.name], known, NEVER)
                found |= dues <= watermark
        return found


def _each(
    put_together: np.ufunc, by_slot: np.ndarray, known: PartitionMap, otherwise: float
) -> np.ndarray:
    """For each partition what its slots have together; there may be more slots by now, cells of hot keys."""
    missing = known.slots - len(by_slot)
    padded = np.append(by_slot, np.full(max(0, missing), otherwise, dtype=by_slot.dtype))
    found: np.ndarray = put_together.reduceat(padded[: known.slots], np.asarray(known.starts))
    return found
