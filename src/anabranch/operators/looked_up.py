"""The step that puts rows of a table beside those of a stream, and where the task finds the table.

Every task of an epoch reads the file that its orders name, once for each version in a process. Where nothing
was told, as when rates are estimated, each row meets one row of NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from anabranch.errors import StateError
from anabranch.language.expression import Expression, columns_of, to_polars
from anabranch.language.lookup import Lookup
from anabranch.operators.told import TOLD, Told
from anabranch.state.checksum import Damaged
from anabranch.state.manifest import TableRecord
from anabranch.state.place import Place
from anabranch.state.segment import open_arrow

MOST_KEPT = 16
"""Versions of tables, with the keys that they are looked up by, that a process keeps."""


_KEPT: dict[tuple[str, str], pl.DataFrame] = {}


@dataclass(frozen=True)
class LookedUp:
    """Rows beside those of a table with the same keys."""

    table: str
    kind: str
    keys: tuple[tuple[Expression, ...], ...]
    predicates: tuple[Expression, ...]
    names: tuple[tuple[str, str, pl.DataType], ...]
    """The columns of the table that are wanted: their names there and in the results, and their types."""

    @classmethod
    def of(cls, node: Lookup) -> LookedUp:
        table = node.table
        names = tuple((own, shown, table.schema[own]) for own, shown in node.names.items())
        return cls(table.name, node.kind, node.keys, node.predicates, names)

    def __str__(self) -> str:
        on = ", ".join(f"{ours} = {theirs}" for ours, theirs in zip(*self.keys, strict=True))
        return f"{self.kind} look-up in {self.table} by {on}"

    def __call__(self, rows: pl.DataFrame) -> pl.DataFrame:
        told = TOLD.get()
        if told is None:
            return rows.with_columns(
                pl.lit(None, kind).alias(shown) for _, shown, kind in self.names
            )
        ours = [f"__ours{at}" for at in range(len(self.keys[0]))]
        computed = zip(ours, self.keys[0], strict=True)
        keyed = rows.with_columns(to_polars(key, rows.schema).alias(own) for own, key in computed)
        found = keyed.join(
            self._content(told), left_on=ours, right_on=[f"__theirs{at}" for at in range(len(ours))],
            how=self.kind, maintain_order="left_right" if self.names else "left",  # type: ignore[arg-type]
        )  # fmt: skip
        return found.select(*rows.columns, *(shown for _, shown, _ in self.names))

    def _content(self, told: Told) -> pl.DataFrame:
        """The columns that are wanted of the table, with its keys, rows in their order."""
        record = told.tables[self.table]
        known = (f"{told.place}/{record.file}", f"{self} {self.predicates} {self.names}")
        # Taken and put once: runs and splits beside this one put theirs, and clear all of it
        kept = _KEPT.get(known)
        if kept is None:
            rows = read_table(told.place, record)
            for predicate in self.predicates:
                rows = rows.filter(to_polars(predicate, rows.schema))
            theirs = [
                to_polars(key, rows.schema).alias(f"__theirs{at}")
                for at, key in enumerate(self.keys[1])
            ]
            shown = [pl.col(own).alias(shown) for own, shown, _ in self.names]
            kept = rows.select(*theirs, *shown)
            if len(_KEPT) >= MOST_KEPT:
                _KEPT.clear()
            _KEPT[known] = kept
        return kept

    def wanted(self, columns: Iterable[str]) -> set[str]:
        """The input columns that these columns depend on."""
        used = {name for key in self.keys[0] for name in columns_of(key)}
        return ({*columns} - {shown for _, shown, _ in self.names}) | used


def read_table(place: Place, record: TableRecord) -> pl.DataFrame:
    """The rows of a version of a table."""
    try:
        found = pl.from_arrow(open_arrow(place, record.file, record.checksum).read_all())
    except (OSError, pa.ArrowException, Damaged) as error:
        raise StateError(
            f"The table in '{place}/{record.file}' cannot be read: {error}. Was the checkpoint folder "
            "changed by hand? Restore it or start with a new one."
        ) from error
    assert isinstance(found, pl.DataFrame)
    return found
