"""How the paper on state adaptation uses disks and the memory of other sites together (S5 to S7).

Lazy-disk evens out memory: a site puts state aside only when its own is full. Active-disk does the same, and
where memory is even but sites give far fewer results than others, these put state aside before they have to,
so that there is room for what gives more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anabranch.adapt.actions import Move, Spill
from anabranch.adapt.policies.pairs import Donors, moves_of
from anabranch.adapt.policies.spill import Thresholds, least_productive, spill_of, worth_it
from anabranch.adapt.view import View
from anabranch.amount import in_bytes


def propose_lazy_disk(view: View, thresholds: Thresholds) -> Iterator[Move]:
    """(S5) Half of what the fullest site has more than the emptiest: what gives most for its bytes first.

    With many sites, so do the second fullest and the second emptiest, and so on.
    """
    known, kept = view.partitions, view.sites.resident
    size = np.where(known.aside > 0, 0.0, known.bytes)  # what is put aside stays where it is
    donors, alive = Donors(view), np.flatnonzero(view.sites.alive)
    order = alive[np.argsort(-kept[alive], kind="stable")]
    for sender, receiver in zip(order[: len(order) // 2], order[::-1], strict=False):
        if kept[receiver] >= thresholds.even * kept[sender]:
            return
        wanted = (kept[sender] - kept[receiver]) / 2
        most, least = in_bytes(kept[sender]), in_bytes(kept[receiver])
        cause = f"memory: site {sender} keeps {most}, site {receiver} {least}"
        own = donors.of(sender, size)
        for at in least_productive(view, own, thresholds)[::-1].tolist():
            if size[at] <= wanted:
                wanted -= size[at]
                yield from moves_of(view, [at], [receiver], cause)


def propose_active_disk(view: View, thresholds: Thresholds, expected: float) -> Iterator[Spill]:
    """(S7) What sites put aside that give far fewer results than others.

    It is no more than all of them will lack, if there is as much state as `expected` (M_query - M_cluster).
    """
    known, sites = view.partitions, view.sites
    even = _ends(view, sites.resident)
    count = np.maximum(np.bincount(known.site, minlength=len(sites)), 1)
    rate = np.bincount(known.site, known.rows_out, minlength=len(sites)) / count
    ends = _ends(view, rate)
    if even is None or ends is None:
        return
    poor, rich = ends
    if sites.resident[even[0]] < thresholds.even * sites.resident[even[1]]:
        return  # memory is evened out first
    if rate[rich] <= thresholds.rates * rate[poor]:
        return
    lacking = expected - known.aside.sum() - sites.memory[sites.alive].sum()
    wanted = min(lacking, thresholds.share * sites.resident[poor])
    resident = known.bytes - known.aside
    own = np.flatnonzero((known.site == poor) & worth_it(view))
    cause = (
        f"site {poor} gives {rate[poor]:,.0f} results a partition, site {rich} {rate[rich]:,.0f}"
    )
    for at in least_productive(view, own, thresholds).tolist():
        if resident[at] <= wanted:
            wanted -= resident[at]
            yield spill_of(view, at, cause)


def _ends(view: View, figures: np.ndarray) -> tuple[int, int] | None:
    """The site with least and the one with most of something, of those that are there."""
    alive = np.flatnonzero(view.sites.alive)
    if len(alive) < 2:
        return None
    return int(alive[np.argmin(figures[alive])]), int(alive[np.argmax(figures[alive])])
