"""A query over other streams than it was written for: the same steps, on a replay, or on later rows only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any

from anabranch.language.node import Node, Stream, in_order


def rebased(node: Node, streams: Mapping[str, Stream]) -> Node:
    """The node with these streams in place of those of the names; itself if there are none of them."""
    moved: dict[int, Node] = {}

    def new(value: Any) -> Any:
        if isinstance(value, Node):
            return moved.get(id(value), value)  # a table that is looked up in is no input
        return tuple(map(new, value)) if _has_nodes(value) else value

    for part in in_order(node):
        moved[id(part)] = part
        if isinstance(part, Stream):
            moved[id(part)] = streams.get(part.name, part)
        elif any(moved[id(below)] is not below for below in part.inputs):
            values = {one.name: getattr(part, one.name) for one in _fields(part) if one.init}
            moved[id(part)] = type(part)(**{name: new(value) for name, value in values.items()})
    return moved[id(node)]


def _fields(node: Any) -> tuple[Field[Any], ...]:
    return fields(node)


def _has_nodes(value: Any) -> bool:
    return isinstance(value, tuple) and any(isinstance(part, Node) for part in value)
