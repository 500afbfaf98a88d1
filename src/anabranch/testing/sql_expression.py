"""Scalar expressions as DuckDB SQL, giving what Polars gives.

Where the two differ, Polars is followed: `//` and `%` round down, round() goes to even, a cast to an integer
cuts off, CONCAT of a NULL is NULL. Not followed are values that leave their type, division by zero, and upper
and lower case outside ASCII.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping, Sequence

import polars as pl

from anabranch.errors import PlanningError
from anabranch.language.expression import (
    Call,
    Column,
    Expression,
    Literal,
    type_named,
    type_of,
)
from anabranch.language.functions import DOTTED
from anabranch.language.kinds import instance_of
from anabranch.testing.sql_functions import function_sql

EPOCH, SEQ = "__epoch", "__seq"
"""The epoch in which a run emits a row, and its arrival number."""

_NAMES: dict[type[pl.DataType], str] = {
    pl.Int8: "TINYINT", pl.Int16: "SMALLINT", pl.Int32: "INTEGER", pl.Int64: "BIGINT",
    pl.UInt8: "UTINYINT", pl.UInt16: "USMALLINT", pl.UInt32: "UINTEGER", pl.UInt64: "UBIGINT",
    pl.Float32: "REAL", pl.Float64: "DOUBLE", pl.Boolean: "BOOLEAN", pl.String: "VARCHAR",
    pl.Binary: "BLOB", pl.Date: "DATE", pl.Time: "TIME", pl.Datetime: "TIMESTAMP",
}  # fmt: skip


def type_name(kind: pl.DataType) -> str:
    """DuckDB's name of a type."""
    if isinstance(kind, pl.Decimal):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if isinstance(kind, pl.Datetime) and kind.time_zone:
        return "TIMESTAMPTZ"
    if isinstance(kind, pl.List):
        return f"{type_name(instance_of(kind.inner))}[]"
    if isinstance(kind, pl.Struct):
        fields = (
            f"{quote(field.name)} {type_name(instance_of(field.dtype))}" for field in kind.fields
        )
        return f"STRUCT({', '.join(fields)})"
    name = _NAMES.get(kind.base_type())
    if name is None:
        raise PlanningError(f"The oracle has no DuckDB type for {kind}.")
    return name


def quote(name: str) -> str:
    """A name as SQL wants it."""
    return '"' + name.replace('"', '""') + '"'


def list_of(parts: Sequence[str]) -> str:
    return ", ".join(parts)


def named(value: str, schema: Mapping[str, pl.DataType], name: str) -> str:
    """A value in the type that a schema has for a name."""
    kind = schema[name]
    typed = value if kind == pl.Null else f"CAST({value} AS {type_name(kind)})"
    return f"{typed} AS {quote(name)}"


def floor_divide(value: str, by: str | int) -> str:
    """Integer division that rounds down, exact for all 64 bits."""
    return f"(({value} - {floor_modulo(value, by)}) // {by})"


def floor_modulo(value: str, by: str | int) -> str:
    return f"((({value} % {by}) + {by}) % {by})"


