"""Tables of every kind for tests: how a sink is made, and how its rows are read back by somebody else."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
from adbc_driver_postgresql import dbapi
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from anabranch import Session
from anabranch.sinks import DeltaSink, IcebergSink, PostgresSink
from anabranch.testing.sources import EpochSource

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Kind:
    """A kind of table under a folder of a test."""

    sink: Callable[..., Any]
    read: Callable[[Path, str], pl.DataFrame]
    """As Polars, or the server itself, reads it."""
    duck: Callable[[Path, str], Rows]
    """As DuckDB reads it."""


def _duck_delta(root: Path, name: str) -> Rows:
    with duckdb.connect() as base:
        base.register("found", DeltaTable(root / name).to_pyarrow_dataset())
        return sorted(base.execute("SELECT * FROM found").fetchall(), key=repr)


def iceberg(root: Path) -> dict[str, str]:
    """A catalog of its own for a test, in a file."""
    root.mkdir(exist_ok=True)
    return {"uri": f"sqlite:///{root}/catalog.db", "warehouse": f"file://{root}/warehouse"}


def iceberg_table(root: Path, name: str) -> Any:
    return load_catalog("default", type="sql", **iceberg(root)).load_table(f"lake.{name}")


def _duck_iceberg(root: Path, name: str) -> Rows:
    with duckdb.connect() as base:
        base.register("found", iceberg_table(root, name).scan().to_arrow())
        return sorted(base.execute("SELECT * FROM found").fetchall(), key=repr)


POSTGRES = ""
"""The address of the server, once it is started."""


def postgres_name(root: Path, name: str) -> str:
    """A table of one test alone."""
    return f"t_{hashlib.sha256(str(root).encode()).hexdigest()[:12]}_{name}"


def ask(text: str) -> Any:
    """What the server answers, as Arrow."""
    with dbapi.connect(POSTGRES, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetch_arrow_table()


def _read_postgres(root: Path, name: str) -> pl.DataFrame:
    table = ask(f'SELECT * FROM public."{postgres_name(root, name)}"')
    # The driver gives numbers of any length as texts
    numeric = [field.name for field in table.schema if "numeric" in str(field.type)]
    plain = {name: list(map(_decimal, table[name].to_pylist())) for name in numeric}
    rest = pl.DataFrame(table.drop_columns(numeric))
    return rest.with_columns(
        **{n: pl.Series(v, dtype=pl.Decimal(38, 2)) for n, v in plain.items()}
    ).select(table.column_names)


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def _duck_postgres(root: Path, name: str) -> Rows:
    with duckdb.connect() as base:
        base.register("found", _read_postgres(root, name).to_arrow())
        return sorted(base.execute("SELECT * FROM found").fetchall(), key=repr)


KINDS: dict[str, Kind] = {
    "postgres": Kind(
        lambda root, name, **options: PostgresSink(postgres_name(root, name), POSTGRES, **options),
        _read_postgres,
        _duck_postgres,
    ),
    "iceberg": Kind(
        lambda root, name, **options: IcebergSink(f"lake.{name}", **iceberg(root), **options),
        lambda root, name: pl.scan_iceberg(iceberg_table(root, name)).collect(),
        _duck_iceberg,
    ),
    "delta": Kind(
        lambda root, name, **options: DeltaSink(root / name, **options),
        lambda root, name: pl.read_delta(str(root / name)),
        _duck_delta,
    ),
}


def run(
    frames: list[pl.DataFrame], queries: dict[str, tuple[str, str | None]], sinks: dict[str, Any],
    checkpoint: Path | None = None, at_end: str = "close", sites: int = 3,
) -> None:  # fmt: skip
    """Runs queries over frames, one an epoch, to the end."""
    session = Session.in_process(sites, {"allow_unbounded_state": True, "fsync": False})
    session.stream("t", EpochSource(frames), ordered="time")
    for name, (text, emit) in queries.items():
        session.query(name, text, emit)
    session.start(sinks=sinks, checkpoint=checkpoint, at_end=at_end).await_termination()


def rows_of(frame: pl.DataFrame, *columns: str) -> Rows:
    return sorted(frame.select(columns or frame.columns).rows(), key=repr)
