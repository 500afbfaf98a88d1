"""What a table is to its writer: it remembers how far each run has come, so an epoch counts once.

A table is asked how far it has come, then to take an epoch in together with its number; both or neither
happens. What each kind of table does is in its own module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import polars as pl

from anabranch.errors import SettingsError
from anabranch.language.updates import GONE
from anabranch.sinks.base import WriteContext
from anabranch.state.manifest import ResultPart


class Conflict(Exception):
    """Somebody else has changed the table meanwhile; nothing was done."""


@dataclass(frozen=True)
class Taking:
    """An epoch that a table is to take in."""

    run: str
    query: str
    epoch: int

    @property
    def app(self) -> str:
        """By what a table remembers the last epoch that it has of this query."""
        return f"{self.run}/{self.query}"


@dataclass(frozen=True)
class NewFile:
    """A file that lies where the table wants it."""

    path: Path
    name: str
    """From the table's folder on, with the folders of partitioning values."""
    part: ResultPart


class SinkTable(Protocol):
    """What every kind of table can do. Each call may raise Conflict."""

    def reached(self, app: str) -> int | None:
        """The last epoch that the table has of a query; None if it has none."""

    def adopt(self, files: Sequence[NewFile], taking: Taking) -> None:
        """Adds files, and notes the epoch."""

    def append(self, rows: pl.DataFrame, taking: Taking) -> None:
        """Adds rows, and notes the epoch."""

    def merge(
        self, rows: pl.DataFrame, gone: pl.DataFrame, keys: Sequence[str], taking: Taking
    ) -> None:
        """Puts rows in the place of those with the same keys, takes away those that are gone, and notes
        the epoch."""

    def tend(self) -> None:
        """Brings small files together, as the table was asked to."""

    def close(self) -> None:
        """Lets go of what it holds."""


@dataclass(frozen=True)
class TableShape:
    """How the results of a query lie in a table."""

    what: str
    """What to call the table in messages."""
    types: pl.Schema
    keys: tuple[str, ...] | None = None
    """By what rows replace earlier ones; None if all of them are added."""
    partition_by: tuple[str, ...] = ()
    folder: Path | None = None
    """The table's own, if tasks write into it."""
    bare: bool = False
    """Whether files are without the partitioning columns."""
    tend_every: int = 0
    """After how many epochs small files are brought together; 0: never."""
    zeros: bool = True
    """Whether texts may have the character of code 0 in them."""


def keys_of(what: str, context: WriteContext, updates: str) -> tuple[str, ...] | None:
    """By what the rows of a query replace earlier ones in a table; None if all are added to it."""
    if updates not in ("merge", "append"):
        raise SettingsError(
            f"{what}: updates is {updates!r}; expected 'merge', which keeps one row of each group, or "
            "'append', which keeps every change."
        )
    if not context.replaces or updates == "append":
        return None
    if context.keys is None:
        raise SettingsError(
            f"{what}: rows of query '{context.query}' replace earlier ones of their groups (emit='update'), "
            "but its results lack a column that the groups are told apart by. Keep all columns of the GROUP "
            "BY, of windows the start, or keep every change: updates='append'."
        )
    return context.keys


def kept_columns(context: WriteContext, keys: tuple[str, ...] | None) -> pl.Schema:
    """The columns of the results that a table has: where groups leave it, it needs no mark for that."""
    marked = context.marked and keys is not None
    return pl.Schema(
        {name: kind for name, kind in context.schema.items() if not (marked and name == GONE)}
    )
