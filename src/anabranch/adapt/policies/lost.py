"""Sites that are gone: their partitions are spread over the others, the heaviest first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anabranch.adapt.actions import Move
from anabranch.adapt.policies.pairs import moves_of
from anabranch.adapt.tuning import Tuning
from anabranch.adapt.view import View


def propose_lost(view: View, tuning: Tuning) -> Iterator[Move]:
    """A move for every partition of a site that is not alive, if any site is."""
    alive = np.flatnonzero(view.sites.alive)
    stranded = np.flatnonzero(~view.sites.alive[view.partitions.site])
    if not len(alive) or not len(stranded):
        return
    work, used = view.partitions.work, view.sites.busy.copy()
    if not work.any():
        # Nothing is known of them yet: all slots count alike
        work = view.partitions.slots.astype(float)
        used = np.bincount(view.partitions.site, weights=work, minlength=len(view.sites))
    for partition in stranded[np.argsort(-work[stranded], kind="stable")].tolist():
        target = int(alive[np.argmin(used[alive])])
        used[target] += work[partition] * view.sites.slowness[target]
        gone = view.partitions.site[partition]
        yield from moves_of(view, [partition], [target], f"site {gone} is gone")
