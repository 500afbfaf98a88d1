"""What a task is told of its epoch that steps over rows need: the tables and the time that it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass

import polars as pl

from anabranch.state.manifest import TableRecord
from anabranch.state.place import Place


@dataclass(frozen=True)
class Told:
    """The version of each table that an epoch has, where they are, and its time."""

    place: Place
    tables: Mapping[str, TableRecord]
    now: int
    """Microseconds since 1970, in UTC."""


TOLD: ContextVar[Told | None] = ContextVar("told", default=None)
"""What the task at hand was told; None where there is no epoch, as when rates are estimated."""


@dataclass(frozen=True)
class Stamp:
    """The step that puts the time of the epoch beside each row; NULL where there is none."""

    name: str

    def __str__(self) -> str:
        return f"the time of the epoch as {self.name}"

    def __call__(self, rows: pl.DataFrame) -> pl.DataFrame:
        told = TOLD.get()
        now = pl.lit(told.now if told else None, pl.Int64).cast(pl.Datetime("us"))
        return rows.with_columns(now.alias(self.name))

    def wanted(self, columns: Iterable[str]) -> set[str]:
        """The input columns that these columns depend on."""
        return {*columns} - {self.name}
