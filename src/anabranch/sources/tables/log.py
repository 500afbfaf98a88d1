"""What a table that grows by versions is to a stream: which files each version has added.

A version that does more than add rows (deletes, overwrites) has no files to read: it says why, and the stream
stops there or passes over it. One that only writes the same rows anew (a compaction) adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table."""

    path: str
    size: int
    rows: int
    values: Mapping[str, str | None] = field(default_factory=dict)
    """Of partitioning columns, which the file itself may lack."""
    own_first: bool = False
    """Whether a column that the file has comes from there, whatever the values say."""
    untold: frozenset[str] = frozenset()
    """Partitioning columns whose values are not known, should the file lack them."""


@dataclass(frozen=True)
class TableChange:
    """What a version has done to the table."""

    version: int
    files: Sequence[DataFile] = ()
    """Those it has added, if it has only added rows."""
    refused: str = ""
    """What else it did, in words; empty if nothing."""


class TableLog(Protocol):
    """The history of a table, as one run reads it."""

    @property
    def identity(self) -> str:
        """What tells this table from one that was made anew under the same name."""

    @property
    def schema(self) -> pl.Schema:
        """The columns of now."""

    def latest(self) -> int | None:
        """The newest version, looked up anew; None if the table has never had one."""

    def whole(self, version: int) -> list[DataFile]:
        """All files of a version, in an order that never changes; SourceError if it is no longer known."""

    def after(self, version: int, last: int, inclusive: bool) -> Iterator[TableChange]:
        """What came after a version, or with it, up to the last one, in order, looked up one by one;
        SourceError if that is no longer known."""
