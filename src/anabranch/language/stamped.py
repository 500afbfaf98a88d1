"""Rows with the time of the epoch that they are worked on in: CURRENT_TIMESTAMP."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from anabranch.language.node import Node, require_distinct
from anabranch.language.order import Ordered
from anabranch.language.updates import refuse_updates

NOW = "current_timestamp"


@dataclass(frozen=True, eq=False)
class Stamped(Node):
    """The rows of the input, each with the time of its epoch in UTC, as its manifest has it."""

    input: Node
    name: str = NOW
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        refuse_updates("CURRENT_TIMESTAMP", self.input.updates)
        require_distinct([*self.input.schema, self.name], "CURRENT_TIMESTAMP")
        schema = pl.Schema({**self.input.schema, self.name: pl.Datetime("us")})
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "ordered", self.input.ordered)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        return f"STAMP {self.name}"
