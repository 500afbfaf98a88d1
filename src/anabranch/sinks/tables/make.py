"""Table sinks by the word for their format, as dictionaries and specification files have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.errors import SettingsError, suggest
from anabranch.sinks.base import Sink
from anabranch.sinks.tables.delta import DeltaSink
from anabranch.sinks.tables.iceberg import IcebergSink
from anabranch.sinks.tables.postgres import PostgresSink

COMMON: Mapping[str, tuple[type, ...]] = {"updates": (str,), "evolve": (bool,)}
FILES: Mapping[str, tuple[type, ...]] = {
    "partition_by": (list, str), "optimize": (int,), "target_bytes": (int,), "retain": (str,),
}  # fmt: skip


@dataclass(frozen=True)
class TableKind:
    """A kind of table: how its sink is made, and what may be said of it in a file."""

    make: Callable[..., Sink]
    options: Mapping[str, tuple[type, ...]]


TABLES: Mapping[str, TableKind] = {
    "delta": TableKind(DeltaSink, {**COMMON, **FILES}),
    "iceberg": TableKind(
        IcebergSink,
        {**COMMON, **FILES, "catalog": (str,), "uri": (str,), "warehouse": (str,)},
    ),
    "postgres": TableKind(PostgresSink, {**COMMON, "uri": (str,)}),
}


def table_sink(what: str, format: str, path: Any, options: Mapping[str, Any]) -> Sink:
    """The sink of a table at this path; SettingsError for options that it does not have."""
    kind = TABLES[format]
    for name in options:
        if name not in kind.options:
            raise SettingsError(
                f"{what} is a {format} table, which has no option '{name}'."
                f"{suggest(name, kind.options)}"
            )
    given = dict(options)
    if isinstance(given.get("partition_by"), str):
        given["partition_by"] = [part.strip() for part in given["partition_by"].split(",")]
    return kind.make(path, **given)
