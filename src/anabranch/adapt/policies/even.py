"""The load policy that tunes itself (F10): as many moves as it takes, but only such as are sure to help.

Flux moves one partition for each pair of sites and round, and measures again. Here a round goes on in
thought: every move changes the expected utilisations, until no two sites differ by more than the threshold
or nothing fits. What Flux's policy cannot do is leave a popular partition alone: moved to the emptiest site
it makes that one the busiest, which narrows the gap by little and starts the same again elsewhere. Here a
partition moves only if both sites end up clearly below what the donor had; a popular one stays, and the
others leave its site.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from anabranch.adapt.actions import Move
from anabranch.adapt.policies.pairs import Donors, moves_of
from anabranch.adapt.tuning import Tuning
from anabranch.adapt.view import View

MOST_MOVES = 4096
"""Moves of one round: more of them wait for the next."""


def propose_even(view: View, tuning: Tuning, room: bool = False) -> Iterator[Move]:
    """Moves that bring all sites as close together as the threshold asks, the most useful ones first."""
    used = view.utilisation.copy()
    free = (view.sites.memory - view.sites.resident).astype(float)
    alive = np.flatnonzero(view.sites.alive)
    donors = Donors(view)
    work, slow = view.partitions.work / view.seconds, view.sites.slowness
    mean = used[alive].mean() if len(alive) else 0.0
    high, low = mean * tuning.begin, mean / tuning.begin
    left: dict[int, np.ndarray] = {}
    filling: set[int] = set()
    # The least utilised site is found through a heap whose entries may be out of date
    receivers = [(used[site], site) for site in alive.tolist()]
    heapq.heapify(receivers)
    busiest = [(-used[site], site) for site in alive.tolist()]
    heapq.heapify(busiest)
    made = 0
    while busiest and made < MOST_MOVES:
        most, donor = -busiest[0][0], busiest[0][1]
        if most != used[donor]:
            heapq.heapreplace(busiest, (-used[donor], donor))
            continue
        while receivers and receivers[0][0] != used[receivers[0][1]]:
            heapq.heapreplace(receivers, (used[receivers[0][1]], receivers[0][1]))
        least, receiver = receivers[0]
        worth = donor in left or most > high or receiver in filling or least < low
        if not worth or most <= least * tuning.imbalance:
            return
        own = left[donor] if donor in left else donors.of(donor, view.partitions.work)
        leaving, arriving = work[own] * slow[donor], work[own] * slow[receiver]
        after = np.maximum(most - leaving, least + arriving)
        helps = (most - after) > tuning.margin * leaving
        helps &= least + arriving < most * (1 - tuning.margin)
        if room:
            helps &= view.partitions.bytes[own] <= free[receiver]
        if not helps.any():
            if not room:
                return  # what the busiest site cannot give holds up all; what others have does not matter
            heapq.heappop(busiest)
            continue
        at = int(np.argmin(np.where(helps, after, np.inf)))
        chosen = int(own[at])
        filling.add(receiver)
        made += 1
        left[donor] = np.delete(own, at)
        used[donor] -= leaving[at]
        used[receiver] += arriving[at]
        free[donor] += view.partitions.bytes[chosen]
        free[receiver] -= view.partitions.bytes[chosen]
        cause = f"load: site {donor} is {most:.0%} busy, site {receiver} {least:.0%}"
        yield from moves_of(view, [chosen], [receiver], cause)
