"""Table streams from what a user may give for one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anabranch.errors import SourceError, suggest
from anabranch.sources.tables.delta import delta_source
from anabranch.sources.tables.iceberg import iceberg_source
from anabranch.sources.tables.source import CHOICES, TableSource

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "delta": ("on_change",),
    "iceberg": ("on_change", "catalog", "uri", "warehouse"),
}


def table_source(
    stream: str, kind: str, table: str | Path, options: Mapping[str, Any]
) -> TableSource:
    """The stream of a table; SourceError for options that such a stream does not have."""
    for name in options:
        if name not in OPTIONS[kind]:
            raise SourceError(
                f"Stream '{stream}': a stream of a {kind} table has no option '{name}'."
                f"{suggest(name, OPTIONS[kind])}"
            )
    given = {"on_change": "stop", **options}
    if given["on_change"] not in CHOICES:
        raise SourceError(
            f"Stream '{stream}': on_change is {given['on_change']!r:.100}; expected one of "
            f"{', '.join(CHOICES)}."
        )
    if kind == "delta":
        return delta_source(stream, table, **given)
    return iceberg_source(stream, str(table), **given)
