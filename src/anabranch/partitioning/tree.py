"""The needs of a query set as the tree (a DAG, bottom-up) that cost and search walk.

Stateful nodes have the names of their subqueries in the plan. The stateless nodes between two of
them count as one: `<query>` where they end a query, `<subquery> input` where they feed a subquery.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from anabranch.errors import PlanningError
from anabranch.language.node import Node, Stream
from anabranch.language.stateful import Stateful
from anabranch.partitioning.requirement import NodeNeed, need_of


@dataclass(frozen=True)
class NeedTree:
    """The needs, each after those it reads, and what each reads: needs or streams, by name."""

    needs: Mapping[str, NodeNeed]
    inputs: Mapping[str, tuple[str, ...]]
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """The nodes of the graph that the needs are of, as far as there are any."""

    def __post_init__(self) -> None:
        above = set(self.needs)
        for name in self.needs:
            inputs = self.inputs.get(name)
            if not inputs:
                raise PlanningError(f"Node '{name}' reads nothing: name its inputs.")
            early = sorted(above.intersection(inputs))
            if early:
                raise PlanningError(
                    f"Node '{name}' reads '{early[0]}', which must come before it in the tree."
                )
            above.remove(name)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that are read."""
        read = {name for inputs in self.inputs.values() for name in inputs}
        return tuple(sorted(read - self.needs.keys()))

    def consumers(self) -> dict[str, list[str]]:
        """For each need and stream, the needs that read it."""
        found: dict[str, list[str]] = {name: [] for name in (*self.streams, *self.needs)}
        for name, inputs in self.inputs.items():
            for part in inputs:
                found[part].append(name)
        return found

    def sources(self) -> dict[str, frozenset[str]]:
        """For each need, the streams its rows come from."""
        found: dict[str, frozenset[str]] = {name: frozenset((name,)) for name in self.streams}
        for name in self.needs:
            found[name] = frozenset().union(*(found[part] for part in self.inputs[name]))
        return {name: found[name] for name in self.needs}

    def stateful_inputs(self) -> dict[str, frozenset[str]]:
        """For each stateful need, the nearest stateful ones below; none below a leaf."""
        nearest: dict[str, frozenset[str]] = dict.fromkeys(self.streams, frozenset())
        below: dict[str, frozenset[str]] = {}
        for name, need in self.needs.items():
            found: frozenset[str] = frozenset().union(
                *(nearest[part] for part in self.inputs[name])
            )
            if need.stateful:
                below[name] = found
            nearest[name] = frozenset((name,)) if need.stateful else found
        return below

    def restricted(self, streams: frozenset[str]) -> NeedTree:
        """The part of the tree that reads these streams and no other."""
        names = [name for name, found in self.sources().items() if found <= streams]
        return NeedTree(
            {name: self.needs[name] for name in names},
            {name: self.inputs[name] for name in names},
            {name: self.nodes[name] for name in names if name in self.nodes},
        )


def needs_of(queries: Mapping[str, Node]) -> NeedTree:
    """The needs of a query set; what two queries write alike is one need."""
    names: dict[str, str] = {}
    for name, node in queries.items():
        names.setdefault(node.signature, name)
    builder = _Builder(names)
    for name, node in queries.items():
        if not isinstance(node, Stream):
            builder.add(node, name)
    return NeedTree(builder.needs, builder.inputs, builder.nodes)


@dataclass
class _Builder:
    queries: Mapping[str, str]
    """The signatures of whole queries: nodes that have names of their own."""
    needs: dict[str, NodeNeed] = field(default_factory=dict)
    inputs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    by_signature: dict[str, str] = field(default_factory=dict)
    stateful: Counter[str] = field(default_factory=Counter)
    """How many nodes with state each query has so far."""

    def add(self, node: Node, query: str) -> str:
        """The name of the need or stream that yields the node's rows."""
        if isinstance(node, Stream):
            return node.name
        if node.signature in self.by_signature:
            return self.by_signature[node.signature]
        if isinstance(node, Stateful):
            return self._stateful(node, query)
        return self._put(node, self.queries.get(node.signature, query), self._origins(node, query))

    def _stateful(self, node: Node, query: str) -> str:
        # What is below gets its names first, as the subqueries of the plan do
        below = [
            self._origins(part, query) if self._is_passing(part) else (self.add(part, query),)
            for part in node.inputs
        ]
        name = self._name(query)
        origins: dict[str, None] = {}
        for number, (part, found) in enumerate(zip(node.inputs, below, strict=True)):
            origin = found[0]
            if self._is_passing(part):
                side = " input" if len(node.inputs) == 1 else (" left", " right")[number]
                known = self.by_signature.get(part.signature)
                origin = known or self._put(part, f"{name}{side}", found)
            origins[origin] = None
        return self._put(node, name, tuple(origins))

    def _origins(self, node: Node, query: str) -> tuple[str, ...]:
        """What the stateless nodes down from this one read."""
        found: dict[str, None] = {}
        for part in node.inputs:
            if self._is_passing(part):
                found.update(dict.fromkeys(self._origins(part, query)))
            else:
                found[self.add(part, query)] = None
        return tuple(found)

    def _is_passing(self, node: Node) -> bool:
        """Whether it is a stateless step without a name."""
        named = isinstance(node, Stream | Stateful)
        return not named and node.signature not in self.queries

    def _put(self, node: Node, name: str, inputs: tuple[str, ...]) -> str:
        self.by_signature[node.signature] = name
        self.needs[name] = need_of(name, node)
        self.inputs[name] = inputs
        self.nodes[name] = node
        return name

    def _name(self, query: str) -> str:
        self.stateful[query] += 1
        return f"{query}@{self.stateful[query]}"
