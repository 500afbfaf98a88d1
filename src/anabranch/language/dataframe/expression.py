"""Spark's expressions as ours: only those that mean the same here; all others are refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from anabranch.language.dataframe.catalyst import SparkNode
from anabranch.language.dataframe.values import (
    DECIMAL,
    NUMBERS,
    WHOLE,
    SparkColumns,
    constant,
    kind_of,
    refused,
)
from anabranch.language.tree import Call, Column, Expression, Literal

INFIX = {
    "EqualTo": "=", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<",
    "LessThanOrEqual": "<=", "And": "&", "Or": "|", "Add": "+", "Subtract": "-", "Multiply": "*",
    "Divide": "/", "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^",
}  # fmt: skip
CALLS = {
    "Not": "not", "UnaryMinus": "negate", "IsNull": "is_null", "IsNotNull": "is_not_null", "Upper": "upper",
    "Lower": "lower", "Length": "length", "Coalesce": "coalesce", "Abs": "abs", "Sqrt": "sqrt", "Exp": "exp",
    "Concat": "concat", "StartsWith": "starts_with", "EndsWith": "ends_with", "Contains": "contains",
    "Greatest": "greatest", "Least": "least", "In": "in", "If": "case", "Pow": "power", "IsNaN": "isnan",
    "ConcatWs": "concat_ws", "StringLPad": "lpad", "StringRPad": "rpad",
}  # fmt: skip
"""What computes the same from the same arguments."""
OF_UTC = {
    "Year": "year", "Quarter": "quarter", "Month": "month", "DayOfMonth": "day", "DayOfYear": "doy",
    "WeekOfYear": "week", "Hour": "hour", "Minute": "minute", "Second": "second",
}  # fmt: skip
"""Parts of a time, which Spark tells in the zone of its session: the same if that is UTC."""
UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00", "Etc/GMT")
CASTS = {
    "byte": "int8", "short": "int16", "integer": "int32", "long": "int64", "float": "float32",
    "double": "float64", "string": "string", "boolean": "boolean", "date": "date",
}  # fmt: skip
"""The types that values may be cast to, and what they are called here."""
PLAIN_PATTERN = re.compile(r"[\w ,;:/=#@~-]+|\[[\w ,;:/=#@~-]+\][+*]?")
"""Regular expressions that mean the same in Java and here: a text, or one of some letters."""


def translate(part: SparkNode, scope: SparkColumns) -> Expression:
    """The expression that computes the same."""
    if part.kind in INFIX:
        left, right = (translate(child, scope) for child in part.children)
        return Call(INFIX[part.kind], (left, right))
    if part.kind in CALLS:
        return Call(CALLS[part.kind], tuple(translate(child, scope) for child in part.children))
    if part.kind in OF_UTC:
        _require_utc(part)
        # Spark counts in 32 bits
        inner = translate(part.children[0], scope)
        return Call(OF_UTC[part.kind], (inner,)).cast("int32")
    special = _SPECIAL.get(part.kind)
    if special is not None:
        return special(part, scope)
    if "replacement" in part.fields and len(part.children) == 1:
        # What Spark itself computes in its place
        return translate(part.children[0], scope)
    raise refused(part)


def _attribute(part: SparkNode, scope: SparkColumns) -> Expression:
    if part.id in scope.windows:
        raise refused(part, "the window as a value; take window.start and window.end of it")
    if part.id not in scope.columns:
        raise refused(part, f"the column '{part.name}', which the rows do not have any more")
    return Column(scope.columns[part.id])


def _literal(part: SparkNode, scope: SparkColumns) -> Expression:
    return Literal(constant(part))


def _cast(part: SparkNode, scope: SparkColumns) -> Expression:
    child, kind = part.children[0], part.fields["dataType"]
    source = kind_of(child)
    value = translate(child, scope)
    if kind == source or (kind == "timestamp" and child.kind == "TimestampAddInterval"):
        return value
    if source == "void" and kind in CASTS:
        return value.cast(CASTS[kind])
    if isinstance(kind, str) and (written := DECIMAL.fullmatch(kind)):
        if source in WHOLE or DECIMAL.fullmatch(source):
            return value.cast(f"decimal({written[1]}, {written[2]})")
    elif kind in NUMBERS and source in NUMBERS and not (kind in WHOLE and source not in WHOLE):
        return value.cast(CASTS[kind])
    elif kind in WHOLE and source in ("double", "float"):
        # Spark cuts decimals off, SQL here rounds
        toward_zero = Call("case", (value >= 0, Call("floor", (value,)), Call("ceil", (value,))))
        return toward_zero.cast(CASTS[kind])
    elif kind == "string" and source in WHOLE:
        return value.cast("string")
    elif kind == "date" and source == "timestamp":
        _require_utc(part)
        return value.cast("date")
    elif kind in WHOLE and source == "boolean":
        return value.cast(CASTS[kind])
    raise refused(part, f"a cast of {source or child.kind} to {kind}")


def _to_date(part: SparkNode, scope: SparkColumns) -> Expression:
    if len(part.children) != 1 or kind_of(part.children[0]) not in ("timestamp", "date"):
        raise refused(part, "a date of a text")
    _require_utc(part)
    return translate(part.children[0], scope).cast("date")


def _case(part: SparkNode, scope: SparkColumns) -> Expression:
    parts = [translate(child, scope) for child in part.children]
    return Call("case", tuple(parts if len(parts) % 2 else [*parts, Literal(None)]))


def _between(part: SparkNode, scope: SparkColumns) -> Expression:
    value, low, high = (
        translate(part.expression(field), scope) for field in ("input", "lower", "upper")
    )
    return value.between(low, high)


def _remainder(part: SparkNode, scope: SparkColumns) -> Expression:
    """Spark's has the sign of what is divided, ours that of the divisor."""
    value, by = (translate(child, scope) for child in part.children)
    size = Call("abs", (by,))
    return Call("case", (value >= 0, value % size, -((-value) % size)))


