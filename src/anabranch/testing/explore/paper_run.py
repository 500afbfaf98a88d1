"""A run on paper around a real governor: its epochs, the rows that come and wait, who has which state.

One row comes for each slot in each epoch, and one file has the state of each slot that has had rows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec.structs import replace

from anabranch.adapt.protocols.moving import PAUSED
from anabranch.control.governor import Governor
from anabranch.control.holdings import Steered
from anabranch.control.observed import Observed
from anabranch.control.waiting import Waiting, still_held
from anabranch.engine.records import mapped
from anabranch.engine.watermarks import reach_of_inputs
from anabranch.plan.plan import Plan
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.reach import slots_of, within
from anabranch.state.manifest import HeldRef, Manifest, SubqueryRecord
from anabranch.state.segment import NEVER, SegmentRef
from anabranch.state.shelf import Shelf
from anabranch.testing.explore.explorer import Broken
from anabranch.testing.explore.small_plan import EXCHANGE, STREAM
from anabranch.testing.invariants import check_owners

SITES, SLOTS, STARTS = 3, 3, (0, 2)
Row = tuple[int, int]
"""Its slot and the epoch in which it came."""


@dataclass
class PaperRun:
    """A run between two epochs."""

    governor: Governor
    manifest: Manifest
    alive: tuple[bool, ...]
    rows: dict[str, tuple[Row, ...]]
    """The rows that wait in each file."""
    done: list[int]
    """The last epoch whose row each slot has had."""
    cached: list[frozenset[str]]
    """The files that each site has at hand."""
    left: int
    """How many disturbances may still come."""
    goals: tuple[str, ...] = ()

    def copy(self) -> PaperRun:
        governor = self.governor
        # What is never changed, or decides nothing here
        shared = [
            governor._plan, governor._settings, governor._manner, governor._balancing, governor._history,
            governor.holdings.hot, governor.changing, governor.memory, *governor.maps.values(),
            *governor.moving.values(),
        ]  # fmt: skip
        return PaperRun(
            copy.deepcopy(governor, {id(one): one for one in shared}),
            self.manifest, self.alive, dict(self.rows), list(self.done), list(self.cached), self.left,
        )  # fmt: skip

    @property
    def map(self) -> PartitionMap:
        return self.governor.maps[EXCHANGE]

    def owner(self, start: int) -> int:
        return self.map.sites[self.map.partition_at(start)]

    def key(self) -> tuple[Any, ...]:
        """The state as a value; times count from now, so that a later one can be the same."""
        manifest, governor, now = self.manifest, self.governor, self.manifest.epoch
        transitions, record = governor.holdings.transitions, manifest.exchanges[EXCHANGE]
        under_way = {
            (start, one.move.source, one.move.target, one.phase)
            for (_, start), one in governor.moving.items()
        }
        recorded = {(one.partition, one.source, one.target, one.phase) for one in manifest.moving}
        waiting = tuple(
            tuple((slot, now - came) for slot, came in self.rows[ref.file]) for ref in manifest.held
        )
        behind = tuple(
            (hold.first, hold.end, None if hold.watermark is None else now - hold.watermark)
            for hold in manifest.reach[EXCHANGE].behind
        )
        current = self.current()
        at_hand = tuple(
            frozenset(name.rpartition("-")[2] for name in names & current) for names in self.cached
        )
        return (
            self.map, record.map(), record.by_hand, frozenset(under_way), frozenset(recorded),
            frozenset(transitions.paused), frozenset(transitions._fetching), frozenset(governor.stopped),
            frozenset(governor.holdings.by_hand), tuple(governor.holdings.alive.tolist()), self.alive,
            waiting, behind,
            at_hand, now < 0, tuple(now - last for last in self.done), self.left,
        )  # fmt: skip

    def current(self) -> set[str]:
        """The files that have the state now."""
        return {ref.file for ref in self.manifest.subqueries[EXCHANGE].shelf}


def run_epoch(world: PaperRun, plan: Plan) -> None:
    """One epoch with a row for every slot, from the orders to the governor's next thoughts."""
    governor, before = world.governor, world.manifest
    epoch = before.epoch + 1
    _follow(world)
    _check_map(world.map)
    stranded = [site for site in world.map.sites if not world.alive[site]]
    if stranded:
        raise Broken(f"site {stranded[0]} is gone, and has partitions when an epoch begins")
    waiting, steered = governor.holding(before), governor.record()
    holds = waiting.holds.get(EXCHANGE, ())
    waits = within(np.arange(SLOTS), slots_of(holds)).tolist()
    _check_reasons(world, waits)
    for site, files in governor.fetches(before).items():
        world.cached[site] |= {*files}
    gone = slots_of(waiting.released.get(EXCHANGE, ()))
    if gone:
        world.goals += ("released", "parted") if holds else ("released",)
    coming = let_go(world.rows, waiting.held)
    coming += [(slot, epoch) for slot in range(SLOTS)]
    for slot, came in coming:
        if not waits[slot]:
            if world.done[slot] != came - 1:
                raise Broken(f"slot {slot} gets the row of epoch {came} after {world.done[slot]}")
            world.done[slot] = came
    world.manifest = _committed(world, plan, waiting, steered, coming, waits)
    _check_rows(world)
    moving = dict(governor.moving)
    governor.allot(world.manifest)
    governor.adapt(Observed(epoch, SITES, 0.0, dict(governor.maps), {}, {}, {}), world.manifest)
    for (_, start), one in moving.items():
        if (EXCHANGE, start) in governor.moving:
            continue
        if world.owner(start) != one.move.target:
            raise Broken(f"partition {start} does not move any more, and is not where it was to go")
        _check_fetched(world, start, one.move.target)
        world.goals += ("installed",)
    world.cached = [names & world.current() for names in world.cached]


