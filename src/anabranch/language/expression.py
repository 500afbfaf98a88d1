"""Scalar expressions over the columns of a row: frozen trees, printed as SQL, evaluated columnar.

A tree is data: it can be compared, hashed, traced to its columns and printed. `to_polars` turns it
into the expression that does the work. Aggregate functions are in `aggregate.py`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from anabranch.errors import LanguageError, suggest

_PLAIN = re.compile(r"#?\w+")
"""Names that are shown without quotes."""

Scalar: TypeAlias = (
    bool | int | float | str | bytes | dt.date | dt.datetime | dt.timedelta | decimal.Decimal | None
)


class Expression:
    """A scalar expression; Python's operators build larger ones.

    >>> print((col("time") // 60).alias("tb"))
    time // 60 AS tb
    """

    __hash__ = object.__hash__

    def alias(self, name: str) -> Named:
        return Named(name, self)

    def cast(self, type_name: str) -> Expression:
        """The value as another type: int8 … uint64, float32/64, string, boolean, date, timestamp."""
        if type_name not in TYPES:
            raise LanguageError(
                f"There is no type '{type_name}' to cast to.{suggest(type_name, TYPES)}"
            )
        return Call("cast", (self, Literal(type_name)))

    def is_null(self) -> Expression:
        return Call("is_null", (self,))

    def is_not_null(self) -> Expression:
        return Call("is_not_null", (self,))

    def is_in(self, values: list[Scalar]) -> Expression:
        return Call("in", (self, *(Literal(value) for value in values)))

    def between(self, low: Any, high: Any) -> Expression:
        return Call("&", (self >= low, self <= high))

    def __add__(self, other: Any) -> Expression:
        return Call("+", (self, lift(other)))

    def __radd__(self, other: Any) -> Expression:
        return Call("+", (lift(other), self))

    def __sub__(self, other: Any) -> Expression:
        return Call("-", (self, lift(other)))

    def __rsub__(self, other: Any) -> Expression:
        return Call("-", (lift(other), self))

    def __mul__(self, other: Any) -> Expression:
        return Call("*", (self, lift(other)))

    def __rmul__(self, other: Any) -> Expression:
        return Call("*", (lift(other), self))

    def __truediv__(self, other: Any) -> Expression:
        return Call("/", (self, lift(other)))

    def __floordiv__(self, other: Any) -> Expression:
        return Call("//", (self, lift(other)))

    def __mod__(self, other: Any) -> Expression:
        return Call("%", (self, lift(other)))

    def __and__(self, other: Any) -> Expression:
        return Call("&", (self, lift(other)))

    def __or__(self, other: Any) -> Expression:
        return Call("|", (self, lift(other)))

    def __xor__(self, other: Any) -> Expression:
        return Call("^", (self, lift(other)))

    def __lshift__(self, other: Any) -> Expression:
        return Call("<<", (self, lift(other)))

    def __rshift__(self, other: Any) -> Expression:
        return Call(">>", (self, lift(other)))

    def __invert__(self) -> Expression:
        return Call("not", (self,))

    def __neg__(self) -> Expression:
        return Call("negate", (self,))

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return Call("=", (self, lift(other)))

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return Call("<>", (self, lift(other)))

    def __lt__(self, other: Any) -> Expression:
        return Call("<", (self, lift(other)))

    def __le__(self, other: Any) -> Expression:
        return Call("<=", (self, lift(other)))

    def __gt__(self, other: Any) -> Expression:
        return Call(">", (self, lift(other)))

    def __ge__(self, other: Any) -> Expression:
        return Call(">=", (self, lift(other)))

    def __bool__(self) -> bool:
        raise LanguageError(
            f"'{self}' is a column expression and has no truth value here: "
            "combine conditions with & | ~ (not and, or, not), and put each in parentheses."
        )


@dataclass(frozen=True, eq=False)
class Column(Expression):
    """The value of a named column."""

    name: str

    def __str__(self) -> str:
        return self.name if _PLAIN.fullmatch(self.name) else f'"{self.name}"'


@dataclass(frozen=True, eq=False)
class Literal(Expression):
    """A constant."""

    value: Scalar

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if isinstance(self.value, bool):
            return "TRUE" if self.value else "FALSE"
        if isinstance(self.value, (int, float)):
            return str(self.value)
        quoted = "'" + str(self.value).replace("'", "''") + "'"
        # Texts tell expressions apart: what is written alike must be alike
        return quoted if isinstance(self.value, str) else f"{type(self.value).__name__} {quoted}"


@dataclass(frozen=True, eq=False)
class Call(Expression):
    """A function or operator applied to arguments."""

    function: str
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        parts = [
            f"({part})" if isinstance(part, Call) and part.function in INFIX else str(part)
            for part in self.arguments
        ]
        match self.function:
            case name if name in INFIX:
                return f" {INFIX[name]} ".join(parts)
            case "is_null":
                return f"{parts[0]} IS NULL"
            case "is_not_null":
                return f"{parts[0]} IS NOT NULL"
            case "not":
                return f"NOT ({self.arguments[0]})"
            case "negate":
                return f"-{parts[0]}"
            case "in":
                return f"{parts[0]} IN ({', '.join(map(str, self.arguments[1:]))})"
            case "cast":
                target = self.arguments[1]
                assert isinstance(target, Literal)
                return f"CAST({self.arguments[0]} AS {target.value!s})"
            case "case":
                pairs = zip(self.arguments[0:-1:2], self.arguments[1:-1:2], strict=True)
                body = " ".join(f"WHEN {when} THEN {then}" for when, then in pairs)
                return f"CASE {body} ELSE {self.arguments[-1]} END"
        return f"{self.function.upper()}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Named:
    """An expression with the name its values get."""

    name: str
    expression: Expression

    def __str__(self) -> str:
        return (
            self.name if str(self.expression) == self.name else f"{self.expression} AS {self.name}"
        )


def col(name: str) -> Column:
    """The column of that name.

    >>> print(col("len") * 8 > 1000)
    (len * 8) > 1000
    """
    return Column(name)


def lit(value: Scalar) -> Literal:
    """A constant as an expression."""
    return Literal(value)


def lift(value: Any) -> Expression:
    """Any value as an expression: expressions stay, constants become literals."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, Named):
        raise LanguageError(
            f"'{value}' already has a name: use alias() on the outermost expression."
        )
    return Literal(value)


def when(*cases: tuple[Expression, Any], otherwise: Any = None) -> Expression:
    """CASE WHEN: the first value whose condition holds.

    >>> print(when((col("len") > 1000, "big"), otherwise="small"))
    CASE WHEN len > 1000 THEN 'big' ELSE 'small' END
    """
    if not cases:
        raise LanguageError("when() needs at least one (condition, value) pair.")
    flat = [part for condition, value in cases for part in (condition, lift(value))]
    return Call("case", (*flat, lift(otherwise)))


def call(function: str, *arguments: Any) -> Expression:
    """A named scalar function, e.g. call("upper", col("name")); `FUNCTIONS` lists them."""
    if function not in FUNCTIONS:
        raise LanguageError(f"There is no function '{function}'.{suggest(function, FUNCTIONS)}")
    return Call(function, tuple(lift(argument) for argument in arguments))


INFIX = {
    "+": "+", "-": "-", "*": "*", "/": "/", "//": "//", "%": "%", "&": "&", "|": "|", "^": "^",
    "<<": "<<", ">>": ">>", "=": "=", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip

COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})

TYPES: dict[str, pl.DataType] = {
    "int8": pl.Int8(), "int16": pl.Int16(), "int32": pl.Int32(), "int64": pl.Int64(),
    "uint8": pl.UInt8(), "uint16": pl.UInt16(), "uint32": pl.UInt32(), "uint64": pl.UInt64(),
    "float32": pl.Float32(), "float64": pl.Float64(), "string": pl.String(),
    "binary": pl.Binary(), "boolean": pl.Boolean(), "date": pl.Date(),
    "timestamp": pl.Datetime("us"), "integer": pl.Int32(), "int": pl.Int32(), "long": pl.Int64(),
    "bigint": pl.Int64(), "double": pl.Float64(),
}  # fmt: skip


def _shift(value: pl.Expr, bits: pl.Expr, left: bool) -> pl.Expr:
    power = pl.lit(2, pl.Int64).pow(bits)
    return value * power if left else value // power


def _case(*parts: pl.Expr) -> pl.Expr:
    result = parts[-1]
    for condition, value in reversed(list(zip(parts[0:-1:2], parts[1:-1:2], strict=True))):
        result = pl.when(condition).then(value).otherwise(result)
    return result


FUNCTIONS: Mapping[str, Callable[..., pl.Expr]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: _shift(a, b, True),
    ">>": lambda a, b: _shift(a, b, False),
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "not": lambda a: ~a,
    "negate": lambda a: -a,
    "is_null": lambda a: a.is_null(),
    "is_not_null": lambda a: a.is_not_null(),
    "case": _case,
    "coalesce": lambda *parts: pl.coalesce(*parts),
    "abs": lambda a: a.abs(),
    "round": lambda a: a.round(0),
    "floor": lambda a: a.floor(),
    "ceil": lambda a: a.ceil(),
    "sqrt": lambda a: a.sqrt(),
    "upper": lambda a: a.str.to_uppercase(),
    "lower": lambda a: a.str.to_lowercase(),
    "length": lambda a: a.str.len_chars().cast(pl.Int64),
    "substring": lambda a, start, length: a.str.slice(start - 1, length),
    "starts_with": lambda a, b: a.str.starts_with(b),
    "contains": lambda a, b: a.str.contains(b, literal=True),
    "concat": lambda *parts: pl.concat_str(*parts),
    "year": lambda a: a.dt.year().cast(pl.Int64),
    "month": lambda a: a.dt.month().cast(pl.Int64),
    "day": lambda a: a.dt.day().cast(pl.Int64),
    "hour": lambda a: a.dt.hour().cast(pl.Int64),
    "minute": lambda a: a.dt.minute().cast(pl.Int64),
}


def to_polars(expression: Expression) -> pl.Expr:
    """The Polars expression that evaluates this one over a frame."""
    match expression:
        case Column(name):
            return pl.col(name)
        case Literal(value):
            return pl.lit(value, pl.Int64) if type(value) is int else pl.lit(value)
        case Call("cast", (inner, Literal(type_name))):
            return to_polars(inner).cast(TYPES[str(type_name)])
        case Call("in", (inner, *options)):
            values = [option.value for option in options if isinstance(option, Literal)]
            known = to_polars(inner).is_in([value for value in values if value is not None])
            # SQL: x IN (…, NULL) is NULL, not false, when no other value matches
            return pl.when(known).then(True) if None in values else known
        case Call(function, arguments):
            return FUNCTIONS[function](*(to_polars(argument) for argument in arguments))
    raise LanguageError(f"'{expression}' cannot be evaluated as a column expression.")


def columns_of(expression: Expression) -> Iterator[str]:
    """The names of the columns an expression reads."""
    match expression:
        case Column(name):
            yield name
        case Call(_, arguments):
            for argument in arguments:
                yield from columns_of(argument)


def substitute(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """The expression with columns replaced, as when a query reads another query's columns."""
    match expression:
        case Column(name):
            return columns.get(name, expression)
        case Call(function, arguments):
            return Call(function, tuple(substitute(part, columns) for part in arguments))
    return expression


def type_of(expression: Expression, schema: Mapping[str, pl.DataType], where: str) -> pl.DataType:
    """The type of an expression over columns of these types, or a LanguageError naming the fault."""
    for name in columns_of(expression):
        if name not in schema:
            raise LanguageError(f"{where}: column '{name}' is not found.{suggest(name, schema)}")
    try:
        frame = pl.DataFrame(schema=dict(schema)).select(value=to_polars(expression))
    except pl.exceptions.PolarsError as error:
        kinds = ", ".join(
            f"{name} {schema[name]}" for name in dict.fromkeys(columns_of(expression))
        )
        raise LanguageError(
            f"{where}: '{expression}' cannot be computed from {kinds or 'constants'}: {error}"
        ) from error
    _check_comparisons(expression, schema, where)
    return frame.schema["value"]


def _check_comparisons(
    expression: Expression, schema: Mapping[str, pl.DataType], where: str
) -> None:
    """Refuses to compare a time with a number, which Polars would do by its own count of time."""
    if not isinstance(expression, Call):
        return
    for part in expression.arguments:
        _check_comparisons(part, schema, where)
    if expression.function in COMPARISONS:
        empty = pl.DataFrame(schema=dict(schema))
        kinds = [empty.select(value=to_polars(p)).schema["value"] for p in expression.arguments]
        if any(kind.is_temporal() for kind in kinds) and any(kind.is_numeric() for kind in kinds):
            raise LanguageError(
                f"{where}: '{expression}' compares {' with '.join(map(str, kinds))}. Compare with a "
                "time: a datetime in Python, TIMESTAMP '2026-01-31 12:00:00' in SQL."
            )
