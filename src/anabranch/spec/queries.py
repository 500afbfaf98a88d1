"""The queries of a specification file: SQL, or clauses that mirror the builder's calls.

    flows: SELECT tb, srcIP, COUNT(*) AS cnt FROM tcp GROUP BY time/60 AS tb, srcIP
    heavy: {from: flows, where: cnt > 10, group_by: [tb, srcIP], aggregate: [max(cnt) AS most],
            having: most > 20, select: [tb, most], emit: final}

Clauses take effect in the order of SQL. Entries may read each other in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from anabranch.errors import LanguageError, suggest
from anabranch.language.builder import Query, WindowKey
from anabranch.language.dialect import Scope, StatementDialect, parse
from anabranch.language.expression import Expression
from anabranch.language.text import read_expression, read_named
from anabranch.language.text_aggregate import read_aggregate
from anabranch.session import Session
from anabranch.spec.document import Entry

INPUTS = ("sql", "from", "union", "case")
CLAUSES = (
    "where", "window", "group_by", "aggregate", "emit", "having", "history", "select",
)  # fmt: skip
WINDOWS = {"tumble": (1, 1), "hop": (2, 2), "session": (1, 1), "rows": (1, 2)}
"""How many sizes each window takes, at least and at most."""


def query_names(entries: Mapping[str, Entry]) -> dict[str, str]:
    """Every query the file defines, with its entry; the branches of a case are queries of their own."""
    names: dict[str, str] = {}
    for name, entry in entries.items():
        fields = _clauses(entry)
        found = _branches(fields["case"]) if "case" in fields else {name: entry}
        for branch, place in found.items():
            if branch in names:
                raise place.error(f"there already is a query called '{branch}'.")
            names[branch] = name
    return names


def register_queries(
    session: Session, streams: Collection[str], entries: Mapping[str, Entry]
) -> None:
    """Builds every query of the file and gives it to the session."""
    registrar = _Registrar(session, streams, entries)
    for name in entries:
        registrar.register(name)


class _Registrar:
    """Builds queries after those they read."""

    def __init__(
        self, session: Session, streams: Collection[str], entries: Mapping[str, Entry]
    ) -> None:
        self._session = session
        self._streams = streams
        self._entries = entries
        self._names = query_names(entries)
        self._under_way: list[str] = []
        self._done: set[str] = set()

    def register(self, name: str) -> None:
        if name in self._done:
            return
        entry = self._entries[name]
        if name in self._under_way:
            circle = " -> ".join([*self._under_way[self._under_way.index(name) :], name])
            raise LanguageError(f"{entry}: queries cannot read each other in a circle: {circle}.")
        self._under_way.append(name)
        with entry.placed():
            fields = _clauses(entry)
            if "case" in fields:
                self._case(fields)
            elif "sql" in fields:
                self._sql(name, fields)
            else:
                self._session.query(name, build(self._input(entry, fields), fields))
        self._under_way.pop()
        self._done.add(name)

    def _read(self, entry: Entry) -> Query:
        name = entry.text()
        if name in self._names:
            self.register(self._names[name])
        elif name not in self._streams:
            known = suggest(name, [*self._streams, *self._names])
            raise LanguageError(f"{entry}: there is no stream or query '{name}'.{known}")
        return self._session.from_stream(name)

    def _input(self, entry: Entry, fields: Mapping[str, Entry]) -> Query:
        given = [key for key in INPUTS if key in fields]
        if len(given) != 1:
            came = " and ".join(given) or "none"
            raise entry.error(f"a query needs one input: sql, from, union or case; got {came}.")
        if "from" in fields:
            return self._read(fields["from"])
        parts = [self._read(part) for part in fields["union"].items()]
        if len(parts) < 2:
            raise fields["union"].error("a union needs two inputs or more: union: [a, b].")
        return parts[0].union(*parts[1:])

    def _sql(self, name: str, fields: Mapping[str, Entry]) -> None:
        for key in fields:
            if key not in ("sql", "emit"):
                raise fields[key].error(f"'{key}' has no place beside SQL: write it there.")
        text = fields["sql"].text()
        for table in _tables(text, name):
            if table in self._names:
                self.register(self._names[table])
        emit = fields["emit"].text() if "emit" in fields else None
        self._session.query(name, text, emit)

    def _case(self, fields: Mapping[str, Entry]) -> None:
        """One query per branch, named like it, and one for the rest if it has a name."""
        for key in fields:
            if key != "case":
                raise fields[key].error(
                    "a case stands alone: write the clauses in queries that read its branches."
                )
        parts = fields["case"].fields(("of", "branches", "rest"))
        source = self._read(_required(fields["case"], parts, "of"))
        schema = source.node.schema
        branches = _required(fields["case"], parts, "branches").fields()
        made = source.case(
            *(read_expression(_text(part), schema, str(part)) for part in branches.values())
        )
        names = [*branches, *([parts["rest"].text()] if "rest" in parts else [])]
        for name, query in zip(names, made, strict=False):
            self._session.query(name, query)


def build(query: Query, fields: Mapping[str, Entry]) -> Query:
    """The input with the entry's clauses applied, in the order of SQL."""
    _check_clauses(fields)
    if "where" in fields:
        query = query.where(_expression(fields["where"], query))
    if "aggregate" in fields:
        query = _aggregate(query, fields)
    elif "history" in fields:
        query = _history(query, fields["history"])
    if "having" in fields:
        query = query.having(_expression(fields["having"], query))
    if "select" in fields:
        schema = query.node.schema
        columns = fields["select"].items()
        query = query.select(*(read_named(_text(part), schema, str(part)) for part in columns))
    return query


