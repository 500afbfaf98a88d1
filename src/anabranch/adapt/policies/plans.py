"""Which shape a join of several inputs should have (P2): the one that costs least by what was counted.

Sites count on a sample of their keys, for every way to join some of the inputs, how many pairs would be
looked at and how many combinations made. So nothing is taken to be independent of anything else: what two
inputs have in common because of a third is in the figures. Costs are in pairs of rows looked at, the smallest
step there is.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anabranch.language.shape import Inputs, JoinShape, flat_shape, inputs_of, joined, subsets

PROBED = 5.0
"""A new row that is looked up, in pairs: measured on the twin (three inputs, 1 to 100 matches a row)."""
KEPT = 20.0
"""A combination that is made, sorted and written."""
RESULT = 1.0
"""A row of the results: the same for every shape, but part of what a shape could save."""
WORTH = 1.3
"""Another shape must cost so many times less: below that, figures of a sample are not sure enough."""
CONVINCED = 2
"""Samples in a row that must say so."""
HORIZON = 32
"""Epochs in which a change must have paid for itself."""
ENOUGH = 12
"""Keys of a partition that must have been looked at for its own figures to count."""
SMOOTHING = 0.5
"""The weight of the newest sample."""
EVERY_SPLIT = 4
"""With more inputs than this only trees are looked at that add one input at a time."""

Split = tuple[Inputs, ...]
"""A join of these parts, each an input or an intermediate."""


@functools.cache
def splits(inputs: int) -> tuple[Split, ...]:
    """All joins that shapes of so many inputs are made of, small ones first.

    >>> splits(3)[:2], len(splits(3))
    ((((0,), (1,)), ((0,), (2,))), 7)
    """
    found: list[Split] = []
    for some in subsets(tuple(range(inputs))):
        if len(some) > 2:
            found.append(tuple((one,) for one in some))
        for size in range(1, len(some) // 2 + 1):
            if size > 1 and inputs > EVERY_SPLIT:
                break
            for left in itertools.combinations(some, size):
                right = tuple(one for one in some if one not in left)
                if len(left) < len(right) or left < right:
                    found.append(tuple(sorted((left, right))))
    return tuple(found)


@functools.cache
def _places(inputs: int) -> dict[Split, int]:
    return {split: place for place, split in enumerate(splits(inputs))}


@dataclass(frozen=True)
class Counted:
    """What an epoch has shown on a sample of keys, of one partition or of several."""

    keys: float
    """Keys that were looked at."""
    fresh: np.ndarray
    """New rows of each input."""
    looked: np.ndarray
    """Pairs that each of the splits would look at."""
    made: np.ndarray
    """Combinations that each of them would make."""
    kept: np.ndarray
    """Those that are there already, of earlier rows."""

    def plus(self, other: Counted) -> Counted:
        return Counted(
            self.keys + other.keys, self.fresh + other.fresh, self.looked + other.looked,
            self.made + other.made, self.kept + other.kept,
        )  # fmt: skip

    def smoothed(self, before: Counted | None) -> Counted:
        """A mean in which earlier samples count less and less."""
        if before is None:
            return self
        mean = {
            name: before_part + SMOOTHING * (getattr(self, name) - before_part)
            for name in ("fresh", "looked", "made", "kept")
            for before_part in (getattr(before, name),)
        }
        return replace(self, keys=self.keys + SMOOTHING * before.keys, **mean)


@dataclass(frozen=True)
class Plans:
    """What every shape of a join costs an epoch, by what was counted."""

    inputs: int
    counted: Counted

    def _of(self, split: Split) -> int:
        return _places(self.inputs)[split]

    def _fresh(self, part: Inputs) -> float:
        return float(self.counted.fresh[part[0]]) if len(part) == 1 else self._made(part)

    def _made(self, inputs: Inputs) -> float:
        return float(self.counted.made[self._of(_whole(inputs))])

    def cost_of_join(self, split: Split) -> float:
        """What one join of these parts takes; what it keeps is not in it."""
        probed = PROBED * sum(map(self._fresh, split))
        return probed + float(self.counted.looked[self._of(split)])

    def cost(self, shape: JoinShape) -> float:
        """What an epoch takes in a shape."""
        total = RESULT * self._made(shape.inputs)
        for one in shape.joins:
            split = tuple(sorted(map(inputs_of, one.parts)))
            if split not in _places(self.inputs):
                return float("inf")  # it was not looked at
            total += self.cost_of_join(split)
            total += KEPT * self._made(one.inputs) if one is not shape else 0.0
        return total

    def change(self, before: JoinShape, after: JoinShape) -> float:
        """What it takes to come from one shape to another."""
        missing = {*after.intermediates} - {*before.intermediates}
        kept = self.counted.kept
        return sum((KEPT + 1) * float(kept[self._of(_whole(one))]) for one in missing)

    def best(self) -> JoinShape:
        """The shape that costs least, found from the bottom up."""
        cheapest: dict[Inputs, tuple[float, int | JoinShape]] = {
            (one,): (0.0, one) for one in range(self.inputs)
        }
        for split in splits(self.inputs):
            whole = tuple(sorted(itertools.chain(*split)))
            below = [cheapest[part] for part in split]
            cost = self.cost_of_join(split) + sum(one[0] for one in below)
            cost += KEPT * self._made(whole) if len(whole) < self.inputs else 0.0
            if whole not in cheapest or cost < cheapest[whole][0]:
                cheapest[whole] = cost, joined([one[1] for one in below])
        shape = cheapest[tuple(range(self.inputs))][1]
        assert isinstance(shape, JoinShape)
        flat = flat_shape(self.inputs)
        return flat if self.cost(flat) <= self.cost(shape) else shape


def _whole(inputs: Inputs) -> Split:
    """The join of these inputs at once."""
    return tuple((one,) for one in inputs)


@dataclass(frozen=True)
class Better:
    """A shape that is worth a change, and what it is expected to cost against the one before."""

    shape: JoinShape
    expected: float


def propose_shape(
    inputs: int, counted: Counted, now: JoinShape, usual: JoinShape | None = None
) -> Better | None:
    """Another shape than the one there is, if it is clearly better and soon pays for the change.

    It is the `usual` one if that is about as good: a site works on slots of one shape at a time.
    """
    plans = Plans(inputs, counted)
    best = plans.best()
    if usual is not None and plans.cost(usual) < WORTH * plans.cost(best):
        best = usual
    before, after = plans.cost(now), plans.cost(best)
    gain = before - after
    if best == now or before < WORTH * after or gain * HORIZON < plans.change(now, best):
        return None
    return Better(best, after / before)


def propose_common(
    inputs: int, counted: Counted, now: Mapping[JoinShape, int], usual: JoinShape | None = None
) -> dict[JoinShape, Better]:
    """What those of each shape go over to, of whom so many have it: all of them to one shape.

    That is the better one for most of them, or else the one that most have: partitions that were moved, or
    asked for by hand, may have brought others.
    """
    plans = Plans(inputs, counted)
    most = max(now, key=lambda shape: (now[shape], -plans.cost(shape)))
    better = propose_shape(inputs, counted, most, usual)
    target = most if better is None else better.shape
    after = plans.cost(target)
    return {
        shape: Better(target, after / plans.cost(shape) if plans.cost(shape) else 1.0)
        for shape in now
        if shape != target
    }


def usual_shape(inputs: int, groups: Mapping[int, Counted]) -> JoinShape | None:
    """The shape that is best by the figures of all groups together; None if there are none."""
    whole = pooled(groups, dict.fromkeys(groups, 0)).get(0)
    return None if whole is None else Plans(inputs, whole).best()


def pooled(groups: Mapping[int, Counted], by: Mapping[int, int]) -> dict[int, Counted]:
    """What was counted for groups put together: by the group that each belongs to."""
    found: dict[int, Counted] = {}
    for one, counted in groups.items():
        known = found.get(by[one])
        found[by[one]] = counted if known is None else known.plus(counted)
    return found


def well_counted(groups: Mapping[int, Counted]) -> Iterator[tuple[int, Counted]]:
    """What counts for each group: its own figures if it has enough of them, else those of all."""
    whole = pooled(groups, dict.fromkeys(groups, 0)).get(0)
    for one, counted in groups.items():
        assert whole is not None
        yield one, counted if counted.keys >= ENOUGH else whole


def decoded(vector: Sequence[float], inputs: int) -> Counted:
    """What was counted, from the numbers in which sites report it."""
    count = len(splits(inputs))
    whole = np.asarray(vector)
    edges = np.cumsum([1, inputs, count, count, count])
    keys, fresh, looked, made, kept = np.split(whole, edges[:-1])
    return Counted(float(keys[0]), fresh, looked, made, kept)
