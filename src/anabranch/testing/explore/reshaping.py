"""Slots of a join on their way between shapes, by both protocols, under all that can befall them.

The protocols are the real ones. On paper are the rows: in each epoch one comes to every slot, and it is
remembered until the watermark is two epochs on. Of what a shape keeps only the oldest row is told that it
knows of. A slot gives all results of an epoch, each once, if the shape in which it works knows of all rows
that are remembered; on a track, if the old shape does, and the new one knows of all after the cut and no
others.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from anabranch.adapt.protocols.parallel_track import remaining_slots
from anabranch.adapt.protocols.replanning import Turn, Wishes, next_step
from anabranch.errors import RunError
from anabranch.routing.ranges import subtract, union
from anabranch.routing.shaped import FLAT, Shapes, Slots, Tracks, reshaped
from anabranch.testing.explore.explorer import Broken, Event, Happening, WorldState, steps_from

SLOTS, WINDOW = 2, 2
SHAPES = (FLAT, "((0,1),2)", "(0,(1,2))")
QUIET = 7
"""Epochs with new time after which all slots have come to their shapes."""
GOALS = {
    "moved": "a slot comes to another shape by moving state",
    "begun": "a slot goes on two tracks",
    "ended": "a track ends, and the new shape works on alone",
    "stopped": "a track is broken off because its slot must be flat",
    "called off": "a track is broken off for a shape that is to be had at once",
    "outlived": "a track goes on after a crash",
}


@dataclass
class PaperJoin:
    """A join whose rows are on paper, and the epoch that was committed last."""

    epoch: int = -1
    passed: int = -1
    """The last epoch whose rows are gone."""
    shapes: Shapes = ()
    tracks: Tracks = ()
    knows: tuple[dict[str, int], ...] = ({FLAT: 0},) * SLOTS
    """For each slot the shapes that it works in, with the first epoch whose rows they know of."""
    wanted: Shapes = ()
    by_track: tuple[tuple[int, int], ...] = ()
    kept: tuple[Shapes, tuple[tuple[int, int], ...]] = ((), ())
    """The wishes that the last commit has."""
    flat: tuple[int, ...] = ()
    resting: tuple[int, ...] = ()
    left: int = 0
    goals: tuple[str, ...] = field(default=())

    def copy(self) -> PaperJoin:
        return PaperJoin(
            self.epoch, self.passed, self.shapes, self.tracks, self.knows, self.wanted, self.by_track,
            self.kept, self.flat, self.resting, self.left,
        )  # fmt: skip

    def key(self) -> Hashable:
        # Only how long ago things were counts
        knows = tuple(
            tuple(sorted((shape, max(self.passed + 1, at) - self.epoch) for shape, at in one.items()))
            for one in self.knows
        )  # fmt: skip
        tracks = tuple((one.first, one.end, one.shape, one.cut - self.epoch) for one in self.tracks)
        return (
            self.epoch - self.passed, self.shapes, tracks, knows, self.wanted, self.by_track,
            self.kept, self.flat, self.resting, self.left,
        )  # fmt: skip


class Reshaping:
    """The shapes of a join, as a model to explore."""

    name = "joins that change their shape"
    what = (
        f"A join of three inputs on {SLOTS} slots whose shapes are changed by moving state and on parallel "
        "tracks; slots that must be flat or rest for a while, and crashes, between the epochs."
    )
    invariants: tuple[str, ...] = (
        "every result is given once, by one of the shapes in which its slot works",
        "a track ends when no row from before its cut is remembered",
        "slots at rest stay as they are, and slots without intermediates are on no track",
        "when time goes on, all slots come to the shapes that are wanted",
    )
    goals: tuple[str, ...] = tuple(GOALS.values())

    def __init__(self, disturbances: int, depth: int) -> None:
        self.depth, self._disturbances = depth, disturbances

    def start(self) -> WorldState:
        return WorldState(PaperJoin(left=self._disturbances))

    def steps(self, state: WorldState) -> Iterator[Happening]:
        return steps_from(state, _events(state.world), GOALS)

    def check(self, state: WorldState) -> None:
        world: PaperJoin = state.world.copy()
        world.flat = world.resting = ()
        for _ in range(QUIET):
            try:
                _epoch(world, time=True)
            except RunError as error:
                raise Broken(str(error)) from error
        if world.shapes != world.wanted or world.tracks:
            raise Broken(f"after {QUIET} quiet epochs slots have {world.shapes}, {world.tracks}")


def _events(world: PaperJoin) -> Iterator[Event]:
    yield "an epoch", partial(_epoch, time=True)
    if world.epoch - world.passed <= WINDOW + 1:
        yield "an epoch in which time stands still", partial(_epoch, time=False)
    for slot in world.flat:
        yield f"slot {slot} need not be flat any more", partial(_flip, slot=slot, which="flat")
    for slot in world.resting:
        yield f"slot {slot} goes on", partial(_flip, slot=slot, which="resting")
    if not world.left:
        return
    yield "a crash and a new start", _crash
    for slot in range(SLOTS):
        for shape in SHAPES:
            for track in (False, True):
                how = "on a track" if track else "by moving state"
                asked = partial(_want, slot=slot, shape=shape, track=track)
                yield f"slot {slot} is wanted as '{shape}' {how}", asked
        if slot not in world.flat:
            yield f"slot {slot} must be flat", partial(_flip, slot=slot, which="flat")
        if slot not in world.resting:
            yield f"slot {slot} rests", partial(_flip, slot=slot, which="resting")


def _want(world: PaperJoin, slot: int, shape: str, track: bool) -> None:
    world.left -= 1
    mine = [(slot, slot + 1)]
    world.wanted = reshaped(world.wanted, mine, shape)
    others = subtract(world.by_track, mine)
    world.by_track = tuple(union(others, mine) if track else others)


def _flip(world: PaperJoin, slot: int, which: str) -> None:
    known: tuple[int, ...] = getattr(world, which)
    if slot in known:
        setattr(world, which, tuple(one for one in known if one != slot))
    else:
        world.left -= 1
        setattr(world, which, tuple(sorted((*known, slot))))


def _crash(world: PaperJoin) -> None:
    world.left -= 1
    world.wanted, world.by_track = world.kept
    if world.tracks:
        world.goals = (*world.goals, "outlived")


def _epoch(world: PaperJoin, time: bool) -> None:
    """One epoch: what the protocols say is done, a row comes to each slot, and all is committed."""
    epoch, oldest = world.epoch + 1, world.passed + 1
    everywhere = [(0, SLOTS)]
    remembered = [(born, everywhere) for born in range(oldest, world.epoch + 1)]
    flat, resting = _ranges(world.flat), _ranges(world.resting)
    step = next_step(
        world.shapes, world.tracks, Wishes(world.wanted, world.by_track, flat, resting),
        remaining_slots(world.tracks, remembered), np.ones(SLOTS), np.zeros(SLOTS, dtype=np.int64),
        float(SLOTS), epoch,
    )  # fmt: skip
    broken, turn = step.tracked.broken, step.turn
    reached = {
        "moved": step.moved, "begun": step.tracked.begun, "ended": step.tracked.ended,
        "stopped": [one for one in world.flat if _within(broken, one)],
        "called off": [n for n in range(SLOTS) if n not in world.flat and _within(broken, n)],
    }  # fmt: skip
    world.goals = (*world.goals, *(goal for goal, some in reached.items() if some))
    world.knows = tuple(_after(one, turn, slot, epoch) for slot, one in enumerate(world.knows))
    for slot, known in enumerate(world.knows):
        _check_results(turn, slot, known, oldest, epoch)
    world.shapes, world.tracks, world.epoch = turn.shapes, turn.tracks, epoch
    world.kept = world.wanted, world.by_track
    if time:
        world.passed = max(world.passed, epoch - WINDOW)


def _after(known: dict[str, int], turn: Turn, slot: int, epoch: int) -> dict[str, int]:
    """What a slot knows with a turn, before the rows of the epoch come."""
    shape = _shape(turn, slot)
    after = dict(known)
    if _within(turn.ended, slot):
        after = {shape: after[shape]}
    elif _within(turn.slots, slot):
        after = {shape: 0}  # made anew of all rows, or kept as it was
    for track in turn.tracks:
        if track.first <= slot < track.end:
            after.setdefault(track.shape, epoch)
    return after


def _check_results(turn: Turn, slot: int, known: dict[str, int], oldest: int, epoch: int) -> None:
    shape = _shape(turn, slot)
    track = next((one for one in turn.tracks if one.first <= slot < one.end), None)
    if known.get(shape, epoch) > oldest and oldest < epoch:
        raise Broken(f"slot {slot} lacks results with rows of epoch {oldest} in '{shape}': {known}")
    if {*known} != {shape, *([track.shape] if track else [])}:
        raise Broken(f"slot {slot} keeps {known}, and works as '{shape}', on {track}")
    if track and known[track.shape] != track.cut + 1:
        raise Broken(f"slot {slot} gives results twice, or not at all, on {track}: {known}")


def _shape(turn: Turn, slot: int) -> str:
    return next((one.shape for one in turn.shapes if one.first <= slot < one.end), FLAT)


def _ranges(slots: tuple[int, ...]) -> Slots:
    return union([(slot, slot + 1) for slot in slots], [])


def _within(ranges: Slots, slot: int) -> bool:
    return any(first <= slot < end for first, end in ranges)
