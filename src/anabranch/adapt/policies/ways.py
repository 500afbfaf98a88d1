"""How slots of a join come to another shape (P5): what is to be made now, against double work for a while.

Moving state reads what is remembered and makes the combinations that the new shape keeps. A parallel track
makes nothing, but looks up every new row twice until the rows of before are gone: W of time, or
twice that where bounds run over several inputs. A track pays where much is remembered, and little comes.
Costs are in pairs of rows looked at, as those of shapes are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from anabranch.adapt.policies.plans import PROBED, Counted, Plans
from anabranch.language.shape import JoinShape, inputs_of
from anabranch.settings import AUTO, MOVING_STATE, PARALLEL_TRACK

ENDLESS = "rows are kept for ever, so a track would not end"
UNKNOWN = "it is not known yet how soon the rows of before go"
WAYS = {MOVING_STATE: "by moving state", PARALLEL_TRACK: "on a parallel track"}


@dataclass(frozen=True)
class Affected:
    """What is known of the slots of a change."""

    rows: float
    """Rows of the inputs that are remembered."""
    arriving: float
    """Rows that come in an epoch."""
    epochs: float | None
    """Epochs until the watermark has passed all that is remembered; None if that cannot be told."""
    endless: bool = False
    """Whether some rows never go."""
    counted: Counted | None = None
    """What a sample has shown, or what it would about show."""
    meanwhile: Counted | None = None
    """What it would show on the way, if rows go on coming as they do: after a rush there is less and less."""


@dataclass(frozen=True)
class Way:
    """The way of a change, and what both ways should cost."""

    protocol: str
    moving: float
    track: float | None
    """None if there is none to be had, or it is not known."""
    reason: str

    def words(self) -> str:
        """The way and why, as people are told.

        >>> Way(PARALLEL_TRACK, 52000, 1200, "it costs less").words()
        'on a parallel track (it costs less: moving state 52,000, a track 1,200 pairs of rows)'
        """
        track = "unknown" if self.track is None else f"{self.track:,.0f}"
        costs = f": moving state {self.moving:,.0f}, a track {track} pairs of rows"
        return f"{WAYS[self.protocol]} ({self.reason}{costs})"


MOVED = Way(MOVING_STATE, 0.0, None, "nothing was estimated")
"""The way of a change about which nothing is known."""


def choose_way(asked: str, before: JoinShape, after: JoinShape, known: Affected) -> Way:
    """The way that costs less: equal work is better done bit by bit, on a track, than at once."""
    moving = _moving(before, after, known)
    track = None if known.endless else _track(before, after, known)
    if asked == MOVING_STATE:
        return Way(MOVING_STATE, moving, track, "asked for")
    if known.endless:
        return Way(MOVING_STATE, moving, None, ENDLESS)
    if asked == PARALLEL_TRACK:
        return Way(PARALLEL_TRACK, moving, track, "asked for")
    assert asked == AUTO
    if track is None:
        return Way(MOVING_STATE, moving, None, UNKNOWN)
    protocol = PARALLEL_TRACK if track < moving else MOVING_STATE
    return Way(protocol, moving, track, "it costs less")


def _moving(before: JoinShape, after: JoinShape, known: Affected) -> float:
    """What is read and made anew at once; nothing if the new shape keeps no more than the old one."""
    if not {*after.intermediates} - {*before.intermediates}:
        return 0.0
    made = 0.0
    if known.counted is not None:
        made = Plans(len(after.inputs), known.counted).change(before, after)
    return PROBED * known.rows + made


def _track(before: JoinShape, after: JoinShape, known: Affected) -> float | None:
    """What both shapes do until the old rows are gone, beyond what the new one alone would."""
    if known.epochs is None:
        return None
    least = PROBED * known.arriving
    if known.counted is None:
        return known.epochs * least
    plans = Plans(len(after.inputs), known.meanwhile or known.counted)
    if not math.isfinite(plans.cost(before) + plans.cost(after)):
        return known.epochs * least  # one of them is never counted
    root = plans.cost_of_join(tuple(sorted(map(inputs_of, before.parts))))
    # The old root meets fewer and fewer old rows, the new shape more and more new ones: half of each
    extra = plans.cost(before) - root / 2 - plans.cost(after) / 2
    return known.epochs * max(least, extra)
