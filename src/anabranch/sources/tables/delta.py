"""A Delta table as a stream: deltalake tells what a version holds, the log what each later one has added."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl
import pyarrow as pa

from anabranch.errors import SourceError
from anabranch.sources.tables.log import DataFile, TableChange
from anabranch.sources.tables.needs import needed
from anabranch.sources.tables.source import TableSource

UNREADABLE = ("deletionVectors", "columnMapping", "v2Checkpoint", "catalogManaged")
"""Features by which a file does not say, or does not name, what the table has."""


def delta_source(stream: str, path: str | Path, on_change: str) -> TableSource:
    """The rows of a Delta table in a folder, and those that are added to it."""
    if "://" in str(path):
        raise SourceError(
            f"Stream '{stream}': delta is '{path}'; expected a folder of this machine. For tables elsewhere "
            "give a streaming DataFrame of Spark."
        )
    folder = os.path.abspath(path)
    log = DeltaLog(stream, folder)
    return TableSource(
        stream,
        f"the Delta table '{folder}'",
        log.schema,
        lambda: DeltaLog(stream, folder),
        on_change,
    )


class DeltaLog:
    """The log of a Delta table."""

    def __init__(self, stream: str, folder: str) -> None:
        self._stream, self._folder = stream, folder
        with needed("delta", f"Stream '{stream}'"):
            import deltalake
        try:
            self._table: Any = deltalake.DeltaTable(folder)
        except (deltalake.exceptions.DeltaError, OSError) as error:
            raise SourceError(
                f"Stream '{stream}': there is no Delta table in '{folder}' that can be read: {error}."
            ) from error
        protocol = self._table.protocol()
        features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        for feature in UNREADABLE:
            if feature in features:
                raise self._fault(f"the table has the feature '{feature}', which is not known here")

    def _fault(self, why: str) -> SourceError:
        return SourceError(f"Stream '{self._stream}', Delta table '{self._folder}': {why}.")

    @property
    def identity(self) -> str:
        return str(self._table.metadata().id)

    @property
    def schema(self) -> pl.Schema:
        return pl.DataFrame(pa.schema(self._table.schema().to_arrow()).empty_table()).schema

    def latest(self) -> int | None:
        self._table.update_incremental()
        return int(self._table.version())

    def whole(self, version: int) -> list[DataFile]:
        import deltalake

        try:
            table = deltalake.DeltaTable(self._folder, version=version)
        except (deltalake.exceptions.DeltaError, OSError) as error:
            raise self._fault(
                f"version {version}, which the stream has begun with and not read to the end, is no longer "
                f"known ({error}); let the table keep its log longer, or use a new checkpoint folder"
            ) from error
        actions = pl.DataFrame(table.get_add_actions())
        files = [
            self._file(_Added.of(row))
            for row in actions.sort("modification_time", "path").to_dicts()
        ]
        return files

    def after(self, version: int, last: int, inclusive: bool) -> Iterator[TableChange]:
        first = version if inclusive else version + 1
        return (self._change(number) for number in range(first, last + 1))

    def _change(self, version: int) -> TableChange:
        path = Path(self._folder) / "_delta_log" / f"{version:020d}.json"
        try:
            actions = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        except (OSError, ValueError) as error:
            raise self._fault(
                f"version {version} of its log cannot be read ({error}), so rows would be missing; let the "
                "table keep its log longer than a stream may stand still, or use a new checkpoint folder"
            ) from error
        added = [one["add"] for one in actions if one.get("add", {}).get("dataChange")]
        removed = [one for one in actions if one.get("remove", {}).get("dataChange")]
        if removed or any(one.get("deletionVector") for one in added):
            done: dict[str, Any] = next(
                (one["commitInfo"] for one in actions if "commitInfo" in one), {}
            )
            word = done.get("operation", "a change")
            return TableChange(version, refused=f"({word}) takes away rows that were there")
        return TableChange(version, [self._file(_Added.of(one)) for one in added])

    def _file(self, added: _Added) -> DataFile:
        path = os.path.join(self._folder, unquote(added.path))
        return DataFile(path, added.size, added.rows, added.values)


@dataclass(frozen=True)
class _Added:
    """A file as the log, or the list of a version, has it."""

    path: str
    size: int
    rows: int
    values: dict[str, str | None]

    @classmethod
    def of(cls, action: dict[str, Any]) -> _Added:
        if "size_bytes" in action:
            # The list has values by their types, the log as texts
            values = {
                name: None if value is None else _text(value)
                for name, value in (action.get("partition") or {}).items()
            }
            return cls(action["path"], action["size_bytes"], action.get("num_records") or 0, values)
        counted = json.loads(action.get("stats") or "{}").get("numRecords", 0)
        values = {name: value or None for name, value in action["partitionValues"].items()}
        return cls(action["path"], action["size"], counted, values)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
