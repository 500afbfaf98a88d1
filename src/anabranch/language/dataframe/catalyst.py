"""Spark's logical plans and expressions as trees of plain values, from the JSON that Spark writes of them.

A node is a class, its fields and its children. Expressions are lists of such nodes from the root down, as
plans are; here both are trees.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SparkNode:
    """A node of a plan or of an expression."""

    kind: str
    """The class of the node, without its package: `Filter`, `EqualTo`."""
    fields: dict[str, Any]
    children: tuple[SparkNode, ...]
    place: tuple[int, ...] = field(default=(), repr=False)
    """The way from the root of the plan to it: which child, which child of that, …"""

    def walk(self) -> Iterator[SparkNode]:
        """This node and all below it, from the root down."""
        waiting = [self]
        while waiting:
            part = waiting.pop()
            yield part
            waiting += reversed(part.children)

    def expression(self, field: str) -> SparkNode:
        """The expression in a field of this node."""
        return parse(self.fields[field])

    def expressions(self, field: str) -> list[SparkNode]:
        """The expressions in a field of this node."""
        return [parse(written) for written in self.fields[field]]

    @property
    def id(self) -> int:
        """What tells a column of Spark's from others, whatever they are called."""
        return int(self.fields["exprId"]["id"])

    @property
    def name(self) -> str:
        return str(self.fields["name"])


def parse_plan(text: str) -> SparkNode:
    """The plan that Spark has written as JSON."""
    return parse(json.loads(text))


def parse(nodes: list[dict[str, Any]]) -> SparkNode:
    """The tree of nodes that stand one after another, each before its children."""
    remaining = iter(nodes)

    def next_part(place: tuple[int, ...]) -> SparkNode:
        fields = next(remaining)
        count = fields["num-children"]
        children = tuple(next_part((*place, number)) for number in range(count))
        return SparkNode(fields["class"].rsplit(".", 1)[-1], fields, children, place)

    return next_part(())
