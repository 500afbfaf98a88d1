"""The specification of a run as SQL: statements that make streams, queries and sinks, and SET.

    CREATE STREAM tcp ORDERED BY time LATENESS 5 WITH (path = 'data/tcp');
    CREATE QUERY flows AS
      SELECT tb, srcIP, COUNT(*) AS cnt FROM tcp GROUP BY time/60 AS tb, srcIP;
    CREATE SINK flows TO 'out/flows';
    SET checkpoint = 'out/checkpoint';

Relative paths start at the current folder. Every complaint names the line and the column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anabranch.errors import SettingsError
from anabranch.language.groups import EMITS
from anabranch.sinks.base import Sink
from anabranch.spec.misplaced import elsewhere
from anabranch.spec.options import (
    KAFKA_SINK,
    RUN,
    SETTINGS,
    SINK,
    check_query,
    run_of,
    settings_of,
    sink_of,
    topic_sink,
)
from anabranch.spec.place import read_text
from anabranch.spec.spec import Definition, Spec
from anabranch.spec.sql_elsewhere import CREATE_INSTEAD, FORMS, INSTEAD, STATEMENTS
from anabranch.spec.sql_function import SqlFunction, read_function
from anabranch.spec.sql_query import SqlQuery
from anabranch.spec.sql_statements import statements
from anabranch.spec.sql_stream import read_stream, read_table
from anabranch.spec.sql_tokens import Spot, Statement, Value, near


@dataclass
class _File:
    """What has been read so far."""

    streams: dict[str, dict[str, Any]] = field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    queries: dict[str, Definition] = field(default_factory=dict)
    sinks: dict[str, Sink | str] = field(default_factory=dict)
    options: dict[str, Value] = field(default_factory=dict)
    places: dict[str, Spot] = field(default_factory=dict)
    """Where streams, queries and views have their names."""
    targets: dict[str, Spot] = field(default_factory=dict)
    """Where sinks name their queries."""
    views: set[str] = field(default_factory=set)
    functions: list[SqlFunction] = field(default_factory=list)

    def statement(self, words: Statement) -> None:
        creators: dict[str, Callable[[Statement], None]] = {
            "STREAM": self._stream, "QUERY": self._query, "VIEW": self._view, "SINK": self._sink,
            "FUNCTION": self._function, "TABLE": self._table,
        }  # fmt: skip
        name = words.shown().strip("'").upper()
        if words.take("SET"):
            return self._set(words)
        if any(words.next_is(begin) for begin in ("SELECT", "WITH", "(", "FROM", "VALUES")):
            name = "SELECT" if name == "(" else name
            raise words.spot().error(f"a {name} needs a name here: {FORMS['QUERY']}.")
        if not words.take("CREATE"):
            instead, hint = INSTEAD.get(name), near(words.peek(), ("CREATE", "SET", "SELECT"))
            told = f" {instead}" if instead else f"{hint} {STATEMENTS}"
            raise words.spot().error(f"there is no statement {name} here.{told}")
        if words.take("MATERIALIZED", "VIEW"):
            return self._query(words)  # as RisingWave and Materialize call it
        for kind, create in creators.items():
            if words.take(kind):
                return create(words)
        if words.peek() is None:
            raise words.expected(f"{', '.join(FORMS)} after CREATE")
        name, hint = words.shown().strip("'").upper(), near(words.peek(), FORMS)
        instead = CREATE_INSTEAD.get(name)
        told = f" {instead}" if instead else f"{hint} {STATEMENTS}"
        raise words.spot().error(f"there is no CREATE {name} here.{told}")

    def _name(self, words: Statement, what: str) -> str:
        if words.next_is("IF", "NOT", "EXISTS"):
            raise words.spot().error(
                "a file is read anew at each start, and every name stands once: leave IF NOT EXISTS out."
            )
        spot, name = words.spot(), words.name(f"the name of the {what}: {FORMS[what.upper()]}")
        if name in self.places:
            line = str(self.places[name]).removeprefix(f"{spot.file}, ").split(",")[0]
            kind = "stream" if name in self.streams else "table" if name in self.tables else "query"
            raise spot.error(f"there already is a {kind} called '{name}', in {line}.")
        self.places[name] = spot
        return name

    def _stream(self, words: Statement) -> None:
        name = self._name(words, "stream")
        self.streams[name] = read_stream(words, self.places[name])

    def _table(self, words: Statement) -> None:
        name = self._name(words, "table")
        self.tables[name] = read_table(words, self.places[name])

    def _query(self, words: Statement, what: str = "query") -> None:
        name = self._name(words, what)
        emit = None
        if words.take("EMIT"):
            spot, emit = words.spot(), words.name("UPDATE, ONCE or FINAL after EMIT").lower()
            if emit not in EMITS:
                known = ", ".join(f"EMIT {one.upper()}" for one in EMITS)
                raise spot.error(f"expected one of {known}; got EMIT {emit.upper()}.")
        if words.next_is("("):
            raise words.spot().error(
                f"a {what} has no list of columns: name them in its SELECT, as SELECT a AS x, b AS y."
            )
        words.need("AS", f"AS and a SELECT: {FORMS[what.upper()]}")
        if not any(words.next_is(begin) for begin in ("SELECT", "WITH", "(")):
            raise words.expected("a SELECT after AS")
        start, text = words.rest()
        self.queries[name] = SqlQuery(name, text, emit, start, self.places[name])

    def _view(self, words: Statement) -> None:
        self._query(words, "view")
        self.views.add(next(reversed(self.queries)))

    def _sink(self, words: Statement) -> None:
        spot, name = words.spot(), words.name(f"the name of a query: {FORMS['SINK']}")
        if name in self.targets:
            raise spot.error(f"the query '{name}' already has a sink.")
        self.targets[name] = spot
        if words.next_is("FROM") or words.next_is("AS"):
            raise words.spot().error(
                f"a sink is called like its query, and says where its results go: {FORMS['QUERY']}; "
                f"{FORMS['SINK']}."
            )
        words.need("TO", f"TO and a folder: {FORMS['SINK']}, or TO CONSOLE")
        if words.take("CONSOLE"):
            self.sinks[name] = "console"
            return words.end()
        if words.take("KAFKA"):
            servers = words.value("kafka")
            given = (
                words.options([key for key in KAFKA_SINK if key != "kafka"])
                if words.take("WITH")
                else {}
            )
            words.end()
            self.sinks[name] = topic_sink(spot, name, {"kafka": servers, **given})
            return None
        if words.next_is("'console'"):
            raise words.spot().error("write TO CONSOLE without quotes, or TO './console'.")
        if words.next_is_word():
            raise words.expected("a folder in quotes, CONSOLE or KAFKA 'host:9092' after TO")
        folder = words.value("TO")
        given = words.options(SINK[1:]) if words.take("WITH") else {}
        words.end()
        self.sinks[name] = sink_of(folder, given)

    def _function(self, words: Statement) -> None:
        spot = words.spot()
        made = read_function(words, FORMS["FUNCTION"])
        if any(made.name == other.name for other in self.functions):
            raise spot.error(f"there already is a function called '{made.name}'.")
        self.functions.append(made)

    def _set(self, words: Statement) -> None:
        known = (*RUN, *SETTINGS)
        spot, key = words.spot(), words.option_name("SET at_end = 'close'")
        if key not in known:
            raise spot.error(f"there is no option '{key}'.{elsewhere(key, known)}")
        if key in self.options:
            raise spot.error(f"the option '{key}' is set twice.")
        words.need("=", f"'=' after '{key}'")
        self.options[key] = words.value(key)
        words.end()

    def finish(self, file: str) -> Spec:
        for name, spot in self.targets.items():
            if name in self.views:
                raise spot.error(f"'{name}' is a view, which has no sink: make it a CREATE QUERY.")
            if name in self.streams:
                raise spot.error(
                    f"'{name}' is a stream: a sink is for a query, e.g. CREATE QUERY copy AS "
                    f"SELECT * FROM {name}."
                )
            check_query(spot, name, [name for name in self.queries if name not in self.views])
        for what, made in (("STREAM", self.streams), ("QUERY", self.queries)):
            if not made:
                raise SettingsError(
                    f"{file}, line 1: there is no CREATE {what}: a file needs streams and queries, "
                    f"e.g. {FORMS[what]}."
                )
        run = {key: part for key, part in self.options.items() if key in RUN}
        rest = {key: part for key, part in self.options.items() if key not in RUN}
        return Spec(
            streams=self.streams,
            queries=self.queries,
            sinks=self.sinks,
            settings=settings_of(rest),
            run=run_of(run),
            places=self.places,
            functions=tuple(self.functions),
            tables=self.tables,
        )


def read_sql(path: Path) -> Spec:
    """The specification in a SQL file."""
    made = _File()
    for words in statements(str(path), read_text(path)):
        made.statement(words)
    return made.finish(str(path))
