"""Continuous queries written in SQL, parsed by sqlglot into the query graph.

Covered: SELECT over streams, queries and sub-queries, joined or alone (`from_clause.py`); WHERE; GROUP BY
with names (`time/60 AS tb`) and windows, aggregates inside expressions, HAVING, aggregates OVER the last
rows of a group (`select.py`); UNION ALL; WITH. What is not there is refused by name, with its position and
what can be written instead (`refuse.py`).

>>> import polars as pl
>>> from anabranch.language.order import Ordered
>>> from anabranch.language.node import Stream
>>> tcp = Query(Stream("tcp", pl.Schema({"time": pl.Int64, "srcIP": pl.Int64, "len": pl.Int64}),
...                    Ordered("time", timestamps=False)))
>>> flows = read_query("SELECT tb, srcIP, SUM(len) / COUNT(*) AS mean FROM tcp "
...                    "GROUP BY time/60 AS tb, srcIP HAVING COUNT(*) > 1", {"tcp": tcp})
>>> list(flows.node.schema)
['tb', 'srcIP', 'mean']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from anabranch.language.alike import refuse_unlike
from anabranch.language.bounds import all_of
from anabranch.language.builder import Query
from anabranch.language.deep import deeply
from anabranch.language.sql.aggregate import aggregates_in, outside_queries
from anabranch.language.sql.bounded import distinct
from anabranch.language.sql.clock import reads_clock, with_clock
from anabranch.language.sql.dialect import Scope, dialect_of, first_word, parse
from anabranch.language.sql.emit import split_emit
from anabranch.language.sql.expression import translate
from anabranch.language.sql.from_clause import From
from anabranch.language.sql.join_scope import conjuncts
from anabranch.language.sql.named_windows import with_windows_written_out
from anabranch.language.sql.refuse import refuse_clauses, refuse_patterns, refused_statement
from anabranch.language.sql.select import SelectReader
from anabranch.language.sql.spelling import spelling_named
from anabranch.language.sql.subqueries import with_joins_for_subqueries
from anabranch.language.user_function import UserFunction

BEGINNINGS = ("SELECT", "WITH", "VALUES", "FROM", "(")


def read_query(
    text: str,
    known: Mapping[str, Query],
    name: str = "query",
    emit: str | None = None,
    dialect: str = "anabranch",
    functions: Mapping[str, UserFunction] | None = None,
) -> Query:
    """The query a SELECT stands for; `known` are the streams and queries it may read."""
    scope = Scope(
        text, {}, f"Query '{name}'", functions=functions or {}, spelling=spelling_named(dialect)
    )
    return deeply(lambda: _read(scope, known, emit), scope.where, size=len(text))


def _read(scope: Scope, known: Mapping[str, Query], emit: str | None) -> Query:
    word = first_word(scope)
    refuse_patterns(scope)
    if word in ("", ";"):
        raise scope.error("expected a SELECT, but the text is empty.")
    if word not in BEGINNINGS:
        raise scope.error(f"expected a SELECT, but this is {word}.", 0)
    text, written = split_emit(scope)
    if emit is not None and written is not None and emit != written:
        raise scope.error(f"EMIT at the end of the query and emit='{emit}' say different things.")
    parsed = parse(replace(scope, text=text), dialect_of(scope))
    return _Reader(scope, dict(known), emit or written or "final").query(parsed)


@dataclass
class _Reader:
    scope: Scope
    known: dict[str, Query]
    emit: str

    def query(self, tree: exp.Expr) -> Query:
        reader = self._within(tree) if isinstance(tree, exp.Query) and tree.ctes else self
        match tree:
            case exp.Select():
                return reader._select(tree)
            case exp.Union():
                refuse_clauses(tree, self.scope, ("with_", "this", "expression", "distinct"))
                parts = reader.query(tree.this), reader.query(tree.expression)
                with self.scope.placed(tree.expression):
                    refuse_unlike([part.node.schema for part in parts], sql=True)
                    both = parts[0].union(parts[1])
                    if not tree.args.get("distinct"):
                        return both
                    emit = "once" if self.emit == "once" else "final"
                    what = "UNION (if you do not need it, write UNION ALL)"
                    return distinct(both, self.scope, tree, what, emit)
            case exp.Subquery():
                refuse_clauses(tree, self.scope, ("this", "with_"))
                return reader.query(tree.this)
        raise refused_statement(tree, self.scope)

    def _within(self, tree: exp.Query) -> _Reader:
        """The reader that knows the names of WITH too."""
        refuse_clauses(tree.args["with_"], self.scope, ("expressions",))
        reader = _Reader(self.scope, dict(self.known), self.emit)
        settled = _read_for_good(tree)
        for cte in tree.ctes:
            if cte.args["alias"].args.get("columns"):
                raise self.scope.error(
                    f"'{cte.alias}' cannot name its columns in WITH: name them with AS in the SELECT.",
                    cte,
                )
            emit = "final" if cte.alias in settled else self.emit
            reader.known[cte.alias] = replace(reader, emit=emit).query(cte.this)
        return reader

    def _select(self, tree: exp.Select) -> Query:
        few = ["distinct", "qualify", "windows"]
        few += ["order", "offset", "limit"] if tree.args.get("limit") else []
        few += ["order"] if _distinct_on(tree) else []
        allowed = (
            "with_",
            "expressions",
            "from_",
            "joins",
            "where",
            "group",
            "having",
            "laterals",
            *few,
        )
        refuse_clauses(tree, self.scope, allowed)
        with_windows_written_out(tree, self.scope)
        tree = with_joins_for_subqueries(tree, self)
        where = tree.args.get("where")
        if where:
            self._check_where(where)
        # What is aggregated or joined must be final; the outermost aggregate is what is emitted
        below = replace(self, emit="final") if _needs_rows_for_good(tree) else self
        conditions = conjuncts(where and where.this)
        clocked = [condition for condition in conditions if reads_clock(condition)]
        source = From(below, [one for one in conditions if one not in clocked])
        source.read(tree)
        query, scope = source.query, source.scope
        with scope.placed(where or tree):
            if where and not clocked and not tree.args.get("joins"):
                query = query.where(translate(where.this, scope))
            else:
                rest = all_of([translate(part, scope) for part in source.where])
                query = query if rest is None else query.where(rest)
        query, scope = with_clock(tree, clocked, query, scope)
        with scope.placed(tree.args.get("group") or tree):
            return SelectReader(tree, query, scope, self.emit).finish()

    def _check_where(self, where: exp.Expr) -> None:
        for found in aggregates_in(where):
            name = (found.this if isinstance(found, exp.Filter) else found).name.upper()
            raise self.scope.error(
                f"{name} in WHERE: WHERE chooses rows before they are grouped. Use HAVING.", found
            )
        for over in outside_queries(where):
            if isinstance(over, exp.Window):
                raise self.scope.error(
                    "OVER in WHERE: name the value in a sub-query and filter there with WHERE.",
                    over,
                )


_FOR_GOOD = ("group", "having", "joins", "distinct", "qualify", "limit")


def _distinct_on(tree: exp.Select) -> bool:
    found = tree.args.get("distinct")
    return found is not None and found.args.get("on") is not None


def _needs_rows_for_good(tree: exp.Select) -> bool:
    """Whether a SELECT does more to its rows than look at each alone."""
    if any(tree.args.get(part) for part in _FOR_GOOD):
        return True
    return any(
        aggregates_in(item) or item.find(exp.Window) is not None for item in tree.expressions
    )


def _read_for_good(tree: exp.Query) -> set[str]:
    """The names, of WITH or others, that such a SELECT reads, directly or through names of WITH."""
    names = {
        table.name
        for select in tree.find_all(exp.Select)
        if _needs_rows_for_good(select)
        for table in select.find_all(exp.Table)
    }
    for cte in reversed(tree.ctes):
        if cte.alias in names:
            names |= {table.name for table in cte.this.find_all(exp.Table)}
    return names
