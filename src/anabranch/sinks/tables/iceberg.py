"""Results as an Iceberg table, written with the library pyiceberg.

Every epoch is one commit of the table. Its number stands among the properties of the table, set in the same
commit, where it outlives snapshots that expire; snapshots carry run and epoch too, for people.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from anabranch.errors import SettingsError
from anabranch.sinks.base import WriteContext
from anabranch.sinks.tables.care import TARGET_BYTES, checked_columns, require_care
from anabranch.sinks.tables.columns import SMALL, agree, table_types
from anabranch.sinks.tables.iceberg_care import bring_together, expire
from anabranch.sinks.tables.parts import require_partitioning
from anabranch.sinks.tables.table import (
    Conflict,
    NewFile,
    TableShape,
    Taking,
    kept_columns,
    keys_of,
)
from anabranch.sinks.tables.writer import TableWriter
from anabranch.sources.tables.catalog import load, local_folder
from anabranch.sources.tables.needs import needed

WITHOUT = frozenset({pl.Time})
PROPERTIES = {
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}
"""What a new table gets so that a commit does not cost more with every commit before it."""
ALONE = {"commit.retry.num-retries": "0"}
"""For our own handle: whoever commits anew must first ask what the table has."""


@dataclass(frozen=True)
class IcebergSink:
    """An Iceberg table, `namespace.name`; it is made if it does not exist.

    `catalog` is the name of one that pyiceberg is configured for, in its file or the environment; `uri` and
    `warehouse` are those of a SQL catalog, as `sqlite:///catalog.db`. Other `properties` of it may be given.
    The rest is as for a `DeltaSink`; with `retain`, snapshots expire that are older than that.
    """

    name: str
    catalog: str = "default"
    uri: str | None = field(default=None, repr=False)
    warehouse: str | None = None
    partition_by: Sequence[str] = ()
    evolve: bool = False
    updates: str = "merge"
    optimize: int = 100
    target_bytes: int = TARGET_BYTES
    retain: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        name: Any = self.name
        if not isinstance(name, str) or "." not in name.strip("."):
            raise SettingsError(
                f"The name of an Iceberg table is {name!r:.100}; expected namespace.name."
            )
        object.__setattr__(self, "partition_by", checked_columns("IcebergSink", self.partition_by))
        require_care("IcebergSink", self.optimize, self.target_bytes, self.retain)

    @property
    def table(self) -> str:
        """What tells it from other tables."""
        return f"{self.catalog}.{self.name}"

    def open(self, context: WriteContext) -> TableWriter:
        what = f"The Iceberg table '{self.table}' of query '{context.query}'"
        with needed("iceberg", what):
            import pyiceberg.catalog  # noqa: F401 - what is missing is told here
        keys = keys_of(what, context, self.updates)
        types = table_types(what, kept_columns(context, keys), SMALL, WITHOUT)
        require_partitioning(what, self.partition_by, types)
        try:
            catalog = load(self.catalog, self.uri, self.warehouse, self.properties)
            table = self._made(what, types, catalog)
        except SettingsError:
            raise
        except Exception as error:  # catalogs of all kinds have errors of their own
            raise SettingsError(
                f"{what} cannot be opened: {type(error).__name__}: {error}. Mend the catalog's properties "
                "(catalog=, uri=, warehouse=, or the configuration of pyiceberg), or use another table."
            ) from error
        fields = [
            (table.schema().find_column_name(one.source_id), one) for one in table.spec().fields
        ]
        parted = tuple(str(column) for column, _ in fields)
        if self.partition_by and parted != tuple(self.partition_by):
            raise SettingsError(
                f"{what} is partitioned by {', '.join(parted) or 'nothing'}, not by "
                f"{', '.join(self.partition_by)}: give the columns that it has, or use another table."
            )
        # Only the library knows how to cut rows by days or buckets: then the driver writes
        by_value = all(str(one.transform) == "identity" for _, one in fields)
        folder = local_folder(table.location()) if by_value else None
        data = folder / "data" if folder is not None else None
        shape = TableShape(what, types, keys, parted, data, tend_every=self.optimize)
        return TableWriter(_IcebergTable(table, self), shape, context)

    def _made(self, what: str, types: pl.Schema, catalog: Any) -> Any:
        """The table, with all columns of the results."""
        from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError

        wanted = _arrow(pl.DataFrame(schema=types)).schema
        try:
            table = catalog.load_table(self.name)
        except NoSuchTableError:
            catalog.create_namespace_if_not_exists(self.name.rpartition(".")[0])
            with (
                contextlib.suppress(TableAlreadyExistsError),
                catalog.create_table_transaction(
                    self.name, wanted, properties=PROPERTIES
                ) as making,
                making.update_spec() as spec,
            ):
                for column in self.partition_by:
                    spec.add_identity(column)
            table = catalog.load_table(self.name)
        existing = pl.DataFrame(table.schema().as_arrow().empty_table()).schema
        if agree(what, types, existing, self.evolve):
            with table.update_schema() as change:
                change.union_by_name(wanted)
        return table

    def describe(self) -> str:
        return f"{self.table} (iceberg)"


@dataclass
class _IcebergTable:
    """An Iceberg table opened by one run."""

    table: Any
    sink: IcebergSink

    def reached(self, app: str) -> int | None:
        self.table.refresh()
        self.table.metadata.properties.update(ALONE)
        epoch = self.table.properties.get(_property(app))
        return None if epoch is None else int(epoch)

    def adopt(self, files: Sequence[NewFile], taking: Taking) -> None:
        location = self.table.location().rstrip("/")
        paths = [f"{location}/data/{file.name}" for file in files]
        with self._committing(taking) as change:
            change.add_files(paths, _snapshot(taking), check_duplicate_files=False)

    def append(self, rows: pl.DataFrame, taking: Taking) -> None:
        with self._committing(taking) as change:
            change.append(_arrow(rows), _snapshot(taking))

    def merge(
        self, rows: pl.DataFrame, gone: pl.DataFrame, keys: Sequence[str], taking: Taking
    ) -> None:
        changed = pl.concat([rows.select(keys), gone.select(keys)])
        near = _range(changed)
        found = pl.DataFrame(self.table.scan(near).to_arrow()) if self._snapshots else None
        if found is None or not found.height:
            return self.append(rows, taking) if rows.height else self._note(taking)
        kept = found.clear()
        if keys:
            kept = found.join(changed, on=list(keys), how="anti", nulls_equal=True)
        whole = pl.concat([kept, rows], how="diagonal")
        with self._committing(taking) as change, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            change.overwrite(_arrow(whole), near, _snapshot(taking))

    @property
    def _snapshots(self) -> bool:
        return self.table.current_snapshot() is not None

    def _note(self, taking: Taking) -> None:
        with self._committing(taking):
            pass

    @contextlib.contextmanager
    def _committing(self, taking: Taking) -> Iterator[Any]:
        """A change of the table that also notes the epoch."""
        with conflicts(), self.table.transaction() as change:
            change.set_properties({_property(taking.app): str(taking.epoch)})
            yield change

    def tend(self) -> None:
        with conflicts():
            self.table.refresh()
            self.table.metadata.properties.update(ALONE)
            bring_together(self.table, self.sink.target_bytes)
            if self.sink.retain is not None:
                expire(self.table, self.sink.retain)

    def close(self) -> None:
        pass


@contextlib.contextmanager
def conflicts() -> Iterator[None]:
    from pyiceberg.exceptions import CommitFailedException, ValidationException

    try:
        yield
    except (CommitFailedException, ValidationException) as error:
        raise Conflict(str(error)) from error


def _property(app: str) -> str:
    return f"anabranch.epoch.{app}"


def _snapshot(taking: Taking) -> dict[str, str]:
    return {
        "anabranch.run": taking.run,
        "anabranch.query": taking.query,
        "anabranch.epoch": str(taking.epoch),
    }


def _range(keys: pl.DataFrame) -> Any:
    """What rows with these keys have in common: the bounds of one column, or nothing."""
    from pyiceberg import expressions

    terms: Any = expressions  # which are made of names too, whatever their types say
    for name, kind in keys.schema.items():
        plain = kind.is_integer() or kind in (pl.String, pl.Date)
        if plain and keys.height and not keys[name].has_nulls():
            low: Any = keys[name].min()
            high: Any = keys[name].max()
            return terms.And(terms.GreaterThanOrEqual(name, low), terms.LessThanOrEqual(name, high))
    return terms.AlwaysTrue()


def _arrow(rows: pl.DataFrame) -> Any:
    return rows.to_arrow(compat_level=pl.CompatLevel.oldest())
