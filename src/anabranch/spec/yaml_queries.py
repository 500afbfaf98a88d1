"""The queries of a YAML file: SQL, or clauses that mirror the builder's calls.

    flows: SELECT tb, srcIP, COUNT(*) AS cnt FROM tcp GROUP BY time/60 AS tb, srcIP
    heavy: {from: flows, where: cnt > 10, group_by: [tb, srcIP], aggregate: [max(cnt) AS most],
            having: most > 20, select: [tb, most], emit: final}

Clauses take effect in the order of SQL. Entries may read each other in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.language.alike import refuse_unlike
from anabranch.language.builder import Query
from anabranch.language.expression import Expression
from anabranch.language.sql.aggregate import read_aggregate
from anabranch.language.sql.expression import read_expression, read_named
from anabranch.language.window_key import WindowKey
from anabranch.session import Session
from anabranch.spec.place import FilePlace
from anabranch.spec.spec import Need, tables_of
from anabranch.spec.yaml_document import Entry

INPUTS = ("sql", "from", "union", "case")
CLAUSES = (
    "where", "window", "group_by", "aggregate", "emit", "having", "history", "select",
)  # fmt: skip
WINDOWS = {"tumble": (1, 1), "hop": (2, 2), "session": (1, 1), "rows": (1, 2)}
"""How many sizes each window takes, at least and at most."""
WINDOW = "{tumble: 60}, {hop: [60, 10]}, {session: 300} or {rows: [100, 10]}, with '1 hour' for timestamps"
HISTORY = "{by: caller, rows: 5, aggregate: [count(*) AS calls]}"
CASE = "{of: calls, branches: {short: duration < 60, long: duration > 600}, rest: others}"
QUERY = "{from: calls, where: duration > 60}, or SQL"
"""What clauses that are mappings look like."""


@dataclass(frozen=True)
class YamlQuery:
    """An entry under `queries`; a case defines as many queries as it has branches."""

    name: str
    place: Entry

    def names(self) -> dict[str, FilePlace]:
        fields = _clauses(self.place)
        return _branches(fields["case"]) if "case" in fields else {self.name: self.place}

    def define(self, session: Session, need: Need) -> None:
        fields = _clauses(self.place)
        if "case" in fields:
            _case(session, need, fields)
        elif "sql" in fields:
            _sql(session, need, self.name, fields)
        else:
            session.query(self.name, build(_input(session, need, self.place, fields), fields))


def _read(session: Session, need: Need, entry: Entry) -> Query:
    name = entry.text()
    need(name, entry)
    return session.from_stream(name)


def _input(session: Session, need: Need, entry: Entry, fields: Mapping[str, Entry]) -> Query:
    given = [key for key in INPUTS if key in fields]
    if len(given) != 1:
        came = " and ".join(given) or "none"
        raise entry.error(f"a query needs one input: sql, from, union or case; got {came}.")
    if "from" in fields:
        return _read(session, need, fields["from"])
    parts = [_read(session, need, part) for part in fields["union"].items()]
    if len(parts) < 2:
        raise fields["union"].error("a union needs two inputs or more: union: [a, b].")
    refuse_unlike([part.node.schema for part in parts], sql=True)
    return parts[0].union(*parts[1:])


def _sql(session: Session, need: Need, name: str, fields: Mapping[str, Entry]) -> None:
    for key in fields:
        if key not in ("sql", "emit"):
            raise fields[key].error(f"'{key}' has no place beside SQL: write it there.")
    text = fields["sql"].text()
    for table, _ in tables_of(text, name, session.settings.dialect):
        need(table)
    emit = fields["emit"].text() if "emit" in fields else None
    session.query(name, text, emit)


def _case(session: Session, need: Need, fields: Mapping[str, Entry]) -> None:
    """One query per branch, named like it, and one for the rest if it has a name."""
    for key in fields:
        if key != "case":
            raise fields[key].error(
                "a case stands alone: write the clauses in queries that read its branches."
            )
    parts = fields["case"].fields(("of", "branches", "rest"), CASE)
    source = _read(session, need, _required(fields["case"], parts, "of"))
    schema = source.node.schema
    branches = _required(fields["case"], parts, "branches").fields(None, "{short: duration < 60}")
    made = source.case(
        *(read_expression(_text(part), schema, str(part)) for part in branches.values())
    )
    names = [*branches, *([parts["rest"].text()] if "rest" in parts else [])]
    for name, query in zip(names, made, strict=False):
        session.query(name, query)


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
    parts = entry.fields(("by", "rows", "aggregate"), HISTORY)
    schema = query.node.schema
    by = parts["by"].items() if "by" in parts else []
    rows = _required(entry, parts, "rows").value(int)
    aggregates = _required(entry, parts, "aggregate").items()
    keys = [read_named(_text(part), schema, str(part)) for part in by]
    return query.history(*keys, rows=rows).agg(
        *(read_aggregate(_text(part), schema, str(part)) for part in aggregates)
    )


def _window(entry: Entry) -> WindowKey:
    parts = entry.fields(WINDOWS, WINDOW)
    if len(parts) != 1:
        raise entry.error(f"expected one window, such as {WINDOW}.")
    kind, sizes = next(iter(parts.items()))
    least, most = WINDOWS[kind]
    values = [size.value(int, str) for size in sizes.items()]
    if not least <= len(values) <= most:
        wanted = str(least) if least == most else f"{least} or {most}"
        sizes_wanted = "1 size" if wanted == "1" else f"{wanted} sizes"
        raise sizes.error(f"'{kind}' takes {sizes_wanted}, got {len(values)}.")
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


def _branches(entry: Entry) -> dict[str, FilePlace]:
    parts = entry.fields(("of", "branches", "rest"), CASE)
    branches = _required(entry, parts, "branches")
    found: dict[str, FilePlace] = {**branches.fields(None, "{short: duration < 60}")}
    if "rest" in parts:
        found[parts["rest"].text()] = parts["rest"]
    return found


def _clauses(entry: Entry) -> dict[str, Entry]:
    """The clauses of an entry; a text instead of a mapping is SQL."""
    return {"sql": entry} if entry.is_text else entry.fields((*INPUTS, *CLAUSES), QUERY)


def _required(entry: Entry, parts: Mapping[str, Entry], key: str) -> Entry:
    if key not in parts:
        raise entry.error(f"'{key}' is missing.")
    return parts[key]
