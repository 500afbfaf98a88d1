"""A plan in the making: every node of the query graph a subquery of its own, in no particular place.

That is the plan without any knowledge of partitioning: rows are merged before every operator. The
rules in `rules/` turn it, one after another, into the plan that runs. Nodes with the same signature are
drafted once, so queries that share a prefix share its work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from anabranch.errors import PlanningError
from anabranch.language.aggregate import UserAggregate
from anabranch.language.expression import type_of
from anabranch.language.join import Join
from anabranch.language.kinds import type_words
from anabranch.language.lookup import Lookup
from anabranch.language.node import Node, Stream
from anabranch.language.stamped import Stamped
from anabranch.language.stateful import Stateful
from anabranch.language.stateless import Branch, Filter, Project, Union
from anabranch.language.unnest import Unnest
from anabranch.language.updates import GONE, check_gone
from anabranch.language.windowed import Windowed
from anabranch.partitioning.choice import Choice
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.requirement import all_keys
from anabranch.plan.plan import Output
from anabranch.plan.subquery import Path, Subquery
from anabranch.routing.hashing import hashable

KINDS: Mapping[type[Node], str] = {
    Filter: "where", Branch: "case", Project: "select", Union: "union", Windowed: "windows",
    Unnest: "unnest", Lookup: "look-up", Stamped: "stamp",
}  # fmt: skip
"""The stateless nodes, and what their subqueries are called where they have any."""


@dataclass(frozen=True)
class Draft:
    """Subqueries, each after those it reads, and what leaves to the sinks."""

    subqueries: Mapping[str, Subquery]
    outputs: tuple[Output, ...]
    queries: Mapping[str, Node]
    sets: Mapping[str, PartitioningSet] = field(default_factory=dict)
    """What the rows of each exchange are partitioned by, in terms of the streams."""

    def below(self, subquery: Subquery) -> list[Subquery]:
        """The subqueries that it reads; streams are left out."""
        origins = dict.fromkeys(path.origin for path in subquery.paths)
        return [self.subqueries[name] for name in origins if name in self.subqueries]

    def reads_streams(self, subquery: Subquery) -> bool:
        return any(path.origin not in self.subqueries for path in subquery.paths)

    def with_subquery(self, changed: Subquery, by: PartitioningSet | None = None) -> Draft:
        """The draft with a subquery changed or added; `by` is what its exchange is partitioned by."""
        sets = self.sets if by is None else {**self.sets, changed.exchange: by}
        return replace(self, subqueries={**self.subqueries, changed.name: changed}, sets=sets)

    def without(self, name: str, instead: Callable[[Path], tuple[Path, ...]]) -> Draft:
        """The draft without a subquery: every path from it gives way to others."""

        def reads(paths: tuple[Path, ...]) -> bool:
            return any(path.origin == name for path in paths)

        def rerouted(paths: tuple[Path, ...]) -> tuple[Path, ...]:
            return tuple(
                new for path in paths for new in (instead(path) if path.origin == name else (path,))
            )

        return replace(
            self,
            subqueries={
                part.name: replace(part, paths=rerouted(part.paths)) if reads(part.paths) else part
                for part in self.subqueries.values()
                if part.name != name
            },
            outputs=tuple(
                replace(output, paths=rerouted(output.paths)) if reads(output.paths) else output
                for output in self.outputs
            ),
        )


@dataclass(frozen=True)
class Aims:
    """What the rules work towards."""

    choice: Choice | None = None
    """How streams are partitioned for the whole query set; None: each operator as it likes."""
    given: PartitioningSet = field(default_factory=PartitioningSet)
    """How streams come partitioned already."""
    central: bool = False
    """Whether what cannot run on the partitions, and all results, come together on one site."""
    sinks: Collection[str] | None = None
    """The queries whose results leave; None: any of them may."""
    kept: Mapping[str, Collection[str]] = field(default_factory=dict)
    """What a checkpoint has state of, by signature, with the columns of its results that it can give. The
    plan goes on with it, even if it would do otherwise by now."""


PLAIN = Aims()
"""No partitioning in mind."""


def draft(queries: Mapping[str, Node]) -> Draft:
    """The plain plan of a query set."""
    drafter = _Drafter()
    outputs = tuple(_output(name, node, drafter.add(node, name)) for name, node in queries.items())
    return Draft(drafter.subqueries, outputs, queries)


def _output(name: str, node: Node, origin: str) -> Output:
    """All that a query yields; where groups can leave it, with the column that tells."""
    check_gone(name, node.schema, node.updates)
    updates = node.updates
    if updates is None:
        return Output(name, (Path(origin),), node.schema)
    telling = updates.keys - updates.derived
    keys = tuple(column for column in node.schema if column in telling) if updates.whole else None
    schema = pl.Schema({**node.schema, GONE: pl.Boolean()}) if updates.leave else node.schema
    return Output(name, (Path(origin),), schema, updates.leave, replaces=True, keys=keys)


@dataclass
class _Drafter:
    subqueries: dict[str, Subquery] = field(default_factory=dict)
    by_signature: dict[str, str] = field(default_factory=dict)
    user_aggregates: dict[str, UserAggregate] = field(default_factory=dict)

    def add(self, node: Node, query: str) -> str:
        """The name of the stream or subquery that yields the node's rows."""
        if isinstance(node, Stream):
            return node.name
        if isinstance(node, Stateful):
            self._check_users(node, query)
        known = self.by_signature.get(node.signature)
        if known:
            return known
        sided = isinstance(node, Join)
        paths = tuple(
            Path(self.add(part, query), input=number if sided else 0)
            for number, part in enumerate(node.inputs)
        )
        if isinstance(node, Stateful):
            _check_keys(node, query)
        elif type(node) not in KINDS:
            raise PlanningError(f"There is no plan for '{node}' yet.")
        name = self._name(node, query)
        self.by_signature[node.signature] = name
        self.subqueries[name] = Subquery(name, node, paths, query)
        return name

    def _name(self, node: Node, query: str) -> str:
        """The query's name with `@` (streams and queries cannot have it) and a number."""
        kind = KINDS.get(type(node), "")
        alike = [
            part for part in self.subqueries.values() if KINDS.get(type(part.node), "") == kind
        ]
        taken = sum(part.query == query for part in alike)
        return f"{query}@{kind}{taken + 1}"

    def _check_users(self, node: Stateful, query: str) -> None:
        for user in (part.call.user for part in getattr(node, "aggregates", ())):
            if user and self.user_aggregates.setdefault(user.name, user) is not user:
                raise PlanningError(
                    f"Query '{query}' uses a second, different aggregate called '{user.name}': "
                    "give each its own name."
                )


def _check_keys(node: Stateful, query: str) -> None:
    for part, keys in zip(node.inputs, all_keys(node), strict=True):
        for key in keys:
            kind = type_of(key, part.schema, f"Query '{query}', key {key}")
            if not hashable(kind):
                what = "joins on" if isinstance(node, Join) else "groups by"
                raise PlanningError(
                    f"Query '{query}' {what} '{key}', which is {type_words(kind)}: such a value cannot be "
                    "hashed. Take a field or an element of it."
                )
