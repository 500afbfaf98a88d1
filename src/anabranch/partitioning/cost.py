"""What a partitioning set costs: the most data any one site must receive in an epoch.

There are two forms of plans. In the central form, that of the paper, rows of nodes that the set suits stay
where they are made, and are brought together where the last of these nodes ends, so that one site
receives its output; a node that the set does not suit has its whole input brought together. In the
partitioned form nothing is brought together: the input of a node that is not there already is exchanged,
and each site receives its share. Rates are measured elsewhere; `assume` fills in what is not measured yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.errors import PlanningError
from anabranch.language.node import Stream
from anabranch.language.stateful import Stateful
from anabranch.language.stateless import Branch, Filter, Project
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.tree import NeedTree


@dataclass(frozen=True)
class Rates:
    """What a stream or node yields: rows an epoch, or rows per row it receives, and their size."""

    bytes_per_row: float
    selectivity: float = 1.0
    rows_per_epoch: float | None = None
    """Counted rows, where there are any; else they follow from the input and the selectivity."""

    def __post_init__(self) -> None:
        for value in (self.bytes_per_row, self.selectivity, self.rows_per_epoch or 0):
            if not 0 <= value < float("inf"):
                raise PlanningError(f"Rates must be finite and not negative: {self}.")


ASSUMED_STREAM = Rates(bytes_per_row=100, rows_per_epoch=1_000_000)
ASSUMED = {
    "aggregate": Rates(bytes_per_row=50, selectivity=0.1),
    "join": Rates(bytes_per_row=100, selectivity=1.0),
    "stateless": Rates(bytes_per_row=50, selectivity=1.0),
}
"""Only the order of costs matters before anything is measured: aggregates reduce, joins do not."""


@dataclass(frozen=True)
class PlanCost:
    """Bytes an epoch that each node, and each stream's exchange, makes one site receive."""

    received: Mapping[str, float]
    suited: frozenset[str]
    """The nodes that run on the partitions: they and all nodes below them are suited."""

    unsuited: frozenset[str]
    """The others: their input is brought together."""

    everywhere: bool = False
    """Whether all nodes run on every site, so that each site receives for all of them."""

    @property
    def most(self) -> float:
        """The cost of the plan: as the paper has it, what the node receives that receives most."""
        return self.total if self.everywhere else max(self.received.values(), default=0.0)

    @property
    def total(self) -> float:
        return sum(self.received.values())

    @property
    def busiest(self) -> str | None:
        """The node that costs most, if anything costs."""
        name = max(self.received, key=lambda name: self.received[name], default=None)
        return name if name is not None and self.received[name] > 0 else None


def assume(tree: NeedTree, measured: Mapping[str, Rates]) -> dict[str, Rates]:
    """The measured rates, and assumed ones for streams and nodes that have none."""
    rates = dict.fromkeys(tree.streams, ASSUMED_STREAM)
    rates |= {name: ASSUMED[need.kind] for name, need in tree.needs.items()}
    return {name: measured.get(name, rate) for name, rate in rates.items()}


def rows_out(tree: NeedTree, rates: Mapping[str, Rates]) -> dict[str, float]:
    """Rows an epoch that each stream and node yields."""
    for name in (*tree.streams, *tree.needs):
        if name not in rates or (name not in tree.needs and rates[name].rows_per_epoch is None):
            raise PlanningError(
                f"There are no rates for '{name}': measure them, or take them from assume()."
            )
    rows = {name: rates[name].rows_per_epoch or 0.0 for name in tree.streams}
    for name in tree.needs:
        inputs = tree.inputs[name]
        counted = rates[name].rows_per_epoch
        received = sum(rows[part] for part in inputs)
        rows[name] = received * rates[name].selectivity if counted is None else counted
    return rows


def bytes_out(tree: NeedTree, rates: Mapping[str, Rates]) -> dict[str, float]:
    """Bytes an epoch that each stream and node yields."""
    rows = rows_out(tree, rates)
    return {name: count * rates[name].bytes_per_row for name, count in rows.items()}


