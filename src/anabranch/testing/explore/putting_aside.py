"""State that is put aside and comes together again, under all that can befall a run meanwhile.

The governor, its bookkeeping and the flow of slots are the real ones; the join is on paper: a row comes for
each slot in each epoch, and every two rows of a slot are to be given together once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Any

from msgspec.structs import replace

from anabranch.control.governor import Governor
from anabranch.control.manner import Manner
from anabranch.control.waiting import still_held
from anabranch.engine.watermarks import reach_of_inputs
from anabranch.errors import AnabranchError
from anabranch.routing.ranges import intersect
from anabranch.routing.reach import Reach
from anabranch.settings import SHARED, Settings
from anabranch.state.manifest import (
    ExchangeRecord,
    HeldRef,
    Manifest,
    StreamRecord,
    SubqueryRecord,
)
from anabranch.testing.explore.explorer import Broken, Event, Happening, WorldState, steps_from
from anabranch.testing.explore.paper_aside import SLOTS, AsideWorld, shelf_of, work_on
from anabranch.testing.explore.paper_run import let_go
from anabranch.testing.explore.small_plan import STREAM, joined_plan

SETTINGS = Settings(policy="none", skew_buffer=SHARED, site_memory_bytes=1)
QUIET = 5
"""Epochs after which all has come together that is asked to, if nothing happens in them."""
GOALS = {
    "aside": "state is put aside",
    "again": "a slot has state of several generations aside",
    "together": "generations come together, and what they owe is given",
    "one by one": "of slots that are to come together one has to wait for another",
    "outlived": "state is aside after a crash",
    "anew": "what came together is put aside again",
    "waited": "rows that waited for state aside are let go",
}
INVARIANTS = (
    "every row is worked on once, in the order in which it came, or waits in one file",
    "every two rows of a slot are given together once",
    "what has not been given is what rows of different generations owe each other, and nothing else",
    "nobody above is told of a time beyond that of a result that is owed",
    "where rows wait, none is worked on while state of its slot is aside",
    "when all was asked to come together, it has after five quiet epochs",
)


class PuttingAside:
    """A run that puts state aside, as a model to explore."""

    invariants: tuple[str, ...] = INVARIANTS

    def __init__(self, name: str, outer: bool, disturbances: int, depth: int) -> None:
        self.name, self.depth = name, depth
        what = "an outer join, whose rows wait" if outer else "an inner join, whose rows go on"
        self.what = (
            f"State of {what} while it is aside: {SLOTS} slots, and up to {disturbances} crashes and "
            "wishes to put something aside or to bring it together between the epochs."
        )
        unreachable = ("again", "together") if outer else ("waited",)
        self.goals = tuple(words for goal, words in GOALS.items() if goal not in unreachable)
        self._plan, self._disturbances = joined_plan(outer), disturbances
        (self._subquery,) = self._plan.subqueries.values()
        self._exchange = self._subquery.exchange

    def start(self) -> WorldState:
        record = ExchangeRecord(sites=[0] * SLOTS, starts=[*range(SLOTS)], slots=SLOTS)
        component = self._subquery.component
        manifest = Manifest(
            run_id="run", epoch=-1, sites=1, committed_at=0.0, identity={},
            streams={STREAM: StreamRecord()}, watermarks={component: None},
            exchanges={self._exchange: record}, reach={self._exchange: Reach()},
            subqueries={self._subquery.name: SubqueryRecord(exchange=self._exchange)},
        )  # fmt: skip
        world = AsideWorld(self._govern(manifest), manifest, self._disturbances)
        return WorldState(world)

    def _govern(self, manifest: Manifest) -> Governor:
        return Governor(self._plan, SETTINGS, 1, manifest, Manner())

    # -- what can happen ----------------------------------------------------------------------------

    def steps(self, state: WorldState) -> Iterator[Happening]:
        return steps_from(state, self._events(state.world), GOALS)

    def _events(self, world: AsideWorld) -> Iterator[Event]:
        yield "an epoch", self._epoch
        if not world.left:
            return
        yield "a crash and a new start", self._crash
        for slot in range(SLOTS):
            yield f"slot {slot} is put aside", partial(self._spill, slot=slot)
        for slots in ((0, 1), (1, 2), (0, SLOTS)):
            if intersect([slots], [(one.first, one.end) for one in self._spilled(world)]):
                yield f"slots {slots} are to come together", partial(self._clean_up, slots=slots)

    def _spilled(self, world: AsideWorld) -> tuple[Any, ...]:
        return world.manifest.reach[self._exchange].spilled

    def _crash(self, world: AsideWorld) -> None:
        world.left -= 1
        world.governor = self._govern(world.manifest)
        if self._spilled(world):
            world.goals += ("outlived",)

    def _spill(self, world: AsideWorld, slot: int) -> None:
        world.left -= 1
        world.governor.holdings.spilling.spill(self._exchange, [(slot, slot + 1)])

    def _clean_up(self, world: AsideWorld, slots: tuple[int, int]) -> None:
        world.left -= 1
        world.governor.holdings.spilling.clean_up(self._exchange, [slots])

    def _epoch(self, world: AsideWorld) -> None:
        """One epoch with a row for every slot, from the orders to what is committed."""
        governor, before, exchange = world.governor, world.manifest, self._exchange
        spilling, epoch = governor.holdings.spilling, before.epoch + 1
        governor.begin(before)
        waiting = governor.holding(before)
        spilled, cleaned = spilling.take_next(before, False)
        holds, released = waiting.holds.get(exchange, ()), waiting.released.get(exchange, ())
        aside, together = spilled.get(exchange, ()), cleaned.get(exchange, ())
        held_back = intersect([(0, SLOTS)], [(hold.first, hold.end) for hold in holds])
        coming = let_go(world.waiting, waiting.held)
        coming += [(slot, epoch) for slot in range(SLOTS)]
        stays = [row for row in coming if intersect([(row[0], row[0] + 1)], held_back)]
        reach = Reach(before.reach[exchange].watermark, holds, aside)
        worked: list[int] = []
        for flow in reach.flowing([(0, SLOTS)], released, together, epoch):
            for slot in range(SLOTS):
                if intersect([(slot, slot + 1)], flow.slots):
                    worked.append(slot)
                    fresh = [came for at, came in coming if at == slot]
                    work_on(world, slot, fresh, flow, epoch)
        if sorted(worked) != sorted({slot for slot, _ in coming} - {slot for slot, _ in stays}):
            raise Broken(f"slots {sorted(worked)} are worked on, and rows {stays} wait")
        for one in aside:
            if not one.cuts and any(one.first <= slot < one.end for slot in worked):
                raise Broken(f"slots {worked} are worked on, and their state is aside: {one}")
        self._note_goals(world, aside, together, released)
        held = still_held(before.held, waiting.held)
        if stays:
            file = f"state/{exchange}/{epoch:012d}-held.arrow"
            world.waiting[file] = tuple(stays)
            held.append(HeldRef(
                file=file, exchange=exchange, subquery=self._subquery.name, input=0, rows=len(stays),
                bytes=8, slots=tuple(held_back), checksum=0,
            ))  # fmt: skip
        marks = {self._subquery.component: epoch}
        reached = reach_of_inputs(
            self._plan,
            {exchange: holds} if holds else {},
            marks,
            {exchange: aside} if aside else {},
        )
        record = SubqueryRecord(exchange=exchange, shelf=shelf_of(world.kept))
        world.manifest = replace(
            before, epoch=epoch, watermarks=marks, reach={exchange: reached[exchange]}, held=held,
            subqueries={self._subquery.name: record},
        )  # fmt: skip

    def _note_goals(
        self, world: AsideWorld, aside: Any, together: Any, released: Any
    ) -> None:  # fmt: skip
        slots = {slot for one in together for slot in range(one.first, one.end)}
        world.goals += ("aside",) if aside else ()
        world.goals += ("again",) if any(len(one.cuts) > 1 for one in aside) else ()
        world.goals += ("together",) if any(one.cuts for one in together) else ()
        world.goals += ("waited",) if released else ()
        if together and world.governor.holdings.spilling._to_clean:
            world.goals += ("one by one",)
        if any(slot in world.before for one in aside for slot in range(one.first, one.end)):
            world.goals += ("anew",)
        world.before |= slots

    # -- what must hold -----------------------------------------------------------------------------

    def check(self, state: WorldState) -> None:
        world = state.world
        self._check_rows(world)
        self._check_owed(world)
        self._check_rest(world.copy())

    def _check_rows(self, world: AsideWorld) -> None:
        held = sorted(row for rows in world.waiting.values() for row in rows)
        owed = sorted(
            (slot, came)
            for slot, rows in enumerate(world.kept)
            for came in range(len(rows), world.manifest.epoch + 1)
        )
        if held != owed:
            raise Broken(f"the rows {owed} of slots and epochs are owed, {held} wait")

    def _check_owed(self, world: AsideWorld) -> None:
        reach = world.manifest.reach[self._exchange]
        for slot, rows in enumerate(world.kept):
            cuts = [one.cuts for one in reach.owing if one.first <= slot < one.end]
            generation = [sum(born > cut for cut in cuts[0]) if cuts else 0 for born in rows]
            for one, other in combinations(range(len(rows)), 2):
                missing = (slot, one, other) not in world.given
                if missing != (generation[one] != generation[other]):
                    what = "is not given" if missing else "is given, though it is owed"
                    raise Broken(
                        f"of slot {slot}, the pair of rows {one} and {other} {what}: {cuts}"
                    )
                if missing and (reach.least or 0) > other:
                    raise Broken(f"time {reach.least} is told, and rows {one} and {other} are owed")

    def _check_rest(self, world: AsideWorld) -> None:
        """All comes together when it is asked for and nothing happens for a while."""
        world.governor.holdings.spilling.clean_up(self._exchange, [(0, SLOTS)])
        try:
            for number in range(QUIET):
                self._epoch(world)
                if number == 0:
                    # What was still to go is aside by now
                    world.governor.holdings.spilling.clean_up(self._exchange, [(0, SLOTS)])
                self._check_rows(world)
                self._check_owed(world)
        except (AnabranchError, AssertionError, Broken) as error:
            raise Broken(f"in the quiet epochs that follow, {error}") from error
        if self._spilled(world) or world.manifest.held or world.manifest.holds:
            raise Broken(f"after {QUIET} quiet epochs something is aside: {self._spilled(world)}")
