"""Rows of a window among each other: numbered, and the best few of them.

Every row of a window and group is known when the window closes, so any order will do. Rows in the same
place are told apart by their content: by all columns of the input, in their order, smallest first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.bounds import conjuncts
from anabranch.language.expression import (
    Call,
    Column,
    Expression,
    Literal,
    Named,
    substitute,
    type_of,
)
from anabranch.language.kinds import orderable, type_words
from anabranch.language.node import Node, require_distinct
from anabranch.language.order import Ordered
from anabranch.language.over import (
    NUMBERS,
    NamedRowCall,
    RowFrame,
    Sort,
    check_calls,
    kind_of_call,
)
from anabranch.language.stateless import Filter, Project
from anabranch.language.updates import refuse_updates
from anabranch.language.window import require_length


@dataclass(frozen=True)
class BestOf:
    """Only rows whose number, by one of the three ways to number, is at most this."""

    function: str
    most: int

    def __str__(self) -> str:
        return f"{self.function.upper()} <= {self.most}"


@dataclass(frozen=True, eq=False)
class Ranked(Node):
    """Every row of a window and group, or the best of them, with values of the rows around it there."""

    input: Node
    size: int
    """The length of the windows, in the unit of the ordered attribute; 1 for each of its values."""
    keys: tuple[Named, ...]
    order: tuple[Sort, ...]
    calls: tuple[NamedRowCall, ...]
    limit: BestOf | None = None
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        refuse_updates("OVER", self.input.updates)
        time = self.input.ordered
        if time is None:
            raise LanguageError(
                "Rows of a window among each other need the ordered attribute of their input: keep it in the "
                "select."
            )
        require_length(self.size, "The size of a window")
        own = self.input.schema
        for sort in self.order:
            if not orderable(type_of(sort.expression, own, f"ORDER BY {sort}")):
                raise LanguageError(f"ORDER BY {sort}: values of this type have no order.")
        for name, kind in own.items():
            if not orderable(kind):
                raise LanguageError(
                    f"Column '{name}' is {type_words(kind)}, which has no order, so rows in "
                    "the same place cannot be told apart by it. Leave it out in a sub-query, or take "
                    "fields of it."
                )
        check_calls(self.calls, own)
        by_time = [(sort.expression, sort.descending) for sort in self.order]
        for frame in self.frames:
            in_time = len(by_time) == 1 and str(by_time[0][0]) == time.column and not by_time[0][1]
            if frame.by_time and frame.before is not None and not in_time:
                raise LanguageError(
                    f"RANGE with a length of time needs ORDER BY {time.column}, ascending, and nothing else."
                )
        require_distinct([*own, *(part.name for part in self.calls)], "OVER")
        for key in self.keys:
            type_of(key.expression, own, f"PARTITION BY {key}")
        added = {part.name: kind_of_call(part.call, own) for part in self.calls}
        object.__setattr__(self, "schema", pl.Schema({**own, **added}))
        whole = (("//", self.size), ("*", self.size)) if self.size > 1 else ()
        object.__setattr__(self, "ordered", time.then(time.column, *whole) if whole else time)

    @property
    def frames(self) -> tuple[RowFrame, ...]:
        """The frames of its aggregates and picks."""
        return tuple(dict.fromkeys(part.call.frame for part in self.calls))

    @property
    def can_be_limited(self) -> bool:
        """Whether rows behind the best take no part in what those get."""
        return all(part.call.function in (*NUMBERS, "lag") for part in self.calls)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        limit = "" if self.limit is None else f" LIMIT {self.limit}"
        return (
            f"RANKED {self.size} BY {', '.join(map(str, self.keys))} ORDER BY "
            f"{', '.join(map(str, self.order))} AGG {', '.join(map(str, self.calls))}{limit}"
        )


def limited(node: Node, predicate: Expression) -> Node:
    """The node, keeping only as many rows of each window as a filter above it can let pass."""
    match node:
        case Ranked() if node.can_be_limited:
            found = node.limit
            for named in node.calls:
                most = _most(predicate, named.name)
                if named.call.function in NUMBERS and most is not None:
                    tighter = found is None or most < found.most
                    found = BestOf(named.call.function, most) if tighter else found
            return node if found == node.limit else replace(node, limit=found)
        case Filter():
            below = limited(node.input, predicate)
            return node if below is node.input else replace(node, input=below)
        case Project():
            shown = {column.name: column.expression for column in node.columns}
            below = limited(node.input, substitute(predicate, shown))
            return node if below is node.input else replace(node, input=below)
    return node


def _most(predicate: Expression, name: str) -> int | None:
    """The greatest value of a column with which a predicate can hold; None if it does not say."""
    found: list[int] = []
    for part in conjuncts(predicate):
        match part:
            case Call("<=" | "=", (Column(column), Literal(int(most)))) if column == name:
                found.append(most)
            case Call("<", (Column(column), Literal(int(most)))) if column == name:
                found.append(most - 1)
            case Call(">=" | "=", (Literal(int(most)), Column(column))) if column == name:
                found.append(most)
            case Call(">", (Literal(int(most)), Column(column))) if column == name:
                found.append(most - 1)
    return max(0, min(found)) if found else None
