"""Parts of a table as tasks write them: Parquet files, one for each value of the partitioning columns.

    day=2026-11-18/part-site-0001-flows@1-0.parquet

The name of a part has the values, so the manifest has them too, and the driver needs not look into a file to
know where it belongs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import polars as pl
import pyarrow.parquet as pq

from anabranch.errors import RunError, SettingsError
from anabranch.language.kinds import type_words
from anabranch.sinks.staging import Staging
from anabranch.sinks.tables.columns import fit
from anabranch.state.manifest import ResultPart

NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""How NULL is written in the name of a folder."""
LONGEST_VALUE = 200
"""Bytes of a value in the name of a folder: file systems take 255 in all."""
LONGEST_BOUND = 64
"""Texts that are longer are not noted as the least or the greatest of a file."""


@dataclass(frozen=True)
class TableStaging(Staging):
    """Where tasks put files that may become the table's own."""

    types: Mapping[str, pl.DataType] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    bare: bool = False
    """Whether files are without the partitioning columns."""
    zeros: bool = True
    """Whether texts may have the character of code 0 in them."""

    def write_all(self, rows: pl.DataFrame, part: str) -> list[ResultPart]:
        rows = fit(rows, self.types)
        if not self.zeros:
            _require_no_zeros(rows)
        if not self.partition_by:
            return [self.write(rows, part)]
        written = []
        for values, group in rows.partition_by(
            self.partition_by, as_dict=True, include_key=not self.bare, maintain_order=True
        ).items():
            folders = "".join(map(_folder, self.partition_by, values))
            written.append(self.write(group, part, folders))
        return written


def _require_no_zeros(rows: pl.DataFrame) -> None:
    texts = pl.col(pl.String)
    for column in rows.select(texts.str.contains("\0", literal=True).any()).iter_columns():
        if column.any():
            raise RunError(
                f"A text of column '{column.name}' has the character \\x00 in it, which the table cannot "
                "take. Leave such rows out in the query, or take another sink. The epoch is not counted."
            )


def _folder(column: str, value: Any) -> str:
    """The folder of a value: `day=2026-11-18/`."""
    if value is None:
        return f"{quote(column, safe='')}={NOTHING}/"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    name = f"{quote(column, safe='')}={quote(text, safe=' ')}"
    if text in ("", NOTHING) or len(name) > LONGEST_VALUE:
        why = (
            f"at most {LONGEST_VALUE} bytes" if text else "no empty text, which tables read as NULL"
        )
        raise RunError(
            f"A table cannot be partitioned by the value {text[:60]!r} of column '{column}': expected {why}. "
            "Leave such rows out in the query, or partition the table by another column. The epoch is not "
            "counted."
        )
    return f"{name}/"


def partition_values(name: str) -> dict[str, str | None]:
    """The values that the name of a part tells.

    >>> partition_values("day=2026-11-18/k=__HIVE_DEFAULT_PARTITION__/part-0.parquet")
    {'day': '2026-11-18', 'k': None}
    """
    folders = [folder.partition("=") for folder in name.split("/")[:-1]]
    return {
        unquote(column): None if value == NOTHING else unquote(value)
        for column, _, value in folders
    }


def require_partitioning(
    what: str, columns: Sequence[str], schema: Mapping[str, pl.DataType]
) -> None:
    """Refuses columns that are not there, or whose values make no good folders."""
    for column in columns:
        kind = schema.get(column)
        if kind is None:
            raise SettingsError(
                f"{what} is to be partitioned by '{column}', which is not a column of the results: "
                f"{', '.join(schema)}."
            )
        if not (kind.is_integer() or kind in (pl.String, pl.Date, pl.Boolean)):
            raise SettingsError(
                f"{what} is to be partitioned by '{column}', which is {type_words(kind)}: expected whole "
                "numbers, texts, dates or truth values."
            )
    if len(columns) == len(schema):
        raise SettingsError(f"{what} is to be partitioned by all of its columns: leave some out.")


def statistics(path: Path) -> dict[str, Any]:
    """What readers of a Delta table skip files by, from the end of a Parquet file: rows, bounds, NULLs.

    Floats have no bounds here: NaN is in none, and some readers take it for the greatest number.
    """
    footer = pq.read_metadata(path)
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    for at in range(footer.num_columns):
        name = footer.schema.column(at).path
        columns = [group.column(at).statistics for group in groups]
        if any(one is None or not one.has_null_count for one in columns):
            continue
        nulls[name] = sum(one.null_count for one in columns)
        bounds = [one for one in columns if one.has_min_max]
        if not bounds or any(not one.has_min_max and one.num_values for one in columns):
            continue
        low, high = min(one.min for one in bounds), max(one.max for one in bounds)
        if _is_bound(low) and _is_bound(high):
            least[name], most[name] = _bound(low), _bound(high)
    return {
        "numRecords": footer.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls,
    }  # fmt: skip


def _is_bound(value: Any) -> bool:
    if isinstance(value, str):
        return len(value.encode()) <= LONGEST_BOUND
    return type(value) is int or type(value) is dt.date


def _bound(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.date) else value
