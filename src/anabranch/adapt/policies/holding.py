"""Which partitions wait in the skew buffer (F2): those of sites that are slow for now and cannot move.

What can move is moved: between two epochs that is cheaper than to wait. So rows wait only of partitions
that must stay (pinned, or nothing moves at all), on sites that would hold up all others. They wait for
some epochs at most and only as long as there is space; then the slow site has to work through them, and
nothing more waits for it until it has been fast again: the buffer is for what passes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from anabranch.adapt.view import View

SLOW, ENOUGH = 1.5, 1.2
"""A site is slow from this multiple of the mean on, and is relieved until it is down to the other."""
MOST_EPOCHS = 4
"""Epochs for which rows wait at most."""


def slow_sites(view: View) -> np.ndarray:
    """Whether each site is slow compared with most."""
    sites = view.sites
    found: np.ndarray = sites.slowness > SLOW * np.median(sites.slowness[sites.alive])
    return found


def choose_holds(
    view: View, space: float, waited: Mapping[tuple[str, int], int], *, shared: bool, all_stay: bool,
    never: Collection[str] = (), given_up: Collection[int] = (),
) -> tuple[set[tuple[str, int]], float]:  # fmt: skip
    """The partitions whose rows wait in the next epoch, and about how many rows these are.

    `space` is how many more rows may wait, for whoever needs it if it is `shared`, else for each site an
    equal part; `waited` for how many epochs partitions have been waiting; with `all_stay` no partition can
    move; exchanges in `never` have rows in several places, which cannot wait. Sites that are `given_up`
    have been slow for longer than rows may wait: for them nothing begins to wait.
    """
    known, sites = view.partitions, view.sites
    left = np.full(len(sites), space if shared else space / len(sites))
    if not sites.alive.any():
        return set(), 0.0
    mean, busy = float(sites.busy[sites.alive].mean()), sites.busy.copy()
    slow = slow_sites(view)
    if not slow.any() and not waited:
        return set(), 0.0
    names = [
        (view.exchanges[exchange], start)
        for exchange, start in zip(known.exchange.tolist(), known.start.tolist(), strict=True)
    ]
    chosen: set[tuple[str, int]] = set()
    total = 0.0
    # What waits already goes first, then the largest
    order = np.lexsort((-known.work, np.array([name not in waited for name in names])))
    for at in order.tolist():
        site, rows, name = int(known.site[at]), known.rows_in[at], names[at]
        epochs = waited.get(name, 0)
        waits = slow[site] and 0 < epochs < MOST_EPOCHS
        held_up = busy[site] > (ENOUGH if chosen else SLOW) * mean
        stays = all_stay or bool(known.fixed[at])
        begins = epochs == 0 and slow[site] and stays and held_up and site not in given_up
        if name[0] in never or not sites.alive[site] or not (waits or begins):
            continue
        if rows <= left[site]:
            left[slice(None) if shared else site] -= rows
            total += rows
            busy[site] -= known.work[at] * sites.slowness[site]
            chosen.add(name)
    return chosen, total
