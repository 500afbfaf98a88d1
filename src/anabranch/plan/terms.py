"""The terms of a partitioning set, written with what an operator's input has."""

from __future__ import annotations

from anabranch.language.expression import Expression, substitute
from anabranch.partitioning.lattice import express, hole
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.requirement import NodeNeed, counted_keys
from anabranch.plan.subquery import Stateful


def terms_over(
    node: Stateful, need: NodeNeed, partitioning: PartitioningSet
) -> tuple[Expression, ...]:
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
