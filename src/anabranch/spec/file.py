"""The specification file of `anabranch run`: streams, queries, sinks, settings and how to run them.

    streams:
      tcp: {path: data/tcp, ordered: time, lateness: 5}
    queries:
      flows: {from: tcp, group_by: [time/60 AS tb, srcIP], aggregate: [count(*) AS cnt]}
    sinks:
      flows: out/flows
    run: {checkpoint: out/checkpoint, at_end: close}

Relative paths start at the current folder. Every complaint names the line and what would fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.engine.run import Run
from anabranch.errors import suggest
from anabranch.session import Session
from anabranch.settings import Settings, read_settings
from anabranch.sinks.files import FileSink
from anabranch.sinks.staging import SUFFIX
from anabranch.spec.document import Entry, read_document
from anabranch.spec.queries import query_names, register_queries

SECTIONS = ("streams", "queries", "sinks", "settings", "run")
STREAM: Mapping[str, tuple[type, ...]] = {
    "ordered": (str,), "lateness": (int, str), "on_bad": (str,), "on_late": (str,),
}  # fmt: skip
FILES: Mapping[str, tuple[type, ...]] = {"path": (str,), "format": (str,), "schema": (dict,)}
GENERATOR: Mapping[str, tuple[type, ...]] = {
    "generator": (str,), "rows": (int,), "rate": (int,), "rows_per_epoch": (int,), "seed": (int,),
    "rows_per_second": (int,), "skew": (str,), "exponent": (float,), "keys": (int,),
    "disorder": (int,),
}  # fmt: skip
RUN: Mapping[str, tuple[type, ...]] = {
    "name": (str,), "checkpoint": (str,), "trigger": (str, float), "at_end": (str,),
    "dead_letter": (str,), "sites": (int,), "cores": (int,),
}  # fmt: skip


@dataclass(frozen=True)
class Spec:
    """What a specification file asks for, checked as far as that goes without the streams' schemas."""

    streams: dict[str, dict[str, Any]]
    queries: dict[str, Entry]
    sinks: dict[str, FileSink | str]
    settings: Settings
    run: dict[str, Any]
    places: dict[str, Entry]

    def session(self, in_process: bool = False, ui: bool = False) -> Session:
        """A session with the streams and queries of the file, on Spark or in this process."""
        sites = self.run.get("sites")
        if in_process:
            session = Session.in_process(sites or 2, self.settings)
        else:
            cores = {"cores": self.run["cores"]} if "cores" in self.run else {}
            session = Session.local(**cores, sites=sites, settings=self.settings, ui=ui)
        for name, options in self.streams.items():
            with self.places[name].placed():
                session.stream(name, **options)
        register_queries(session, self.streams, self.queries)
        return session

    def start(self, session: Session) -> Run:
        """Starts the queries of the file."""
        options = {key: self.run[key] for key in self.run if key not in ("sites", "cores")}
        return session.start(sinks=self.sinks, **options)


def read_spec(path: str | Path) -> Spec:
    """The specification in a YAML file."""
    top = read_document(Path(path))
    sections = top.fields(SECTIONS)
    for key in ("streams", "queries", "sinks"):
        if key not in sections or not sections[key].fields():
            raise top.error(f"'{key}' is missing: a file needs streams, queries and sinks.")
    streams = sections["streams"].fields()
    queries = sections["queries"].fields()
    known = query_names(queries)
    for name, entry in queries.items():
        if name in streams:
            raise entry.error(f"there already is a stream called '{name}'.")
    return Spec(
        streams={name: _stream(entry) for name, entry in streams.items()},
        queries=queries,
        sinks={
            name: _sink(name, entry, known) for name, entry in sections["sinks"].fields().items()
        },
        settings=_settings(sections.get("settings")),
        run=_values(sections["run"], RUN) if "run" in sections else {},
        places=streams,
    )


def _values(entry: Entry, known: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    return {key: part.value(*known[key]) for key, part in entry.fields(known).items()}


def _stream(entry: Entry) -> dict[str, Any]:
    generated = "generator" in entry.fields()
    options = _values(entry, {**STREAM, **(GENERATOR if generated else FILES)})
    if "ordered" not in options:
        raise entry.error("'ordered' is missing: the column that grows with time.")
    if not generated and "path" not in options:
        raise entry.error("'path' (files) or 'generator' is missing: where the rows come from.")
    return options


def _sink(query: str, entry: Entry, known: Mapping[str, str]) -> FileSink | str:
    if query not in known:
        raise entry.error(f"there is no query '{query}'.{suggest(query, known)}")
    value = entry.value(str, dict)
    if value == "console":
        return "console"
    if value == "memory":
        raise entry.error("a memory sink is for Python programs: give a folder or 'console'.")
    if isinstance(value, str):
        return FileSink(Path(value).absolute())
    parts = _values(entry, {"path": (str,), "format": (str,)})
    if "path" not in parts:
        raise entry.error("'path' is missing: the folder for the results.")
    format = parts.get("format", "parquet")
    if format not in SUFFIX:
        raise entry.error(f"there is no result format '{format}'.{suggest(format, SUFFIX)}")
    return FileSink(Path(parts["path"]).absolute(), format)


def _settings(entry: Entry | None) -> Settings:
    if entry is None:
        return Settings()
    values = {
        key: part.value(int, float, bool, str, type(None))
        for key, part in entry.fields(Settings.__struct_fields__).items()
    }
    with entry.placed():
        return read_settings(values)
