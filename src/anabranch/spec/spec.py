"""What a specification file asks for, be it YAML or SQL: a session and a run can be made of it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from sqlglot import exp

from anabranch.engine.run import Run
from anabranch.errors import LanguageError, PlanningError, SettingsError, suggest
from anabranch.language.deep import deeply
from anabranch.language.sql.dialect import Scope, dialect_of, offset_of, parse
from anabranch.language.sql.emit import split_emit
from anabranch.language.sql.spelling import spelling_named
from anabranch.language.sql.table_function import read_by
from anabranch.session import Session
from anabranch.settings import Settings
from anabranch.sinks.base import Sink
from anabranch.spec.place import FilePlace


class Need(Protocol):
    """Sees to it that what a query reads is registered before it."""

    def __call__(self, name: str, place: FilePlace | None = None) -> None:
        """With a place, a name that is neither a stream nor a query is an error there."""


class Definition(Protocol):
    """One definition of a file; mostly of one query."""

    @property
    def place(self) -> FilePlace: ...

    def names(self) -> Mapping[str, FilePlace]:
        """The queries it defines."""

    def define(self, session: Session, need: Need) -> None:
        """Gives its queries to the session."""


class FunctionDefinition(Protocol):
    """A user's function that a file names."""

    def define(self, session: Session) -> None:
        """Gives it to the session."""


@dataclass(frozen=True)
class Spec:
    """What a specification file asks for, checked as far as that goes without the streams' schemas."""

    streams: dict[str, dict[str, Any]]
    queries: dict[str, Definition]
    sinks: dict[str, Sink | str]
    settings: Settings
    run: dict[str, Any]
    places: Mapping[str, FilePlace]
    functions: tuple[FunctionDefinition, ...] = ()
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)

    def session(
        self, in_process: bool = False, ui: bool = False, conf: Mapping[str, str] | None = None
    ) -> Session:
        """A session with the streams and queries of the file, on Spark or in this process.

        Spark is that of `spark-submit` if it has started this process, or of the `master` of the file; else
        one of its own. `conf` is more for it.
        """
        sites, master = self.run.get("sites"), self.run.get("master")
        if in_process:
            session = Session.in_process(2 if sites is None else sites, self.settings)
        elif master is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
            session = Session.cluster(master, sites, self.settings, ui, conf)
        else:
            cores = {"cores": self.run["cores"]} if "cores" in self.run else {}
            session = Session.local(**cores, sites=sites, settings=self.settings, ui=ui, conf=conf)
        for function in self.functions:
            function.define(session)
        for name, options in self.streams.items():
            with self.places[name].placed():
                session.stream(name, **options)
        for name, options in self.tables.items():
            with self.places[name].placed():
                session.table(name, **options)
        _Registrar(session, {*self.streams, *self.tables}, self.queries).register_all()
        return session

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Gives errors about the plan of a query the place where the file defines it."""
        try:
            yield
        except PlanningError as error:
            places = {
                name: place
                for definition in self.queries.values()
                for name, place in definition.names().items()
            }
            place = places.get(error.query or "")
            if place is None:
                raise
            raise PlanningError(f"{place}: {error}") from error

    def check_sinks(self) -> None:
        """Refuses to run queries whose results would go nowhere; to explain them is another matter."""
        if not self.sinks:
            raise SettingsError(
                "No query of the file has a sink: CREATE SINK query TO 'folder', or TO CONSOLE "
                "(in YAML: sinks:)."
            )

    def start(self, session: Session) -> Run:
        """Starts the queries of the file."""
        self.check_sinks()
        options = {
            key: self.run[key] for key in self.run if key not in ("sites", "cores", "master")
        }
        with self.placing():
            return session.start(sinks=self.sinks, **options)


def query_names(
    queries: Mapping[str, Definition], streams: Mapping[str, FilePlace]
) -> dict[str, str]:
    """Every query with the key of its definition; a name stands for one thing only."""
    names: dict[str, str] = {}
    for key, definition in queries.items():
        for name, place in definition.names().items():
            kind = "stream" if name in streams else "query" if name in names else ""
            if kind:
                raise place.error(f"there already is a {kind} called '{name}'.")
            names[name] = key
    return names


def tables_of(text: str, query: str, dialect: str) -> list[tuple[str, int]]:
    """What a statement reads, apart from what it defines itself by WITH, and where it says so."""
    scope = Scope(text, {}, f"Query '{query}'", spelling=spelling_named(dialect))
    scope = replace(scope, text=split_emit(scope)[0])
    tree = deeply(lambda: parse(scope, dialect_of(scope)), scope.where)
    own = {part.alias for part in tree.find_all(exp.CTE)}
    tables = [read for table in tree.find_all(exp.Table) for read in read_by(table, scope)]
    return [(table.name, offset_of(table) or 0) for table in tables if table.name not in own]


class _Registrar:
    """Registers queries after those they read, in whatever order the file has them."""

    def __init__(
        self, session: Session, streams: Collection[str], queries: Mapping[str, Definition]
    ) -> None:
        self._session = session
        self._streams = streams
        self._queries = queries
        self._names = query_names(queries, {})
        self._under_way: list[str] = []
        self._done: set[str] = set()

    def register_all(self) -> None:
        for key in self._queries:
            self._register(key)

    def _need(self, name: str, place: FilePlace | None = None) -> None:
        if name in self._names:
            self._register(self._names[name])
        elif place is not None and name not in self._streams:
            known = suggest(name, [*self._streams, *self._names])
            raise LanguageError(f"{place}: there is no stream or query '{name}'.{known}")

    def _register(self, key: str) -> None:
        if key in self._done:
            return
        definition = self._queries[key]
        if key in self._under_way:
            circle = " -> ".join([*self._under_way[self._under_way.index(key) :], key])
            raise LanguageError(
                f"{definition.place}: queries cannot read each other in a circle: {circle}."
            )
        self._under_way.append(key)
        with definition.place.placed():
            definition.define(self._session, self._need)
        self._under_way.pop()
        self._done.add(key)
