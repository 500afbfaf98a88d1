"""An exchange: rows brought to the sites, by one partition map for all subqueries behind it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from anabranch.language.expression import Expression, substitute
from anabranch.language.numbered import Numbered
from anabranch.operators.partials import SEQ
from anabranch.operators.stateless import MULTIPLYING, Select, Step
from anabranch.plan.subquery import BY_LANE, BY_TERMS, IN_GRID, Path, Subquery

MOST_READERS = 60
"""Readers of rows that are sent once: which of them are meant is told by the bits of a number."""


@dataclass(frozen=True)
class Exchange:
    """Rows brought to the sites: a partition of it moves for all its members at once."""

    name: str
    """That of the subquery that opened it."""
    members: tuple[Subquery, ...]
    """The subqueries behind it, which run on its partitions; the first opened it."""

    @property
    def level(self) -> int:
        return self.members[0].level

    @property
    def spread(self) -> str:
        """How rows are spread over its partitions."""
        return self.members[0].spread

    @property
    def in_grid(self) -> bool:
        """Whether its slots are cells in which rows of two inputs meet: these cannot be cut."""
        return self.spread == IN_GRID

    @property
    def in_step(self) -> bool:
        """Whether its rows are numbered for a join within a number of rows.

        They must not wait: numbers of one input would come to the join before those of the other.
        """
        return any(isinstance(member.node, Numbered) for member in self.members)

    @property
    def spills(self) -> bool:
        """Whether state of its slots can be put aside while rows go on."""
        stateful = [member for member in self.members if member.stateful]
        suited = self.spread in (BY_TERMS, BY_LANE) and bool(stateful)
        return suited and all(member.operator.spills for member in stateful)

    @property
    def combines(self) -> bool:
        """Whether senders may sub-aggregate for one of its members."""
        return any(member.combines for member in self.members)


@dataclass(frozen=True)
class Common:
    """Readers behind one exchange that want the same rows on the same slots, so one copy does for all."""

    origin: str
    exchange: str
    level: int
    spread: str
    terms: tuple[Expression, ...]
    """What the rows are partitioned by, over the columns of the origin."""
    readers: tuple[tuple[Subquery, Path], ...]


def commons(subqueries: Iterable[Subquery], numbered: Iterable[str]) -> tuple[Common, ...]:
    """The rows that several can share; `numbered` are the streams whose rows carry their arrival number."""
    members = list(subqueries)
    levels = {member.name: member.level for member in members}
    in_order = {*numbered}
    groups: dict[tuple[str, ...], list[tuple[Subquery, Path]]] = {}
    for member in members:
        if not member.stateful or member.spread not in (BY_TERMS, BY_LANE):
            continue
        for path in member.paths:
            if levels.get(path.origin) == member.level:
                continue  # no exchange between them
            if any(isinstance(step, MULTIPLYING) for step in path.steps):
                continue  # one row becomes several, which may go to several slots
            if SEQ in member.columns[path.input] and path.origin not in in_order:
                continue  # their order is told by what each reader sees of them
            terms = map(str, _at_origin(member.terms[path.input], path.steps))
            key = (path.origin, member.exchange, member.spread, *terms)
            groups.setdefault(key, []).append((member, path))
    return tuple(
        Common(
            path.origin, member.exchange, member.level, member.spread,
            _at_origin(member.terms[path.input], path.steps), tuple(some[begin : begin + MOST_READERS]),
        )
        for some in groups.values()
        for begin in range(0, len(some), MOST_READERS)
        for member, path in some[:1]
        if len(some[begin : begin + MOST_READERS]) > 1
    )  # fmt: skip


def _at_origin(terms: Iterable[Expression], steps: Iterable[Step]) -> tuple[Expression, ...]:
    """Terms over the columns after some steps, in those before them."""
    found = tuple(terms)
    for step in reversed(list(steps)):
        if isinstance(step, Select):
            columns = {column.name: column.expression for column in step.columns}
            found = tuple(substitute(term, columns) for term in found)
    return found
