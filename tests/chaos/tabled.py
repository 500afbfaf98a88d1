"""Tables in crash tests: the sinks of a child process, how their rows are read back, where it may die."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
from adbc_driver_postgresql import dbapi
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from anabranch.sinks import DeltaSink, IcebergSink, PostgresSink
from anabranch.sinks.tables.writer import TableWriter

Rows = list[tuple[Any, ...]]

# A table keeps one row of each group: the last
ORACLE = {
    "live": """SELECT time // 20 AS tb, v % 16 AS g, COUNT(*) AS n, MAX(v) AS top
               FROM rows GROUP BY ALL"""
}


def sinks_of(spec: dict[str, Any], root: Path, queries: Sequence[str]) -> dict[str, Any]:
    """The table of each query."""
    make = {"delta": _delta, "iceberg": _iceberg, "postgres": _postgres}[spec["tables"]]
    return {name: make(spec, root, name) for name in queries}


def _delta(spec: dict[str, Any], root: Path, name: str) -> Any:
    parted = {"flows": ["tb"], "live": ["tb"]}.get(name, [])
    # Tended at once, an epoch that is added again has rows in other files than the first time
    often = 1 if name in ("big", "recent") else 3
    return DeltaSink(root / "tables" / name, partition_by=parted, optimize=often)


def _iceberg(spec: dict[str, Any], root: Path, name: str) -> Any:
    parted = {"flows": ["tb"], "live": ["tb"]}.get(name, [])
    often = 1 if name in ("big", "recent") else 3
    return IcebergSink(f"lake.{name}", **_catalog(root), partition_by=parted, optimize=often)


def _postgres(spec: dict[str, Any], root: Path, name: str) -> Any:
    return PostgresSink(f"{spec['schema']}.{name}", spec["uri"])


def _catalog(root: Path) -> dict[str, str]:
    (root / "tables").mkdir(exist_ok=True)
    return {"uri": f"sqlite:///{root}/tables/catalog.db", "warehouse": f"file://{root}/tables/all"}


def read(options: dict[str, Any], root: Path, name: str) -> Rows:
    """All rows of a table, as another reader has them."""
    with duckdb.connect() as base:
        if options["tables"] == "delta":
            table = DeltaTable(root / "tables" / name).to_pyarrow_dataset()
        elif options["tables"] == "postgres":
            with dbapi.connect(options["uri"]) as server, server.cursor() as cursor:
                cursor.execute(f'SELECT * FROM "{options["schema"]}"."{name}"')
                table = cursor.fetch_arrow_table()
        else:
            catalog = load_catalog("default", type="sql", **_catalog(root))
            table = catalog.load_table(f"lake.{name}").scan().to_arrow()
        base.register("found", table)
        rows = base.execute("SELECT * FROM found").fetchall()
    names, wanted = table.schema.names, COLUMNS[name]
    order = [names.index(column) for column in wanted]
    return sorted((tuple(row[at] for at in order) for row in rows), key=repr)


COLUMNS = {
    "flows": ["tb", "k", "n", "total", "latest"],
    "visits": ["window_start", "window_end", "k", "n", "total"],
    "recent": ["time", "k", "v", "of_three"],
    "pairs": ["window_start", "window_end", "k", "total", "latest"],
    "live": ["tb", "g", "n", "top"],
    "peaks": ["hour", "groups", "most"],
    "big": ["time", "k", "v"],
}
"""In the order in which the oracle has them; a table has partitioning columns where it likes."""


def kill_at(when: str, wanted: int) -> None:
    """Lets the process die right before or right after the n-th time a table takes in an epoch."""
    publish: Callable[..., None] = TableWriter.publish
    done = 0

    def deadly(self: TableWriter, *arguments: Any) -> None:
        nonlocal done
        done += 1
        if done == wanted and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        publish(self, *arguments)
        if done == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    TableWriter.publish = deadly  # type: ignore[method-assign]
