"""Constants as they are written, and casts, which make constants of texts: numbers, times, intervals."""

from __future__ import annotations

import datetime as dt
import re

import polars as pl
from sqlglot import exp

from anabranch.errors import LanguageError
from anabranch.language.decimals import Pointed, fits_decimal
from anabranch.language.expression import Call, Expression, Literal, columns_of, type_named
from anabranch.language.kinds import suggest_type, type_words
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.spelling import Spelling

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
    raise scope.error(f"{value} is no {wanted}, and {beside} is a {type_words(kind)}.", at)


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
        inner = _as_cast(inner, scope.kind(inner), wanted, scope.spelling)
    return inner.try_cast(name) if trying else inner.cast(name)


def _as_cast(
    inner: Expression, kind: pl.DataType, wanted: pl.DataType, spelling: Spelling
) -> Expression:
    """What a CAST means in a dialect, as a value that can be cast here."""
    if (kind.is_temporal() and wanted.is_numeric()) or (kind.is_numeric() and wanted.is_temporal()):
        if isinstance(kind, pl.Datetime) and spelling.name == "spark":
            return (
                Call("floor", (Call("epoch", (inner,)),))
                if wanted.is_integer()
                else Call("epoch", (inner,))
            )
        if isinstance(wanted, pl.Datetime) and spelling.name == "spark":
            return Call("from_epoch", (inner,))
        raise LanguageError(
            f"{inner} is {type_words(kind)}, which engines make {type_words(wanted)} of in different ways: "
            "write EPOCH(ts) or EPOCH_US(ts) for a number, FROM_EPOCH(seconds) or FROM_EPOCH_MS(…) for a "
            "time, DATE_DIFF('day', a, b) for days."
        )
    # What is written with a point, as 2.5, is no float yet: it has its digits, and its half goes up
    floating = any(columns_of(inner)) or (isinstance(inner, Literal) and type(inner.value) is float)
    if spelling.rounds_casts and kind.is_float() and floating and wanted.is_integer():
        return Call("round", (inner,))
    return inner
