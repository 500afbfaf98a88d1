"""Results as a Delta table, written with the library deltalake.

Every epoch is one commit of the table, with Delta's own transaction id: the run and the query are its
application, the epoch its version. So an epoch that is handed over again is known, whoever has compacted the
table meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl

from anabranch.errors import SettingsError
from anabranch.sinks.base import WriteContext
from anabranch.sinks.tables.care import TARGET_BYTES, checked_columns, microseconds, require_care
from anabranch.sinks.tables.columns import UNSIGNED, agree, table_types
from anabranch.sinks.tables.parts import partition_values, require_partitioning, statistics
from anabranch.sinks.tables.table import (
    Conflict,
    NewFile,
    TableShape,
    Taking,
    kept_columns,
    keys_of,
)
from anabranch.sinks.tables.writer import TableWriter
from anabranch.sources.tables.needs import needed

WITHOUT = frozenset({pl.Time})
HOUR = 3_600_000_000


@dataclass(frozen=True)
class DeltaSink:
    """A Delta table at a path or URI; it is made if it does not exist.

    `partition_by` are columns. With `evolve`, columns that the table lacks are added to it. Results that
    replace earlier ones (emit="update") are merged, or with `updates="append"` every change is kept. Every
    `optimize` epochs small files are brought together, up to `target_bytes`; with `retain`, a length of time,
    files are then deleted that the table has not needed for so long. `options` are those of the object store.
    """

    path: str | Path
    partition_by: Sequence[str] = ()
    evolve: bool = False
    updates: str = "merge"
    optimize: int = 100
    target_bytes: int = TARGET_BYTES
    retain: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        given: Any = self.path
        if not isinstance(given, (str, Path)) or not str(given) or "\0" in str(given):
            raise SettingsError(
                f"The path of a Delta table is {given!r:.100}; expected a folder or a URI."
            )
        parts = urlsplit(str(given)) if "://" in str(given) else None
        # Azure's addresses have the container before the '@'
        if parts is not None and (parts.query or ":" in parts.netloc.rpartition("@")[0]):
            raise SettingsError(
                "The URI of a Delta table is expected without credentials and parameters, for it is shown: "
                "leave them to the environment, or give options=."
            )
        path = str(given) if "://" in str(given) else os.path.abspath(given)
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "partition_by", checked_columns("DeltaSink", self.partition_by))
        require_care("DeltaSink", self.optimize, self.target_bytes, self.retain)

    @property
    def folder(self) -> Path | None:
        """The folder of this machine that it is in, if it is in one."""
        return None if "://" in str(self.path) else Path(self.path)

    @property
    def table(self) -> str:
        """What tells it from other tables."""
        return str(self.path)

    def open(self, context: WriteContext) -> TableWriter:
        what = f"The Delta table '{self.path}' of query '{context.query}'"
        with needed("delta", what):
            import deltalake
        keys = keys_of(what, context, self.updates)
        types = table_types(what, kept_columns(context, keys), UNSIGNED, WITHOUT)
        table = self._made(what, types, deltalake)
        partition_by = tuple(table.metadata().partition_columns)
        if self.partition_by and partition_by != tuple(self.partition_by):
            raise SettingsError(
                f"{what} is partitioned by {', '.join(partition_by) or 'nothing'}, not by "
                f"{', '.join(self.partition_by)}: give the columns that it has, or use another table."
            )
        shape = TableShape(
            what, types, keys, partition_by, self.folder, bare=True, tend_every=self.optimize
        )
        return TableWriter(_DeltaTable(table, self, shape), shape, context)

    def _made(self, what: str, types: pl.Schema, deltalake: Any) -> Any:
        """The table, with all columns of the results."""
        require_partitioning(what, self.partition_by, types)
        options = dict(self.options) or None
        wanted = pl.DataFrame(schema=types).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
        try:
            # Does nothing if it exists
            table = deltalake.DeltaTable.create(
                self.path, wanted, mode="ignore", partition_by=list(self.partition_by),
                storage_options=options,
            )  # fmt: skip
            existing = pl.DataFrame(_empty(table)).schema
            missing = agree(what, types, existing, self.evolve)
            if missing:
                fields = deltalake.Schema.from_arrow(wanted).fields
                table.alter.add_columns([one for one in fields if one.name in missing])
                table.update_incremental()
        except (deltalake.exceptions.DeltaError, OSError) as error:
            raise SettingsError(
                f"{what} cannot be opened: {error}. Mend what is there, or use another path."
            ) from error
        return table

    def describe(self) -> str:
        return f"{self.path} (delta)"


def _empty(table: Any) -> Any:
    """A table of the same columns without rows, as Arrow has it."""
    import pyarrow as pa

    return pa.schema(table.schema().to_arrow()).empty_table()


@dataclass
class _DeltaTable:
    """A Delta table opened by one run."""

    table: Any
    sink: DeltaSink
    shape: TableShape

    def reached(self, app: str) -> int | None:
        self.table.update_incremental()
        version: int | None = self.table.transaction_version(app)
        return version

    def adopt(self, files: Sequence[NewFile], taking: Taking) -> None:
        from deltalake.transaction import AddAction

        added = [
            AddAction(
                path=file.name,
                size=file.part.bytes,
                partition_values=partition_values(file.name),
                modification_time=int(file.path.stat().st_mtime * 1000),
                data_change=True,
                stats=json.dumps(statistics(file.path)),
            )
            for file in files
        ]
        with _conflicts():
            self.table.create_write_transaction(
                added, "append", self.table.schema(), list(self.shape.partition_by),
                commit_properties=_noted(taking),
            )  # fmt: skip

    def append(self, rows: pl.DataFrame, taking: Taking) -> None:
        import deltalake

        with _conflicts():
            deltalake.write_deltalake(
                self.table, _arrow(rows), mode="append", commit_properties=_noted(taking)
            )

    def merge(
        self, rows: pl.DataFrame, gone: pl.DataFrame, keys: Sequence[str], taking: Taking
    ) -> None:
        mark = "__gone"
        source = pl.concat(
            [
                rows.with_columns(pl.lit(False).alias(mark)),
                gone.with_columns(pl.lit(True).alias(mark)),
            ]
        )
        # Equality where it will do: files can be passed over by it
        same = [
            f"t.{_quoted(key)} {'IS NOT DISTINCT FROM' if source[key].has_nulls() else '='} "
            f"s.{_quoted(key)}"
            for key in keys
        ]
        columns = {_quoted(name): f"s.{_quoted(name)}" for name in rows.columns}
        with _conflicts():
            merger = self.table.merge(
                _arrow(source), " AND ".join(same) or "true", source_alias="s", target_alias="t",
                commit_properties=_noted(taking),
            )  # fmt: skip
            if gone.height:
                merger = merger.when_matched_delete(f"s.{mark}")
            merger = merger.when_matched_update(columns)
            merger.when_not_matched_insert(columns, f"NOT s.{mark}").execute()

    def tend(self) -> None:
        with _conflicts():
            self.table.optimize.compact(target_size=self.sink.target_bytes)
            if self.sink.retain is not None:
                # The library takes whole hours: rather longer than too short
                hours = -(-microseconds(self.sink.retain) // HOUR)
                self.table.vacuum(hours, dry_run=False, enforce_retention_duration=False)

    def close(self) -> None:
        pass


def _noted(taking: Taking) -> Any:
    """What makes a commit that of an epoch."""
    from deltalake import CommitProperties, Transaction

    return CommitProperties(
        custom_metadata={"anabranch.run": taking.run, "anabranch.epoch": str(taking.epoch)},
        app_transactions=[Transaction(taking.app, taking.epoch)],
    )


@contextlib.contextmanager
def _conflicts() -> Iterator[None]:
    from deltalake.exceptions import CommitFailedError

    try:
        yield
    except CommitFailedError as error:
        raise Conflict(str(error)) from error


def _arrow(rows: pl.DataFrame) -> Any:
    return rows.to_arrow(compat_level=pl.CompatLevel.oldest())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
