"""The governor of a run under all that can befall it: moves, pauses, maps by hand, lost sites, crashes.

The governor is the real one, with its protocols, maps and holds; what is around it is in `paper_run.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from anabranch.adapt.actions import Move
from anabranch.control.governor import Governor
from anabranch.control.manner import Manner
from anabranch.errors import AnabranchError
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.reach import Reach
from anabranch.settings import SHARED, Settings
from anabranch.state.manifest import ExchangeRecord, Manifest, StreamRecord, SubqueryRecord
from anabranch.testing.explore.explorer import Broken, Event, Happening, WorldState, steps_from
from anabranch.testing.explore.paper_run import SITES, SLOTS, STARTS, PaperRun, run_epoch
from anabranch.testing.explore.small_plan import EXCHANGE, STREAM, small_plan

SETTINGS = Settings(policy="none", skew_buffer=SHARED)
QUIET = 3
"""Epochs after which nothing is under way any more, if nothing happens in them."""
GOALS = {
    "installed": "a move is installed after its state was fetched and its rows waited",
    "lost target": "a move is given up because its new site is lost",
    "lost source": "a move is installed at once because its old site is lost",
    "by hand": "a move is given up because the map was changed by hand",
    "resumed": "a move goes on after a crash",
    "released": "rows that waited are let go",
    "outlived": "rows wait on after a crash",
    "parted": "some of the slots that waited are let go, others wait on",
    "evacuated": "a partition leaves a lost site",
}
INVARIANTS = (
    "every slot has one owner, which lives when an epoch begins",
    "every row is worked on once, in the order in which it came, or waits in one file",
    "slots wait only because their partition is paused, by a move or by the user",
    "the watermark of slots that wait is that of the last row they have had",
    "a move is installed when its new site has all state, or the old site is gone; or it is given up",
    "what is under way comes from where its partition is, and goes where it is not",
    "after three quiet epochs nothing is under way and nothing waits",
)


class MovesAndHolds:
    """A run's governor, as a model to explore."""

    invariants: tuple[str, ...] = INVARIANTS

    def __init__(self, name: str, far: bool, disturbances: int, depth: int) -> None:
        self.name = name
        where = "state that new sites fetch" if far else "state that all sites read"
        self.what = (
            f"A governor with {where}: {SITES} sites, {len(STARTS)} partitions, and up to {disturbances} "
            "moves, pauses, maps by hand, lost sites and crashes between the epochs."
        )
        self.depth = depth
        unreachable = (
            () if far else ("installed", "lost target", "lost source", "by hand", "resumed")
        )
        self.goals = tuple(words for goal, words in GOALS.items() if goal not in unreachable)
        self._far, self._disturbances = far, disturbances
        self._plan = small_plan()

    def start(self) -> WorldState:
        record = ExchangeRecord(sites=[0, 1], starts=list(STARTS), slots=SLOTS)
        manifest = Manifest(
            run_id="run", epoch=-1, sites=SITES, committed_at=0.0, identity={},
            streams={STREAM: StreamRecord()}, watermarks={STREAM: None},
            exchanges={EXCHANGE: record}, reach={EXCHANGE: Reach()},
            subqueries={EXCHANGE: SubqueryRecord(exchange=EXCHANGE)},
        )  # fmt: skip
        nothing: frozenset[str] = frozenset()
        world = PaperRun(
            self._govern(manifest), manifest, (True,) * SITES, {}, [-1] * SLOTS, [nothing] * SITES,
            self._disturbances,
        )  # fmt: skip
        return WorldState(world)

    def _govern(self, manifest: Manifest) -> Governor:
        return Governor(self._plan, SETTINGS, SITES, manifest, Manner(far=self._far))

    # -- what can happen ----------------------------------------------------------------------------

    def steps(self, state: WorldState) -> Iterator[Happening]:
        return steps_from(state, self._events(state.world), GOALS)

    def _events(self, world: PaperRun) -> Iterator[Event]:
        yield "an epoch", partial(run_epoch, plan=self._plan)
        for _, start in sorted(world.governor.stopped):
            yield f"the user lets partition {start} go on", partial(_resume, start=start)
        if not world.left:
            return
        yield "a crash and a new start", self._crash
        for site in range(SITES):
            if not world.alive[site]:
                yield f"site {site} is back", partial(_flip, site=site)
            elif sum(world.alive) > 1:
                yield f"site {site} is lost", partial(_flip, site=site)
        for start in world.map.starts:
            yield from self._of_partition(world, start)
        if world.map.partitions == len(STARTS):
            cut = world.map.split(1)
            yield "the user cuts partition 0 in a map by hand", partial(_give, other=cut)

    def _of_partition(self, world: PaperRun, start: int) -> Iterator[Event]:
        governor, subject = world.governor, (EXCHANGE, start)
        for site in range(SITES):
            if site == world.owner(start) or not governor.holdings.alive[site]:
                continue
            if subject not in governor.moving:
                asked = partial(_move, start=start, site=site)
                yield f"partition {start} is to move to site {site}", asked
            given = partial(_give, other=world.map.moved({start: site}))
            yield f"the user gives partition {start} to site {site} in a map by hand", given
        if subject not in governor.stopped:
            yield f"the user pauses partition {start}", partial(_pause, start=start)

    def _crash(self, world: PaperRun) -> None:
        world.left -= 1
        if world.manifest.moving:
            world.goals += ("resumed",)
        if world.manifest.holds:
            world.goals += ("outlived",)
        world.governor = self._govern(world.manifest)
        # Workers are gone with their driver
        world.cached = [frozenset()] * SITES

    # -- what must hold -----------------------------------------------------------------------------

    def check(self, state: WorldState) -> None:
        world = state.world
        for (_, start), moving in world.governor.moving.items():
            source, target = moving.move.source, moving.move.target
            if start not in world.map.starts or world.owner(start) != source or source == target:
                raise Broken(f"partition {start} moves from {source} to {target}: {world.map}")
        if world.governor.moving or world.manifest.held or world.manifest.holds:
            self._check_rest(world.copy())

    def _check_rest(self, world: PaperRun) -> None:
        """Whatever is under way has ended when nothing has happened for a while."""
        world.governor.stopped.clear()
        try:
            for _ in range(QUIET):
                run_epoch(world, self._plan)
        except (AnabranchError, AssertionError, Broken) as error:
            raise Broken(f"in the quiet epochs that follow, {error}") from error
        manifest = world.manifest
        for what, left in (
            ("moves", world.governor.moving), ("waits", manifest.holds), ("waits", manifest.held),
        ):  # fmt: skip
            if left:
                raise Broken(f"after {QUIET} quiet epochs something still {what}: {left}")


# -- what happens -----------------------------------------------------------------------------------


def _flip(world: PaperRun, site: int) -> None:
    world.left -= 1
    world.alive = tuple(lives != (number == site) for number, lives in enumerate(world.alive))


def _move(world: PaperRun, start: int, site: int) -> None:
    world.left -= 1
    move = Move(EXCHANGE, start, "asked for", source=world.owner(start), target=site)
    world.governor.holdings.request([move], world.manifest.epoch)


def _give(world: PaperRun, other: PartitionMap) -> None:
    world.left -= 1
    before = len(world.governor.moving)
    world.governor.holdings.by_hand.add(EXCHANGE)
    world.governor.holdings.give({EXCHANGE: other}, "another map", world.manifest.epoch)
    if len(world.governor.moving) < before:
        world.goals += ("by hand",)


def _pause(world: PaperRun, start: int) -> None:
    world.left -= 1
    world.governor.stopped.add((EXCHANGE, start))


def _resume(world: PaperRun, start: int) -> None:
    world.governor.stopped.discard((EXCHANGE, start))
