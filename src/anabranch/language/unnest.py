"""Rows with the elements of a list: one row for each element, beside the columns of its row."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.expression import Expression, type_of
from anabranch.language.kinds import instance_of, type_words
from anabranch.language.node import Node, require_distinct
from anabranch.language.order import Ordered
from anabranch.language.updates import refuse_updates


@dataclass(frozen=True, eq=False)
class Unnest(Node):
    """Every row once for each element of a list; with `outer`, once with NULL where there is none."""

    input: Node
    list: Expression
    name: str
    outer: bool = False
    position: str | None = None
    """The column that numbers the elements of a row, from 1 on, if it is wanted."""
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        refuse_updates("UNNEST", self.input.updates)
        kind = type_of(self.list, self.input.schema, f"UNNEST({self.list})")
        if not isinstance(kind, pl.List):
            raise LanguageError(
                f"UNNEST({self.list}) needs a list, but this is {type_words(kind)}."
            )
        added: dict[str, pl.DataType] = {self.name: instance_of(kind.inner)}
        if self.position is not None:
            added[self.position] = pl.Int64()
        require_distinct([*self.input.schema, *added], "UNNEST")
        object.__setattr__(self, "schema", pl.Schema({**self.input.schema, **added}))
        object.__setattr__(self, "ordered", self.input.ordered)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        outer = " OUTER" if self.outer else ""
        number = f" NUMBERED {self.position}" if self.position is not None else ""
        return f"UNNEST{outer} {self.list} AS {self.name}{number}"
