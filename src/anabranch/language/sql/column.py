"""Columns in texts: by their name alone, or by the input they are from."""

from __future__ import annotations

from sqlglot import exp

from anabranch.errors import suggest
from anabranch.language.expression import Column, Expression
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.nested import field_of_column
from anabranch.language.sql.window_border import border_of

STAR = "* stands for all columns and can only be a column of SELECT or the argument of COUNT"

CLOCKS = ("CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP", "CURRENT_ROW_TIMESTAMP")
TIMES_OF_DAY = ("CURRENT_TIME", "LOCALTIME")


EPOCH_TIME = (
    "the time of the epoch, known in WHERE, and in SELECT without GROUP BY, aggregates and OVER: write it "
    "in a query around this one"
)


def resolved(column: str) -> exp.Column:
    """A tree for a column of the scope's schema by its own name, whatever the inputs are called."""
    tree = exp.column(column, quoted=True)
    tree.meta["resolved"] = True
    return tree


def read_column(tree: exp.Column, scope: Scope) -> Expression:
    name, inputs = tree.name, scope.inputs
    if tree.meta.get("resolved"):
        return Column(name)
    if isinstance(tree.this, exp.Star):
        raise scope.error(f"{STAR}.", tree)
    border = border_of(tree, scope)
    if border is not None:
        return border
    if tree.table:
        found = field_of_column(tree, scope)
        return _qualified(tree, scope) if found is None else found
    if name in scope.own:
        return Column(name)
    if name in inputs.merged:
        return inputs.merged[name]
    holding = inputs.holding(name)
    if len(holding) > 1:
        choices = " or ".join(f"{table}.{name}" for table in holding)
        raise scope.error(
            f"column '{name}' is in {' and in '.join(holding)}: write {choices}.", tree
        )
    if holding:
        return Column(inputs.tables[holding[0]][name])
    if name not in scope.schema or inputs.tables:
        if name.upper() in CLOCKS:
            raise scope.error(
                f"{name.upper()} is {EPOCH_TIME}.",
                tree,
            )
        if name.upper() in TIMES_OF_DAY:
            raise scope.error(
                f"{name.upper()} is not available: take CURRENT_TIMESTAMP, and parts of it with EXTRACT.",
                tree,
            )
        known = {*scope.own, *(c for columns in inputs.tables.values() for c in columns)}
        quoted = (
            f" A text stands in single quotes: '{name}'."
            if tree.this.args.get("quoted") and not scope.spelling.double_quotes_text
            else ""
        )
        raise scope.error(
            f"column '{name}' is not found.{suggest(name, known or scope.schema)}{quoted}", tree
        )
    return Column(name)


def _qualified(tree: exp.Column, scope: Scope) -> Expression:
    tables = scope.inputs.tables
    if tree.table.lower() == "window" and tree.table not in tables:
        raise scope.error(
            "the columns of a window are called window_start and window_end here: write one of them.",
            tree,
        )
    if not tables:
        raise scope.error(f"write '{tree.name}' without '{tree.table}.': there is one input.", tree)
    if tree.table in scope.inputs.asked:
        raise scope.error(
            f"'{tree}' is not in the result: SEMI and ANTI JOIN give the columns of the left input alone.",
            tree,
        )
    if tree.table not in tables or tree.args.get("db"):
        raise scope.error(
            f"there is no input '{tree.table}' here.{suggest(tree.table, tables)} An input has the name "
            "that AS gives it, and a sub-query does not see the inputs of the query around it.",
            tree,
        )
    columns = tables[tree.table]
    if tree.name not in columns:
        raise scope.error(
            f"'{tree.table}' has no column '{tree.name}'.{suggest(tree.name, columns)}", tree
        )
    return Column(columns[tree.name])
