"""Steps that make several rows of one: its windows, and the elements of a list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from anabranch.language.expression import Expression, columns_of, to_polars
from anabranch.language.order import Ordered
from anabranch.language.window import END, START
from anabranch.language.windowed import Covering
from anabranch.routing.ranges import expand

_ELEMENT = "__element"


@dataclass(frozen=True)
class IntoWindows:
    """Every row in each of its windows."""

    covering: Covering
    time: Ordered
    kind: pl.DataType

    def __str__(self) -> str:
        return f"windows {self.covering} of {self.time.column}"

    def __call__(self, rows: pl.DataFrame) -> pl.DataFrame:
        column = rows[self.time.column]
        times = (
            column.dt.cast_time_unit("us").to_physical()
            if self.time.timestamps
            else column.cast(pl.Int64)
        ).to_numpy()
        source, start, end = _windows(times - self.covering.offset, self.covering)
        unfolded = rows if source is None else rows[source]
        return unfolded.with_columns(
            pl.Series(name, border + self.covering.offset).cast(self.kind)
            for name, border in ((START, start), (END, end))
        )

    def wanted(self, columns: Iterable[str]) -> set[str]:
        """The input columns that these columns depend on."""
        return ({*columns} - {START, END}) | {self.time.column}


def _windows(
    times: np.ndarray, covering: Covering
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """The row and the borders of every window of every row; None for the rows: each once."""
    size, step = covering.size, covering.step
    if covering.kind == "tumble":
        start = times // size * size
        return None, start, start + size
    if covering.kind == "hop":
        first = (times - size) // step + 1
        count = times // step - first + 1
    else:
        start = times // size * size
        first = (times - start) // step + 1
        count = size // step - first + 1
    source = np.repeat(np.arange(len(times)), count)
    number = np.repeat(first, count) + expand(np.zeros(len(times), dtype=np.int64), count)
    if covering.kind == "hop":
        return source, number * step, number * step + size
    return source, start[source], start[source] + number * step


@dataclass(frozen=True)
class Unnested:
    """Every row once for each element of a list."""

    list: Expression
    name: str
    outer: bool
    position: str | None

    def __str__(self) -> str:
        return f"unnest {self.list} as {self.name}"

    def __call__(self, rows: pl.DataFrame) -> pl.DataFrame:
        made = rows.with_columns(to_polars(self.list, rows.schema).alias(_ELEMENT))
        some = pl.col(_ELEMENT).list.len() > 0
        if self.outer:
            # NULL gives a row with NULL, an empty list none
            made = made.with_columns(pl.when(some).then(pl.col(_ELEMENT)))
        else:
            made = made.filter(some)
        columns = [_ELEMENT]
        if self.position is not None:
            numbers = pl.int_ranges(1, pl.col(_ELEMENT).list.len().cast(pl.Int64) + 1)
            made = made.with_columns(numbers.alias(self.position))
            columns.append(self.position)
        return made.explode(columns).rename({_ELEMENT: self.name})

    def wanted(self, columns: Iterable[str]) -> set[str]:
        """The input columns that these columns depend on."""
        return ({*columns} - {self.name, self.position}) | set(columns_of(self.list))
