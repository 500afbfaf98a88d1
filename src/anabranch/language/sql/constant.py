"""Constants as they are written, and casts, which make constants of texts: numbers, times, intervals."""

from __future__ import annotations

import datetime as dt
import re

import polars as pl
from sqlglot import exp

from anabranch.language.decimals import Pointed, fits_decimal
from anabranch.language.expression import Call, Expression, Literal, type_named
from anabranch.language.kinds import decimal_name, suggest_type, type_words
from anabranch.language.operands import check_cast
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.spelling import Spelling
from anabranch.language.typed import Typed

_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_TYPE_NAMES = {
    "tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64", "float": "float32",
    "double": "float64", "text": "string", "varchar": "string", "utinyint": "uint8",
    "usmallint": "uint16", "uint": "uint32", "ubigint": "uint64", "varbinary": "binary",
}  # fmt: skip


def read_constant(tree: exp.Expr, scope: Scope) -> Literal:
    """A number, a text, a truth value or NULL."""
    match tree:
        case exp.Null():
            return Literal(None)
        case exp.Boolean():
            return Literal(bool(tree.this))
        case exp.Literal(is_string=True) | exp.RawString():
            return Literal(str(tree.this))
    digits = str(tree.this)
    if not isinstance(tree, exp.HexString) and not digits.isdigit():
        if not _NUMBER.fullmatch(digits):
            raise scope.error(f"'{digits}' is no number: digits must follow the exponent.", tree)
        # As in DuckDB: with an exponent, or more digits than a decimal has, it is a float
        exact = None if "e" in digits.lower() else Pointed(digits)
        return Literal(exact if fits_decimal(exact) else float(digits))
    number = int(digits, 16 if isinstance(tree, exp.HexString) else 10)
    if number >= 2**63:
        raise scope.error(f"{digits} does not fit 64 bits.", tree)
    return Literal(number)


def negated(value: Expression) -> Expression:
    """Minus a value; of a number, the number."""
    if isinstance(value, Literal) and isinstance(value.value, Pointed):
        return Literal(Pointed(-value.value))
    if isinstance(value, Literal) and type(value.value) in (int, float):
        return Literal(-value.value)  # type: ignore[operator]
    return -value


_TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")
"""Texts that are times for us and for DuckDB alike; it knows more, among them some that leave out digits."""


def as_time(value: Expression, beside: Expression, at: exp.Expr, scope: Scope) -> Expression:
    """A text that is compared with a time as that time; whatever else it is compared with, as it is."""
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        return value
    kind = scope.kind(beside)
    if kind != pl.Date and not isinstance(kind, pl.Datetime):
        return value
    read = dt.date if kind == pl.Date else dt.datetime
    try:
        if _TIME.fullmatch(value.value):
            return Literal(read.fromisoformat(value.value))
    except ValueError:
        pass  # as the 30th of February
    wanted = (
        "date such as '2026-01-31'"
        if kind == pl.Date
        else "timestamp such as '2026-01-31 12:00:00'"
    )
    raise scope.error(f"{value} is no {wanted}, and {beside} is {type_words(kind)}.", at)


def read_cast(inner: Expression, tree: exp.Cast, scope: Scope) -> Expression:
    """A value as another type; a text that is a date or a timestamp becomes one at once."""
    to = tree.to
    written = to.args["kind"] if to.this == exp.DType.USERDEFINED else to.this.value
    name = str(written).lower()
    name = _TYPE_NAMES.get(name, name)
    if to.expressions:
        name = f"{name}({', '.join(part.sql() for part in to.expressions)})"
    if type_named(name) is None:
        raise scope.error(f"there is no type '{to.sql().lower()}'.{suggest_type(name)}", tree)
    read = {"date": dt.date, "timestamp": dt.datetime}.get(name)
    trying = isinstance(tree, exp.TryCast)
    if read and not trying and isinstance(inner, Literal) and isinstance(inner.value, str):
        try:
            return Literal(read.fromisoformat(inner.value))
        except ValueError as error:
            raise scope.error(f"{inner} is not a {name} such as 2026-01-31.", tree) from error
    wanted = type_named(name)
    assert wanted is not None
    with scope.placed(tree):
        typed = scope.typed(inner)
        if scope.spelling.name == "spark":
            inner = _spark_time(inner, typed, wanted, trying)
        if wanted.is_integer():
            inner = _as_whole(inner, typed, scope.spelling)
        check_cast(scope.kind(inner), wanted)
    return inner.try_cast(name) if trying else inner.cast(name)


def _spark_time(inner: Expression, typed: Typed, wanted: pl.DataType, trying: bool) -> Expression:
    """Between a timestamp and a number Spark counts seconds since 1970; all else stays as it is."""
    if isinstance(typed.kind, pl.Datetime) and wanted.is_numeric():
        micros = Call("epoch_us", (inner,))
        return (
            Call("//", (micros, Literal(10**6))) if wanted.is_integer() else Call("epoch", (inner,))
        )
    if not isinstance(wanted, pl.Datetime) or not typed.kind.is_numeric():
        return inner
    # Whole numbers and decimals keep every microsecond
    own = typed.decimal
    seconds = inner.cast("float64" if own is None else f"decimal(38, {own.scale})")
    cut = Call("trunc", (Call("*", (seconds, Literal(10**6))),))
    return Call("from_epoch_us", (cut.try_cast("int64") if trying else cut.cast("int64"),))


def _as_whole(inner: Expression, typed: Typed, spelling: Spelling) -> Expression:
    """What a dialect casts to a whole number, as what is cast to it here."""
    # What is written with a point, as 2.5, is no float yet: it has its digits, and its half goes up
    exact = typed.is_written or typed.kind.is_decimal()
    if exact and spelling.cuts_decimals and typed.decimal:
        return Call("trunc", (inner.cast(decimal_name(typed.decimal)),))
    if spelling.rounds_casts and typed.kind.is_float() and not exact:
        return Call("round", (inner,))
    return inner
