"""Partitions that split and merge: what is too hot for any site is cut, what was cut and cooled is joined.

A partition is a range of slots, and state lies sorted by slot: cutting a range is a line in the map. If
one slot has most of a hot partition's rows, the cuts go around it, so that everything else can move away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

import numpy as np

from anabranch.adapt.actions import Action, Condense, Merge, Split
from anabranch.adapt.cell_actions import Scatter
from anabranch.adapt.tuning import Tuning
from anabranch.adapt.view import View

HOT = 0.5
"""A partition with this much of a site's fair share cannot be balanced against others as it is."""
COLD = 0.02
"""Two neighbours with less than this together need not be two."""
TOO_HOT = 0.8
"""A single slot with this much of a site's fair share is scattered, if that is possible."""
CROWDED, WARM = 1.15, 0.2
"""Or one with this much of it, where together with what must stay on its site it comes to more than that."""
MOST_CELLS = 16
MOST_CUTS = 64
"""Partitions that are cut or joined in one round."""
DENSE = 0.5
"""A slot with this share of its partition's rows is cut out of it."""


def propose_heat(
    view: View, tuning: Tuning, base: int, aggregating: Collection[str] = (),
    handled: Collection[tuple[str, int]] = (),
    joining: Mapping[str, int] = MappingProxyType({}),
) -> Iterator[Action]:  # fmt: skip
    """Splits of hot partitions; merges of cold ones, where an exchange has more than `base`.

    Hot slots of exchanges before aggregates are sub-aggregated by their senders, those of `joining`
    scattered, if they are among the first so many slots and no state of their exchange is put aside; not
    those that are `handled` already.
    """
    alive = int(view.sites.alive.sum())
    known, total = view.partitions, view.partitions.work.sum()
    if alive < 2 or total <= 0:
        return
    fair = total / alive
    # Beside what must stay on a site, cells of other hot keys say, there is room for less
    stays = np.bincount(known.site, known.work * known.fixed, minlength=len(view.sites.alive))
    beside = stays[known.site]
    crowded = (beside > 0) & (beside + known.work > CROWDED * fair) & (known.work > WARM * fair)
    # Half of a partition that must stay could leave
    hot = ((known.work > HOT * fair) | crowded) & ~known.fixed
    hottest = np.flatnonzero(hot)
    hottest = hottest[np.argsort(-known.work[hottest], kind="stable")][:MOST_CUTS]
    for at in hottest.tolist():
        start, heat = int(known.start[at]), known.work[at] / fair
        cause = f"heat: {heat:.0%} of what one site should have"
        name = view.exchanges[known.exchange[at]]
        slot = int(known.peak_at[at])
        dense = known.peak[at] > DENSE and (name, slot) not in handled
        whole = not known.aside[known.exchange == known.exchange[at]].any()
        if name in aggregating and dense:
            yield Condense(name, start, f"hot key: {cause}", slot=slot)
        elif (
            start < joining.get(name, 0)
            and dense
            and whole
            and (heat * known.peak[at] > TOO_HOT or crowded[at])
        ):
            calm = np.flatnonzero(view.sites.alive)
            calm = calm[np.argsort(view.sites.busy[calm], kind="stable")][:MOST_CELLS]
            sites = tuple(calm.tolist())
            yield Scatter(name, start, f"hot key: {cause}", slot=slot, sites=sites)
        elif known.slots[at] > 1:
            yield Split(name, start, cause, at=_cut(view, at))
    yield from _merges(view, COLD * fair, base)


def _cut(view: View, at: int) -> int:
    start, slots = int(view.partitions.start[at]), int(view.partitions.slots[at])
    peak = int(view.partitions.peak_at[at])
    if view.partitions.peak[at] < DENSE:
        return start + slots // 2
    return peak if peak > start else start + 1


def _merges(view: View, cold: float, base: int) -> Iterator[Merge]:
    known = view.partitions
    counts = np.bincount(known.exchange, minlength=len(view.exchanges))
    spare = np.maximum(counts - base, 0)
    if not spare.any():
        return
    neighbours = (known.exchange[1:] == known.exchange[:-1]) & (known.site[1:] == known.site[:-1])
    neighbours &= known.work[1:] + known.work[:-1] < cold
    neighbours &= ~(known.fixed[1:] | known.fixed[:-1])
    last = -2
    for at in np.flatnonzero(neighbours)[: 2 * MOST_CUTS].tolist():
        exchange = known.exchange[at]
        if at > last + 1 and spare[exchange] > 0:
            spare[exchange] -= 1
            last = at
            yield Merge(
                view.exchanges[exchange], int(known.start[at]),
                "heat: both are cold", other=int(known.start[at + 1]),
            )  # fmt: skip
