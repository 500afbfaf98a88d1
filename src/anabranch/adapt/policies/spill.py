"""What sites put aside that keep more than their memory (S3), and what they bring back.

A site over its memory pushes a share of its state: first what has had no rows for long, then what takes most
memory for the results it gives. What has results to give now comes back whatever the memory, and so does, in
turn (F8), what others wait for. Where memory allows again, what gives most for its bytes comes back first.
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
"""Epochs that rows, or the time above, wait for state that is put aside, before it can be its turn."""
LONG = 4 * TURN
"""Epochs after which state that is still put aside comes back also where it leaves little room."""
MOST_GENERATIONS = 64
"""Partitions with as many are brought together: every entry of the ledger names all of them."""
SURELY = 1.05
"""What goes has to be this many times what is too much: sizes of partitions are estimates."""
LEAST = 0.001
"""Less than this share of its site's memory is not worth a generation of its own."""
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
    can_go = worth_it(view)
    for site in np.flatnonzero(sites.alive & (sites.resident > sites.memory)).tolist():
        own = np.flatnonzero((known.site == site) & can_go)
        beyond = sites.resident[site] - sites.memory[site]
        cause = f"site {site} keeps {in_bytes(beyond)} beyond its memory"
        wanted = max(SURELY * beyond, thresholds.share * sites.resident[site])
        for at in least_productive(view, own, thresholds).tolist():
            if wanted <= 0:
                break
            wanted -= resident[at]
            yield spill_of(view, at, cause)


def worth_it(view: View) -> np.ndarray:
    """Which partitions have enough in memory that can go."""
    known = view.partitions
    memory = view.sites.memory[known.site]
    least = np.where(np.isfinite(memory), LEAST * memory, 0.0)
    enough: np.ndarray = known.spills & (known.bytes - known.aside >= np.maximum(least, 1.0))
    return enough


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


def propose_due(view: View, epoch: int, thresholds: Thresholds) -> Iterator[CleanUp | Spill]:
    """What comes back whatever the memory: what has windows to close, what is in too many parts, and one
    partition of each site that others wait for, for which others make room."""
    known = view.partitions
    aside = known.generations > 0
    closing, crowded = aside & known.closing, aside & (known.generations >= MOST_GENERATIONS)
    for at in np.flatnonzero(closing).tolist():
        yield _clean_up(view, at, "its windows close")
    crowded &= ~closing
    # One by one: what is to come together does not go meanwhile, and it may take long
    for site in np.unique(known.site[crowded]).tolist():
        own = np.flatnonzero(crowded & (known.site == site))
        at = int(own[np.argmax(known.generations[own])])
        yield _clean_up(view, at, f"{known.generations[at]} generations of it are aside")
    waiting = aside & known.awaited & ~closing & ~crowded & (epoch - known.since >= TURN)
    room = ROOM * (1 - thresholds.share) * view.sites.memory - view.sites.resident
    resident = known.bytes - known.aside
    for site in np.unique(known.site[waiting]).tolist():
        own = np.flatnonzero(waiting & (known.site == site))
        at = int(own[np.argmin(known.since[own])])
        here = (known.site == site) & worth_it(view) & ~aside
        missing = known.aside[at] - room[site]
        for other in least_productive(view, np.flatnonzero(here), thresholds).tolist():
            if missing <= 0:
                break
            missing -= resident[other]
            yield spill_of(view, other, f"it makes room for {known.start[at]}")
        yield _clean_up(view, at, f"it has been waited for since epoch {known.since[at]}")


def propose_return(view: View, epoch: int, thresholds: Thresholds) -> Iterator[CleanUp]:
    """What there is room for again: what gives most for its bytes first."""
    known, sites = view.partitions, view.sites
    clearly = ROOM * (1 - thresholds.share) * sites.memory - sites.resident
    taken = np.zeros(len(sites))
    long = epoch - known.since >= LONG
    most = np.where(long, (ROOM * sites.memory - sites.resident)[known.site], clearly[known.site])
    aside = np.flatnonzero((known.generations > 0) & (known.aside <= most))
    productivity = known.rows_out[aside] / np.maximum(known.bytes[aside], 1)
    for at in aside[np.argsort(-productivity, kind="stable")].tolist():
        site = known.site[at]
        if taken[site] + known.aside[at] <= most[at]:
            taken[site] += known.aside[at]
            yield _clean_up(view, at, f"site {site} has room for it")


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
