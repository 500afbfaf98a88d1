"""What a site does that keeps more than its memory, by cost: it moves what it can, and puts the rest aside.

All costs are seconds. To move a partition, its new site fetches its bytes, and has its work from then on. To
put it aside, its bytes are packed, and its results come later: they count as much as the work that they would
take while they wait. What gives most for its bytes moves first, what gives least is put aside first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anabranch.adapt.actions import Action, Split
from anabranch.adapt.policies.pairs import moves_of
from anabranch.adapt.policies.spill import (
    ROOM,
    SURELY,
    Thresholds,
    least_productive,
    spill_of,
    worth_it,
)
from anabranch.adapt.view import View
from anabranch.amount import in_bytes

FETCHED, PACKED = 200e6, 50e6
"""Bytes that are fetched, and that are packed, in a second."""
HORIZON = 20
"""Epochs for which something that is done now is taken to matter."""
RESULT = 1e-6
"""Seconds that a result is worth beside the work it takes."""
TOO_LARGE = 0.5
"""The share of its site's memory from which a partition is split: it could neither move nor stay."""
MUCH = 0.5
"""The share of its memory beyond which a site does not wait until such a one is cut."""


def propose_relief(
    view: View, thresholds: Thresholds, budget: float, splits: bool = True
) -> Iterator[Action]:
    """What sites that keep too much do about it, with so many bytes to move at most."""
    known, sites = view.partitions, view.sites
    resident = known.bytes - known.aside
    room = np.where(sites.alive, ROOM * sites.memory - sites.resident, 0.0)
    busy, can_go = sites.busy.copy(), worth_it(view)
    for site in np.flatnonzero(sites.alive & (sites.resident > sites.memory)).tolist():
        beyond = sites.resident[site] - sites.memory[site]
        cause = f"site {site} keeps {in_bytes(beyond)} beyond its memory"
        own = np.flatnonzero((known.site == site) & (resident >= 1))
        large = (known.bytes > TOO_LARGE * sites.memory[site]) & (known.slots > 1) & ~known.fixed
        large &= splits
        order = least_productive(view, own, thresholds)
        # What is too large goes only if all others leave too much: in halves it could stay in part
        order = order[np.argsort(large[order], kind="stable")]
        aside = np.where(can_go, _cost_of_spilling(view, resident), np.inf)
        gone = np.zeros(len(known), dtype=bool)
        for at in order[::-1].tolist():
            receiver = int(np.argmax(room))
            stays = large[at] or known.fixed[at] or resident[at] > min(room[receiver], budget)
            if beyond <= 0 or stays:
                continue
            if _cost_of_moving(view, at, receiver, resident[at], busy) <= aside[at]:
                gone[at] = True
                beyond -= resident[at]
                room[receiver] -= resident[at]
                budget -= resident[at]
                busy[receiver] += known.work[at] * sites.slowness[receiver]
                yield from moves_of(view, [at], [receiver], cause)
        # More than the least, so that the next rows do not bring the same again
        wanted = (
            max(SURELY * beyond, thresholds.share * sites.resident[site]) if beyond > 0 else 0.0
        )
        for at in order[can_go[order] & ~gone[order]].tolist():
            if wanted <= 0 or (large[at] and beyond <= MUCH * sites.memory[site]):
                break
            gone[at] = True
            wanted, beyond = wanted - resident[at], beyond - resident[at]
            yield spill_of(view, at, cause)
        for at in own[large[own] & ~gone[own]].tolist():
            yield _split(view, at, cause)


def _cost_of_spilling(view: View, resident: np.ndarray) -> np.ndarray:
    delayed = view.partitions.work + RESULT * view.partitions.rows_out
    cost: np.ndarray = resident / PACKED + HORIZON * delayed
    return cost


def _cost_of_moving(view: View, at: int, receiver: int, size: float, busy: np.ndarray) -> float:
    """The time to fetch it, and what its new site would be busier than all are now."""
    more = view.partitions.work[at] * view.sites.slowness[receiver]
    later = max(0.0, busy[receiver] + more - view.sites.busy.max())
    return float(size / FETCHED + HORIZON * later)


def _split(view: View, at: int, cause: str) -> Split:
    known = view.partitions
    start, middle = int(known.start[at]), int(known.slots[at]) // 2
    return Split(view.exchanges[known.exchange[at]], start, cause, start + middle)
