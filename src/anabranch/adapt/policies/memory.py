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


def propose_memory(view: View, tuning: Tuning) -> Iterator[Move]:
    """At most one move for each pair of sites, from those that keep most beyond their memory."""
    kept = view.sites.resident + view.sites.spilled
    excess = kept - view.sites.memory
    order = np.flatnonzero(view.sites.alive)
    order = order[np.argsort(-excess[order], kind="stable")]
    donors = Donors(view)
    for donor, receiver in zip(order[: len(order) // 2], order[::-1], strict=False):
        apart = excess[donor] - excess[receiver]
        if kept[donor] * tuning.imbalance < view.sites.memory[donor]:
            return  # the fullest site is not short of memory
        own = donors.of(donor, view.partitions.bytes)
        own = own[np.argsort(view.partitions.on_disk[own], kind="stable")]
        size = view.partitions.bytes[own]
        closer = np.abs(apart - 2 * size) < apart
        if closer.any():
            chosen = own[np.argmax(closer)]
            short = _megabytes(excess[donor])
            cause = f"memory: site {donor} keeps {short} beyond its memory, site {receiver} "
            yield from moves_of(view, [chosen], [receiver], cause + _megabytes(excess[receiver]))


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.0f} MB"
