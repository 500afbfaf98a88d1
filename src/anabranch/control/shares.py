"""Which shares of the sites the exchanges of a plan should have, by what they have cost so far."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from anabranch.adapt.actions import Allot, Move
from anabranch.adapt.policies.shares import propose_shares
from anabranch.control.holdings import Holdings
from anabranch.control.transitions import Subject
from anabranch.plan.plan import Plan
from anabranch.settings import Settings
from anabranch.state.manifest import Manifest


def choose_shares(
    plan: Plan, settings: Settings, sites: int, holdings: Holdings, manifest: Manifest
) -> Iterator[Allot]:
    """Other sites for exchanges, except where someone else decides on each partition.

    Levels run one after another, so each has all sites for its exchanges; only where every operator is to
    have sites of its own do all levels share them.
    """
    whole = settings.strategy == "operator"
    if settings.strategy == "query" or sites == 1 or settings.central:
        return
    costs: dict[int, dict[str, float]] = {}
    for name, subquery in plan.subqueries.items():
        if subquery.exchange not in holdings.by_hand:
            group = costs.setdefault(0 if whole else subquery.level, {})
            spent = manifest.subqueries[name].seconds
            group[subquery.exchange] = group.get(subquery.exchange, 0.0) + spent
    for group in costs.values():
        if len(group) > 1 and all(group.values()) and not holdings.adapted & {*group}:
            yield from propose_shares(
                group, holdings.maps, sites, settings.allot_imbalance, whole, holdings.pinned_owners
            )


def choose_returns(
    holdings: Holdings, sites: Sequence[int], stay: Collection[Subject]
) -> list[Move]:
    """What moves to sites that have come, so that all of these have as much; not what must stay."""
    return [
        Move(exchange, start, "a site has come", source=was, target=site)
        for exchange, known in holdings.maps.items()
        if exchange not in holdings.by_hand
        for start, was, site in zip(
            known.starts, known.sites, known.respread(sites).sites, strict=True
        )
        if was != site and (exchange, start) not in stay and not holdings.stays((exchange, start))
    ]
