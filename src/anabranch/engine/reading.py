"""Which split task reads which pieces of an epoch's input."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from anabranch.sources.base import Piece


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
