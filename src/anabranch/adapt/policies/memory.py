"""Flux's memory policy (F6): sites short of memory give partitions to those that have the most to spare.

It pairs as the load policy does, by what sites keep beyond their memory. Partitions in memory go before
those on disk, which would have to be read first. How busy the receiver is does not matter: even where all
memory is used up, moves even out how much is on disk.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anabranch.adapt.actions import Move
from anabranch.adapt.policies.pairs import Donors, moves_of
from anabranch.adapt.tuning import Tuning
from anabranch.adapt.view import View
from anabranch.amount import in_bytes


def propose_memory(view: View, tuning: Tuning) -> Iterator[Move]:
    """Moves from those that keep most beyond their memory: one for each pair of sites, as Flux does it.

    With tuning by itself it goes on in thought until no site is short of memory, or nothing helps.
    """
    kept = (view.sites.resident + view.sites.spilled).astype(float)
    excess = kept - view.sites.memory
    donors, gone = Donors(view), np.zeros(len(view.partitions), dtype=bool)
    for donor, receiver in _pairs(view, excess, tuning.itself):
        apart = excess[donor] - excess[receiver]
        if kept[donor] * tuning.imbalance < view.sites.memory[donor]:
            return  # the fullest site is not short of memory
        own = donors.of(donor, view.partitions.bytes)
        own = own[~gone[own]]
        own = own[np.argsort(view.partitions.aside[own] > 0, kind="stable")]
        size = view.partitions.bytes[own]
        closer = np.abs(apart - 2 * size) < apart
        if closer.any():
            chosen = own[np.argmax(closer)]
            cause = f"memory: {_words(donor, excess[donor])}, {_words(receiver, excess[receiver])}"
            yield from moves_of(view, [chosen], [receiver], cause)
            gone[chosen] = True
            for site, more in ((donor, -1), (receiver, 1)):
                kept[site] += more * view.partitions.bytes[chosen]
                excess[site] += more * view.partitions.bytes[chosen]
        elif tuning.itself:
            return


def _words(site: int, excess: float) -> str:
    if excess == -np.inf:
        return f"site {site} has no limit"
    if excess < 0:
        return f"site {site} has {in_bytes(-excess)} free"
    return f"site {site} keeps {in_bytes(excess)} beyond its memory"


def _pairs(view: View, excess: np.ndarray, again: bool) -> Iterator[tuple[int, int]]:
    """Donors and receivers from both ends inwards; or `again` and again those at the ends by then."""
    order = np.flatnonzero(view.sites.alive)
    while again and len(order) > 1:
        yield order[np.argmax(excess[order])], order[np.argmin(excess[order])]
    order = order[np.argsort(-excess[order], kind="stable")]
    yield from zip(order[: len(order) // 2], order[::-1], strict=False)
