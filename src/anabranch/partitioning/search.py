"""The search for the partitioning set under which no site must receive much.

Candidates begin with the sets of the lowest stateful nodes. A candidate grows by being reconciled
with a further lowest node, or with a node right above one it suits. No others are needed: what suits
a node suits those below it, so a set that suits a higher node is met on the way up. Growing makes a
set coarser, so it goes on suiting what it suited.

Streams that meet in no query do not depend on each other and are searched for apart.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from anabranch.errors import PlanningError
from anabranch.partitioning.choice import Candidate, Choice, ComponentChoice
from anabranch.partitioning.cost import (
    PlanCost,
    Rates,
    bytes_out,
    comes_so,
    exchanged_by,
    partitioned_cost,
    plan_cost,
)
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.reconcile import largest, reconcile, suits
from anabranch.partitioning.tree import NeedTree

MAX_CANDIDATES = 512
"""Sets considered for streams that meet; as many distinct ones are rare, and the cheapest come first."""

SKEW_LIMIT = 2.0
"""A set that gives some site more than so many times its share is taken only if all others do, too:
what it saves in sending is lost in waiting for that site. Flux moves load at a fifth of this, but that
is measured; this is an estimate."""

CLOSE = 0.01
"""Totals that differ by less than this share count as equal: rates are not measured better."""


def search(
    tree: NeedTree,
    rates: Mapping[str, Rates],
    *,
    given: PartitioningSet | None = None,
    only: Sequence[PartitioningSet] | None = None,
    skew: Callable[[PartitioningSet], float] = lambda _: 1.0,
    sites: int = 1,
    central: bool = True,
) -> Choice:
    """The best partitioning of the streams for a whole query set, in the central or partitioned form.

    `given` is how streams come partitioned already, which saves their exchange; with `only`, no
    other sets are possible than these and the given one. `skew` estimates how unevenly a set
    spreads the rows, 1 for evenly.
    """
    if sites < 1:
        raise PlanningError(f"A plan needs at least 1 site, not {sites}.")
    if only is not None and not only:
        raise PlanningError("No partitioning set is permitted: name at least one in `only`.")
    sent = bytes_out(tree, rates)
    parts = []
    for streams in _meeting(tree):
        here = (given or PartitioningSet()).restricted(streams)
        permitted = None if only is None else [some.restricted(streams) for some in only]
        search = _Search(tree.restricted(streams), sent, here, sites, central)
        candidates = search.run(permitted)
        ranked, reason = _rank(candidates, skew)
        parts.append(ComponentChoice(tuple(sorted(streams)), ranked, reason, search.complete))
    return Choice(tuple(parts))


def _meeting(tree: NeedTree) -> list[frozenset[str]]:
    """The streams in groups that share no node."""
    groups = [frozenset((stream,)) for stream in tree.streams]
    for streams in tree.sources().values():
        apart = [group for group in groups if not group & streams]
        met = frozenset().union(*(group for group in groups if group & streams))
        groups = [*apart, met]
    return sorted(groups, key=sorted)


@dataclass(frozen=True, order=True)
class _Waiting:
    cost: tuple[float, float]
    texts: tuple[str, ...]
    candidate: Candidate = field(compare=False)

    @classmethod
    def of(cls, one: Candidate) -> _Waiting:
        return cls((one.cost.most, one.cost.total), tuple(sorted(one.partitioning.texts)), one)


@dataclass
class _Search:
    tree: NeedTree
    sent: Mapping[str, float]
    given: PartitioningSet
    sites: int
    central: bool
    found: dict[PartitioningSet, Candidate] = field(default_factory=dict)
    complete: bool = True

    def __post_init__(self) -> None:
        needs = self.tree.needs.values()
        self.wanted = {need.name: largest(need) for need in needs if need.stateful}
        self.below = self.tree.stateful_inputs()
        self.known: dict[tuple[str, str], bool] = {}

    def run(self, permitted: Sequence[PartitioningSet] | None) -> list[Candidate]:
        if self.given.axes:
            self._consider(self.given, "the way the input comes")
        if permitted is not None:
            for partitioning in permitted:
                self._consider(partitioning, "a permitted set")
            return list(self.found.values())
        self._consider(PartitioningSet(), "spreading evenly")
        for name, below in self.below.items():
            if not below and self.wanted[name].axes:
                self._consider(self.wanted[name], name)
        self._grow()
        return list(self.found.values())

    def _grow(self) -> None:
        waiting = [_Waiting.of(one) for one in self.found.values() if one.partitioning.axes]
        heapq.heapify(waiting)
        while waiting:
            candidate = heapq.heappop(waiting).candidate
            for wanted, name in self._next(candidate).items():
                both = reconcile(candidate.partitioning, wanted)
                if both is None or both in self.found:
                    continue
                if len(self.found) >= MAX_CANDIDATES:
                    self.complete = False
                    return
                grown = self._consider(both, f"{candidate.origin} + {name}")
                heapq.heappush(waiting, _Waiting.of(grown))

    def _next(self, candidate: Candidate) -> dict[PartitioningSet, str]:
        """The sets of nodes to grow by: lowest ones, and those right above a suited one."""
        suited = candidate.cost.suited
        found: dict[PartitioningSet, str] = {}
        for name, below in self.below.items():
            reached = not below or below & suited
            if name not in suited and reached and self.wanted[name].axes:
                found.setdefault(self.wanted[name], name)
        return found

    def _consider(self, partitioning: PartitioningSet, origin: str) -> Candidate:
        if partitioning not in self.found:
            self.found[partitioning] = Candidate(partitioning, origin, self._cost(partitioning))
        return self.found[partitioning]

    def _cost(self, partitioning: PartitioningSet) -> PlanCost:
        suited = frozenset(name for name in self.tree.needs if self._suits(partitioning, name))
        if not self.central:
            # Lanes of streams that meet have nothing to do with each other
            alone = len(self.tree.streams) == 1
            at_home = comes_so(partitioning, self.given) if alone else frozenset()
            return partitioned_cost(self.tree, suited, self.sent, at_home, self.sites)
        moved = exchanged_by(partitioning, self.given)
        return plan_cost(self.tree, suited, self.sent, moved, self.sites)

    def _suits(self, partitioning: PartitioningSet, name: str) -> bool:
        """As `compatible`, with what is known of each axis kept."""
        if name not in self.wanted:
            return True
        wanted = self.wanted[name]
        streams = self.tree.needs[name].terms_by_stream.keys()
        if not wanted.axes or not streams <= partitioning.streams:
            return False
        for axis in partitioning.axes:
            key = (axis.text, name)
            if streams & axis.terms.keys() and key not in self.known:
                self.known[key] = suits(axis, wanted)
            if not self.known.get(key, True):
                return False
        return True


def _rank(
    candidates: Sequence[Candidate], skew: Callable[[PartitioningSet], float]
) -> tuple[tuple[Candidate, ...], str]:
    """The candidates, best first, and why the first is the best.

    Among sets that spread the rows well enough, the least that the busiest site receives decides.
    Conflicts leave many equal in that: each set that one of two queries cannot use costs the whole
    stream. Of those, the least received in all, then the most nodes on the partitions, then balance
    decide.
    """
    ranked = sorted(candidates, key=lambda one: (one.cost.most, one.cost.total, *_last(one)))
    ranked, uneven = _set_aside(ranked, skew)
    first = ranked[0]
    best = [one for one in ranked if one.cost.most <= first.cost.most * (1 + CLOSE)]
    limit = first.cost.total * (1 + CLOSE)
    close = [one for one in best if one.cost.total <= limit]
    suited = max(len(one.cost.suited) for one in close)
    equal = [one for one in close if len(one.cost.suited) == suited]
    equal.sort(key=lambda one: (one.skew, *_last(one)))
    chosen = {one.partitioning for one in equal}
    rest = [one for one in ranked if one.partitioning not in chosen]
    reason = _reason([*equal, *rest], best, close, equal)
    better = min(uneven, key=lambda one: one.cost.most, default=None)
    if better is not None and better.cost.most <= equal[0].cost.most:
        reason += (
            f" {better.partitioning} would have a site receive {better.cost.most:,.0f}, but give one "
            f"{better.skew:.1f} times its share of the rows."
        )
    return (*equal, *rest, *uneven), reason


def _set_aside(
    ranked: list[Candidate], skew: Callable[[PartitioningSet], float]
) -> tuple[list[Candidate], list[Candidate]]:
    """The candidates that are balanced enough, and the others; if there are only others, those."""
    known = [
        replace(one, skew=round(skew(one.partitioning), 1) if one.partitioning.axes else 1.0)
        for one in ranked
    ]
    even = [one for one in known if one.skew is not None and one.skew <= SKEW_LIMIT]
    return (even, [one for one in known if one not in even]) if even else (known, [])


def _last(one: Candidate) -> tuple[int, tuple[str, ...]]:
    return -len(one.partitioning), tuple(sorted(one.partitioning.texts))


def _reason(
    ranked: list[Candidate], best: list[Candidate], close: list[Candidate], equal: list[Candidate]
) -> str:
    winner = equal[0]
    if winner.cost.everywhere:
        most = f"Each site receives {winner.cost.most:,.0f} bytes an epoch"
    else:
        at = f", at {winner.cost.busiest}" if winner.cost.busiest else ""
        most = f"The busiest site receives {winner.cost.most:,.0f} bytes an epoch{at}"
    if len(ranked) == 1:
        return f"{most}; there is no other candidate."
    other = ranked[1]
    if len(best) == 1:
        return f"{most}, against {other.cost.most:,.0f} with {other.partitioning}, the next best."
    tied = f"{most}, as with {len(best) - 1} other{'s' if len(best) > 2 else ''}"
    if len(close) == 1:
        return (
            f"{tied}; but all nodes together make sites receive {winner.cost.total:,.0f}, against "
            f"{other.cost.total:,.0f} with {other.partitioning}, the next best."
        )
    if len(equal) == 1:
        return (
            f"{tied}; of those that receive as little in all, it lets most nodes run on its "
            f"partitions: {len(winner.cost.suited)}, against {len(other.cost.suited)} with "
            f"{other.partitioning}, the next best."
        )
    if winner.skew != other.skew:
        return (
            f"{tied}; its estimated skew is least: {winner.skew:.2f}, against {other.skew:.2f} "
            f"with {other.partitioning}, the next best."
        )
    if len(winner.partitioning) != len(other.partitioning):
        return f"{tied}; of those, also equal in skew, it has most terms."
    return f"{tied}; they are equal in skew and size too, and it is the first by name."
