"""Lane -> slot: where the parts lie that a stream already comes in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def place_lanes(known: Mapping[str, int], lanes: Iterable[str], slots: int) -> dict[str, int]:
    """The slot of each lane: known ones stay, the first ones lie evenly, later ones between them.

    >>> first = place_lanes({}, ["a", "b", "c"], 12)
    >>> first, place_lanes(first, ["b", "d"], 12)["d"]
    ({'a': 0, 'b': 4, 'c': 8}, 2)
    """
    new = [lane for lane in lanes if lane not in known]
    if not known:
        return {lane: at * slots // len(new) for at, lane in enumerate(new)}
    placed = dict(known)
    for lane in new:
        taken = sorted({*placed.values(), slots})
        ends = [*taken[1:], taken[0] + slots]
        gap, start = max((end - start, -start) for start, end in zip(taken, ends, strict=True))
        placed[lane] = (-start + gap // 2) % slots
    return placed
