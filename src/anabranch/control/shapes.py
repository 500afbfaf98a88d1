"""The shapes of a run's joins (P1): which they have, which they are to have, and what of that comes next.

What is wanted is kept in the manifest beside what is there; where they differ, the protocol of
`adapt/protocols/replanning.py` brings one to the other, or that of `adapt/protocols/parallel_track.py`, over
as many epochs as it takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anabranch.adapt.actions import Replan
from anabranch.adapt.policies.plans import Counted
from anabranch.adapt.policies.ways import choose_way
from anabranch.adapt.protocols.parallel_track import TRACK_STEPS, remaining_slots
from anabranch.adapt.protocols.replanning import STEPS, Step, Turn, Wishes, next_step
from anabranch.control.decisions import DecisionHistory
from anabranch.control.observed import Observed
from anabranch.control.rates import Paces
from anabranch.errors import SettingsError
from anabranch.language.join import Join
from anabranch.language.shape import NAMED, flat_shape, read_shape, written_shape
from anabranch.operators.due import all_go
from anabranch.plan.plan import Plan
from anabranch.routing.grid import Scattered
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import subtract, union
from anabranch.routing.reach import Apart, Holds, slots_of
from anabranch.routing.shaped import FLAT, Shapes, Slots, reshaped, shapes_in_use, tracks_in_use
from anabranch.settings import FIXED_PLANS, MOVING_STATE, PARALLEL_TRACK, Settings
from anabranch.state.manifest import Manifest, SubqueryRecord
from anabranch.state.table import inputs_by_table

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
        self._asked = settings.transition
        self._rates = Paces()
        self._made_of = {
            name: inputs_by_table(plan.subqueries[name].operator.tables) for name in self.inputs
        }
        """By join, the inputs that the rows of each table are of."""
        self.by_track: dict[str, Slots] = {
            name: tuple(manifest.subqueries[name].by_track) for name in self.inputs
        }
        """The slots that are to come to the shape that is wanted for them on a parallel track."""
        for name, shape in asked.items():
            # A checkpoint keeps the shapes that were chosen, unless they are fixed
            if shape is not None and (manifest.epoch < 0 or settings.plans == FIXED_PLANS):
                slots = manifest.exchanges[plan.subqueries[name].exchange].map().slots
                self.wanted[name] = reshaped((), [(0, slots)], shape)
                track = settings.transition == PARALLEL_TRACK and not self.endless(name)
                if manifest.epoch < 0 or settings.transition == MOVING_STATE:
                    self.by_track[name] = ()
                elif track:
                    self.by_track[name] = ((0, slots),)

    def changes(
        self, subquery: str, known: PartitionMap, starts: Sequence[int], shape: str, cause: str,
        record: SubqueryRecord, counted: Counted | None = None, transition: str | None = None,
    ) -> list[Replan]:  # fmt: skip
        """What brings partitions to a shape, and how, by the shape that is wanted for them so far."""
        inputs, exchange = self.inputs[subquery], self._plan.subqueries[subquery].exchange
        former: dict[str, list[int]] = {}
        for start in starts:
            others = [s for s in self.shapes_in(subquery, known.range_at(start)) if s != shape]
            if others:
                former.setdefault(others[0], []).append(start)
        found = []
        for before, some in former.items():
            texts = shown(before, inputs), shown(shape, inputs)
            old, new = (read_shape(text, inputs) for text in texts)
            slots = [known.range_at(start) for start in some]
            way = choose_way(
                transition or self._asked,
                old, new,
                self._rates.remembered(
                    subquery, record, self._made_of[subquery], slots, self.endless(subquery), counted
                ),
            )  # fmt: skip
            found.append(Replan(exchange, some[0], cause, subquery, tuple(some), *texts, way=way))
        return found

    def observe(self, observed: Observed) -> None:
        """Takes in what came to the inputs of joins."""
        for name in self.inputs:
            came = observed.inputs.get(self._plan.subqueries[name].exchange)
            if came is not None:
                self._rates.take_in(name, came.rows)

    def endless(self, subquery: str) -> bool:
        """Whether rows of a join are kept for ever: a track would not end."""
        node = self._plan.subqueries[subquery].node
        return not (isinstance(node, Join) and all_go(node))

    def kept(self, subquery: str, text: str) -> str:
        """A shape of a join as manifests have it."""
        return kept_shape(text, self.inputs[subquery])

    def shapes_in(self, subquery: str, slots: tuple[int, int]) -> list[str]:
        """The shapes that are wanted for these slots: several after partitions were merged."""
        known = [one for one in self.wanted[subquery] if one.first < slots[1] > slots[0] < one.end]
        others = subtract([slots], sorted((one.first, one.end) for one in known))
        return [*dict.fromkeys(one.shape for one in known), *([FLAT] if others else [])]

    def replan(self, subquery: str, slots: Slots, shape: str, protocol: str) -> None:
        """Wants another shape for these slots, as people write it, and to come to it in this way."""
        kept = kept_shape(shape, self.inputs[subquery])
        others = subtract(self.by_track[subquery], slots)
        self.by_track[subquery] = union(others, slots) if protocol == PARALLEL_TRACK else others
        self.wanted[subquery] = reshaped(self.wanted[subquery], slots, kept)

    def take_next(
        self, manifest: Manifest, maps: Mapping[str, PartitionMap], held: Holds,
        spilled: Apart, cleaned: Apart,
        scattering: Mapping[str, Sequence[Scattered]], last: bool,
    ) -> dict[str, Turn]:  # fmt: skip
        """What each join does in the next epoch; with the last one nothing changes any more."""
        turns: dict[str, Turn] = {}
        for name in self.inputs:
            exchange, now = self._plan.subqueries[name].exchange, manifest.subqueries[name]
            self._rates.observe(name, manifest)
            if not now.shapes and not self.wanted[name] and not now.tracks:
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
            shapes, tracks = tuple(now.shapes), tuple(now.tracks)
            old = now.shelf.born_until(max((one.cut for one in tracks), default=-1))
            remaining = remaining_slots(tracks, ((ref.born[0], ref.live) for ref in old))
            wishes = Wishes(self.wanted[name], self.by_track[name], flat, resting)
            step = next_step(
                shapes, tracks, wishes, remaining, sizes, owners, REMADE_BYTES, manifest.epoch + 1
            )
            turns[name] = step.turn
            self._tell(name, step, manifest.epoch + 1)
        return turns

    def _tell(self, name: str, step: Step, epoch: int) -> None:
        """Notes what changes do with an epoch."""
        *known, both, gone, dropped = TRACK_STEPS
        tracked, note = step.tracked, self._history.reshaped
        if step.moved:
            note(name, step.moved, dict.fromkeys(STEPS, epoch))
        if tracked.begun:
            note(name, tracked.begun, dict.fromkeys([*known, both], epoch))
        if tracked.ended:
            note(name, tracked.ended, {gone: epoch - 1, dropped: epoch})

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

    def describe_tracks(
        self, manifest: Manifest, maps: Mapping[str, PartitionMap]
    ) -> dict[str, list[dict[str, Any]]]:
        """By join, what comes to another shape on a parallel track."""
        found = {}
        for name, inputs in self.inputs.items():
            known = maps[self._plan.subqueries[name].exchange]
            used = tracks_in_use(manifest.subqueries[name].tracks, known.starts)
            found[name] = [
                {
                    "shape": shown(one.shape, inputs),
                    "since": one.since,
                    "partitions": one.partitions,
                }
                for one in used
            ]
        return {name: tracks for name, tracks in found.items() if tracks}


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
