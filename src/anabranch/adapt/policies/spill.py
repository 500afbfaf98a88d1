"""What sites put aside that keep more than their memory (S3), and what they bring back when there is room.

A site over its memory pushes a share of its state: first what has had no rows for long, then what takes most
memory for the results it gives. Where memory allows again, what gives most for its bytes comes back first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from anabranch.adapt.actions import CleanUp, Spill
from anabranch.adapt.view import View
from anabranch.amount import in_bytes
from anabranch.settings import ANY, POOR, RICH

TURN = 8
"""Epochs that rows wait for state that is put aside, before it is its turn to come back."""
ROOM = 0.8
"""The share of what a site keeps after it has put state aside, up to which it takes some back: else it would
go again with the next rows."""


@dataclass(frozen=True)
class Thresholds:
    """What the user may say about it."""

    share: float = 0.3
    """Of a site's state, how much is pushed at once (k%)."""
    idle: float = 20
    """Epochs without rows after which state is pushed before all other (θ_t)."""
    even: float = 0.8
    """The emptiest site's memory against the fullest's, below which state moves (θ_d)."""
    rates: float = 2.0
    """The results of a site's partitions against another's, from which that one puts state aside (θ_r)."""
    first: str = POOR
    """What goes first."""


def propose_spill(view: View, thresholds: Thresholds) -> Iterator[Spill]:
    """What goes, of sites that keep too much."""
    known, sites = view.partitions, view.sites
    resident = known.bytes - known.aside
    for site in np.flatnonzero(sites.alive & (sites.resident > sites.memory)).tolist():
        own = np.flatnonzero((known.site == site) & known.spills & (resident >= 1))
        beyond = sites.resident[site] - sites.memory[site]
        cause = f"site {site} keeps {in_bytes(beyond)} beyond its memory"
        wanted = max(beyond, thresholds.share * sites.resident[site])
        for at in least_productive(view, own, thresholds).tolist():
            if wanted <= 0:
                break
            wanted -= resident[at]
            yield spill_of(view, at, cause)


def least_productive(view: View, own: np.ndarray, thresholds: Thresholds) -> np.ndarray:
    """Partitions in the order in which they go."""
    known = view.partitions
    now = known.last_use.max(initial=0.0)
    idle = now - known.last_use[own] > thresholds.idle
    size = known.bytes[own] - known.aside[own]
    productivity = known.rows_out[own] / np.maximum(size, 1)
    if thresholds.first == RICH:
        productivity = -productivity
    elif thresholds.first == ANY:
        return np.random.default_rng(int(now)).permutation(own)
    # Of those that give nothing the largest first
    order: np.ndarray = own[np.lexsort((-size, productivity, ~idle))]
    return order


def propose_clean_up(view: View, epoch: int, thresholds: Thresholds) -> Iterator[CleanUp | Spill]:
    """What comes back: all that is to close, what there is room for, and in turn what rows wait for."""
    known, sites = view.partitions, view.sites
    room = ROOM * (1 - thresholds.share) * sites.memory - sites.resident
    coming = (known.aside >= 1) & known.closing
    for at in np.flatnonzero(coming).tolist():
        room[known.site[at]] -= known.aside[at]
        yield _clean_up(view, at, "its windows close")
    others = np.flatnonzero((known.aside >= 1) & ~coming)
    productivity = known.rows_out[others] / np.maximum(known.bytes[others], 1)
    for at in others[np.argsort(-productivity, kind="stable")].tolist():
        site = known.site[at]
        if known.aside[at] <= room[site]:
            room[site] -= known.aside[at]
            coming[at] = True
            yield _clean_up(view, at, f"site {site} has room for it")
    yield from _take_turns(view, epoch, thresholds, room, coming)


def _take_turns(
    view: View, epoch: int, thresholds: Thresholds, room: np.ndarray, coming: np.ndarray
) -> Iterator[CleanUp | Spill]:
    """(F8) Rows wait for no partition for ever: the one that waits longest comes, and others make room."""
    known = view.partitions
    waiting = (known.aside >= 1) & known.waits & ~coming & (epoch - known.since >= TURN)
    for site in np.unique(known.site[waiting]).tolist():
        own = np.flatnonzero(waiting & (known.site == site))
        at = int(own[np.argmin(known.since[own])])
        resident = known.bytes - known.aside
        here = (known.site == site) & known.spills & (known.aside < 1) & (resident >= 1)
        missing = known.aside[at] - room[site]
        for other in least_productive(view, np.flatnonzero(here), thresholds).tolist():
            if missing <= 0:
                break
            missing -= resident[other]
            yield spill_of(view, other, f"it makes room for {known.start[at]}")
        yield _clean_up(view, at, f"its rows have waited since epoch {known.since[at]}")


def spill_of(view: View, at: int, cause: str) -> Spill:
    """The partition of the view that is put aside."""
    known = view.partitions
    size = int(known.bytes[at] - known.aside[at])
    return Spill(
        view.exchanges[known.exchange[at]], int(known.start[at]), cause, int(known.site[at]), size
    )


def _clean_up(view: View, at: int, cause: str) -> CleanUp:
    known = view.partitions
    exchange = view.exchanges[known.exchange[at]]
    return CleanUp(exchange, int(known.start[at]), cause, int(known.site[at]), int(known.aside[at]))
