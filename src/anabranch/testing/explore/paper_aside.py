"""A run on paper whose state is put aside: the rows of its slots, what waits, and which pairs were given.

A row comes for each slot in each epoch. What a site would do with them is done here, with the real flows.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from anabranch.control.governor import Governor
from anabranch.routing.reach import SlotFlow
from anabranch.state.group import SiteState
from anabranch.state.manifest import Manifest
from anabranch.state.place import place
from anabranch.state.segment import NEVER, SegmentRef
from anabranch.state.shelf import Shelf
from anabranch.testing.explore.explorer import Broken

SLOTS = 2
LARGE = 700_000
"""Bytes of a row's state: of two slots only one fits where a megabyte comes together at once."""
Pair = tuple[int, int, int]
"""A slot, and the epochs of two of its rows."""


@dataclass
class AsideWorld:
    """A run between two epochs."""

    governor: Governor
    manifest: Manifest
    left: int
    """How many disturbances may still come."""
    kept: list[tuple[int, ...]] = field(default_factory=lambda: [()] * SLOTS)
    """For each slot the epochs in which the rows that it has were worked on, by the epoch they came in."""
    waiting: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """The rows that wait in each file: slot and epoch."""
    given: frozenset[Pair] = frozenset()
    before: frozenset[int] = frozenset()
    """Slots that have come together at least once."""
    goals: tuple[str, ...] = ()

    def copy(self) -> AsideWorld:
        governor = self.governor
        # What is never changed, or decides nothing here
        shared = [
            governor._plan, governor._settings, governor._manner, governor._balancing, governor._history,
            governor.holdings.hot, governor.changing, governor.memory, *governor.maps.values(),
        ]  # fmt: skip
        return AsideWorld(
            copy.deepcopy(governor, {id(one): one for one in shared}), self.manifest, self.left,
            list(self.kept), dict(self.waiting), self.given, self.before,
        )  # fmt: skip

    def key(self) -> tuple[Any, ...]:
        (exchange,) = self.manifest.exchanges
        spilling = self.governor.holdings.spilling
        asked = (spilling._asked, spilling._going, spilling._to_clean, spilling.by_hand)
        return (
            self.manifest.epoch, self.manifest.reach[exchange], tuple(self.kept),
            tuple(sorted(self.waiting.items())), self.given, self.before, self.left,
            tuple(tuple(one.get(exchange, ())) for one in asked),
        )  # fmt: skip


def work_on(world: AsideWorld, slot: int, fresh: list[int], flow: SlotFlow, epoch: int) -> None:
    """What a site does with a slot: gives what is owed, has new rows meet those they may, keeps them."""
    rows = world.kept[slot]
    refs, own = _refs(slot, rows), [(slot, slot + 1)]
    state = SiteState(place("/nowhere", False), refs, own, epoch, LARGE, flow.newest)
    if flow.cuts:
        number = [int(np.searchsorted(flow.cuts, ref.born[1])) for ref in refs]
        pairs = combinations(range(len(rows)), 2)
        _give(world, [(slot, one, other) for one, other in pairs if number[one] != number[other]])
    if fresh != [*range(len(rows), len(rows) + len(fresh))]:
        raise Broken(f"slot {slot} gets the rows of epochs {fresh} after {len(rows)} rows")
    near = [_row(ref) for ref in refs if state.wanted(ref)]
    _give(world, [(slot, one, other) for one in near for other in fresh])
    _give(world, [(slot, one, other) for one, other in combinations(fresh, 2)])
    world.kept[slot] = (*rows, *[epoch] * len(fresh))


def _give(world: AsideWorld, pairs: list[Pair]) -> None:
    for pair in pairs:
        if pair in world.given:
            raise Broken(
                f"of slot {pair[0]}, the pair of rows {pair[1]} and {pair[2]} is given twice"
            )
    world.given |= {*pairs}


def shelf_of(kept: list[tuple[int, ...]]) -> Shelf:
    return Shelf(ref for slot, rows in enumerate(kept) for ref in _refs(slot, rows))


def _refs(slot: int, rows: tuple[int, ...]) -> list[SegmentRef]:
    """A segment for each row of a slot, in the order in which they came."""
    return [
        SegmentRef(
            file=f"state/{slot}-{came}.arrow", batch=came, table="rows", tier=0, rows=1, bytes=LARGE,
            min_due=NEVER, max_due=NEVER, live=((slot, slot + 1),), along=(1,), born=(born, born), checksum=0,
        )
        for came, born in enumerate(rows)
    ]  # fmt: skip


def _row(ref: SegmentRef) -> int:
    return ref.batch
