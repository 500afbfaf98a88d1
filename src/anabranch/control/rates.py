"""How fast rows come to joins, and how soon those that are remembered go: what another shape costs (P5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from anabranch.adapt.policies.guessing import InputFlow, guessed, on_the_way
from anabranch.adapt.policies.plans import Counted
from anabranch.adapt.policies.ways import Affected
from anabranch.language.shape import Inputs
from anabranch.routing.ranges import intersect
from anabranch.routing.shaped import Slots
from anabranch.state.manifest import Manifest, SubqueryRecord
from anabranch.state.segment import SegmentRef

RECENT = 0.5
"""The weight of the newest epoch in the means."""


@dataclass
class Pace:
    """What the epochs of a join bring, the last ones counting most."""

    epoch: int
    rows_in: int
    watermark: int | None
    rows: float | None = None
    """Rows of an epoch."""
    time: float | None = None
    """How far the watermark comes in an epoch."""
    inputs: tuple[float, ...] = ()
    """Rows of each input in an epoch, where that is known."""


class Paces:
    """The pace of each join of a run."""

    def __init__(self) -> None:
        self._paces: dict[str, Pace] = {}

    def observe(self, name: str, manifest: Manifest) -> None:
        """Takes in what a commit says of a join."""
        now = manifest.subqueries[name]
        seen = self._paces.get(name)
        if seen is None:
            self._paces[name] = Pace(manifest.epoch, now.rows_in, now.watermark)
            return
        epochs = manifest.epoch - seen.epoch
        if epochs <= 0:
            return  # the same epoch is tried again
        seen.rows = _mean(seen.rows, (now.rows_in - seen.rows_in) / epochs)
        if seen.watermark is not None and now.watermark is not None:
            seen.time = _mean(seen.time, (now.watermark - seen.watermark) / epochs)
        seen.epoch, seen.rows_in, seen.watermark = manifest.epoch, now.rows_in, now.watermark

    def take_in(self, name: str, rows: Sequence[float]) -> None:
        """Takes in what an epoch brought to each input of a join."""
        pace = self._paces.get(name)
        if pace is not None:
            before = pace.inputs or [None] * len(rows)
            pace.inputs = tuple(map(_mean, before, rows))

    def remembered(
        self, name: str, record: SubqueryRecord, made_of: Mapping[str, Inputs], slots: Slots,
        endless: bool, counted: Counted | None,
    ) -> Affected:  # fmt: skip
        """What is known of these slots of a join, whose tables have rows of these inputs."""
        inputs = [ref for ref in record.shelf if len(made_of[ref.table]) == 1]
        mine = sum(_rows_in(ref, slots) for ref in inputs)
        everything = sum(ref.rows for ref in inputs)
        pace = self._paces.get(name)
        share = mine / everything if everything else 1.0
        rows = None if pace is None else pace.rows
        arriving = rows * share if rows is not None else 0.0
        epochs = None
        if not endless and rows is not None:
            epochs = _epochs(pace, [ref for ref in inputs if _rows_in(ref, slots)])
        if pace is None or not pace.inputs or epochs is None:
            return Affected(mine, arriving, epochs, endless, counted)
        kept = _by_inputs(record.shelf, made_of, slots)
        flows = []
        for number, fresh in enumerate(pace.inputs):
            own = [
                ref for ref in inputs if made_of[ref.table] == (number,) and _rows_in(ref, slots)
            ]
            stays = _epochs(pace, own) or epochs
            flows.append(InputFlow(kept.pop((number,), 0.0), fresh * share, stays))
        counted = counted or guessed(flows, kept)
        meanwhile = on_the_way(counted, flows, epochs) if counted else None
        return Affected(mine, arriving, epochs, endless, counted, meanwhile)


def _epochs(pace: Pace | None, old: Sequence[SegmentRef]) -> float | None:
    """Epochs until the watermark has passed all of these, if it goes on as it does."""
    if pace is None or pace.watermark is None or not pace.time or pace.time <= 0:
        return None
    left = max((ref.max_due for ref in old), default=pace.watermark) - pace.watermark
    return max(1.0, left / pace.time)


def _by_inputs(
    shelf: Iterable[SegmentRef], made_of: Mapping[str, Inputs], slots: Slots
) -> dict[Inputs, float]:
    """The rows in these slots of each input, and of each intermediate."""
    rows: dict[Inputs, float] = {}
    for ref in shelf:
        inputs = made_of[ref.table]
        rows[inputs] = rows.get(inputs, 0.0) + _rows_in(ref, slots)
    return rows


def _rows_in(ref: SegmentRef, slots: Slots) -> float:
    """The rows of a segment in these slots, as if they were spread evenly."""
    whole = sum(end - first for first, end in ref.live)
    part = sum(end - first for first, end in intersect(ref.live, sorted(slots)))
    return ref.rows * part / max(1, whole)


def _mean(before: float | None, now: float) -> float:
    return now if before is None else before + RECENT * (now - before)
