"""The specification of a run as YAML: streams, queries, sinks, settings and how to run them.

    streams:
      tcp: {path: data/tcp, ordered: time, lateness: 5}
    tables:
      hosts: {path: data/hosts.csv}
    queries:
      flows: {from: tcp, group_by: [time/60 AS tb, srcIP], aggregate: [count(*) AS cnt]}
    sinks:
      flows: out/flows
    run: {checkpoint: out/checkpoint, at_end: close}

Relative paths start at the current folder. Every complaint names the line and what would fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anabranch.settings import Settings
from anabranch.sinks.base import Sink
from anabranch.spec.options import (
    KAFKA_SINK,
    RUN,
    SETTINGS,
    SINK,
    TABLE,
    check_query,
    run_of,
    settings_of,
    sink_of,
    stream_kinds,
    stream_options,
    topic_sink,
    values,
)
from anabranch.spec.spec import Definition, Spec, query_names
from anabranch.spec.yaml_document import Entry, read_document
from anabranch.spec.yaml_queries import YamlQuery

SECTIONS = ("streams", "tables", "queries", "sinks", "settings", "run")


def read_yaml(path: Path) -> Spec:
    """The specification in a YAML file."""
    top = read_document(path)
    sections = top.fields(SECTIONS)
    for key in ("streams", "queries"):
        if key not in sections or not sections[key].fields():
            raise top.error(f"'{key}' is missing: a file needs streams and queries.")
    streams = sections["streams"].fields()
    queries: dict[str, Definition] = {
        name: YamlQuery(name, entry) for name, entry in sections["queries"].fields().items()
    }
    tables = sections["tables"].fields() if "tables" in sections else {}
    for name in tables.keys() & streams.keys():
        raise tables[name].error(f"there already is a stream called '{name}'.")
    known = query_names(queries, {**streams, **tables})
    sinks: dict[str, Sink | str] = {}
    for name, entry in sections["sinks"].fields().items() if "sinks" in sections else ():
        check_query(entry, name, known)
        sinks[name] = _sink(name, entry)
    return Spec(
        streams={name: _stream(entry) for name, entry in streams.items()},
        queries=queries,
        sinks=sinks,
        settings=settings_of(sections["settings"].fields(SETTINGS))
        if "settings" in sections
        else Settings(),
        run=run_of(sections["run"].fields(RUN)) if "run" in sections else {},
        places={**streams, **tables},
        tables={name: _table(entry) for name, entry in tables.items()},
    )


def _stream(entry: Entry) -> dict[str, Any]:
    return stream_options(entry, entry.fields(stream_kinds(entry.fields())))


def _table(entry: Entry) -> dict[str, Any]:
    parts = entry.fields(TABLE)
    if "path" not in parts and "delta" not in parts:
        raise entry.error("where do the rows come from? path: folder, or delta: folder.")
    return values(parts, TABLE)


def _sink(query: str, entry: Entry) -> Sink | str:
    value = entry.value(str, dict)
    if value == "console":
        return "console"
    if value == "memory":
        raise entry.error("a memory sink is for Python programs: give a folder or 'console'.")
    if isinstance(value, str):
        return sink_of(entry, {})
    if "kafka" in entry.fields():
        return topic_sink(entry, query, entry.fields(KAFKA_SINK))
    parts = entry.fields(SINK)
    if "path" not in parts:
        raise entry.error("'path' is missing: the folder for the results.")
    return sink_of(parts["path"], parts)
