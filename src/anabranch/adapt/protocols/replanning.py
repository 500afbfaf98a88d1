"""The moving state protocol (P4): how slots of a join come from one shape to another.

The eight steps of the paper, as epochs have them. A change is asked for (1) and its slots are known (2).
Between two epochs nothing is in flight, so slots are paused (3) and drained (4) there at no cost. Whoever
owns them in the next epoch has their state (5), wherever it was before: a change of site and of shape can be
one. It keeps the tables of the same inputs and drops those that no longer match (6), makes the missing ones
from the bottom up, piece by piece (7), and goes on with the rows that came (8). All of that is one epoch and
one commit, so a crash leaves the slots as they were, or done.

As many slots as the budget allows change in an epoch; the others work on in the shape that they have. What
rests is left alone: slots whose rows wait, whose state is put aside or comes together, whose keys are hot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from anabranch.adapt.protocols.parallel_track import TrackTurn, next_tracks, validate_tracks
from anabranch.errors import RunError
from anabranch.routing.ranges import intersect, ranges_where, subtract, union
from anabranch.routing.shaped import (
    FLAT,
    Shaped,
    Shapes,
    Slots,
    Tracks,
    by_shape,
    differing,
    reshaped,
)

STEPS = (
    "asked", "slots known", "paused", "drained", "handed over", "matched and dropped", "made again",
    "resumed",
)  # fmt: skip
"""The eight steps, as the history tells them."""


@dataclass(frozen=True)
class Turn:
    """One epoch of a join: its shapes, and the slots that come to theirs before they are worked on."""

    shapes: Shapes
    changing: Shapes = ()
    """With the shape that they had before, the flat one too."""
    tracks: Tracks = ()
    """Slots that work in a second shape as well."""
    ended: Slots = ()
    """Of those that change, the slots whose new shape is there already: their track has ended."""

    @property
    def slots(self) -> list[tuple[int, int]]:
        """The slots that change."""
        return sorted((one.first, one.end) for one in self.changing)


NO_TURN = Turn(())
"""That of joins that are flat, and stay so."""


@dataclass(frozen=True)
class Wishes:
    """What is wanted of the slots of a join, and what keeps them from it."""

    shapes: Shapes
    by_track: Slots = ()
    """Those that are to come to it on a parallel track."""
    flat: Slots = ()
    """Those that cannot have intermediates."""
    resting: Slots = ()
    """Those that do not change now."""


@dataclass(frozen=True)
class Step:
    """What a join does in an epoch, and what of that is new."""

    turn: Turn
    tracked: TrackTurn
    moved: Slots
    """The slots whose state is moved."""


def next_step(
    now: Shapes, tracks: Tracks, wishes: Wishes, remaining: Slots, sizes: np.ndarray,
    owners: np.ndarray, budget: float, epoch: int,
) -> Step:  # fmt: skip
    """What a join does in the epoch to come, by both protocols."""
    flat, resting = wishes.flat, wishes.resting
    if not tracks and now == (reshaped(wishes.shapes, flat, FLAT) if flat else wishes.shapes):
        return Step(Turn(now), TrackTurn(now), ())
    tracked = next_tracks(
        now, tracks, wishes.shapes, wishes.by_track, flat, resting, remaining, len(owners), epoch
    )
    validate_tracks(tracked, flat, remaining)
    on_track = union([(one.first, one.end) for one in tracked.tracks], tracked.ended)
    still = union(resting, on_track)
    moved = next_turn(tracked.shapes, wishes.shapes, flat, still, sizes, owners, budget)
    turn = _with_tracks(tracked, now, moved)
    validate(turn, now, flat, resting)
    return Step(turn, tracked, moved.slots)


def _with_tracks(tracked: TrackTurn, now: Shapes, turn: Turn) -> Turn:
    """A turn that was decided beside tracks, together with what becomes of these."""
    slots = max([0, *(one.end for one in (*now, *turn.changing)), *(b for _, b in tracked.ended)])
    slots = max([slots, *(end for _, end in tracked.broken)])
    changed = union(turn.slots, union(tracked.ended, tracked.broken))
    former = [
        Shaped(*pair, shape)
        for shape, ranges in by_shape(now, [(0, slots)]).items()
        for pair in intersect(sorted(ranges), changed)
    ]
    changing = tuple(sorted(former, key=lambda one: one.first))
    return replace(turn, changing=changing, tracks=tracked.tracks, ended=tuple(tracked.ended))


def next_turn(
    now: Shapes, wanted: Shapes, flat: Slots, resting: Slots, sizes: np.ndarray, owners: np.ndarray,
    budget: float,
) -> Turn:  # fmt: skip
    """What a join does in the next epoch.

    `flat` are slots that cannot have intermediates, `resting` those that do not change now. `sizes` has the
    bytes of each slot, `owners` its site: each makes at most so many bytes again, or those of one slot.
    """
    slots = len(owners)
    dropped = intersect([(one.first, one.end) for one in now], sorted(flat))
    shapes = reshaped(now, flat, FLAT)
    left = np.full(int(owners.max(initial=0)) + 1, budget)
    begun = np.zeros(len(left), dtype=bool)
    changing = dropped
    for shape, ranges in differing(shapes, wanted, slots).items():
        free = subtract(subtract(ranges, resting), flat)
        taken = np.zeros(slots, dtype=bool)
        for first, end in free:
            taken[first:end] = True
        where = np.flatnonzero(taken)
        for site in np.unique(owners[where]).tolist():
            own = where[owners[where] == site]
            sums = np.cumsum(sizes[own])
            fits = sums <= left[site]
            if not begun[site]:
                fits[:1] = True
            taken[own[~fits]] = False
            left[site] -= float(sizes[own[fits]].sum())
            begun[site] |= bool(fits.any())
        chosen = ranges_where(taken)
        if chosen:
            shapes = reshaped(shapes, chosen, shape)
            changing = union(changing, chosen)
    before = by_shape(now, [(0, slots)]).items()
    former = [
        Shaped(*pair, shape) for shape, ranges in before for pair in intersect(ranges, changing)
    ]
    return Turn(shapes, tuple(sorted(former, key=lambda one: one.first)))


def validate(turn: Turn, now: Shapes, flat: Slots, resting: Slots) -> None:
    """Raises RunError if a turn breaks what always holds: slots at rest stay, all others are told."""
    ranges = [(one.first, one.end) for one in turn.shapes]
    if any(end > first for (_, end), (first, _) in pairwise(ranges)):
        raise RunError(f"Slots have two shapes: {turn.shapes}.")
    if intersect(ranges, sorted(flat)):
        raise RunError(f"Slots without intermediates have a shape: {turn.shapes}, {flat}.")
    end = max([0, *(edge for one in (*now, *turn.shapes) for edge in (one.first, one.end))])
    other = [pair for some in differing(now, turn.shapes, end).values() for pair in some]
    if subtract(other, turn.slots):
        raise RunError(f"Slots change their shape unasked: {other}, {turn.slots}.")
    if intersect(subtract(turn.slots, flat), sorted(resting)):
        raise RunError(f"Slots change their shape at rest: {turn.slots}, {resting}.")
