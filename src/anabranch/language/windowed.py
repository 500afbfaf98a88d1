"""Rows in the windows they belong to: what `FROM TUMBLE(…)`, `HOP` and `CUMULATE` give.

Every row comes once for each of its windows, with the columns window_start and window_end. Grouped by these,
windows that need no offset are aggregated as those of GROUP BY are (`builder.py`): in panes, not row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.expression import Column
from anabranch.language.node import Node
from anabranch.language.order import Near, Ordered
from anabranch.language.stateless import Filter, Project
from anabranch.language.updates import refuse_updates
from anabranch.language.window import END, MOST_WINDOWS, START, Hop, Tumble, require_length


@dataclass(frozen=True)
class Covering:
    """The windows that a row is put in: of `size`, one every `step`, counted from `offset`.

    Those that cumulate begin every `size` and end every `step`.
    """

    kind: str
    size: int
    step: int
    offset: int = 0

    def __post_init__(self) -> None:
        require_length(self.size, "The size of a window")
        name = self.kind.upper()
        if not 0 < self.step <= self.size:
            what = "step" if self.kind == "cumulate" else "slide"
            raise LanguageError(
                f"{name}: the {what} is {self.step} and the size {self.size}; expected a {what} of at most "
                f"the size. In FROM the {what} comes first: {name}(input, time, {what}, size)."
            )
        if self.kind == "cumulate" and self.size % self.step:
            raise LanguageError(
                f"CUMULATE: the size {self.size} is no multiple of the step {self.step}."
            )
        if self.size // self.step > MOST_WINDOWS:
            raise LanguageError(
                f"{name}: every row would be in {self.size // self.step:,} windows; expected at most "
                f"{MOST_WINDOWS:,}. Make the step longer or the size shorter."
            )
        # Windows are the same wherever counting begins by a multiple of their length
        period = self.size if self.kind == "cumulate" else self.step
        object.__setattr__(self, "offset", self.offset % period)

    @property
    def window(self) -> Tumble | Hop | None:
        """The same as a window of GROUP BY, if there is one."""
        if self.offset or self.kind == "cumulate":
            return None
        return Tumble(self.size) if self.kind == "tumble" else Hop(self.size, self.step)

    def __str__(self) -> str:
        sizes = f"{self.size}" if self.kind == "tumble" else f"{self.step}, {self.size}"
        return f"{self.kind.upper()}({sizes}{f', {self.offset}' if self.offset else ''})"


@dataclass(frozen=True, eq=False)
class Windowed(Node):
    """Every row of the input in each of its windows."""

    input: Node
    covering: Covering
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        refuse_updates("A window of rows", self.input.updates)
        time = self.time
        for name in (START, END):
            if name in self.input.schema:
                raise LanguageError(
                    f"{self.covering.kind.upper()} gives its rows a column '{name}', and the input has one "
                    "already: give that another name in a sub-query."
                )
        kind = window_kind(self.input, time)
        object.__setattr__(self, "schema", pl.Schema({**self.input.schema, START: kind, END: kind}))
        unit = time.unit
        assert unit is not None
        longest = self.covering.size * unit
        added = (Near(START, unit, unit - longest, 0), Near(END, unit, unit, longest))
        object.__setattr__(self, "ordered", replace(time, near=(*time.near, *added)))

    @property
    def time(self) -> Ordered:
        time = self.input.ordered
        if time is None or time.unit is None:
            raise LanguageError(
                f"{self.covering.kind.upper()}: the input has no ordered attribute any more. Keep it in the "
                f"select. Columns: {', '.join(self.input.schema)}."
            )
        return time

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        return f"WINDOWS {self.covering} OF {self.time.column}"


def ends_follow(node: Node) -> bool:
    """Whether rows have the borders of their windows, and each end follows from its start."""
    while isinstance(node, Filter | Project):
        if isinstance(node, Project) and not {START, END} <= {
            column.name
            for column in node.columns
            if isinstance(column.expression, Column) and column.expression.name == column.name
        }:
            return False
        node = node.input
    return isinstance(node, Windowed) and node.covering.kind != "cumulate"


def window_kind(node: Node, time: Ordered) -> pl.DataType:
    """The type of the borders of windows over the rows of a node."""
    own = node.schema[time.column]
    if time.timestamps:
        return pl.Datetime("us", own.time_zone if isinstance(own, pl.Datetime) else None)
    return pl.Date() if own == pl.Date else pl.Int64()