def _check_clauses(fields: Mapping[str, Entry]) -> None:
    for key in ("group_by", "window", "emit"):
        if key in fields and "aggregate" not in fields:
            raise fields[key].error(f"'{key}' needs 'aggregate: [...]' beside it.")
    if "history" in fields and "aggregate" in fields:
        raise fields["history"].error("a query has either 'history' or 'aggregate', not both.")
    if "having" in fields and not ("aggregate" in fields or "history" in fields):
        raise fields["having"].error("'having' comes after an aggregate; use 'where' here.")


def _aggregate(query: Query, fields: Mapping[str, Entry]) -> Query:
    schema = query.node.schema
    keys: list[WindowKey] = [_window(fields["window"])] if "window" in fields else []
    columns = fields["group_by"].items() if "group_by" in fields else []
    named = [read_named(_text(part), schema, str(part)) for part in columns]
    aggregates = [
        read_aggregate(_text(part), schema, str(part)) for part in fields["aggregate"].items()
    ]
    emit = fields["emit"].text() if "emit" in fields else "final"
    return query.group_by(*keys, *named).agg(*aggregates, emit=emit)


def _history(query: Query, entry: Entry) -> Query:
    parts = entry.fields(("by", "rows", "aggregate"))
    schema = query.node.schema
    by = parts["by"].items() if "by" in parts else []
    rows = _required(entry, parts, "rows").value(int)
    aggregates = _required(entry, parts, "aggregate").items()
    keys = [read_named(_text(part), schema, str(part)) for part in by]
    return query.history(*keys, rows=rows).agg(
        *(read_aggregate(_text(part), schema, str(part)) for part in aggregates)
    )


def _window(entry: Entry) -> WindowKey:
    parts = entry.fields(WINDOWS)
    if len(parts) != 1:
        raise entry.error("expected one window, such as {tumble: 60} or {hop: [60, 10]}.")
    kind, sizes = next(iter(parts.items()))
    least, most = WINDOWS[kind]
    values = [size.value(int, str) for size in sizes.items()]
    if not least <= len(values) <= most:
        wanted = str(least) if least == most else f"{least} or {most}"
        raise sizes.error(f"'{kind}' takes {wanted} size(s), got {len(values)}.")
    if kind == "rows" and len(values) == 1:
        values *= 2
    return WindowKey(kind, tuple(values))


def _text(entry: Entry) -> str:
    """A text of a list; YAML may have cut it at a comma that belongs to a function."""
    text = entry.text()
    if text.count("(") != text.count(")"):
        raise entry.error(
            f"the parentheses of '{text}' do not match. In a list in [brackets], "
            'a text with a comma needs quotes: ["round(x, 2) AS y"].'
        )
    return text


def _expression(entry: Entry, query: Query) -> Expression:
    return read_expression(entry.text(), query.node.schema, str(entry))


def _branches(entry: Entry) -> dict[str, Entry]:
    parts = entry.fields(("of", "branches", "rest"))
    found = dict(_required(entry, parts, "branches").fields())
    if "rest" in parts:
        found[parts["rest"].text()] = parts["rest"]
    return found


def _clauses(entry: Entry) -> dict[str, Entry]:
    """The clauses of an entry; a text instead of a mapping is SQL."""
    return {"sql": entry} if entry.is_text else entry.fields((*INPUTS, *CLAUSES))


def _tables(text: str, query: str) -> list[str]:
    """What a statement reads, apart from what it defines itself by WITH."""
    tree = parse(Scope(text, {}, f"Query '{query}'"), StatementDialect)
    own = {part.alias for part in tree.find_all(exp.CTE)}
    return [table.name for table in tree.find_all(exp.Table) if table.name not in own]


def _required(entry: Entry, parts: Mapping[str, Entry], key: str) -> Entry:
    if key not in parts:
        raise entry.error(f"'{key}' is missing.")
    return parts[key]
