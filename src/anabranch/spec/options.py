"""What a specification file may say about streams, sinks and the run, whatever kind of file it is.

Both kinds hand over parts, values that know their place; here they are checked against what exists.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from anabranch.errors import suggest
from anabranch.settings import Settings, read_settings
from anabranch.sinks.files import FileSink
from anabranch.sinks.staging import SUFFIX
from anabranch.spec.place import FilePlace, PartPlace

Kinds = Mapping[str, tuple[type, ...]]

STREAM: Kinds = {
    "ordered": (str,), "lateness": (int, str), "partitioned_by": (list, str), "on_bad": (str,),
    "on_late": (str,),
    "max_ahead": (int, str),
    "time_unit": (str,),
}  # fmt: skip
FILES: Kinds = {
    "path": (str,),
    "format": (str,),
    "schema": (dict,),
    "file_order": (str,),
    "lanes": (bool,),
    "delimiter": (str,), "quote": (str, type(None)), "escape": (str,), "header": (bool,),
    "nulls": (str, list), "comment": (str,), "decimal": (str,), "time_format": (str, list),
    "encoding": (str,), "types": (str, dict), "rename": (dict,), "missing": (str,),
}  # fmt: skip
GENERATOR: Kinds = {
    "generator": (str,), "rows": (int,), "rate": (int,), "rows_per_epoch": (int,), "seed": (int,),
    "rows_per_second": (int,), "skew": (str,), "exponent": (float,), "keys": (int,),
    "disorder": (int,),
}  # fmt: skip
SINK = ("path", "format")
RUN: Kinds = {
    "name": (str,), "checkpoint": (str,), "trigger": (str, float), "at_end": (str,),
    "dead_letter": (str,), "changed": (str,), "backfill": (bool,), "sites": (int,), "cores": (int,),
}  # fmt: skip
SETTINGS = Settings.__struct_fields__


def stream_kinds(generated: bool) -> Kinds:
    """The options of a stream over files, or of a generated one."""
    return {**STREAM, **(GENERATOR if generated else FILES)}


def values(parts: Mapping[str, PartPlace], kinds: Kinds) -> dict[str, Any]:
    """The plain values of options, each of a type that it may have."""
    return {key: part.value(*kinds[key]) for key, part in parts.items()}


def stream_options(place: FilePlace, parts: Mapping[str, PartPlace]) -> dict[str, Any]:
    """What `Session.stream` is given."""
    generated = "generator" in parts
    options = values(parts, stream_kinds(generated))
    if "ordered" not in options:
        raise place.error("'ordered' is missing: the column that grows with time.")
    if not generated and "path" not in options:
        raise place.error("'path' (files) or 'generator' is missing: where the rows come from.")
    if "partitioned_by" in options:
        given = options["partitioned_by"]
        terms = [given] if isinstance(given, str) else given
        if not terms or not all(isinstance(term, str) for term in terms):
            raise parts["partitioned_by"].error(
                "expected a list of texts: columns and expressions such as 'srcIP & 0xFFF0'."
            )
        options["partitioned_by"] = tuple(terms)
    return options


def check_query(place: FilePlace, query: str, known: Collection[str]) -> None:
    """A sink must be that of a query."""
    if query not in known:
        raise place.error(f"there is no query '{query}'.{suggest(query, known)}")


def file_sink(path: PartPlace, format: PartPlace | None = None) -> FileSink:
    """A result folder."""
    folder, ending = path.text(), format.text() if format else "parquet"
    if "://" in folder:
        raise path.error(f"expected a folder of this machine, got '{folder}'.")
    if format and ending not in SUFFIX:
        raise format.error(f"there is no result format '{ending}'.{suggest(ending, SUFFIX)}")
    return FileSink(Path(folder).absolute(), ending)


def settings_of(parts: Mapping[str, PartPlace]) -> Settings:
    """The settings, of which each is tried alone so that a fault has the place of its own."""
    found = {
        key: part.value(int, float, bool, str, type(None))
        for key, part in parts.items()
    }  # fmt: skip
    for key, part in parts.items():
        with part.placed():
            read_settings({key: found[key]})
    return read_settings(found)
