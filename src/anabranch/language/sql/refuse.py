"""What SQL has and continuous queries do not: refused by name, with the reason and what to write instead."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from anabranch.errors import LanguageError
from anabranch.language.sql.column import STAR
from anabranch.language.sql.dialect import Scope

CLAUSES = {
    "order": "ORDER BY has no meaning in an endless stream: order the rows where you read them",
    "limit": "LIMIT has no meaning in an endless stream: filter with WHERE or HAVING",
    "offset": "OFFSET has no meaning in an endless stream: filter with WHERE or HAVING",
    "laterals": "LATERAL is not available: a sub-query in FROM cannot read the inputs beside it",
    "pivots": "PIVOT is not available: write an aggregate with FILTER for each column",
    "sample": "TABLESAMPLE is not available: filter with WHERE on bits of a column, which picks the same "
    "rows when an epoch is run again",
    "into": "SELECT INTO is not available: the sink of a query is given to session.start(sinks=…)",
    "locks": "FOR UPDATE has no meaning for a stream",
    "rollup": "ROLLUP is not available: write a query for each grouping",
    "cube": "CUBE is not available: write a query for each grouping",
    "grouping_sets": "GROUPING SETS are not available: write a query for each grouping",
    "connect": "CONNECT BY is not available",
    "sort": "SORT BY has no meaning in an endless stream: order the rows where you read them",
    "cluster": "CLUSTER BY is not available: the planner decides how rows are partitioned",
    "distribute": "DISTRIBUTE BY is not available: the planner decides how rows are partitioned",
    "by_name": "UNION ALL BY NAME is not available: select the columns in the same order",
    "recursive": "WITH RECURSIVE is not available",
    "only": "FROM ONLY is not available",
    "when": "the past of a stream cannot be read with FOR … AS OF",
    "version": "the past of a stream cannot be read with FOR … AS OF; JOIN it FOR SYSTEM_TIME AS OF the time "
    "of the rows before it",
    "db": "a stream or query has a plain name, without a schema before it",
}
"""The clauses that a statement may have in SQL and may not have here."""

_INPUTS: dict[type[exp.Expr], str] = {
    exp.Values: "VALUES is not available: rows come from streams",
    exp.Unnest: "UNNEST stands beside the input that has the list: FROM t CROSS JOIN UNNEST(t.xs) AS u(x)",
    exp.Lateral: CLAUSES["laterals"],
}

_SETS: dict[type[exp.Expr], str] = {
    exp.Intersect: "INTERSECT would have to remember every row: JOIN the two on their columns and a time",
    exp.Except: "EXCEPT would have to remember every row: LEFT JOIN the other on the columns and a time, "
    "and keep the rows where it IS NULL",
    exp.Values: "VALUES is not available: rows come from streams",
}

_SUBQUERY = (
    "a sub-query stands in FROM, in WHERE or among the columns of SELECT: write it there, or give it a "
    "name with WITH"
)
ELSEWHERE: dict[type[exp.Expr], str] = {
    exp.Subquery: _SUBQUERY,
    exp.Select: _SUBQUERY,
    exp.Exists: "EXISTS stands in WHERE, alone or joined to other conditions by AND: write it there, in a "
    "query around this one",
    exp.Window: "OVER is not available here: compute it in the SELECT list of a sub-query and use its name",
    exp.Escape: "ESCAPE belongs to LIKE and ILIKE: for other patterns use REGEXP_MATCHES",
    exp.SimilarTo: "SIMILAR TO is not available: use REGEXP_FULL_MATCH with a regular expression",
    exp.Any: "ANY is not available: use IN (constants), or LIST_CONTAINS(xs, value) for a list",
    exp.All: "ALL is not available: compare with LIST_MAX(xs) or LIST_MIN(xs) of a list, or with the MAX or "
    "MIN of a sub-query",
    exp.WithinGroup: "WITHIN GROUP belongs to PERCENTILE_CONT(fraction), PERCENTILE_DISC(fraction) and "
    "LISTAGG",
    exp.Aliases: "a list of names cannot follow here. ROLLUP and CUBE are not available: write a query for "
    "each grouping",
    exp.IgnoreNulls: "IGNORE NULLS is not available: leave NULL out with FILTER (WHERE x IS NOT NULL)",
    exp.Tuple: "rows of values cannot be compared: compare each, as in a = 1 AND b = 2",
    exp.Glob: "GLOB is not available: use LIKE or REGEXP_MATCHES",
    exp.JSONBContainsTopKey: "? is not available: write j ->> 'name' IS NOT NULL",
    exp.Parameter: "@ is not available: write ABS(x)",
    exp.Filter: "FILTER belongs to an aggregate",
    exp.Star: STAR,
    exp.Block: "there is more than one statement: register each as a query of its own",
}
"""What an expression may have in SQL and may not have here, and what can be written instead."""


def refuse_clauses(tree: exp.Expr, scope: Scope, allowed: Collection[str]) -> None:
    """Raises for the first clause of a statement, table or grouping that is not among the allowed."""
    for part, found in tree.args.items():
        if part in allowed or not found:
            continue
        first = found[0] if isinstance(found, list) else found
        at = first if isinstance(first, exp.Expr) else tree
        reason = CLAUSES.get(part, f"{part.strip('_').upper()} is not available")
        raise scope.error(f"{reason}.", at)


def refuse_patterns(scope: Scope) -> None:
    """Raises for MATCH_RECOGNIZE, whose insides are no SQL that could be read."""
    place = scope.text.upper().find("MATCH_RECOGNIZE")
    words = scope.text[place:].split("(", 1)[0].strip().upper() if place >= 0 else ""
    if words == "MATCH_RECOGNIZE":
        raise scope.error(
            "MATCH_RECOGNIZE is not available: join the stream with itself within a bound of time, or look "
            "at the last rows of a key with OVER (… ROWS n PRECEDING).",
            place,
        )


def refuse_input(tree: exp.Expr, scope: Scope, joined: bool = False) -> None:
    """Raises if this cannot be read in FROM."""
    reason = _INPUTS.get(type(tree))
    if reason:
        raise scope.error(f"{reason}.", tree)
    if isinstance(tree, exp.Table) and name_of_function(tree) == "SESSION()":
        raise scope.error(
            "SESSION in FROM is not available: write GROUP BY SESSION(ts, INTERVAL '10' SECOND).",
            tree,
        )
    if isinstance(tree, exp.Table) and not isinstance(tree.this, exp.Identifier):
        raise scope.error(
            f"there are no table functions such as {name_of_function(tree)}: rows come from streams.",
            tree,
        )
    refuse_clauses(tree, scope, ("this", "alias", *(("version",) if joined else ())))
    alias = tree.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise scope.error(
            f"'{alias.name}' cannot name its columns here: name them with AS in the SELECT.", alias
        )


def refused_statement(tree: exp.Expr, scope: Scope) -> LanguageError:
    """The error to raise for a tree that is no SELECT."""
    reason = _SETS.get(type(tree))
    if isinstance(tree, exp.Block):
        reason = "there is more than one statement: register each as a query of its own"
    return scope.error(
        f"{reason}." if reason else f"expected a SELECT, but this is {tree.key.upper()}.", tree
    )


def name_of_function(tree: exp.Table) -> str:
    return f"{tree.this.this!s}()".upper() if isinstance(tree.this, exp.Anonymous) else str(tree)
