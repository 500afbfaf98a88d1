"""What a specification file may say about streams, sinks and the run, whatever kind of file it is.

Both kinds hand over parts, values that know their place; here they are checked against what exists.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from anabranch.engine.evolution import KEEP_SAME, REFUSE
from anabranch.engine.options import ENDS, interval_of
from anabranch.errors import suggest
from anabranch.settings import LATE_RULES, Settings, read_settings
from anabranch.sinks.base import Sink
from anabranch.sinks.kafka.sink import KafkaSink, kafka_sink
from anabranch.sinks.make import folder_sink
from anabranch.sinks.staging import SUFFIX
from anabranch.sinks.tables.make import TABLES, table_sink
from anabranch.sources.cleaning import CHOICES as CLEANING
from anabranch.sources.files import ORDERS
from anabranch.sources.growing import RULES
from anabranch.sources.kafka.source import GAPS
from anabranch.sources.make import ON_BAD, ON_LATE, check_choice
from anabranch.sources.tables.source import CHOICES as ON_CHANGE
from anabranch.spec.place import FilePlace, PartPlace

Kinds = Mapping[str, tuple[type, ...]]

STREAM: Kinds = {
    "ordered": (str,), "lateness": (int, str), "partitioned_by": (list, str), "on_bad": (str,),
    "on_late": (str,), "late": (str,),
    "max_ahead": (int, str),
    "time_unit": (str,),
}  # fmt: skip
FILES: Kinds = {
    "path": (str,),
    "format": (str,),
    "schema": (dict,),
    "file_order": (str,),
    "lanes": (bool,),
    "clean_source": (str,),
    "archive": (str,),
    "growing": (str,),
    "delimiter": (str,), "quote": (str, type(None)), "escape": (str,), "header": (bool,),
    "nulls": (str, list), "comment": (str,), "decimal": (str,), "time_format": (str, list),
    "encoding": (str,), "types": (str, dict), "rename": (dict,), "missing": (str,),
}  # fmt: skip
GENERATOR: Kinds = {
    "generator": (str,), "rows": (int,), "rate": (int,), "rows_per_epoch": (int,), "seed": (int,),
    "rows_per_second": (int,), "skew": (str,), "exponent": (float,), "keys": (int,),
    "disorder": (int,), "surge_from": (int,),
}  # fmt: skip
KAFKA: Kinds = {
    "kafka": (str,), "topic": (str,), "format": (str,), "schema": (dict,), "start": (str, dict),
    "on_gap": (str,), "message_columns": (list, dict, str), "kafka_options": (dict, str),
    "kafka_timeout": (float,), "value_schema": (str,), "value_message": (str,), "registry": (str,),
    "registry_login": (str,),
}  # fmt: skip
CHANGES: Kinds = {"on_change": (str,)}
ORIGINS: Mapping[str, Kinds] = {
    "generator": GENERATOR,
    "kafka": KAFKA,
    "delta": {"delta": (str,), **CHANGES},
    "iceberg": {
        "iceberg": (str,), "catalog": (str,), "uri": (str,), "warehouse": (str,), **CHANGES,
    },
    "path": FILES,
}  # fmt: skip
"""Where a stream may come from, and the options that go with it."""
OF_STREAMS = ("file_order", "lanes", "clean_source", "archive", "growing")
TABLE: Kinds = {
    "delta": (str,),
    **{key: kind for key, kind in FILES.items() if key not in OF_STREAMS},
}
"""What a table that streams are joined with may be told."""
SINK = (
    "path", "format", "gather",
    *sorted({name for kind in TABLES.values() for name in kind.options}),
)  # fmt: skip
KAFKA_SINK: Kinds = {
    "kafka": (str,), "topic": (str,), "format": (str,), "key": (list, str), "delivery": (str,),
    "kafka_options": (dict, str), "kafka_timeout": (float,), "epochs_topic": (str,),
}  # fmt: skip
RUN: Kinds = {
    "name": (str,), "checkpoint": (str,), "trigger": (str, float), "at_end": (str,),
    "dead_letter": (str,), "changed": (str,), "backfill": (bool,), "sites": (int,), "cores": (int,),
    "master": (str,),
}  # fmt: skip
SETTINGS = Settings.__struct_fields__
CHOICES: Mapping[str, tuple[str, ...]] = {
    "at_end": ENDS, "changed": (REFUSE, KEEP_SAME), "on_bad": ON_BAD, "on_late": ON_LATE,
    "late": LATE_RULES, "file_order": ORDERS, "growing": RULES, "clean_source": CLEANING,
    "on_change": ON_CHANGE, "on_gap": GAPS,
}  # fmt: skip
"""The options of which there are few values."""


def origin_of(given: Collection[str]) -> str:
    """Where a stream comes from, told by its options: from files if they do not say."""
    return next((origin for origin in ORIGINS if origin in given), "path")


def stream_kinds(given: Collection[str]) -> Kinds:
    """The options of a stream that has these among others."""
    return {**STREAM, **ORIGINS[origin_of(given)]}


def values(parts: Mapping[str, PartPlace], kinds: Kinds) -> dict[str, Any]:
    """The plain values of options, each of a type that it may have."""
    return {key: part.value(*kinds[key]) for key, part in parts.items()}


def checked(parts: Mapping[str, PartPlace], kinds: Kinds) -> dict[str, Any]:
    """The plain values, of which those that must be one of a few are."""
    found = values(parts, kinds)
    for key, part in parts.items():
        if key in CHOICES:
            with part.placed():
                check_choice(key, found[key], CHOICES[key])
    return found


def run_of(parts: Mapping[str, PartPlace]) -> dict[str, Any]:
    """How to run, with faults told at their places, before anything starts."""
    found = checked(parts, RUN)
    for key, part in parts.items():
        if key == "trigger":
            with part.placed():
                interval_of(found[key])
        if key in ("sites", "cores") and found[key] < 1:
            raise part.expected("a whole number, at least one")
        if key in ("name", "checkpoint", "dead_letter", "master") and not found[key]:
            raise part.expected("a text that is not empty")
    return found


def stream_options(place: FilePlace, parts: Mapping[str, PartPlace]) -> dict[str, Any]:
    """What `Session.stream` is given."""
    options = checked(parts, stream_kinds(parts))
    if "ordered" not in options:
        raise place.error("'ordered' is missing: the column that grows with time.")
    if origin_of(options) not in options:
        raise place.error(
            "'path' (files), 'kafka', 'delta', 'iceberg' or 'generator' is missing: where the rows come from."
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


def sink_of(path: PartPlace, parts: Mapping[str, PartPlace]) -> Sink:
    """A result folder, or a table, with the options that its format has."""
    place, format = path.text(), parts.get("format")
    ending = format.text() if format else "parquet"
    kind = TABLES.get(ending)
    if format and kind is None and ending not in SUFFIX:
        known = (*SUFFIX, *TABLES)
        raise format.error(f"there is no result format '{ending}'.{suggest(ending, known)}")
    kinds: Kinds = (
        kind.options if kind else {"retain": (str,), "gather": (str,), "target_bytes": (int,)}
    )
    given = {key: part for key, part in parts.items() if key not in ("path", "format")}
    for key, part in given.items():
        if key not in kinds:
            raise part.error(f"results as {ending} have no option '{key}'.{suggest(key, kinds)}")
    if kind:
        with path.placed():
            return table_sink("The sink", ending, place, values(given, kinds))
    with path.placed():
        return folder_sink("The sink", place, {"format": ending, **values(given, kinds)})


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
