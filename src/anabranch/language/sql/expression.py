"""Scalar expressions written as text, parsed by sqlglot into the trees of `expression.py`.

Aggregates are in `aggregate.py`; statements are not covered. `/` of two integers is floor
division, as in GSQL, so that `time/60` numbers minutes. `&`, `|`, `^` and shifts bind equally strongly
in some SQL dialects and not in others: where different ones meet, parentheses are demanded.

>>> schema = pl.Schema({"time": pl.Int64, "srcIP": pl.Int64})
>>> print(read_named("(srcIP & 0xFFF0) / 16 AS net", schema))
(srcIP & 65520) // 16 AS net
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence

import polars as pl
from sqlglot import exp

from anabranch.language.deep import deeply
from anabranch.language.expression import COMPARISONS, INFIX, Call, Expression, Literal, Named
from anabranch.language.kinds import type_words
from anabranch.language.sql.column import read_column
from anabranch.language.sql.constant import as_time, negated, read_cast, read_constant
from anabranch.language.sql.dialect import Scope, offset_of, parse
from anabranch.language.sql.division import divided, not_zero, power, remainder
from anabranch.language.sql.function import NAMED_FUNCTIONS, apply_function, function_named
from anabranch.language.sql.interval import months_of, months_text, read_interval
from anabranch.language.sql.like import like
from anabranch.language.sql.nested import NESTED, read_nested
from anabranch.language.sql.precedence import unclear
from anabranch.language.sql.refuse import ELSEWHERE
from anabranch.language.sql.time_rewrites import at_time_zone, zone_named

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>", exp.And: "&", exp.Or: "|",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_BITWISE = (
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift,
)  # fmt: skip


def read_expression(
    text: str, schema: Mapping[str, pl.DataType], where: str = "expression"
) -> Expression:
    """The scalar expression that a text stands for; columns must be in the schema."""
    scope = Scope(text, schema, where)

    def read() -> Expression:
        tree = parse(scope)
        if isinstance(tree, exp.Alias):
            raise scope.error(f"a name ('{tree.alias}') has no use here.", tree.args["alias"])
        return translate(tree, scope)

    return deeply(read, where, size=len(text))


def read_named(text: str, schema: Mapping[str, pl.DataType], where: str = "expression") -> Named:
    """An expression with the name given by AS; without one, it is called as it is written."""
    scope = Scope(text, schema, where)

    def read() -> Named:
        tree, name = split_alias(parse(scope), scope)
        expression = translate(tree, scope)
        return Named(name or str(expression), expression)

    return deeply(read, where, size=len(text))


def translate(tree: exp.Expr, scope: Scope) -> Expression:
    """A scalar tree of sqlglot as an expression of ours; anything that does not exist is refused."""
    if reason := unclear(tree):
        raise scope.error(f"{reason}.", tree)
    match tree:
        case exp.Paren():
            return translate(tree.this, scope)
        case exp.Column():
            return read_column(tree, scope)
        case exp.Literal() | exp.HexString() | exp.Boolean() | exp.Null() | exp.RawString():
            return read_constant(tree, scope)
        case exp.Neg(this=exp.Literal(this=digits)) if str(digits) == str(2**63):
            return Literal(-(2**63))
        case exp.Neg():
            return negated(translate(tree.this, scope))
        case exp.Not(this=exp.Is(expression=exp.Null()) as inner):
            return translate(inner.this, scope).is_not_null()
        case exp.Is(expression=exp.Null()):
            return translate(tree.this, scope).is_null()
        case exp.Is(expression=exp.Boolean(this=truth)):
            condition = _condition(tree, tree.this, scope)
            return Call("coalesce", (condition if truth else ~condition, Literal(False)))
        case exp.NullSafeNEQ() | exp.NullSafeEQ():
            differs = Call("is_distinct", _timed(_sides(tree, scope), tree, scope))
            return differs if isinstance(tree, exp.NullSafeNEQ) else ~differs
        case exp.Not() | exp.BitwiseNot():
            return ~_typed(tree, tree.this, scope)
        case exp.Between() if not tree.args.get("symmetric"):
            value = translate(tree.this, scope)
            ends = (translate(tree.args[end], scope) for end in ("low", "high"))
            return value.between(*(as_time(end, value, tree, scope) for end in ends))
        case exp.In():
            return _in(tree, scope)
        case exp.Like() | exp.ILike() | exp.Escape(this=exp.Like() | exp.ILike()):
            return like(tree, scope, translate)
        case exp.Case():
            return _case(tree, scope)
        case exp.If():
            values = (tree.args["true"], tree.args.get("false") or exp.Null())
            condition = _condition(tree, tree.this, scope)
            return Call("case", (condition, *(translate(part, scope) for part in values)))
        case exp.Cast():
            return read_cast(translate(tree.this, scope), tree, scope)
        case exp.Interval():
            return read_interval(tree, scope)
        case exp.AtTimeZone():
            with scope.placed(tree):
                zone = zone_named(translate(tree.args["zone"], scope))
                return at_time_zone(translate(tree.this, scope), zone, scope)
        case exp.RegexpLike() | exp.RegexpILike():
            text, pattern = _sides(tree, scope)
            if isinstance(tree, exp.RegexpILike) and isinstance(pattern, Literal):
                pattern = Literal(f"(?i){pattern.value!s}")
            return apply_function("regexp_matches", [text, pattern], tree, scope)
        case exp.DPipe():
            return Call("concat", tuple(_sides(tree, scope)))
        case exp.Anonymous() | exp.Extract() | exp.Substring() | exp.Trim():
            return _function(tree, scope)
    if type(tree) in _OPERATORS:
        return _binary(tree, scope)
    if isinstance(tree, NESTED):
        return read_nested(tree, scope, translate)
    if type(tree) in ELSEWHERE:
        raise scope.error(f"{ELSEWHERE[type(tree)]}.", tree)
    raise scope.error(
        f"{name_of(tree)} is not available. There are the operators {' '.join(INFIX)}, AND, OR, NOT, "
        "IN (constants), BETWEEN, LIKE, IS NULL, IS TRUE, IS DISTINCT FROM, CASE, CAST, ||, and the "
        f"functions {', '.join(NAMED_FUNCTIONS)}.",
        tree,
    )


def _sides(tree: exp.Expr, scope: Scope) -> list[Expression]:
    return [translate(side, scope) for side in (tree.this, tree.expression)]


def _timed(
    sides: Sequence[Expression], tree: exp.Expr, scope: Scope
) -> tuple[Expression, Expression]:
    """The sides of a comparison: a text beside a time is one."""
    left, right = sides
    return as_time(left, right, tree, scope), as_time(right, left, tree, scope)


def split_alias(tree: exp.Expr, scope: Scope) -> tuple[exp.Expr, str | None]:
    """The expression and the name that AS gives it."""
    if not isinstance(tree, exp.Alias):
        return tree, None
    start = offset_of(tree.args["alias"])
    if start is not None and not re.search(r'\bas[\s"]*$', scope.text[:start], re.IGNORECASE):
        raise scope.error(f"expected an operator or AS before '{tree.alias}'.", start)
    return tree.this, tree.alias


def _binary(tree: exp.Expr, scope: Scope) -> Expression:
    if isinstance(tree, _BITWISE):
        for side in (tree.this, tree.expression):
            if isinstance(side, _BITWISE) and type(side) is not type(tree):
                raise scope.error(
                    "different bit operators meet: say with parentheses which comes first.", side
                )
    operator = _OPERATORS[type(tree)]
    months = months_of(tree.expression) if operator in ("+", "-") else None
    if months is not None:
        count = Literal(months if operator == "+" else -months)
        return Call("add_months", (translate(tree.this, scope), count))
    left, right = (_typed(tree, side, scope) for side in (tree.this, tree.expression))
    if isinstance(tree, exp.BitwiseXor) and scope.spelling.powers:
        return power(tree, left, right, scope)
    if operator in COMPARISONS:
        left, right = _timed((left, right), tree, scope)
    for span, day in ((left, right), (right, left)):
        long = isinstance(span, Literal) and isinstance(span.value, dt.timedelta)
        if long and scope.kind(day) == pl.Date:
            raise scope.error(f"{day} is a date: CAST it to timestamp before adding to it.", tree)
    if operator in ("/", "//", "%") and scope.kind(left).is_temporal():
        raise scope.error(
            f"{left} is a time and cannot be divided: a window of it is TUMBLE({left}, '1 minute'), its "
            "hour DATE_TRUNC('hour', …).",
            tree,
        )
    whole = all(scope.kind(side).is_integer() for side in (left, right))
    if operator == "%":
        return remainder(left, right, whole, scope.spelling)
    if operator == "/" and scope.spelling.name == "spark":
        right = not_zero(right)
    if operator == "/" and whole:
        return divided(operator, left, right, scope.spelling)
    return Call(operator, (left, right))


def _typed(tree: exp.Expr, side: exp.Expr, scope: Scope) -> Expression:
    """An operand of a logical operator must be a condition, of a bit operator an integer."""
    if isinstance(tree, (exp.And, exp.Or, exp.Not)):
        return _condition(tree, side, scope)
    operand = translate(side, scope)
    power = isinstance(tree, exp.BitwiseXor) and scope.spelling.powers
    if isinstance(tree, (*_BITWISE, exp.BitwiseNot)) and not power:
        kind = scope.kind(operand)
        if not kind.is_integer() and kind != pl.Null:
            raise scope.error(
                f"{name_of(tree)} needs an integer, but {operand} is {type_words(kind)}.", side
            )
    return operand


def _condition(tree: exp.Expr, side: exp.Expr, scope: Scope) -> Expression:
    operand = translate(side, scope)
    kind = scope.kind(operand)
    if kind not in (pl.Boolean, pl.Null):
        raise scope.error(
            f"{name_of(tree)} needs a condition, but {operand} is {type_words(kind)}.", side
        )
    return operand


def _in(tree: exp.In, scope: Scope) -> Expression:
    if tree.args.get("query"):
        raise scope.error(
            "IN (SELECT …) stands in WHERE, alone or joined to other conditions by AND: write it there, in a "
            "query around this one.",
            tree,
        )
    value = translate(tree.this, scope)
    options = [as_time(translate(part, scope), value, tree, scope) for part in tree.expressions]
    values = [option.value for option in options if isinstance(option, Literal)]
    if not values or len(values) < len(options):
        raise scope.error("IN needs a list of constants.", tree)
    return value.is_in(values)


def _case(tree: exp.Case, scope: Scope) -> Expression:
    of = translate(tree.this, scope) if tree.this else None
    parts: list[Expression] = []
    for branch in tree.args["ifs"]:
        if of is None:
            parts.append(_condition(tree, branch.this, scope))
        else:
            parts.append(of == as_time(translate(branch.this, scope), of, tree, scope))
        parts.append(translate(branch.args["true"], scope))
    default = tree.args.get("default")
    return Call("case", (*parts, translate(default, scope) if default else Literal(None)))


def _function(tree: exp.Expr, scope: Scope) -> Expression:
    match tree:
        case exp.Extract():
            return apply_function(
                "date_part", [Literal(str(tree.this.name).lower()), translate(tree.expression, scope)],
                tree, scope,
            )  # fmt: skip
        case exp.Substring():
            name, parts = "substring", [tree.this, tree.args.get("start"), tree.args.get("length")]
        case exp.Trim():
            sides = {"LEADING": "ltrim", "TRAILING": "rtrim"}
            name = sides.get(str(tree.args.get("position") or "").upper(), "trim")
            parts = [tree.this, tree.args.get("expression")]
        case _:
            name, parts = str(tree.this).lower(), list(tree.expressions)
            # Before its arguments: CUONT(*) is about a name, not about a star
            function_named(name, tree, scope)
            if name == "position" and len(parts) == 1 and isinstance(parts[0], exp.In):
                parts = [parts[0].this, parts[0].args.get("field") or parts[0].expressions[0]]
            if name == "struct":
                return read_nested(exp.Struct(expressions=parts), scope, translate)
            if name in ("time_bucket", "date_bin") and parts and months_of(parts[0]) is not None:
                parts[0] = exp.Literal.string(months_text(parts[0]))
    arguments = [translate(part, scope) for part in parts if part is not None]
    return apply_function(name, arguments, tree, scope)


def name_of(tree: exp.Expr) -> str:
    """What to call a node in messages: `LIKE`, `&`."""
    if isinstance(tree, exp.BitwiseNot):
        return "~"
    return _OPERATORS[type(tree)] if isinstance(tree, _BITWISE) else tree.key.upper()
