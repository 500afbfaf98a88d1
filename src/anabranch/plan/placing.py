"""Which subqueries run on the partitions of others, so that no exchange is needed between them.

Rows of streams are sent by the partitioning set chosen for the whole query set; every subquery that the
set suits, and that reads only streams and other such subqueries, runs right there. A subquery that it
does not suit opens an exchange by its own keys, which others may join in the same way. The terms of a
set are functions of the keys of each subquery that it suits, so each computes its partitions from its
own input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from anabranch.language.expression import Expression, substitute
from anabranch.partitioning.choice import Choice
from anabranch.partitioning.lattice import express, hole
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.reconcile import compatible, largest
from anabranch.partitioning.requirement import NodeNeed, counted_keys, need_of
from anabranch.plan.subquery import Stateful, Subquery


@dataclass(frozen=True)
class Placing:
    """The exchange a subquery belongs to, its level, and the terms that its rows are hashed by."""

    home: str
    level: int
    terms: tuple[Expression, ...]


@dataclass
class Placer:
    """Places the subqueries of a plan one by one, each after those that it reads."""

    choice: Choice | None
    """The partitioning of the streams; None: every subquery has an exchange of its own."""
    sets: dict[str, PartitioningSet] = field(default_factory=dict)
    """What the rows of each exchange are partitioned by, in terms of the streams."""
    shared: dict[tuple[str, ...], str] = field(default_factory=dict)
    """The exchange of streams that are partitioned together, named after its first subquery."""

    def place(self, name: str, node: Stateful, inputs: Sequence[Subquery | None]) -> Placing:
        """The placing of a subquery that reads these others; None stands for a stream."""
        need = need_of(name, node)
        below = [part for part in inputs if part]
        if self.choice is not None:
            homes = {part.home for part in below}
            if len(below) < len(inputs):
                joined = self._with_streams(name, node, need, homes)
            else:
                joined = self._with_subqueries(node, need, homes, below)
            if joined:
                return joined
        return self._apart(name, node, need, below)

    def _with_streams(
        self, name: str, node: Stateful, need: NodeNeed, homes: set[str]
    ) -> Placing | None:
        assert self.choice
        for part in self.choice.parts:
            chosen = part.winner.partitioning
            if need.terms_by_stream.keys() <= set(part.streams) and compatible(chosen, need):
                home = self.shared.get(part.streams, name)
                if homes <= {home}:
                    self.shared[part.streams] = home
                    self.sets[home] = chosen
                    return Placing(home, 1, _terms(node, need, chosen))
        return None

    def _with_subqueries(
        self, node: Stateful, need: NodeNeed, homes: set[str], below: list[Subquery]
    ) -> Placing | None:
        if len(homes) > 1:
            return None
        (home,) = homes
        if not compatible(self.sets[home], need):
            return None
        return Placing(home, below[0].level, _terms(node, need, self.sets[home]))

    def _apart(self, name: str, node: Stateful, need: NodeNeed, below: list[Subquery]) -> Placing:
        # Time would send each window elsewhere: only if there is nothing else
        keys = counted_keys(node) or tuple(key.expression for key in node.keys)
        self.sets[name] = largest(need)
        return Placing(name, 1 + max((part.level for part in below), default=0), keys)


def _terms(node: Stateful, need: NodeNeed, partitioning: PartitioningSet) -> tuple[Expression, ...]:
    """The terms of a set that suits the node, over the node's input."""
    keys = counted_keys(node)
    holes = {hole(number).name: key for number, key in enumerate(keys)}
    stream = next(iter(need.terms_by_stream))
    found = []
    for term in partitioning.terms(stream):
        function = express(term, need.terms_by_stream[stream])
        assert function is not None, "a set that suits a node is made of functions of its terms"
        found.append(substitute(function, holes))
    return tuple(found)
