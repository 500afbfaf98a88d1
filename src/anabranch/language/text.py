"""Scalar expressions written as text, parsed by sqlglot into the trees of `expression.py`.

Aggregates are in `text_aggregate.py`; statements are not covered. `/` of two integers is floor
division, as in GSQL, so that `time/60` numbers minutes. `&`, `|`, `^` and shifts bind equally strongly
in some SQL dialects and not in others: where different ones meet, parentheses are demanded.

>>> schema = pl.Schema({"time": pl.Int64, "srcIP": pl.Int64})
>>> print(read_named("(srcIP & 0xFFF0) / 16 AS net", schema))
(srcIP & 65520) // 16 AS net
"""

from __future__ import annotations

import datetime as dt
import inspect
import re
from collections.abc import Mapping

import polars as pl
from sqlglot import exp

from anabranch.errors import suggest
from anabranch.language import aggregate
from anabranch.language.dialect import Scope, offset_of, parse
from anabranch.language.expression import (
    FUNCTIONS,
    INFIX,
    TYPES,
    Call,
    Column,
    Expression,
    Literal,
    Named,
)

NAMED_FUNCTIONS = tuple(
    name for name in FUNCTIONS if name.isidentifier() and name not in
    ("not", "negate", "is_null", "is_not_null", "case")
)  # fmt: skip
"""The scalar functions that a text calls by name."""

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>", exp.And: "&", exp.Or: "|",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_BITWISE = (
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift,
)  # fmt: skip
_TYPE_NAMES = {
    "tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64", "float": "float32",
    "double": "float64", "text": "string", "varchar": "string", "utinyint": "uint8",
    "usmallint": "uint16", "uint": "uint32", "ubigint": "uint64", "varbinary": "binary",
}  # fmt: skip


def read_expression(
    text: str, schema: Mapping[str, pl.DataType], where: str = "expression"
) -> Expression:
    """The scalar expression that a text stands for; columns must be in the schema."""
    scope = Scope(text, schema, where)
    tree = parse(scope)
    if isinstance(tree, exp.Alias):
        raise scope.error(f"a name ('{tree.alias}') has no use here.", tree.args["alias"])
    return translate(tree, scope)


def read_named(text: str, schema: Mapping[str, pl.DataType], where: str = "expression") -> Named:
    """An expression with the name given by AS; without one, it is called as it is written."""
    scope = Scope(text, schema, where)
    tree, name = split_alias(parse(scope), scope)
    expression = translate(tree, scope)
    return Named(name or str(expression), expression)


def translate(tree: exp.Expr, scope: Scope) -> Expression:
    """A scalar tree of sqlglot as an expression of ours; anything that does not exist is refused."""
    match tree:
        case exp.Paren():
            return translate(tree.this, scope)
        case exp.Column():
            return _column(tree, scope)
        case exp.Literal() | exp.HexString() | exp.Boolean() | exp.Null() | exp.Neg():
            return _constant(tree, scope)
        case exp.Not(this=exp.Is(expression=exp.Null()) as inner):
            return translate(inner.this, scope).is_not_null()
        case exp.Is(expression=exp.Null()):
            return translate(tree.this, scope).is_null()
        case exp.Not() | exp.BitwiseNot():
            return ~_typed(tree, tree.this, scope)
        case exp.Between() if not tree.args.get("symmetric"):
            low, high = (translate(tree.args[end], scope) for end in ("low", "high"))
            return translate(tree.this, scope).between(low, high)
        case exp.In() if not tree.args.get("query") and not tree.args.get("unnest"):
            return _in(tree, scope)
        case exp.Case():
            return _case(tree, scope)
        case exp.Cast() if not isinstance(tree, exp.TryCast):
            return _cast(tree, scope)
        case exp.DPipe():
            return Call("concat", (translate(tree.this, scope), translate(tree.expression, scope)))
        case exp.Anonymous():
            return _function(tree, scope)
    if type(tree) in _OPERATORS:
        return _binary(tree, scope)
    raise scope.error(
        f"{name_of(tree)} is not available. There are the operators {' '.join(INFIX)}, AND, OR, NOT, "
        f"IN (constants), BETWEEN, IS NULL, CASE, CAST, ||, and the functions "
        f"{', '.join(NAMED_FUNCTIONS)}.",
        tree,
    )


def split_alias(tree: exp.Expr, scope: Scope) -> tuple[exp.Expr, str | None]:
    """The expression and the name that AS gives it."""
    if not isinstance(tree, exp.Alias):
        return tree, None
    start = offset_of(tree.args["alias"])
    if start is not None and not re.search(r'\bas[\s"]*$', scope.text[:start], re.IGNORECASE):
        raise scope.error(f"expected an operator or AS before '{tree.alias}'.", start)
    return tree.this, tree.alias


def _column(tree: exp.Column, scope: Scope) -> Expression:
    if tree.table:
        raise scope.error(f"write '{tree.name}' without '{tree.table}.': there is one input.", tree)
    if tree.name not in scope.schema:
        known = suggest(tree.name, scope.schema)
        raise scope.error(f"column '{tree.name}' is not found.{known}", tree)
    return Column(tree.name)


