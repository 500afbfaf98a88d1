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
from anabranch.sinks.kafka.sink import KafkaSink, kafka_sink
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
}
GENERATOR: Kinds = {
    "generator": (str,), "rows": (int,), "rate": (int,), "rows_per_epoch": (int,), "seed": (int,),
    "rows_per_second": (int,), "skew": (str,), "exponent": (float,), "keys": (int,),
    "disorder": (int,),
}  # fmt: skip
KAFKA: Kinds = {
    "kafka": (str,), "topic": (str,), "format": (str,), "schema": (dict,), "start": (str, dict),
    "on_gap": (str,), "message_columns": (list, dict, str), "kafka_options": (dict, str),
    "kafka_timeout": (float,), "value_schema": (str,), "registry": (str,), "registry_login": (str,),
}  # fmt: skip
ORIGINS = {"generator": GENERATOR, "kafka": KAFKA, "path": FILES}
"""The option that says where rows come from, with all that belong to it."""
SINK = ("path", "format")
KAFKA_SINK: Kinds = {
    "kafka": (str,), "topic": (str,), "format": (str,), "key": (list, str), "delivery": (str,),
    "kafka_options": (dict, str), "kafka_timeout": (float,), "epochs_topic": (str,),
}  # fmt: skip
RUN: Kinds = {
    "name": (str,), "checkpoint": (str,), "trigger": (str, float), "at_end": (str,),
    "dead_letter": (str,), "changed": (str,), "backfill": (bool,), "sites": (int,), "cores": (int,),
}  # fmt: skip
SETTINGS = Settings.__struct_fields__


def origin_of(given: Collection[str]) -> str:
    """Where the rows of a stream with these options come from; files if nothing says so."""
    return next((origin for origin in ORIGINS if origin in given), "path")


def stream_kinds(origin: str) -> Kinds:
    """The options of a stream whose rows come from there."""
    return {**STREAM, **ORIGINS[origin]}


def values(parts: Mapping[str, PartPlace], kinds: Kinds) -> dict[str, Any]:
    """The plain values of options, each of a type that it may have."""
    return {key: part.value(*kinds[key]) for key, part in parts.items()}


def stream_options(place: FilePlace, parts: Mapping[str, PartPlace]) -> dict[str, Any]:
    """What `Session.stream` is given."""
    origin = origin_of(parts)
    options = values(parts, stream_kinds(origin))
    if "ordered" not in options:
        raise place.error("'ordered' is missing: the column that grows with time.")
    if origin not in options:
        raise place.error(
            "'path' (files), 'kafka' or 'generator' is missing: where the rows come from."
        )
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


def topic_sink(place: FilePlace, query: str, parts: Mapping[str, PartPlace]) -> KafkaSink:
    """A topic for results."""
    with place.placed():
        return kafka_sink(f"The sink of '{query}'", values(parts, KAFKA_SINK))


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
