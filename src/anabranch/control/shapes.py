"""The shapes of a run's joins (P1): which they have, which they are to have, and what of that comes next.

What is wanted is kept in the manifest beside what is there; where they differ, the protocol of
`adapt/protocols/replanning.py` brings one to the other, over as many epochs as it takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anabranch.adapt.actions import Replan
from anabranch.adapt.protocols.replanning import Turn, next_turn, validate
from anabranch.control.decisions import DecisionHistory
from anabranch.errors import SettingsError
from anabranch.language.shape import NAMED, flat_shape, read_shape, written_shape
from anabranch.plan.plan import Plan
from anabranch.routing.grid import Scattered
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import union
from anabranch.routing.reach import Apart, Holds, slots_of
from anabranch.routing.shaped import FLAT, Shapes, Slots, differing, reshaped, shapes_in_use
from anabranch.settings import FIXED_PLANS, Settings
from anabranch.state.manifest import Manifest

REMADE_BYTES = 64 * 1024 * 1024
"""State of which a site makes intermediates in one epoch."""


class JoinShapes:
    """What was asked for, and how far it has come."""

    def __init__(
        self, plan: Plan, settings: Settings, manifest: Manifest, history: DecisionHistory
    ) -> None:
        self._plan, self._history = plan, history
        self.inputs = {name: one.inputs for name, one in plan.subqueries.items() if one.shaped}
        """The joins that can have several shapes, with the number of their inputs."""
        self.wanted: dict[str, Shapes] = {
            name: tuple(manifest.subqueries[name].wanted_shapes) for name in self.inputs
        }
        asked = {name: given_shape(settings.join_shape, n) for name, n in self.inputs.items()}
        if settings.join_shape not in NAMED:
            _refuse_unsuited(settings.join_shape, sorted({*self.inputs.values()}))
        for name, shape in asked.items():
            # A checkpoint keeps the shapes that were chosen, unless they are fixed
            if shape is not None and (manifest.epoch < 0 or settings.plans == FIXED_PLANS):
                slots = manifest.exchanges[plan.subqueries[name].exchange].map().slots
                self.wanted[name] = reshaped((), [(0, slots)], shape)

    def changes(
        self, subquery: str, known: PartitionMap, starts: Sequence[int], shape: str, cause: str
    ) -> list[Replan]:
        """What brings partitions to a shape, by the shape that is wanted for them so far."""
        inputs, exchange = self.inputs[subquery], self._plan.subqueries[subquery].exchange
        former: dict[str, list[int]] = {}
        for start in starts:
            before = self.shape_at(subquery, start)
            if before != shape or self.shape_at(subquery, known.range_at(start)[1] - 1) != shape:
                former.setdefault(before, []).append(start)
        return [
            Replan(
                exchange, some[0], cause, subquery, tuple(some), shown(before, inputs),
                shown(shape, inputs),
            )
            for before, some in former.items()
        ]  # fmt: skip

    def kept(self, subquery: str, text: str) -> str:
        """A shape of a join as manifests have it."""
        return kept_shape(text, self.inputs[subquery])

    def shape_at(self, subquery: str, slot: int) -> str:
        """The shape that is wanted for a slot."""
        found = (one.shape for one in self.wanted[subquery] if one.first <= slot < one.end)
        return next(found, FLAT)

    def replan(self, subquery: str, slots: Slots, shape: str) -> None:
        """Wants another shape for these slots, as people write it."""
        kept = kept_shape(shape, self.inputs[subquery])
        self.wanted[subquery] = reshaped(self.wanted[subquery], slots, kept)

    def under_way(self, manifest: Manifest) -> dict[str, Slots]:
        """The slots of each join that are not yet as they are wanted."""
        found = {}
        for name in self.inputs:
            known = manifest.exchanges[manifest.subqueries[name].exchange].map().slots
            some = differing(manifest.subqueries[name].shapes, self.wanted[name], known)
            found[name] = sorted(pair for ranges in some.values() for pair in ranges)
        return {name: some for name, some in found.items() if some}

    def take_next(
        self, manifest: Manifest, maps: Mapping[str, PartitionMap], held: Holds,
        spilled: Apart, cleaned: Apart,
        scattering: Mapping[str, Sequence[Scattered]], last: bool,
    ) -> dict[str, Turn]:  # fmt: skip
        """What each join does in the next epoch; with the last one nothing changes any more."""
        turns: dict[str, Turn] = {}
        for name in self.inputs:
            exchange, now = self._plan.subqueries[name].exchange, manifest.subqueries[name]
            if not now.shapes and not self.wanted[name]:
                continue
            known = maps[exchange]
            hot = [
                (one.slot, one.slot + 1)
                for one in (*manifest.exchanges[exchange].scattered, *scattering.get(exchange, ()))
            ]
            cells = [(known.slots - known.cells, known.slots)] if known.cells else []
            # Nothing lies between where state is aside, nor where single keys are in several cells
            flat = union(union(slots_of(spilled.get(exchange, ())), hot), cells)
            resting = union(slots_of(held.get(exchange, ())), slots_of(cleaned.get(exchange, ())))
            if last:
                resting = [(0, known.slots)]
            sizes = np.zeros(known.slots)
            by_slot = now.shelf.bytes_by_slot[: known.slots]
            sizes[: len(by_slot)] = by_slot
            owners = known.site_of(np.arange(known.slots))
            shapes = tuple(now.shapes)
            turns[name] = next_turn(
                shapes, self.wanted[name], flat, resting, sizes, owners, REMADE_BYTES
            )
            validate(turns[name], shapes, flat, resting)
            if turns[name].changing:
                self._history.reshaped(name, turns[name].slots, manifest.epoch + 1)
        return turns

    def describe(
        self, manifest: Manifest, maps: Mapping[str, PartitionMap]
    ) -> dict[str, dict[str, int]]:
        """By join, how many partitions work in each shape."""
        found = {}
        for name, inputs in self.inputs.items():
            known = maps[self._plan.subqueries[name].exchange]
            used = shapes_in_use(tuple(manifest.subqueries[name].shapes), known.starts, known.slots)
            found[name] = {shown(shape, inputs): count for shape, count in used.items()}
        return found


def _refuse_unsuited(text: str, known: Sequence[int]) -> None:
    """Raises SettingsError if a shape is for no join of the plan."""
    inputs = len(written_shape(text).inputs)
    if inputs not in known:
        there = f"have {' or '.join(map(str, known))}" if known else "are not there"
        raise SettingsError(
            f"Setting 'join_shape' is {text}, for inner joins of {inputs} inputs on one key; those of this "
            f"query set that can have a shape {there}. explain() shows them."
        )


def given_shape(text: str, inputs: int) -> str | None:
    """A shape as it is kept, for a join of so many inputs; None if it is for another number."""
    if text not in NAMED and len(written_shape(text).inputs) != inputs:
        return None
    return kept_shape(text, inputs)


def kept_shape(text: str, inputs: int) -> str:
    """A shape as manifests have it: the flat one is empty."""
    shape = read_shape(text, inputs)
    return FLAT if shape.flat else str(shape)


def shown(shape: str, inputs: int) -> str:
    """A shape as people write it."""
    return shape or str(flat_shape(inputs))
