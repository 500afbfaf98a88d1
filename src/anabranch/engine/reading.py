"""How much an epoch reads, and which split task reads which pieces of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from anabranch.plan.plan import StreamPlan
from anabranch.routing.lanes import place_lanes
from anabranch.routing.partition_map import PartitionMap
from anabranch.settings import Settings
from anabranch.sources.base import EpochLimits, Piece

EPOCH_SHARE, LEAST_EPOCH = 1 / 8, 1024 * 1024
"""How much of what sites may keep an epoch reads, as files have it: on their way rows are several times as
large, and several times there. So many bytes may always come."""


def limits_of(settings: Settings, room: float, streams: int, tasks: int) -> EpochLimits:
    """How much an epoch takes of each stream, where sites may keep so many bytes together."""
    fitting = max(LEAST_EPOCH, EPOCH_SHARE * room / max(1, streams))
    return EpochLimits(
        settings.max_files_per_epoch, int(min(settings.max_bytes_per_epoch, fitting)),
        settings.max_rows_per_epoch, tasks,
    )  # fmt: skip


def spread(
    pieces: list[tuple[str, Piece]], tasks: int,
    readers: Mapping[tuple[str, str | None], int] = MappingProxyType({}),
) -> tuple[tuple[tuple[str, Piece], ...], ...]:  # fmt: skip
    """The pieces over at most so many tasks, evenly by weight; always at least one task.

    Pieces of a lane with a reader go to the task of that number, so there are as many as it takes.
    """
    count = max(1, min(tasks, len(pieces)), 1 + max(readers.values(), default=0))
    boxes: list[list[tuple[str, Piece]]] = [[] for _ in range(count)]
    loads = [0] * len(boxes)
    bound = [entry for entry in pieces if (entry[0], entry[1].lane) in readers]
    free = [entry for entry in pieces if (entry[0], entry[1].lane) not in readers]
    for entry in [*bound, *sorted(free, key=lambda entry: -entry[1].weight)]:
        task = readers.get((entry[0], entry[1].lane), loads.index(min(loads)))
        boxes[task].append(entry)
        loads[task] += entry[1].weight
    return tuple(tuple(box) for box in boxes)


def lanes_of(
    streams: Mapping[str, StreamPlan], known: Mapping[str, Mapping[str, int]],
    maps: Mapping[str, PartitionMap], pieces: list[tuple[str, Piece]],
) -> dict[str, dict[str, int]]:  # fmt: skip
    """The slot of each lane of the streams that come partitioned as the plan wants them; some are known."""
    lanes: dict[str, dict[str, int]] = {}
    for name, stream in streams.items():
        if stream.exchange is not None:
            new = sorted({piece.lane or "" for origin, piece in pieces if origin == name})
            lanes[name] = place_lanes(known[name], new, maps[stream.exchange].hashed)
    return lanes


def tasks_of(
    streams: Mapping[str, StreamPlan], maps: Mapping[str, PartitionMap],
    lanes: Mapping[str, Mapping[str, int]],
) -> dict[tuple[str, str | None], int]:  # fmt: skip
    """The split task of each lane: that with the number of the site which owns its partition."""
    readers: dict[tuple[str, str | None], int] = {}
    for name, some in lanes.items():
        partitions = maps[streams[name].exchange or ""]
        for lane, slot in some.items():
            readers[name, lane] = partitions.sites[partitions.partition_at(slot)]
    return readers
