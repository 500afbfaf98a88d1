"""What joins would do in other shapes where no sample has counted it, and while state comes and goes (P5).

A shape keeps combinations of some inputs, so it is known how many rows of one suit a row of another. As long
as nothing better was counted, all inputs are taken to suit each other as often.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from anabranch.adapt.policies.plans import Counted, Split, splits
from anabranch.language.shape import Inputs


@dataclass(frozen=True)
class InputFlow:
    """The rows of one input of a join."""

    rows: float
    """Those that are remembered."""
    fresh: float
    """Those that come in an epoch."""
    epochs: float
    """For how many epochs one is remembered."""

    def mean_until(self, epochs: float) -> float:
        """Its rows on the way: those of now go bit by bit, then it has what comes at this pace."""
        before = min(1.0, self.epochs / 2 / max(epochs, 1.0))
        return before * self.rows + (1 - before) * self.fresh * self.epochs


def guessed(flows: Sequence[InputFlow], kept: Mapping[Inputs, float]) -> Counted | None:
    """What a sample would about show, by the combinations that are kept; None if there are none."""
    rows = [flow.rows for flow in flows]
    # Of three inputs two pairs have to suit each other, and so on
    suiting = [
        (count / prod(rows[i] for i in inputs)) ** (1 / (len(inputs) - 1))
        for inputs, count in kept.items()
        if count and all(rows[i] for i in inputs)
    ]
    if not suiting:
        return None
    density = sum(suiting) / len(suiting)
    every = [_inputs(split) for split in splits(len(flows))]
    share = [density ** (len(inputs) - 1) for inputs in every]
    made = np.array(
        [part * _met(flows, rows, some) for part, some in zip(share, every, strict=True)]
    )
    there = [part * prod(rows[i] for i in some) for part, some in zip(share, every, strict=True)]
    fresh = np.array([flow.fresh for flow in flows])
    return Counted(0.0, fresh, made, made, np.array(there))


def on_the_way(counted: Counted, flows: Sequence[InputFlow], epochs: float) -> Counted:
    """What was counted as it will be on average until all rows of now are gone."""
    now = [flow.rows for flow in flows]
    mean = [flow.mean_until(epochs) for flow in flows]
    ratio = np.array(
        [
            _met(flows, mean, some) / met if (met := _met(flows, now, some)) else 1.0
            for some in map(_inputs, splits(len(flows)))
        ]
    )
    return replace(counted, looked=counted.looked * ratio, made=counted.made * ratio)


def _met(flows: Sequence[InputFlow], rows: Sequence[float], inputs: Inputs) -> float:
    """The combinations of new rows of each of some inputs with those that are remembered of the others."""
    return sum(
        flows[one].fresh * prod(rows[other] for other in inputs if other != one) for one in inputs
    )


def _inputs(split: Split) -> Inputs:
    return tuple(sorted(itertools.chain(*split)))
