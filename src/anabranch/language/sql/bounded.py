"""What makes few rows of many within a window: DISTINCT, DISTINCT ON, ORDER BY … LIMIT, and QUALIFY's kin."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from anabranch.language.builder import Query
from anabranch.language.expression import Column, Expression, Literal, Named, col
from anabranch.language.groups import Aggregate
from anabranch.language.node import Node
from anabranch.language.order import told_by, tumble_size
from anabranch.language.over import NamedRowCall, RowCall, Sort
from anabranch.language.ranked import Ranked
from anabranch.language.sql.dialect import Inputs, Scope
from anabranch.language.sql.expression import translate
from anabranch.language.stateless import Branch, Filter, Project, retimed
from anabranch.language.window import Everything

PLACE = "place in its window"


def distinct(query: Query, scope: Scope, at: exp.Expr, what: str, emit: str = "final") -> Query:
    """Every row once: when its time has passed, or with emit="once" when it is there."""
    if query.node.ordered is None and emit != "once":
        raise scope.error(
            f"{what} would have to remember every row for ever: select the ordered attribute or a window of "
            "it too, such as time/60, so that what is distinct is known when that has passed; or write EMIT "
            "ONCE, and SET allow_unbounded_state = true.",
            at,
        )
    names = list(query.node.schema)
    return query.group_by(*names).agg(emit=emit).select(*names)


def few_of_each(tree: exp.Select, query: Query, scope: Scope, emit: str) -> Query:
    """What a SELECT has selected, after DISTINCT and LIMIT."""
    found = tree.args.get("distinct")
    if found is not None and not found.args.get("on"):
        at_once = emit == "once" and not tree.args.get("group")
        query = distinct(query, scope, tree, "SELECT DISTINCT", emit if at_once else "final")
    if not tree.args.get("limit"):
        return query
    names = {name: name for name in query.node.schema}
    inputs = Inputs({"": names}) if tree.args.get("group") else scope.inputs
    return best(tree, query, replace(scope, schema=query.node.schema, inputs=inputs, own=names))


def first_of_each(tree: exp.Select, on: exp.Expr, query: Query) -> exp.Expr:
    """DISTINCT ON as a condition of QUALIFY: number 1 among those that agree on these."""
    keys = on.expressions if isinstance(on, exp.Tuple) else [on]
    order = tree.args.get("order")
    given = [part for part in order.expressions if part.this not in keys] if order else []
    if not given and query.node.ordered is not None:
        given = [exp.Ordered(this=exp.column(query.node.ordered.column))]
    return exp.EQ(
        this=exp.Window(
            this=exp.Anonymous(this="ROW_NUMBER", expressions=[]),
            partition_by=[key.copy() for key in keys],
            order=exp.Order(expressions=[part.copy() for part in given]),
        ),
        expression=exp.Literal.number(1),
    )


def best(tree: exp.Select, query: Query, scope: Scope) -> Query:
    """ORDER BY … LIMIT n: the first n rows of each window, or of each group of LIMIT n BY."""
    limit, order = tree.args["limit"], tree.args.get("order")
    if isinstance(limit, exp.Fetch):
        most = _whole(limit.args.get("count"), limit, scope)
    else:
        most = _whole(limit.expression, limit, scope)
    skipped = (
        _whole(tree.args["offset"].expression, tree.args["offset"], scope)
        if tree.args.get("offset")
        else 0
    )
    by = [translate(part, scope) for part in limit.expressions or ()]
    time = query.node.ordered
    if not order:
        raise scope.error(
            "LIMIT has no meaning in an endless stream without an order: with ORDER BY it holds for each "
            "window.",
            limit,
        )
    if time is None or not (by or _of_windows(query.node)):
        raise scope.error(
            "LIMIT has no meaning in an endless stream: it holds for each window, so GROUP BY a window and "
            "select its column, or write LIMIT n BY a window, or number the rows with ROW_NUMBER() OVER "
            "(PARTITION BY a window ORDER BY …) and filter with QUALIFY.",
            limit,
        )
    keys, column, size = [], time.column, 0
    for expression in by or [Column(time.column)]:
        found = _told(expression, query)
        if found is None or size:
            keys.append(expression)
        else:
            column, size = found
    if not size:
        raise scope.error(
            f"LIMIT n BY needs a window of the ordered attribute among others: {time.column}, or "
            f"{time.column}/60.",
            limit,
        )
    sorts = tuple(
        Sort(
            _of_list(part.this, scope),
            bool(part.args.get("desc")),
            bool(part.args.get("nulls_first")),
        )
        for part in order.expressions
    )
    node = retimed(query.node, column)
    assert node is not None
    named = tuple(Named(f"key{at}", key) for at, key in enumerate(keys))
    with scope.placed(limit):
        ranked = Query(
            Ranked(node, size, named, sorts, (NamedRowCall(PLACE, RowCall("row_number")),))
        )
    kept = ranked.where(col(PLACE) <= skipped + most)
    kept = kept.where(col(PLACE) > skipped) if skipped else kept
    return kept.select(*query.node.schema)


def _of_list(tree: exp.Expr, scope: Scope) -> Expression:
    """An expression of ORDER BY; a number stands for that column of the SELECT list."""
    if isinstance(tree, exp.Literal) and not tree.is_string:
        number, names = int(tree.this) if str(tree.this).isdigit() else 0, list(scope.schema)
        if not 1 <= number <= len(names):
            raise scope.error(
                f"ORDER BY {tree.this}: the SELECT list has columns 1 to {len(names)}.", tree
            )
        return Column(names[number - 1])
    return translate(tree, scope)


def _told(expression: Expression, query: Query) -> tuple[str, int] | None:
    for time in told_by(query.node.ordered) if query.node.ordered else ():
        size = tumble_size(expression, time)
        if size is not None:
            return time.column, size
    return None


def _of_windows(node: Node) -> bool:
    """Whether rows are results of windows."""
    while isinstance(node, (Project, Filter, Branch)):
        node = node.input
    return isinstance(node, Aggregate) and not isinstance(node.window, Everything)


def _whole(tree: exp.Expr | None, at: exp.Expr, scope: Scope) -> int:
    found = translate(tree, scope) if tree is not None else None
    value = found.value if isinstance(found, Literal) else None
    if type(value) is not int or value < 0:
        raise scope.error("LIMIT and OFFSET take a whole number.", at)
    return value
