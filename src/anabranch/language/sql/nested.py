"""Structs, lists and JSON in texts: `p.a.b`, `p['a']`, `xs[1]`, `j ->> 'a'`, and what makes them."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from sqlglot import exp

from anabranch.errors import suggest
from anabranch.language.expression import Call, Column, Expression, Literal
from anabranch.language.kinds import type_words
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.rewrites import json_path

Translate = Callable[[exp.Expr, Scope], Expression]

NESTED = (
    exp.Bracket, exp.Dot, exp.Struct, exp.Array, exp.JSONExtract, exp.JSONExtractScalar,
    exp.JSONBExtract, exp.JSONBExtractScalar,
)  # fmt: skip
_JSON_TYPES = (exp.DType.JSON, exp.DType.JSONB)


def read_nested(tree: exp.Expr, scope: Scope, translate: Translate) -> Expression:
    """A part of a nested value, or a nested value of its parts."""
    match tree:
        case exp.Dot():
            return field(translate(tree.this, scope), tree.expression.name, tree, scope)
        case exp.Bracket():
            return _bracket(tree, scope, translate)
        case exp.Array():
            return Call("list", tuple(translate(part, scope) for part in tree.expressions))
        case exp.Struct():
            return _struct(tree, scope, translate)
    return _json(tree, scope, translate)


def field(value: Expression, name: str, tree: exp.Expr, scope: Scope) -> Expression:
    """The field of a struct; of a text, a value in its JSON."""
    kind = scope.kind(value)
    if not isinstance(kind, pl.Struct):
        json = " Of JSON in a text, it is ->> 'name'." if kind == pl.String else ""
        raise scope.error(
            f"{value} is {type_words(kind)}, which has no field '{name}'.{json}", tree
        )
    names = [one.name for one in kind.fields]
    if name not in names:
        raise scope.error(f"{value} has no field '{name}'.{suggest(name, names)}", tree)
    return Call("field", (value, Literal(name)))


def is_map(kind: pl.DataType) -> bool:
    """Whether values of this type are lists of keys with their values."""
    inner = kind.inner if isinstance(kind, pl.List) else None
    names = [one.name for one in inner.fields] if isinstance(inner, pl.Struct) else []
    return names == ["key", "value"]


def field_of_column(tree: exp.Column, scope: Scope) -> Expression | None:
    """`p.a.b` where `p` is a column; None if it is none."""
    parts = [tree.args.get(part) for part in ("catalog", "db", "table", "this")]
    names = [part.name for part in parts if part is not None]
    inputs = scope.inputs
    known: str | None = None
    if len(names) > 2 and names[0] in inputs.tables:
        known = inputs.tables[names[0]].get(names[1])
        names = names[1:]
    elif names[0] in inputs.tables:
        return None
    elif names[0] in scope.own:
        known = names[0]
    else:
        holding = inputs.holding(names[0])
        if len(holding) == 1:
            known = inputs.tables[holding[0]][names[0]]
        elif not inputs.tables and names[0] in scope.schema:
            known = names[0]
    if known is None:
        return None
    value: Expression = Column(known)
    for name in names[1:]:
        value = field(value, name, tree, scope)
    return value


def _bracket(tree: exp.Bracket, scope: Scope, translate: Translate) -> Expression:
    value = translate(tree.this, scope)
    kind = scope.kind(value)
    key = tree.expressions[0] if len(tree.expressions) == 1 else None
    if isinstance(kind, pl.Struct) and isinstance(key, exp.Literal) and key.is_string:
        return field(value, str(key.this), tree, scope)
    if is_map(kind) and isinstance(key, exp.Literal) and key.is_string:
        return Call("map_extract_value", (value, translate(key, scope)))
    if not isinstance(kind, pl.List) or key is None:
        raise scope.error(
            f"[…] takes an element of a list or a field of a struct, but {value} is {type_words(kind)}.",
            tree,
        )
    if isinstance(key, exp.Slice):
        ends = [translate(part, scope) for part in (key.this, key.expression) if part is not None]
        if len(ends) != 2:
            raise scope.error("a slice has both ends: xs[1:3].", tree)
        return Call("list_slice", (value, *ends))
    number = translate(key, scope)
    if not scope.kind(number).is_integer():
        raise scope.error(f"an element of a list is told by its number, got {number}.", tree)
    if scope.spelling.first == 0:
        number = Literal(number.value + 1) if _is_number(number) else number + 1  # type: ignore[attr-defined]
    return Call("element", (value, number))


def _is_number(value: Expression) -> bool:
    return isinstance(value, Literal) and type(value.value) is int


def _struct(tree: exp.Struct, scope: Scope, translate: Translate) -> Expression:
    parts: list[Expression] = []
    for number, part in enumerate(tree.expressions, start=1):
        if isinstance(part, (exp.PropertyEQ, exp.Alias)):
            named = part.this if isinstance(part, exp.PropertyEQ) else part.args["alias"]
            value = part.expression if isinstance(part, exp.PropertyEQ) else part.this
            parts += [Literal(named.name), translate(value, scope)]
        else:
            name = part.name if isinstance(part, exp.Column) else f"v{number}"
            parts += [Literal(name), translate(part, scope)]
    return Call("struct", tuple(parts))


def _json(tree: exp.Expr, scope: Scope, translate: Translate) -> Expression:
    """`j -> 'a' ->> 'b'`: the text of a value in JSON."""
    if isinstance(tree, (exp.JSONExtract, exp.JSONBExtract)):
        raise scope.error(
            "-> gives JSON, which has no type here: write ->> for the text of a value, as in "
            "j -> 'a' ->> 'b', and CAST it if it is a number.",
            tree,
        )
    keys: list[str | int] = []
    inner: exp.Expr = tree
    while isinstance(inner, (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtractScalar)):
        keys = _path(inner.expression, inner, scope) + keys
        inner = inner.this.unnest()
        while isinstance(inner, exp.Cast) and inner.to.this in _JSON_TYPES:
            inner = inner.this.unnest()  # as PostgreSQL has to say; JSON is a text here
    value = translate(inner, scope)
    if scope.kind(value) != pl.String:
        raise scope.error(
            f"->> reads JSON in a text, but {value} is {type_words(scope.kind(value))}.", tree
        )
    return Call("json_text", (value, Literal(json_path(keys))))


def _path(tree: exp.Expr, at: exp.Expr, scope: Scope) -> list[str | int]:
    if isinstance(tree, exp.JSONPath):
        steps = [step for step in tree.expressions if not isinstance(step, exp.JSONPathRoot)]
        if all(isinstance(step, (exp.JSONPathKey, exp.JSONPathSubscript)) for step in steps):
            return [step.this for step in steps]
    if isinstance(tree, exp.Literal):
        if not tree.is_string:
            return [int(tree.this)]
        written = str(tree.this)
        if written.startswith("{") and written.endswith("}"):
            return [int(part) if part.isdigit() else part for part in written[1:-1].split(",")]
        return [written]
    raise scope.error("a value in JSON is told by constant keys: j ->> 'a', j #>> '{a,b}'.", at)