def expression_sql(expression: Expression, schema: Mapping[str, pl.DataType]) -> str:
    """A scalar expression as SQL that gives what Polars gives."""
    if isinstance(expression, Column):
        return quote(expression.name)
    if isinstance(expression, Literal):
        return _literal(expression)
    assert isinstance(expression, Call)
    kinds = [type_of(part, schema, "oracle") for part in expression.arguments]
    parts = [expression_sql(part, schema) for part in expression.arguments]
    kind = type_of(expression, schema, "oracle")
    match expression.function:
        case "cast" | "try_cast" as way:
            target = str(_value(expression.arguments[1]))
            return _cast(parts[0], kinds[0], target, way.upper())
        case "in":
            return f"({parts[0]} IN ({', '.join(parts[1:])}))"
        case "case":
            pairs = zip(parts[0:-1:2], parts[1:-1:2], strict=True)
            body = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
            return f"CASE {body} ELSE {parts[-1]} END"
        case "&" | "|" if kind == pl.Boolean:
            return f"({parts[0]} {'AND' if expression.function == '&' else 'OR'} {parts[1]})"
        case "^":
            return (
                f"({parts[0]} <> {parts[1]})"
                if kind == pl.Boolean
                else f"xor({parts[0]}, {parts[1]})"
            )
        case "not":
            return f"(NOT {parts[0]})" if kind == pl.Boolean else f"(~{parts[0]})"
        case "<<" | ">>":
            power = f"CAST(pow(2, {parts[1]}) AS BIGINT)"
            left = expression.function == "<<"
            return f"({parts[0]} * {power})" if left else floor_divide(parts[0], power)
        case "+" | "-" | "*" | "/" | "//" | "%" if kind.is_numeric() and not kind.is_decimal():
            wide = [f"CAST({part} AS {type_name(kind)})" for part in parts]
            return _arithmetic(expression.function, wide, kind)
        case "//" | "%" if kind.is_decimal():
            rest = floor_modulo(parts[0], parts[1])
            return (
                rest if expression.function == "%" else f"floor(({parts[0]} - {rest}) / {parts[1]})"
            )
        case "-" if all(isinstance(part, pl.Datetime) for part in kinds):
            # Of times with a zone on both sides of 1970, DuckDB's own difference is a millisecond off
            return f"to_microseconds(epoch_us({parts[0]}) - epoch_us({parts[1]}))"
        case "=" | "<>" | "<" | "<=" | ">" | ">=" | "+" | "-" | "*" | "&" | "|":
            return f"({parts[0]} {expression.function} {parts[1]})"
        case "negate":
            return f"(-{parts[0]})"
        case "is_null":
            return f"({parts[0]} IS NULL)"
        case "is_not_null":
            return f"({parts[0]} IS NOT NULL)"
        case "is_distinct":
            return f"({parts[0]} IS DISTINCT FROM {parts[1]})"
        case "like":
            return f"({parts[0]} LIKE {parts[1]})"
        case "round" | "round_away" | "round_digits" | "bround":
            digits = _value(expression.arguments[1]) if len(parts) > 1 else 0
            if kinds[0].is_decimal() or expression.function in (
                "round_away",
                "round_digits",
            ):
                return f"round({parts[0]}, {digits})"
            return f"round_even({parts[0]}, {digits})" if kinds[0].is_float() else parts[0]
        case "ip_number":
            return _ip_number(parts[0])
        case "ip_text":
            return _ip_text(parts[0])
        case "right" | "split_part" | "substring":
            numbers = [f"CAST({p} AS INTEGER)" if k.is_integer() else p
                       for p, k in zip(parts, kinds, strict=True)]  # fmt: skip
            return f"{expression.function}({', '.join(numbers)})"
        case "trim" | "ltrim" | "rtrim" if len(parts) > 1 and not _value(expression.arguments[1]):
            return parts[0]
        case "concat":
            # CONCAT skips NULL in DuckDB
            return f"({' || '.join(parts)})"
        case ("year" | "quarter" | "month" | "week" | "day" | "hour" | "minute" | "second" | "length"
              | "sign"):  # fmt: skip
            return f"CAST({expression.function}({parts[0]}) AS BIGINT)"
        case "time_bucket":
            width, offset = _micros(expression.arguments[0]), 0
            if len(parts) > 2:
                offset = _micros(expression.arguments[2])
            into = floor_modulo(f"(epoch_us({parts[1]}) - {offset})", width)
            return f"({parts[1]} - to_microseconds({into}))"
        case "at_zone":
            return f"({parts[0]} AT TIME ZONE {parts[1]})"
        case "to_zone":
            return f"({parts[0]} AT TIME ZONE {parts[1]})"
        case "local_trunc":
            unit = _UNITS[str(_value(expression.arguments[0]))]
            return f"(date_trunc('{unit}', {parts[1]} AT TIME ZONE {parts[2]}) AT TIME ZONE {parts[2]})"
        case "dow" | "doy":
            return f"CAST(date_part('{expression.function}', {parts[0]}) AS BIGINT)"
        case "exp" | "sqrt":
            return f"{expression.function}(CAST({parts[0]} AS DOUBLE))"
        case ("coalesce" | "abs" | "floor" | "ceil" | "ln" | "log10" | "power" | "upper" | "lower"
              | "starts_with" | "ends_with" | "contains" | "greatest" | "least" | "trim" | "ltrim" | "rtrim"
              | "replace" | "epoch" | "date_trunc"):  # fmt: skip
            return f"{expression.function}({', '.join(parts)})"
    written = function_sql(expression, parts)
    if written is not None:
        return written
    raise PlanningError(f"The oracle cannot write '{expression}' as DuckDB SQL yet.")


_UNITS = {"1s": "second", "1m": "minute", "1h": "hour", "1d": "day", "1w": "week", "1mo": "month",
          "1q": "quarter", "1y": "year"}  # fmt: skip


def _micros(literal: Expression) -> int:
    value = _value(literal)
    return value // dt.timedelta(microseconds=1) if isinstance(value, dt.timedelta) else 0


def _ip_number(text: str) -> str:
    octets = [f"TRY_CAST(split_part({text}, '.', {n}) AS BIGINT)" for n in (1, 2, 3, 4)]
    value = f"(({octets[0]} * 256 + {octets[1]}) * 256 + {octets[2]}) * 256 + {octets[3]}"
    return f"CASE WHEN regexp_full_match({text}, '{DOTTED}') THEN {value} END"


def _ip_text(number: str) -> str:
    octets = [f"CAST(({number} >> {shift}) & 255 AS VARCHAR)" for shift in (24, 16, 8, 0)]
    dotted = " || '.' || ".join(octets)
    return f"CASE WHEN {number} BETWEEN 0 AND 4294967295 THEN {dotted} END"


def _arithmetic(operator: str, parts: Sequence[str], kind: pl.DataType) -> str:
    left, right = parts
    if operator == "//":
        return f"floor({left} / {right})" if kind.is_float() else floor_divide(left, right)
    if operator == "%":
        return floor_modulo(left, right)
    return f"({left} {operator} {right})"


def _cast(value: str, kind: pl.DataType, target: str, way: str) -> str:
    wanted = type_named(target)
    assert wanted is not None
    if kind.is_float() and wanted.is_integer():
        value = f"trunc({value})"
    if kind.is_float() and wanted == pl.String:
        raise PlanningError("The oracle cannot cast floats to strings: the digits differ.")
    return f"{way}({value} AS {type_name(wanted)})"


def _literal(literal: Literal) -> str:
    value = literal.value
    match value:
        case None | bool():
            return str(literal)
        case int():
            return f"CAST({value} AS BIGINT)"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case decimal.Decimal():
            return f"{value:f}"
        case bytes():
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        case dt.datetime():
            return f"TIMESTAMP '{value}'"
        case dt.date():
            return f"DATE '{value}'"
        case dt.timedelta():
            return f"to_microseconds({value // dt.timedelta(microseconds=1)})"
    return str(literal)


def _value(literal: Expression) -> object:
    assert isinstance(literal, Literal)
    return literal.value
