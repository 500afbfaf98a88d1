"""Flux's load policy (F5): the most utilised sites give partitions to the least utilised ones.

Sites are paired from both ends inwards. A pair moves at most one partition in a round, the largest that
brings the two closer together without overfilling the receiver. The first pair that is close enough
already ends the round, for all further ones are closer still.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anabranch.adapt.actions import Move
from anabranch.adapt.policies.pairs import Donors, moves_of
from anabranch.adapt.tuning import Tuning
from anabranch.adapt.view import View


def propose_load(view: View, tuning: Tuning, room: bool = False) -> Iterator[Move]:
    """At most one move for each pair of sites; with `room` only where memory suffices."""
    used = view.utilisation
    order = np.flatnonzero(view.sites.alive)
    order = order[np.argsort(-used[order], kind="stable")]
    mean = used[order].mean() if len(order) else 0.0
    donors = Donors(view)
    free = view.sites.memory - view.sites.resident
    for donor, receiver in zip(order[: len(order) // 2], order[::-1], strict=False):
        most, least = used[donor], used[receiver]
        close = most < least * tuning.imbalance or least > tuning.utilisation
        if most <= mean or close:
            return
        own = donors.of(donor, view.partitions.work)
        leaving = view.share[own]
        arriving = view.partitions.work[own] * view.sites.slowness[receiver] / view.seconds
        gap = np.abs((most - leaving) - (least + arriving))
        fits = (gap < most - least) & (least + arriving <= 1.0)
        if room:
            fits &= view.partitions.bytes[own] <= free[receiver]
        if fits.any():
            chosen = own[np.argmax(fits)]
            cause = f"load: site {donor} is {most:.0%} busy, site {receiver} {least:.0%}"
            yield from moves_of(view, [chosen], [receiver], cause)
