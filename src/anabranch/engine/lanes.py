"""Whether rows keep to their lanes, and how far each lane of a stream has come."""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.engine.orders import Orders
from anabranch.engine.report import EpochReport
from anabranch.errors import RunError
from anabranch.sources.base import Offer
from anabranch.state.manifest import StreamRecord

LANE_VALUES = 64
"""Hashes of a lane that an epoch tells and a manifest keeps."""
MOST_LANE_VALUES = 1_000_000
"""Hashes that are remembered of a stream's lanes at most; mostly the same few come again."""


class LaneWatch:
    """What has been seen of the values that decide the lanes of rows."""

    def __init__(self, records: Mapping[str, StreamRecord]) -> None:
        self._values: dict[str, dict[int, int]] = {
            stream: {value: lane for lane, some in record.lane_values.items() for value in some}
            for stream, record in records.items()
        }

    def check(self, orders: Orders, report: EpochReport) -> None:
        """Raises RunError if rows that belong together came in different lanes of their stream."""
        for split in report.splits:
            for stream, lanes in split.lane_values.items():
                known = self._values[stream]
                for lane, values in lanes.items():
                    for value in values:
                        if known.setdefault(value, lane) != lane:
                            _refuse(orders, stream, known[value], lane)
                if len(known) > MOST_LANE_VALUES:
                    known.clear()


def seen_in_lanes(
    stream: str, before: Mapping[int, list[int]], report: EpochReport
) -> dict[int, list[int]]:
    """The least values that each lane of a stream has had, for the run that goes on from here."""
    found = dict(before)
    for split in report.splits:
        for lane, values in split.lane_values.get(stream, {}).items():
            found[lane] = sorted({*found.get(lane, ()), *values})[:LANE_VALUES]
    return found


def _refuse(orders: Orders, stream: str, one: int, other: int) -> None:
    names = {partition: name for name, partition in orders.lanes[stream].items()}
    terms = ", ".join(map(str, orders.plan.streams[stream].lane_terms))
    raise RunError(
        f"Stream '{stream}' is said to come partitioned by {terms}, but the same value came in the "
        f"parts '{names[one]}' and '{names[other]}', so groups would be split. Epoch {orders.epoch} "
        "is not counted. Mend the files, so that equal values come in one part, and start again; or take "
        "partitioned_by away and start with a new checkpoint."
    )


def lanes_reached(
    records: Mapping[str, StreamRecord], offers: Mapping[str, Offer]
) -> dict[str, dict[str, int | None]]:
    """How far the lanes of each stream have come: those that have had a file or have one waiting."""
    times: dict[str, dict[str, int | None]] = {}
    for name, record in records.items():
        known = {lane: time.newest for lane, time in record.lane_times.items()}
        if name not in offers:
            times[name] = known
        elif (waiting := offers[name].lanes) is not None:
            times[name] = {**dict.fromkeys(waiting), **known}
    return {name: lanes for name, lanes in times.items() if lanes}
