"""Joins in Spark's plans: equalities of the two inputs are keys, the rest bounds the times."""

from __future__ import annotations

from anabranch.language.bounds import all_of
from anabranch.language.dataframe.catalyst import SparkNode
from anabranch.language.dataframe.expression import translate
from anabranch.language.dataframe.rows import Rows, unused
from anabranch.language.dataframe.values import SparkColumns, refused
from anabranch.language.tree import Column, Expression, Named

JOINS = {
    "Inner$": "inner", "LeftOuter$": "left", "RightOuter$": "right", "FullOuter$": "full",
    "LeftSemi$": "semi", "LeftAnti$": "anti",
}  # fmt: skip


def read_join(part: SparkNode, left: Rows, right: Rows) -> Rows:
    """The rows of a join of two inputs."""
    how = JOINS.get(str(part.fields["joinType"].get("object", "")).rsplit(".", 1)[-1])
    if how is None or part.fields.get("condition") is None:
        raise refused(part, "a join of this kind, or without a condition")
    if left.windows or right.windows:
        raise refused(part, "windows that nothing is grouped by")
    taken = list(left.query.node.schema)
    renamed: dict[str, str] = {}
    for name in right.query.node.schema:
        renamed[name] = unused(name, [*taken, *renamed.values()])
    other = right.query.select(*(Named(new, Column(old)) for old, new in renamed.items()))
    right_scope = SparkColumns(
        {number: renamed[name] for number, name in right.scope.columns.items()},
        {n: (renamed[start], renamed[end]) for n, (start, end) in right.scope.windows.items()},
    )
    both = SparkColumns(
        {**left.scope.columns, **right_scope.columns},
        {**left.scope.windows, **right_scope.windows},
    )
    pairs: list[tuple[Expression, Expression]] = []
    rest: list[Expression] = []
    for condition in _conjuncts(part.expression("condition")):
        pair = _pair(condition, left.scope, right_scope)
        if pair is None:
            rest.append(translate(condition, both))
        else:
            pairs.append(pair)
    query = left.query.join(other, on=list(pairs), how=how, where=all_of(rest))
    return Rows(query, left.scope if how in ("semi", "anti") else both, {})


def _conjuncts(condition: SparkNode) -> list[SparkNode]:
    if condition.kind == "And":
        return [part for child in condition.children for part in _conjuncts(child)]
    return [condition]


def _pair(
    condition: SparkNode, left: SparkColumns, right: SparkColumns
) -> tuple[Expression, Expression] | None:
    """The two sides of an equality of an expression over each of two inputs."""
    if condition.kind != "EqualTo":
        return None
    for one, other in (condition.children, condition.children[::-1]):
        if _reads(one, left) and _reads(other, right):
            return translate(one, left), translate(other, right)
    return None


def _reads(part: SparkNode, scope: SparkColumns) -> bool:
    """Whether an expression is over columns, and all of them are of this scope."""
    ids = [each.id for each in part.walk() if each.kind == "AttributeReference"]
    return bool(ids) and all(number in scope.columns or number in scope.windows for number in ids)
