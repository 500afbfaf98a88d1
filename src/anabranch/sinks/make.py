"""Sinks from what a user may give for one: a folder, a word, a function, or a sink itself."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from anabranch.errors import PlanningError, SettingsError, suggest
from anabranch.sinks.base import Sink
from anabranch.sinks.driver import ConsoleSink, Delivered, ForeachSink, MemorySink
from anabranch.sinks.files import FOLDER_OPTIONS, FileSink, require_folder
from anabranch.sinks.kafka.sink import KafkaSink, kafka_sink
from anabranch.sinks.tables.make import TABLES, table_sink
from anabranch.state.uris import is_object, local_path


def sinks_of(given: Mapping[str, Any], queries: Collection[str]) -> dict[str, Sink]:
    """The sinks of a run; raises if there are none, or of queries that do not exist."""
    if not given:
        raise PlanningError("Give at least one query a sink: sinks={'flows': 'out/flows'}.")
    for query in given:
        if query not in queries:
            raise PlanningError(f"There is no query '{query}'.{suggest(query, queries)}")
    return make_sinks(given)


def make_sinks(given: Mapping[str, Any]) -> dict[str, Sink]:
    """The sink of each query."""
    made = {query: _make(query, sink) for query, sink in given.items()}
    _refuse_shared(made)
    return made


def _make(query: str, sink: Any) -> Sink:
    if isinstance(sink, str) and sink == "console":
        return ConsoleSink(query=query)
    if isinstance(sink, str) and sink == "memory":
        return MemorySink()
    if isinstance(sink, (str, Path)):
        return folder_sink(f"The sink of '{query}'", sink, {})
    format = sink.get("format") if isinstance(sink, dict) and "path" in sink else None
    if isinstance(format, str) and format in TABLES:
        options = {name: value for name, value in sink.items() if name not in ("path", "format")}
        return table_sink(f"The sink of '{query}'", format, sink["path"], options)
    if isinstance(sink, dict) and "path" in sink and sink.keys() <= {"path", *FOLDER_OPTIONS}:
        options = {name: value for name, value in sink.items() if name != "path"}
        return folder_sink(f"The sink of '{query}'", sink["path"], options)
    if isinstance(sink, dict) and "kafka" in sink:
        return kafka_sink(f"The sink of '{query}'", sink)
    if hasattr(sink, "open") and hasattr(sink, "describe"):
        return sink  # type: ignore[no-any-return]
    if callable(sink):
        return ForeachSink(sink)
    raise SettingsError(
        f"The sink of '{query}' is a {type(sink).__name__}; expected a folder, "
        "{'path': folder, 'format': 'csv'}, {'kafka': servers, 'topic': name}, 'console', 'memory', a "
        "function of "
        "(arrow_table, epoch) or a sink of anabranch.sinks."
    )


def folder_sink(what: str, path: Any, options: Mapping[str, Any]) -> Sink:
    """A result folder, on this machine or in a bucket."""
    options = {name: value for name, value in options.items() if value is not None}
    if isinstance(path, str) and is_object(path):
        if local := [name for name in options if name != "format"]:
            raise SettingsError(
                f"{what}: {local[0]}= is for folders of this machine; '{path}' is in a bucket. Leave it out; "
                "a lifecycle rule of the bucket can delete old objects."
            )
        # The library is an extra, which folders of this machine do without
        from anabranch.sinks.objects import ObjectSink

        return ObjectSink(path, **options)
    path = local_path(path) if isinstance(path, str) else path
    require_folder(what, path)
    return FileSink(Path(path).absolute(), **options)


def _refuse_shared(sinks: Mapping[str, Sink]) -> None:
    """Two queries in one place would take each other's results for their own."""
    taken: dict[str, str] = {}
    held: dict[int, str] = {}
    for query, sink in sorted(sinks.items()):
        if isinstance(sink, Delivered) and (other := held.setdefault(id(sink), query)) != query:
            raise PlanningError(
                f"Queries '{other}' and '{query}' have the same {type(sink).__name__} object, which would "
                "mix their results: give each its own."
            )
        for address, what in _places(sink):
            if (other := taken.setdefault(address, query)) != query:
                raise PlanningError(
                    f"Queries '{other}' and '{query}' have the same {what}: give each its own."
                )


def _places(sink: Sink) -> Iterator[tuple[str, str]]:
    """Where a sink writes, as it can be told apart from others, and in words."""
    folder, table = getattr(sink, "folder", None), getattr(sink, "table", None)
    if folder is not None:
        yield os.path.realpath(folder), f"folder '{folder}'"
    elif table is not None:
        yield table, f"table '{table}'"
    if isinstance(sink, KafkaSink):
        # One server in common is one cluster
        for server in sink.connection.servers.split(","):
            yield f"kafka {server.strip()} {sink.topic}", f"topic '{sink.topic}'"
