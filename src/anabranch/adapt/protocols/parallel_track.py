"""The parallel track protocol (P3): slots of a join work in two shapes until the rows of before are gone.

The five steps of the paper, as epochs have them. A change is asked for (1) and its slots are known (2). From
then on new rows go to both shapes (3): the old one gives every result with a row from before the cut, the new
one, which begins empty, those of new rows alone. When time has passed all rows of before (4), which is seen
by the watermark and the births of what is remembered, the old shape is dropped (5). Nothing is made again.

Rows of the inputs are remembered once, for both. What the old shape keeps between them is whole throughout,
so a track can be broken off at any time: slots that have to be flat, or are wanted in a third shape by moving
state, leave what the new one has gathered and go on as if it had never begun. Tracks stand in the manifest
with the epoch of their cut; a crash leaves them as the last commit has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from anabranch.errors import RunError
from anabranch.routing.ranges import intersect, subtract, union
from anabranch.routing.shaped import Shapes, Slots, Track, Tracks, differing, reshaped

TRACK_STEPS = ("asked", "slots known", "both work", "old rows gone", "old shape dropped")
"""The five steps, as the history tells them."""


@dataclass(frozen=True)
class TrackTurn:
    """What becomes of the tracks of a join with an epoch."""

    shapes: Shapes
    """Those in which slots have whole state: on a track the old one."""
    tracks: Tracks = ()
    begun: Slots = ()
    ended: Slots = ()
    """They have the new shape alone, with all that it keeps."""
    broken: Slots = ()
    """They have the old shape alone."""


def next_tracks(
    now: Shapes, tracks: Tracks, wanted: Shapes, by_track: Slots, flat: Slots, resting: Slots,
    remaining: Slots, slots: int, epoch: int,
) -> TrackTurn:  # fmt: skip
    """What tracks do in the epoch to come.

    `by_track` are the slots that are to come to their wanted shape on a track, `flat` those that cannot have
    intermediates, `resting` those that do not change now. `remaining` are slots of tracks that still remember
    rows from before the cut.
    """
    running: list[Track] = []
    ended: list[tuple[int, int]] = []
    broken: list[tuple[int, int]] = []
    shapes = now
    for one in tracks:
        whole = [(one.first, one.end)]
        stopped = intersect(whole, sorted(flat))
        called_off = subtract(subtract(whole, by_track), resting)
        gone = subtract(whole, union(stopped, called_off))
        over = subtract(subtract(gone, remaining), resting)
        broken += union(stopped, called_off)
        ended += over
        shapes = reshaped(shapes, over, one.shape)
        running += [Track(*pair, one.shape, one.cut) for pair in subtract(gone, over)]
    there = [(one.first, one.end) for one in tracks]
    begun: list[tuple[int, int]] = []
    for shape, ranges in differing(now, wanted, slots).items():
        free = subtract(intersect(ranges, sorted(by_track)), union(union(flat, resting), there))
        begun += free
        running += [Track(*pair, shape, epoch - 1) for pair in free]
    running.sort(key=lambda one: one.first)
    return TrackTurn(shapes, tuple(running), sorted(begun), sorted(ended), union(broken, []))


def remaining_slots(
    tracks: Tracks, remembered: Iterable[tuple[int, Sequence[tuple[int, int]]]]
) -> Slots:
    """The slots of tracks that remember rows from before their cut, by births and slots of state."""
    found: list[tuple[int, int]] = []
    known = [*remembered] if tracks else []
    for cut in sorted({one.cut for one in tracks}):
        old = union([pair for born, live in known if born <= cut for pair in live], [])
        found += intersect([(one.first, one.end) for one in tracks if one.cut == cut], old)
    return union(found, [])


def validate_tracks(turn: TrackTurn, flat: Slots, remaining: Slots) -> None:
    """Raises RunError if tracks break what always holds."""
    ranges = [(one.first, one.end) for one in turn.tracks]
    if any(end > first for (_, end), (first, _) in pairwise(ranges)):
        raise RunError(f"Slots are on two tracks: {turn.tracks}.")
    if intersect(ranges, sorted(flat)):
        raise RunError(f"Slots without intermediates are on a track: {turn.tracks}, {flat}.")
    if intersect(sorted(turn.ended), sorted(remaining)):
        raise RunError(f"Tracks end with rows from before: {turn.ended}, {remaining}.")
    if intersect(sorted(turn.ended), sorted(turn.broken)):
        raise RunError(f"Tracks end and are broken off: {turn.ended}, {turn.broken}.")
    for one in turn.tracks:
        same = [(s.first, s.end) for s in turn.shapes if s.shape == one.shape]
        if intersect(same, [(one.first, one.end)]):
            raise RunError(f"A track leads to the shape that is there: {one}.")