def _constant(tree: exp.Expr, scope: Scope) -> Expression:
    match tree:
        case exp.Null():
            return Literal(None)
        case exp.Boolean():
            return Literal(bool(tree.this))
        case exp.Neg():
            inner = translate(tree.this, scope)
            if isinstance(inner, Literal) and type(inner.value) in (int, float):
                return Literal(-inner.value)  # type: ignore[operator]
            return -inner
        case exp.Literal(is_string=True):
            return Literal(str(tree.this))
    digits = str(tree.this)
    if not isinstance(tree, exp.HexString) and not digits.isdigit():
        return Literal(float(digits))
    number = int(digits, 16 if isinstance(tree, exp.HexString) else 10)
    if number >= 2**63:
        raise scope.error(f"{digits} does not fit 64 bits.", tree)
    return Literal(number)


def _binary(tree: exp.Expr, scope: Scope) -> Expression:
    if isinstance(tree, _BITWISE):
        for side in (tree.this, tree.expression):
            if isinstance(side, _BITWISE) and type(side) is not type(tree):
                raise scope.error(
                    "different bit operators meet: say with parentheses which comes first.", side
                )
    left, right = (_typed(tree, side, scope) for side in (tree.this, tree.expression))
    operator = _OPERATORS[type(tree)]
    if operator == "/" and all(scope.kind(side).is_integer() for side in (left, right)):
        operator = "//"
    return Call(operator, (left, right))


def _typed(tree: exp.Expr, side: exp.Expr, scope: Scope) -> Expression:
    """An operand of a logical operator must be a condition, of a bit operator an integer."""
    operand = translate(side, scope)
    if isinstance(tree, (exp.And, exp.Or, exp.Not)):
        wanted, fits = "a condition", scope.kind(operand) in (pl.Boolean, pl.Null)
    elif isinstance(tree, (*_BITWISE, exp.BitwiseNot)):
        kind = scope.kind(operand)
        wanted, fits = "an integer", kind.is_integer() or kind == pl.Null
    else:
        return operand
    if not fits:
        kind = scope.kind(operand)
        raise scope.error(f"{name_of(tree)} needs {wanted}, but {operand} is {kind}.", side)
    return operand


def _in(tree: exp.In, scope: Scope) -> Expression:
    options = [translate(part, scope) for part in tree.expressions]
    values = [option.value for option in options if isinstance(option, Literal)]
    if not values or len(values) < len(options):
        raise scope.error("IN needs a list of constants.", tree)
    return translate(tree.this, scope).is_in(values)


def _case(tree: exp.Case, scope: Scope) -> Expression:
    of = translate(tree.this, scope) if tree.this else None
    parts: list[Expression] = []
    for branch in tree.args["ifs"]:
        condition = translate(branch.this, scope)
        parts.append(condition if of is None else of == condition)
        parts.append(translate(branch.args["true"], scope))
    default = tree.args.get("default")
    return Call("case", (*parts, translate(default, scope) if default else Literal(None)))


def _cast(tree: exp.Cast, scope: Scope) -> Expression:
    inner, to = translate(tree.this, scope), tree.to
    written = to.args["kind"] if to.this == exp.DType.USERDEFINED else to.this.value
    name = str(written).lower()
    name = _TYPE_NAMES.get(name, name)
    if name not in TYPES or to.expressions:
        raise scope.error(f"there is no type '{to.sql().lower()}'.{suggest(name, TYPES)}", tree)
    read = {"date": dt.date, "timestamp": dt.datetime}.get(name)
    if read and isinstance(inner, Literal) and isinstance(inner.value, str):
        try:
            return Literal(read.fromisoformat(inner.value))
        except ValueError as error:
            raise scope.error(f"{inner} is not a {name} such as 2026-01-31.", tree) from error
    return inner.cast(name)


def _function(tree: exp.Anonymous, scope: Scope) -> Expression:
    name = str(tree.this).lower()
    if name in aggregate.FUNCTIONS:
        raise scope.error(
            f"{name.upper()} is an aggregate: compute it among the aggregates, give it a name "
            "and use the name here.",
            tree,
        )
    if name not in NAMED_FUNCTIONS:
        known = (*NAMED_FUNCTIONS, *aggregate.FUNCTIONS, "tumble", "hop", "session")
        raise scope.error(f"there is no function '{name}'.{suggest(name, known)}", tree)
    arguments = [translate(part, scope) for part in tree.expressions]
    wanted = inspect.signature(FUNCTIONS[name]).parameters.values()
    any_number = any(part.kind is part.VAR_POSITIONAL for part in wanted)
    if not arguments or not (any_number or len(arguments) == len(wanted)):
        takes = "takes one or more arguments" if any_number else arity(len(wanted), len(wanted))
        raise scope.error(f"{name.upper()} {takes}, got {len(arguments)}.", tree)
    return Call(name, tuple(arguments))


def arity(least: int, most: int) -> str:
    """`takes 1 argument`, `takes 1 to 2 arguments`."""
    count = str(least) if least == most else f"{least} to {most}"
    return f"takes {count} argument{'' if count == '1' else 's'}"


def name_of(tree: exp.Expr) -> str:
    """What to call a node in messages: `LIKE`, `&`."""
    if isinstance(tree, exp.BitwiseNot):
        return "~"
    return _OPERATORS[type(tree)] if isinstance(tree, _BITWISE) else tree.key.upper()
