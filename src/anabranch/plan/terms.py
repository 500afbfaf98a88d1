"""The terms of a partitioning set, written with what an operator's input has."""

from __future__ import annotations

from anabranch.language.expression import Expression, substitute
from anabranch.language.stateful import Stateful
from anabranch.partitioning.lattice import express, hole
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.requirement import NodeNeed, counted_keys


def terms_over(
    node: Stateful, need: NodeNeed, partitioning: PartitioningSet
) -> tuple[tuple[Expression, ...], ...]:
    """The terms of a set that suits the node, over each of its inputs."""
    stream = next(iter(need.terms_by_stream))
    functions = [express(term, need.terms_by_stream[stream]) for term in partitioning.terms(stream)]
    found = []
    for keys in counted_keys(node):
        holes = {hole(number).name: key for number, key in enumerate(keys)}
        terms = []
        for function in functions:
            assert function is not None, "a set that suits a node is made of functions of its terms"
            terms.append(substitute(function, holes))
        found.append(tuple(terms))
    return tuple(found)
