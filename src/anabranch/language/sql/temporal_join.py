"""JOIN … FOR SYSTEM_TIME AS OF, and ASOF JOIN: the newest row by key of an input, as of the time of a row."""

from __future__ import annotations

from sqlglot import exp

from anabranch.language.builder import Query
from anabranch.language.expression import Column
from anabranch.language.lookup import Table
from anabranch.language.sql.clock import reads_clock
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.expression import translate
from anabranch.language.sql.join_scope import JoinScope, Pair, conjuncts
from anabranch.language.temporal import as_of


def joined_as_of(
    tree: exp.Join, kind: str, joining: JoinScope, inputs: tuple[Query, Query], pairs: list[Pair]
) -> Query:
    """The rows there are so far, with the newest row of the other input beside each."""
    before, version = joining.before, tree.this.args.get("version")
    rows, versions = inputs
    if is_asof(tree):
        if tree.args.get("using"):
            raise before.error(f"ASOF JOIN takes its conditions from ON: {_BOUND}.", tree.this)
        conditions = _without_bound(tree, joining, inputs)
    else:
        _check_time(version, before, rows)
        conditions = conjuncts(tree.args.get("on"))
    what = "ASOF JOIN" if is_asof(tree) else "FOR SYSTEM_TIME AS OF"
    for part in conditions:
        pair = joining.pair(part)
        if pair is None:
            raise before.error(
                f"{what} joins by equalities; put other conditions into WHERE, or into a sub-query if "
                "they say which versions there are.",
                part,
            )
        pairs.append(pair)
    if not pairs:
        raise before.error(f"{what} needs ON with an equality: the key.", tree)
    with before.placed(tree.this):
        return Query(as_of(rows.node, versions.node, pairs, joining.names, kind))


_BOUND = "an equality, and rows.time >= versions.time of the ordered attributes"


def is_asof(tree: exp.Join) -> bool:
    return str(tree.args.get("method") or "").upper() == "ASOF"


def takes_versions(tree: exp.Join, right: Query) -> bool:
    """Whether a join is one with versions by time. A table has one at a time, which is that of now."""
    version = tree.this.args.get("version")
    if version is not None and isinstance(right.node, Table) and reads_clock(version):
        return False
    return version is not None or is_asof(tree)


def _check_time(version: exp.Expr, before: Scope, rows: Query) -> None:
    time, asked = rows.node.ordered, version.args.get("expression")
    if isinstance(asked, exp.Expr) and reads_clock(asked, before.schema):
        raise before.error(
            "FOR SYSTEM_TIME AS OF now is for tables (session.table, CREATE TABLE): of a stream there are "
            "versions by time, FOR SYSTEM_TIME AS OF the time of the rows that are joined.",
            asked,
        )
    told = translate(asked, before) if isinstance(asked, exp.Expr) else None
    if time is None or not isinstance(told, Column) or told.name != time.column:
        name = time.column if time else "the ordered attribute"
        raise before.error(
            f"FOR SYSTEM_TIME AS OF takes the time of the rows that are joined, {name}.", version
        )


def _without_bound(
    tree: exp.Join, joining: JoinScope, inputs: tuple[Query, Query]
) -> list[exp.Expr]:
    """The conditions but for that on the times, which there must be."""
    times = [one.node.ordered.column if one.node.ordered else "" for one in inputs]
    wanted = [times[0], joining.names.get(times[1], "")]
    conditions = conjuncts(tree.args.get("on"))
    for part in conditions:
        sides = [part.this, part.expression] if isinstance(part, (exp.GTE, exp.LTE)) else []
        sides = sides[::-1] if isinstance(part, exp.LTE) else sides
        told = [translate(side, joining.both) for side in sides]
        if told and [one.name if isinstance(one, Column) else "" for one in told] == wanted:
            return [other for other in conditions if other is not part]
    raise joining.before.error(f"ASOF JOIN needs ON with {_BOUND}.", tree.this)
