"""The join of two inputs, as a node of the query graph."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.expression import Expression, type_of
from anabranch.language.matching import bound_through, comparable, right_names
from anabranch.language.node import Node, Ordered, require_boolean, require_distinct

JOINS = ("inner", "left", "right", "full")


@dataclass(frozen=True, eq=False)
class Join(Node):
    """Pairs of rows of two inputs for which all equalities and the predicate hold.

    Each pair of `pairs` is an expression over the left columns and one over the right. An outer join has the
    rows of its outer side that meet none too, with NULL beside them. Columns of the right that the left has
    too are called `<name>_<suffix>`; the predicate is over the columns of the result.
    """

    left: Node
    right: Node
    kind: str
    pairs: tuple[tuple[Expression, Expression], ...]
    predicate: Expression | None = None
    suffix: str = "right"
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        if self.kind not in JOINS:
            raise LanguageError(f"A join is '{self.kind}'; expected one of {', '.join(JOINS)}.")
        if not self.pairs:
            raise LanguageError(
                "This join has no equality between its two inputs, so every row would meet every row: "
                "say which columns must be equal."
            )
        for ours, theirs in self.pairs:
            kinds = (
                type_of(ours, self.left.schema, f"JOIN ON {ours}, left side"),
                type_of(theirs, self.right.schema, f"JOIN ON {theirs}, right side"),
            )
            if not comparable(*kinds):
                raise LanguageError(
                    f"JOIN ON {ours} = {theirs}: the left is {kinds[0]} and the right is {kinds[1]}, "
                    "which are never equal. Cast one of them."
                )
        names = [*self.left.schema, *self.right_names.values()]
        require_distinct(names, "JOIN")
        kinds_of_all = (*self.left.schema.values(), *self.right.schema.values())
        object.__setattr__(self, "schema", pl.Schema(zip(names, kinds_of_all, strict=True)))
        if self.predicate is not None:
            require_boolean(self.predicate, self.schema, "JOIN ON")
        object.__setattr__(self, "ordered", self._order())

    @property
    def right_names(self) -> dict[str, str]:
        """For each column of the right input its name in the result."""
        return right_names(self.left.schema, self.right.schema, self.suffix)

    def _order(self) -> Ordered | None:
        """The time of the left, or of the right for a right join, if an equality ties the two times.

        A row still to come has a new row on one side: on the left its time is bounded by the left's
        watermark, on the right the time of what it can meet is bounded through the equality. A full join
        has rows with neither.
        """
        ours, theirs = self.left.ordered, self.right.ordered
        if ours is None or theirs is None or self.kind == "full":
            return None
        left = self.kind != "right"
        near, far = (ours, theirs) if left else (theirs, ours)
        for pair in self.pairs:
            here, there = pair if left else pair[::-1]
            steps = bound_through(here, there, {"left": near.column, "right": far.column})
            if steps is not None:
                clocks = (*near.clocks, *((*clock, *steps) for clock in far.clocks))
                name = near.column if left else self.right_names[near.column]
                return Ordered(name, near.timestamps, tuple(dict.fromkeys(clocks)))
        return None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def __str__(self) -> str:
        pairs = " AND ".join(f"{ours} = {theirs}" for ours, theirs in self.pairs)
        rest = "" if self.predicate is None else f" WHERE {self.predicate}"
        return f"{self.kind.upper()} JOIN ON {pairs}{rest} AS {self.suffix}"
