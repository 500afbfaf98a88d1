"""Results as a table of PostgreSQL: rows go there as Arrow, by COPY, with the number of their epoch.

    anabranch_epochs (run, query, epoch)    in the schema of the table: how far each run has come

Rows and number are one transaction, and the number can only grow. An epoch that is handed over again counts
once, by two drivers at once too. Readers see whole epochs.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import polars as pl

from anabranch.errors import SettingsError, StateError
from anabranch.sinks.base import WriteContext
from anabranch.sinks.tables.columns import UNSIGNED, Wider, agree, table_types
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

WIDER: Wider = {**UNSIGNED, pl.Int8: pl.Int16()}
TYPES: dict[pl.DataType, str] = {
    pl.Int16(): "smallint", pl.Int32(): "integer", pl.Int64(): "bigint", pl.Float32(): "real",
    pl.Float64(): "double precision", pl.String(): "text", pl.Binary(): "bytea",
    pl.Boolean(): "boolean", pl.Date(): "date", pl.Time(): "time without time zone",
    pl.Datetime("us"): "timestamp without time zone",
    pl.Datetime("us", "UTC"): "timestamp with time zone",
}  # fmt: skip
SAME = {"character varying": pl.String(), "character": pl.String()}
EPOCHS = "anabranch_epochs"
NULLS_NOT_DISTINCT = 150000
"""The first version of the server whose unique indexes take one NULL for another."""


@dataclass(frozen=True)
class PostgresSink:
    """A table of PostgreSQL, `schema.table` or `table`; it is made if it does not exist.

    `uri` is that of the database, as `postgresql://host/database`; what it leaves out is taken from the
    environment (PGPASSWORD, PGPASSFILE, PGUSER and the like): that is the place for the password. With
    `evolve`, columns that the table lacks are added. Results that replace earlier ones (emit="update") take
    the place of the rows of their groups, or with `updates="append"` every change is kept.
    """

    name: str
    uri: str = field(default="postgresql://", repr=False)
    evolve: bool = False
    updates: str = "merge"

    def __post_init__(self) -> None:
        name: Any = self.name
        if not isinstance(name, str) or not name or "\0" in name:
            raise SettingsError(f"The name of a table is {name!r:.100}; expected schema.table.")
        scheme = str(self.uri).partition("://")[0]
        if scheme not in ("postgresql", "postgres"):
            # Not the URI itself, which may have a password in it
            raise SettingsError(
                f"The uri of table '{name}' begins with '{scheme[:20]}'; expected postgresql://host/database."
            )

    @property
    def table(self) -> str:
        """What tells it from other tables."""
        parts = urlsplit(self.uri)
        # Whatever stands before the host is a secret, or may be
        return f"{parts.netloc.rpartition('@')[2]}{parts.path}.{'.'.join(self._path)}".lstrip(".")

    @property
    def _path(self) -> tuple[str, str]:
        schema, _, table = self.name.rpartition(".")
        return schema or "public", table

    def open(self, context: WriteContext) -> TableWriter:
        what = f"The PostgreSQL table '{self.table}' of query '{context.query}'"
        with needed("postgres", what):
            import adbc_driver_postgresql.dbapi  # noqa: F401 - what is missing is told here
        keys = keys_of(what, context, self.updates)
        types = table_types(what, kept_columns(context, keys), WIDER, frozenset())
        shape = TableShape(what, types, keys, zeros=False)
        table = _PostgresTable(self.uri, self._path, shape)
        try:
            table.make(self.evolve)
        except (SettingsError, StateError):
            raise
        except Exception as error:
            raise SettingsError(
                f"{what} cannot be opened: {_words(error, self.uri)}. Is the server there, and may the user "
                "write to that table?"
            ) from None
        return TableWriter(table, shape, context)

    def describe(self) -> str:
        return f"{self.table} (postgres)"


def _words(error: BaseException, uri: str) -> str:
    """What the server says, without what the address may tell of the user."""
    secret = urlsplit(uri).password
    text = " ".join(str(error).split())
    return (text.replace(secret, "***") if secret else text)[:400]


@dataclass
class _PostgresTable:
    """A table that one run has a connection for."""

    uri: str
    path: tuple[str, str]
    shape: TableShape
    _connection: Any = None

    @property
    def _name(self) -> str:
        return ".".join(map(_quoted, self.path))

    @property
    def _epochs(self) -> str:
        return f"{_quoted(self.path[0])}.{EPOCHS}"

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Any]:
        """A cursor whose work counts as a whole; a connection that was lost is made anew for the next."""
        from adbc_driver_manager import OperationalError
        from adbc_driver_postgresql import dbapi

        try:
            if self._connection is None:
                self._connection = dbapi.connect(self.uri)
            with self._connection.cursor() as cursor:
                yield cursor
            self._connection.commit()
        except BaseException as error:
            self.close()
            if isinstance(error, OperationalError):
                # Whether it was done is asked of the server before it is tried again
                raise Conflict(_words(error, self.uri)) from None
            raise

    def make(self, evolve: bool) -> None:
        """Makes the table and the list of epochs, or sees to it that the results fit."""
        types = self.shape.types
        with self._transaction() as cursor:
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {self._epochs} (run text, query text, epoch bigint NOT NULL, "
                "PRIMARY KEY (run, query))"
            )
            existing = self._columns(cursor)
            if not existing:
                columns = ", ".join(
                    f"{_quoted(name)} {_type(kind)}" for name, kind in types.items()
                )
                cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._name} ({columns})")
                if self.shape.keys:
                    self._index(cursor, self.shape.keys)
                return
            for name, kind in agree(self.shape.what, types, existing, evolve).items():
                cursor.execute(
                    f"ALTER TABLE {self._name} ADD COLUMN IF NOT EXISTS {_quoted(name)} {_type(kind)}"
                )

    def _columns(self, cursor: Any) -> dict[str, pl.DataType]:
        """The columns of the table by their types; none if there is no such table."""
        schema, table = (_text(part) for part in self.path)
        cursor.execute(
            "SELECT column_name::text, data_type::text, numeric_precision::int, numeric_scale::int "
            f"FROM information_schema.columns WHERE table_schema = {schema} AND table_name = {table} "
            "ORDER BY ordinal_position"
        )
        known = {word: kind for kind, word in TYPES.items()} | SAME
        found: dict[str, pl.DataType] = {}
        for name, word, precision, scale in cursor.fetchall():
            numeric = word == "numeric" and precision is not None
            found[name] = (
                pl.Decimal(precision, scale or 0) if numeric else known.get(word, pl.Unknown())
            )
        return found

    def _index(self, cursor: Any, keys: Sequence[str]) -> None:
        cursor.execute("SELECT current_setting('server_version_num')::bigint")
        columns = ", ".join(map(_quoted, keys))
        if cursor.fetchone()[0] >= NULLS_NOT_DISTINCT:
            cursor.execute(f"CREATE UNIQUE INDEX ON {self._name} ({columns}) NULLS NOT DISTINCT")
        else:
            cursor.execute(f"CREATE INDEX ON {self._name} ({columns})")

    def reached(self, app: str) -> int | None:
        run, _, query = app.partition("/")
        with self._transaction() as cursor:
            cursor.execute(
                f"SELECT epoch FROM {self._epochs} WHERE run = {_text(run)} AND query = {_text(query)}"
            )
            row = cursor.fetchone()
        return None if row is None else int(row[0])

    def adopt(self, files: Sequence[NewFile], taking: Taking) -> None:
        raise NotImplementedError("a server takes rows, not files")

    def append(self, rows: pl.DataFrame, taking: Taking) -> None:
        with self._taking(taking) as cursor:
            if cursor is not None:
                self._insert(cursor, rows)

    def merge(
        self, rows: pl.DataFrame, gone: pl.DataFrame, keys: Sequence[str], taking: Taking
    ) -> None:
        changed = pl.concat([rows.select(keys), gone.select(keys)])
        with self._taking(taking) as cursor:
            if cursor is None:
                return
            if not keys:
                cursor.execute(f"DELETE FROM {self._name}")
            elif changed.height:
                with _ingested(cursor, changed) as source:
                    # An index helps with equality alone
                    same = " AND ".join(
                        f"t.{_quoted(key)} "
                        f"{'IS NOT DISTINCT FROM' if changed[key].has_nulls() else '='} s.{_quoted(key)}"
                        for key in keys
                    )
                    cursor.execute(f"DELETE FROM {self._name} t USING {source} s WHERE {same}")
            self._insert(cursor, rows)

    def _insert(self, cursor: Any, rows: pl.DataFrame) -> None:
        if rows.height:
            columns = ", ".join(map(_quoted, rows.columns))
            with _ingested(cursor, rows) as source:
                cursor.execute(
                    f"INSERT INTO {self._name} ({columns}) SELECT {columns} FROM {source}"
                )

    @contextlib.contextmanager
    def _taking(self, taking: Taking) -> Iterator[Any]:
        """A transaction that notes the epoch first; None if somebody has noted it meanwhile."""
        with self._transaction() as cursor:
            cursor.execute(
                f"INSERT INTO {self._epochs} AS e VALUES ({_text(taking.run)}, {_text(taking.query)}, "
                f"{taking.epoch}) ON CONFLICT (run, query) DO UPDATE SET epoch = excluded.epoch "
                "WHERE e.epoch < excluded.epoch RETURNING epoch"
            )
            yield cursor if cursor.fetchone() is not None else None

    def tend(self) -> None:
        pass

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # a server that is gone cannot be told
                connection.close()


@contextlib.contextmanager
def _ingested(cursor: Any, rows: pl.DataFrame) -> Iterator[str]:
    """The rows as a table of this connection alone, for as long as the block lasts."""
    name = f"anabranch_{uuid.uuid4().hex}"
    table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
    cursor.adbc_ingest(name, table, mode="create", temporary=True)
    yield f"pg_temp.{name}"
    cursor.execute(f"DROP TABLE pg_temp.{name}")


def _type(kind: pl.DataType) -> str:
    if isinstance(kind, pl.Decimal):
        return f"numeric({kind.precision}, {kind.scale})"
    return TYPES[kind]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
