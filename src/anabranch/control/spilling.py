"""What of a run's state is put aside, and what comes together again: asked for here, kept in the manifest.

(S3, S4) Slots are put aside as they are: the manifest says up to which epoch. What comes later begins another
generation. Cleaning up gives what rows of different generations owe each other, and makes one of them; it
goes on over as many epochs as the memory of the sites makes it take.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from anabranch.control.aside import Aside
from anabranch.control.scattering import Scattering
from anabranch.plan.plan import Plan
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import intersect, ranges_where, subtract, union
from anabranch.routing.reach import Apart, Spilled, brought_together, put_aside, slots_of
from anabranch.state.manifest import Manifest
from anabranch.state.segment import slots_in

Slots = Sequence[tuple[int, int]]
LEAST_CLEANED = 1024 * 1024
"""Bytes of a site that are cleaned up in an epoch, however little memory it has."""


class Spilling:
    """What was asked for and is done with the next epochs."""

    def __init__(self, plan: Plan, manifest: Manifest, scattering: Scattering) -> None:
        self.scattering = scattering
        self.aside = Aside(plan, manifest)
        self.waiting = {one.name for one in plan.exchanges.values() if not one.spills}
        """The exchanges whose rows wait while state is put aside."""
        self.awaited = self.waiting | {
            member.exchange
            for member in plan.subqueries.values()
            if any(one.exchange != member.exchange for one, _ in plan.reading(member.name))
        }
        """Those and the ones whose results others read: their time stands still until all is given."""
        self._asked: dict[str, list[tuple[int, int]]] = {}
        """What goes with the next epoch."""
        self._going: dict[str, list[tuple[int, int]]] = {}
        """What goes in the epoch under way: the manifest does not tell it yet."""
        self._to_clean: dict[str, list[tuple[int, int]]] = {}
        self._cleaning: dict[str, list[tuple[int, int]]] = {}
        """What of it is done in the next epoch."""
        self.by_hand: dict[str, list[tuple[int, int]]] = {}
        """What the user has put aside: it stays so until the user wants it back, or the end."""
        self.cleaning_all = False
        """Whether all comes together because the streams have ended: nothing is put aside any more."""

    def spill(self, exchange: str, slots: Slots) -> None:
        """Puts the state of these slots aside."""
        self._asked[exchange] = union(self._asked.get(exchange, []), slots)

    def keep_aside(self, exchange: str, slots: Slots) -> None:
        """Leaves these slots aside until the user wants them back, though there may be room."""
        self.by_hand[exchange] = union(self.by_hand.get(exchange, []), slots)

    def clean_up(self, exchange: str, slots: Slots) -> None:
        """Brings the generations of these slots together; what was only asked to go stays."""
        self._asked[exchange] = subtract(self._asked.get(exchange, []), slots)
        self._to_clean[exchange] = union(self._to_clean.get(exchange, []), slots)
        self.by_hand[exchange] = subtract(self.by_hand.get(exchange, []), slots)

    def clean_all(self, manifest: Manifest) -> None:
        """Brings together all that is put aside, for good."""
        self.cleaning_all, self._asked = True, {}
        for exchange, some in manifest.spilled.items():
            self.clean_up(exchange, slots_of(some))

    def slots(self, manifest: Manifest) -> dict[str, list[tuple[int, int]]]:
        """The slots of each exchange that are put aside, are to be, or come together with the next epoch."""
        return {
            name: union(
                union(slots_of(reach.spilled), self._asked.get(name, [])), self._going.get(name, [])
            )
            for name, reach in manifest.reach.items()
            if reach.spilled or name in self._asked or name in self._going
        }

    def describe(
        self, manifest: Manifest, maps: Mapping[str, PartitionMap]
    ) -> dict[str, dict[str, int]]:
        """By exchange, the partitions of which something is put aside, and the bytes of it."""
        spilled = {name: slots_of(some) for name, some in manifest.spilled.items()}
        size = self.aside.total()
        return {
            exchange: {"partitions": len(starts), "bytes": size.get(exchange, 0)}
            for exchange, starts in sorted(apart(spilled, maps).starts.items())
            if len(starts)
        }

    def begin(
        self, manifest: Manifest, maps: Mapping[str, PartitionMap], limit: np.ndarray,
        resident: np.ndarray,
    ) -> None:  # fmt: skip
        """Chooses what is cleaned up in the next epoch: of each site what it has room for, or a slot."""
        # Where hot keys have just been scattered, nothing can be put aside any more
        in_cells = self.scattering.exchanges
        self._asked = {name: some for name, some in self._asked.items() if name not in in_cells}
        # At the end what has come together stays packed, and is in nobody's way
        free = limit if self.cleaning_all else limit - resident
        left = np.maximum(free, LEAST_CLEANED)
        for exchange, asked in self._to_clean.items():
            spilled = slots_of(manifest.reach[exchange].spilled)
            there = intersect(asked, spilled)
            chosen = self._fitting(exchange, there, maps[exchange], left) if there else []
            self._cleaning[exchange] = chosen
            self._to_clean[exchange] = subtract(there, chosen)
        self._to_clean = {exchange: rest for exchange, rest in self._to_clean.items() if rest}

    def _fitting(
        self, exchange: str, asked: Slots, known: PartitionMap, left: np.ndarray
    ) -> list[tuple[int, int]]:
        """Of the asked slots what fits, that first which has been aside for longest."""
        slots = slots_in(asked)
        since = self.aside.since_by_slot(exchange)
        slots = slots[slots < len(since)]
        slots = slots[np.argsort(since[slots], kind="stable")]
        sizes = self.aside.bytes_by_slot(exchange)
        size = np.zeros(len(slots))
        size[slots < len(sizes)] = sizes[slots[slots < len(sizes)]]
        owners = known.site_of(slots)
        taken = np.zeros(int(slots.max(initial=0)) + 1, dtype=bool)
        for site in np.unique(owners):
            own = np.flatnonzero(owners == site)
            before = np.cumsum(size[own]) - size[own]
            # The first slot in any case: what does not fit cannot come in smaller parts
            fits = (before + size[own] <= left[site]) | (np.arange(len(own)) == 0)
            taken[slots[own[fits]]] = True
            left[site] -= size[own[fits]].sum()
        return ranges_where(taken)

    def waits(
        self, wanted: Mapping[str, Slots], manifest: Manifest
    ) -> dict[str, list[tuple[int, int]]]:
        """What is to wait in the next epoch, given what is to wait anyway."""
        aside = self.slots(manifest)
        held = {
            name: subtract(slots, self._cleaning.get(name, []))
            for name, slots in aside.items()
            if name in self.waiting
        }
        flowing = {name: slots for name, slots in aside.items() if name not in self.waiting}
        return {
            name: union(subtract(wanted.get(name, []), flowing.get(name, [])), held.get(name, []))
            for name in {*wanted, *held}
        }

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return any(any(some.values()) for some in (self._asked, self._to_clean, self._cleaning))

    def starving(self, manifest: Manifest) -> bool:
        """Whether rows wait for state that is put aside, by itself: its turn comes although no others do."""
        return any(
            subtract(slots_of(reach.spilled), self.by_hand.get(name, []))
            for name, reach in manifest.reach.items()
            if name in self.waiting and reach.behind
        )

    def take_next(self, manifest: Manifest, last: bool) -> tuple[Apart, Apart]:
        """What is put aside in the next epoch, and what is cleaned up in it; with the last, nothing goes."""
        if last:
            self._asked = {}
        self._going = {}
        spilled: dict[str, tuple[Spilled, ...]] = {}
        cleaned: dict[str, tuple[Spilled, ...]] = {}
        for exchange, reach in manifest.reach.items():
            wanted, waits = self._asked.get(exchange, []), exchange in self.waiting
            if not waits:
                # Rows that wait have not come yet: these slots stay as they are
                wanted = subtract(wanted, slots_of(reach.behind))
            aside = put_aside(reach, wanted, manifest.epoch + 1, waits)
            left, done = brought_together(aside, self._cleaning.get(exchange, []))
            spilled |= {exchange: left} if left else {}
            cleaned |= {exchange: done} if done else {}
            if wanted:
                self._going[exchange] = wanted
                self.aside.put(exchange, wanted, manifest)
            if done:
                self.aside.take(exchange, slots_of(done))
        self._asked, self._cleaning = {}, {}
        return spilled, cleaned


class PartitionsAside(Collection[tuple[str, int]]):
    """Partitions with slots that are put aside: they stay where they are. Told by arrays, not one by one."""

    def __init__(self, starts: Mapping[str, np.ndarray]) -> None:
        self.starts = starts
        """The first slots of them, in order, by exchange."""

    def among(self, exchange: str, starts: Sequence[int] | np.ndarray) -> np.ndarray:
        """Whether each of these partitions of an exchange is one of them."""
        own = self.starts.get(exchange, ())
        return np.isin(starts, own) if len(own) else np.zeros(len(starts), dtype=bool)

    def __contains__(self, subject: object) -> bool:
        exchange, start = cast(tuple[str, int], subject)
        own = self.starts.get(exchange, np.zeros(0))
        at = int(np.searchsorted(own, start))
        return at < len(own) and bool(own[at] == start)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return ((name, start) for name, some in self.starts.items() for start in some.tolist())

    def __len__(self) -> int:
        return sum(map(len, self.starts.values()))


def apart(slots: Mapping[str, Slots], maps: Mapping[str, PartitionMap]) -> PartitionsAside:
    """The partitions with slots that are put aside."""
    found = {name: maps[name].with_some_of(slots_in(some)) for name, some in slots.items()}
    return PartitionsAside(found)