def plan_cost(
    tree: NeedTree, suited: frozenset[str], sent: Mapping[str, float],
    exchanged: frozenset[str] = frozenset(), sites: int = 1,
) -> PlanCost:  # fmt: skip
    """What every node makes one site receive.

    `suited` are the nodes that the set suits, `sent` the bytes that streams and nodes yield,
    `exchanged` the streams that come partitioned otherwise: all their rows change sites, and each
    site receives its share.
    """
    spread = set(tree.streams)
    for name in tree.needs:
        if name in suited and spread.issuperset(tree.inputs[name]):
            spread.add(name)
    consumers = tree.consumers()
    received = {f"exchange of {stream}": sent[stream] / sites for stream in sorted(exchanged)}
    for name in tree.needs:
        if name not in spread:
            # What an unsuited node below yields is there already
            received[name] = sum(sent[part] for part in tree.inputs[name] if part in spread)
        elif consumers[name] and spread.issuperset(consumers[name]):
            received[name] = 0.0
        else:
            received[name] = sent[name]
    suited = frozenset(spread - set(tree.streams))
    return PlanCost(received, suited, frozenset(tree.needs.keys() - suited))


def partitioned_cost(
    tree: NeedTree, suited: frozenset[str], sent: Mapping[str, float], at_home: frozenset[str],
    sites: int,
) -> PlanCost:  # fmt: skip
    """What every node makes each site receive, in the partitioned form.

    `at_home` are the streams that come partitioned by just the set: nothing of them is exchanged.
    """
    spread = set(tree.streams)
    for name in tree.needs:
        if name in suited and spread.issuperset(tree.inputs[name]):
            spread.add(name)
    # Selections run where their rows are: what comes through them comes from below
    here = set(at_home)
    received: dict[str, float] = {}
    copies: dict[str, list[tuple[str, str]]] = {}
    """By what is read, the suited nodes that its rows go to, and what each reads of it."""
    for name, need in tree.needs.items():
        inputs = tree.inputs[name]
        if not need.stateful:
            received[name] = 0.0
            if here.issuperset(inputs):
                here.add(name)
            continue
        received[name] = 0.0 if name in spread else sum(sent[part] for part in inputs) / sites
        if name in spread:
            here.add(name)
            for part in inputs:
                if part not in here:
                    copies.setdefault(_origin(tree, part), []).append((name, part))
    # They have one exchange, and rows go through it once for all of its readers, or once for each of them
    # where that is less
    for origin, readers in copies.items():
        apart = sum(sent[part] for _, part in readers)
        share = min(1.0, sent[origin] / apart) if apart else 0.0
        for name, part in readers:
            received[name] += share * sent[part] / sites
    suited = frozenset(spread - set(tree.streams))
    return PlanCost(received, suited, frozenset(tree.needs.keys() - suited), everywhere=True)


def _origin(tree: NeedTree, part: str) -> str:
    """What the rows come from that a node reads, where steps between let each pass once or not at all."""
    if part not in tree.nodes or tree.needs[part].stateful or len(tree.inputs[part]) != 1:
        return part
    node = tree.nodes[part]
    while isinstance(node, Filter | Branch | Project):
        (node,) = node.inputs
    return _origin(tree, tree.inputs[part][0]) if isinstance(node, Stream | Stateful) else part


def comes_so(partitioning: PartitioningSet, given: PartitioningSet) -> frozenset[str]:
    """The streams that come partitioned by just this set, and meet no other in it."""
    return frozenset(
        stream
        for stream in given.streams & partitioning.streams
        if given.restricted((stream,)) == partitioning.restricted((stream,))
    )


def exchanged_by(partitioning: PartitioningSet, given: PartitioningSet) -> frozenset[str]:
    """The streams that come partitioned, but otherwise than by this set.

    Axes count, not terms: streams that must meet are hashed by one function, which the ways they
    come need not have in common.
    """
    return given.streams & partitioning.streams - comes_so(partitioning, given)
