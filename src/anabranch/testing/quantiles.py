"""Which columns carry approximate quantiles: the oracle has all values of the group there."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.language.aggregate import NamedAggregate
from anabranch.language.expression import Column
from anabranch.language.groups import Aggregate, History
from anabranch.language.join import Join
from anabranch.language.node import Node, Stream
from anabranch.language.stateless import Project


def quantile_columns(node: Node) -> dict[str, float]:
    """Columns that carry an approximate quantile to this node, with its fraction."""
    if isinstance(node, Stream):
        return {}
    if isinstance(node, Join):
        found = [
            (names, quantile_columns(p)) for names, p in zip(node.names, node.parts, strict=True)
        ]
        carried = {names[own]: share for names, below in found for own, share in below.items()}
        return {name: share for name, share in carried.items() if name in node.schema}
    below = quantile_columns(node.inputs[0])
    if isinstance(node, Project):
        pairs = ((c.name, c.expression) for c in node.columns)
        return {n: below[e.name] for n, e in pairs if isinstance(e, Column) and e.name in below}
    if isinstance(node, Aggregate):
        return _fractions(node.aggregates)
    if isinstance(node, History):
        return {**below, **_fractions(node.aggregates)}
    return below


def _fractions(aggregates: Sequence[NamedAggregate]) -> dict[str, float]:
    return {
        part.name: part.call.parameter
        for part in aggregates
        if part.call.function == "approx_quantile" and isinstance(part.call.parameter, float)
    }