def _same(part: SparkNode, scope: SparkColumns) -> Expression:
    left, right = (translate(child, scope) for child in part.children)
    return ~left.is_distinct_from(right)


def _like(part: SparkNode, scope: SparkColumns) -> Expression:
    pattern = part.children[1]
    if pattern.kind != "Literal" or "\\" in str(pattern.fields["value"]):
        raise refused(part, "a pattern that is no constant, or has a '\\'")
    return translate(part.children[0], scope).like(str(pattern.fields["value"]))


def _later(part: SparkNode, scope: SparkColumns) -> Expression:
    start, interval = part.children
    if interval.kind == "UnaryMinus":
        return translate(start, scope) - _interval(interval.children[0])
    return translate(start, scope) + _interval(interval)


def _interval(part: SparkNode) -> Expression:
    while part.kind == "Cast":
        part = part.children[0]
    if part.kind != "Literal":
        raise refused(part, "a length of time that is no constant")
    return Literal(constant(part))


def _struct_field(part: SparkNode, scope: SparkColumns) -> Expression:
    child = part.children[0]
    if child.kind == "AttributeReference" and child.id in scope.windows:
        start, end = scope.windows[child.id]
        name = child.fields["dataType"]["fields"][int(part.fields["ordinal"])]["name"]
        return Column(start if name == "start" else end)
    raise refused(part, "a field of a structure")


def _substring(part: SparkNode, scope: SparkColumns) -> Expression:
    text, *places = part.children
    if any(place.kind != "Literal" for place in places) or constant(places[0]) < 1:
        raise refused(part, "places that are no constants from 1 on")
    start, length = (constant(place) for place in places)
    whole = (translate(text, scope), Literal(start))
    return Call("substring", whole if length >= 2**31 - 1 else (*whole, Literal(length)))


def _rounded(part: SparkNode, scope: SparkColumns) -> Expression:
    name = "floor" if part.kind == "Floor" else "ceil"
    if kind_of(part.children[0]) not in ("double", "float"):
        raise refused(part, "of a decimal")
    return Call(name, (translate(part.children[0], scope),)).cast("int64")


def _trimmed(part: SparkNode, scope: SparkColumns) -> Expression:
    if len(part.children) != 1:
        raise refused(part, "letters to trim")
    return Call("trim", (translate(part.children[0], scope), Literal(" ")))


def _replaced(part: SparkNode, scope: SparkColumns) -> Expression:
    text, pattern, new, place = part.children
    if any(each.kind != "Literal" for each in (pattern, new, place)) or constant(place) != 1:
        raise refused(part, "a pattern, a replacement or a place that is no constant")
    if re.search(r"[\\$]", constant(new)):
        raise refused(part, "a replacement with a '\\' or a '$'")
    arguments = (translate(text, scope), Literal(_pattern(part, pattern)), Literal(constant(new)))
    return Call("regexp_replace", (*arguments, Literal("g")))


def _split(part: SparkNode, scope: SparkColumns) -> Expression:
    text, pattern, limit = part.children
    separator = _pattern(part, pattern)
    if limit.kind != "Literal" or constant(limit) > 0 or "[" in separator:
        raise refused(part, "a limit, or a separator that is no plain text")
    return Call("split", (translate(text, scope), Literal(separator)))


def _pattern(part: SparkNode, pattern: SparkNode) -> str:
    written = constant(pattern) if pattern.kind == "Literal" else None
    if written is None or not PLAIN_PATTERN.fullmatch(written):
        raise refused(
            part, "a pattern that Java may read otherwise; plain text and [letters] are the same"
        )
    return str(written)


def _if_no_number(part: SparkNode, scope: SparkColumns) -> Expression:
    value, otherwise = (translate(child, scope) for child in part.children)
    return Call("case", (Call("isnan", (value,)), otherwise, value))


def _known_values(part: SparkNode, scope: SparkColumns) -> Expression:
    """What `dropna` asks: so many values that are neither NULL nor no number."""
    counted: Expression = Literal(0)
    for child in part.children:
        value = translate(child, scope)
        known: Expression = Call("is_not_null", (value,))
        if kind_of(child) in ("double", "float"):
            known = known & Call(
                "coalesce", (Call("not", (Call("isnan", (value,)),)), Literal(False))
            )
        counted = counted + Call("case", (known, Literal(1), Literal(0)))
    return counted >= int(part.fields["n"])


def _require_utc(part: SparkNode) -> None:
    zone = part.fields.get("timeZoneId")
    if zone is not None and zone not in UTC:
        raise refused(
            part, f"a time of day in the zone {zone}; set spark.sql.session.timeZone to UTC"
        )


_SPECIAL: Mapping[str, Callable[[SparkNode, SparkColumns], Expression]] = {
    "AttributeReference": _attribute, "Literal": _literal, "Cast": _cast, "CaseWhen": _case,
    "Between": _between, "EqualNullSafe": _same, "Remainder": _remainder,
    "ParseToDate": _to_date, "Like": _like, "TimestampAddInterval": _later,
    "GetStructField": _struct_field, "Substring": _substring, "Floor": _rounded, "Ceil": _rounded,
    "StringTrim": _trimmed, "RegExpReplace": _replaced, "StringSplit": _split, "NaNvl": _if_no_number,
    "AtLeastNNonNulls": _known_values,
    "KnownNullable": lambda part, scope: translate(part.children[0], scope),
}  # fmt: skip
