"""An Iceberg table as a stream: the files of its first snapshot, then those that later ones have added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from anabranch.errors import SourceError
from anabranch.sources.tables.catalog import load, local_folder
from anabranch.sources.tables.log import DataFile, TableChange
from anabranch.sources.tables.needs import needed
from anabranch.sources.tables.source import TableSource

EXACT = ("boolean", "int", "long", "decimal", "date", "timestamp", "timestamptz", "string")
"""Types of partitioning values that a text holds; pyiceberg has been seen to round a double."""


def iceberg_source(
    stream: str, name: str, on_change: str, catalog: str = "default", uri: str | None = None,
    warehouse: str | None = None,
) -> TableSource:  # fmt: skip
    """The rows of an Iceberg table, and those that are added to it."""

    def connect() -> IcebergLog:
        return IcebergLog(stream, name, catalog, uri, warehouse)

    text = f"the Iceberg table '{catalog}.{name}'"
    return TableSource(stream, text, connect().schema, connect, on_change)


class IcebergLog:
    """The snapshots of an Iceberg table."""

    def __init__(
        self, stream: str, name: str, catalog: str, uri: str | None, warehouse: str | None
    ) -> None:
        self._what = f"Stream '{stream}', Iceberg table '{catalog}.{name}'"
        with needed("iceberg", self._what):
            import pyiceberg.table  # noqa: F401 - what is missing is told here
        try:
            self._table: Any = load(catalog, uri, warehouse, {}).load_table(name)
        except Exception as error:  # catalogs of all kinds have errors of their own
            raise SourceError(
                f"{self._what}: cannot be opened: {type(error).__name__}: {error}."
            ) from error
        if local_folder(self._table.location()) is None:
            raise SourceError(
                f"{self._what}: it lies in '{self._table.location()}'; expected a folder that all machines "
                "share. For tables elsewhere give a streaming DataFrame of Spark."
            )
        self._require_names()

    def _require_names(self) -> None:
        """Files are read by the names of columns, which Iceberg may change."""
        names: dict[int, str] = {}
        for schema in self._table.schemas().values():
            for field in schema.fields:
                if names.setdefault(field.field_id, field.name) != field.name:
                    raise SourceError(
                        f"{self._what}: column '{names[field.field_id]}' was renamed to '{field.name}' or "
                        "back, so older files have it under another name. Leave such a table to Spark."
                    )

    @property
    def identity(self) -> str:
        return str(self._table.metadata.table_uuid)

    @property
    def schema(self) -> pl.Schema:
        return pl.DataFrame(self._table.schema().as_arrow().empty_table()).schema

    def latest(self) -> int | None:
        self._table.refresh()
        self._require_names()
        snapshot = self._table.current_snapshot()
        return None if snapshot is None else int(snapshot.snapshot_id)

    def whole(self, version: int) -> list[DataFile]:
        if self._table.snapshot_by_id(version) is None:
            raise self._expired(version)
        tasks = list(self._table.scan(snapshot_id=version).plan_files())
        if any(task.delete_files for task in tasks):
            raise SourceError(
                f"{self._what}: it has rows that are marked as deleted, which cannot be read here. "
                "Compact it first."
            )
        return sorted((self._file(task.file) for task in tasks), key=lambda file: file.path)

    def after(self, version: int, last: int, inclusive: bool) -> Iterator[TableChange]:
        line: list[Any] = []
        snapshot = self._table.snapshot_by_id(last)
        while snapshot is not None and snapshot.snapshot_id != version:
            line.append(snapshot)
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self._table.snapshot_by_id(parent)
        if snapshot is None:
            raise self._expired(version)
        return (self._change(one) for one in reversed([*line, *([snapshot] if inclusive else [])]))

    def _expired(self, version: int) -> SourceError:
        return SourceError(
            f"{self._what}: its snapshot {version}, to which the stream has come, or one after it, has "
            "expired or was rolled back, so rows would be missing. Let snapshots live longer than a stream "
            "may stand still, or use a new checkpoint folder."
        )

    def _change(self, snapshot: Any) -> TableChange:
        done = str(snapshot.summary.operation.value)
        number = int(snapshot.snapshot_id)
        if done == "replace" or "anabranch.care" in snapshot.summary.additional_properties:
            return TableChange(number)
        if done != "append":
            return TableChange(number, refused=f"({done}) takes away rows that were there")
        files = [
            self._file(entry.data_file)
            for manifest in snapshot.manifests(self._table.io)
            if manifest.added_snapshot_id == number
            for entry in manifest.fetch_manifest_entry(self._table.io, discard_deleted=True)
            if entry.snapshot_id in (None, number)
        ]
        return TableChange(number, sorted(files, key=lambda file: file.path))

    def _file(self, file: Any) -> DataFile:
        folder = local_folder(file.file_path)
        path = str(folder) if folder is not None else file.file_path
        values, untold = self._values(file)
        size, rows = file.file_size_in_bytes, file.record_count
        return DataFile(path, size, rows, values, own_first=True, untold=untold)

    def _values(self, file: Any) -> tuple[dict[str, str | None], frozenset[str]]:
        """What a file is partitioned by: one that was brought over from Hive lacks such columns itself."""
        schema = self._table.schema()
        values: dict[str, str | None] = {}
        untold = set()
        for at, part in enumerate(self._table.specs()[file.spec_id].fields):
            column = schema.find_column_name(part.source_id)
            if column is None or str(part.transform) != "identity":
                continue
            kind, value = schema.find_type(part.source_id), file.partition[at]
            if value is not None and str(kind).partition("(")[0] not in EXACT:
                untold.add(column)
                continue
            values[column] = None if value is None else part.transform.to_human_string(kind, value)
        return values, frozenset(untold)