def let_go(
    rows: dict[str, tuple[tuple[int, int], ...]], held: Iterable[HeldRef]
) -> list[tuple[int, int]]:
    """Takes the rows, told by slot and epoch, that are let go out of the files that they wait in."""
    coming = []
    for ref in held:
        gone = within(np.asarray([slot for slot, _ in rows[ref.file]]), ref.slots).tolist()
        coming += [row for row, goes in zip(rows[ref.file], gone, strict=True) if goes]
        rows[ref.file] = tuple(r for r, goes in zip(rows[ref.file], gone, strict=True) if not goes)
    return coming


def _follow(world: PaperRun) -> None:
    """Tells the governor which sites there are, as a run does before each epoch."""
    governor, moving = world.governor, dict(world.governor.moving)
    before = world.map
    governor.follow(world.alive, world.manifest)
    for subject, one in moving.items():
        if subject in governor.moving:
            continue
        if not world.alive[one.move.source]:
            world.goals += ("lost source",)
        elif world.alive[one.move.target]:
            raise Broken(f"the move of partition {subject[1]} has ended, but no site of it is lost")
        else:
            world.goals += ("lost target",)
    if before != world.map and not all(world.alive):
        world.goals += ("evacuated",)


def _committed(
    world: PaperRun,
    plan: Plan,
    waiting: Waiting,
    steered: Steered,
    coming: Sequence[Row],
    waits: Sequence[bool],
) -> Manifest:
    """The manifest of an epoch in which these rows came."""
    before, epoch = world.manifest, world.manifest.epoch + 1
    holds = waiting.holds.get(EXCHANGE, ())
    held = still_held(before.held, waiting.held)
    back = tuple(row for row in coming if waits[row[0]])
    if back:
        file = f"state/{EXCHANGE}/{epoch:012d}-held.arrow"
        world.rows[file] = back
        held.append(
            HeldRef(
                file=file, exchange=EXCHANGE, subquery=EXCHANGE, input=0, rows=len(back), bytes=8,
                slots=tuple(slots_of(holds)), checksum=0,
            )
        )  # fmt: skip
    record = replace(
        before.exchanges[EXCHANGE], **mapped(world.map), by_hand=EXCHANGE in steered.by_hand,
        adapted=EXCHANGE in steered.adapted, pins=steered.pins.get(EXCHANGE, {}),
    )  # fmt: skip
    return replace(
        before, epoch=epoch, exchanges={EXCHANGE: record}, watermarks={STREAM: epoch},
        reach=reach_of_inputs(plan, waiting.holds, {STREAM: epoch}, {}), held=held, moving=steered.moving,
        subqueries={EXCHANGE: SubqueryRecord(exchange=EXCHANGE, shelf=_shelf(tuple(world.done)))},
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _shelf(done: tuple[int, ...]) -> Shelf:
    """The state of slots that have had their last rows in these epochs."""
    return Shelf(_segment(slot, last) for slot, last in enumerate(done) if last >= 0)


def _segment(slot: int, epoch: int) -> SegmentRef:
    return SegmentRef(
        file=f"state/{EXCHANGE}/{epoch:012d}-{slot}.arrow", batch=0, table="rows", tier=0, rows=1, bytes=8,
        min_due=NEVER, max_due=NEVER, live=((slot, slot + 1),), along=(1,), born=(epoch, epoch), checksum=0,
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _check_map(known: PartitionMap) -> None:
    check_owners(known, SITES, "the map")


def _check_reasons(world: PaperRun, waits: Sequence[bool]) -> None:
    paused = {s for s, one in world.governor.moving.items() if one.phase == PAUSED}
    for slot in np.flatnonzero(waits).tolist():
        subject = (EXCHANGE, world.map.starts[world.map.partition_at(slot)])
        if subject not in paused | world.governor.stopped:
            raise Broken(f"slot {slot} waits for no reason")


def _check_rows(world: PaperRun) -> None:
    """Every row that has come and was not worked on waits, once; and with it the watermark."""
    manifest = world.manifest
    held = sorted(row for ref in manifest.held for row in world.rows[ref.file])
    owed = sorted(
        (slot, came)
        for slot, last in enumerate(world.done)
        for came in range(last + 1, manifest.epoch + 1)
    )
    if held != owed:
        raise Broken(f"the rows {owed} of slots and epochs are owed, {held} wait")
    for hold in manifest.reach[EXCHANGE].behind:
        for slot in range(hold.first, hold.end):
            last = world.done[slot]
            if hold.watermark != (last if last >= 0 else None):
                raise Broken(f"slot {slot} waits at {hold.watermark}, its last row was {last}")


def _check_fetched(world: PaperRun, start: int, site: int) -> None:
    first, end = world.map.range_at(start)
    needed = {ref.file for ref in world.manifest.subqueries[EXCHANGE].shelf.within([(first, end)])}
    missing = sorted(needed - world.cached[site])
    if missing:
        raise Broken(f"partition {start} is given to site {site}, which lacks {missing[0]}")
