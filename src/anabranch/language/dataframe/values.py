"""Spark's columns, types and constants, and what is said of what has no equal here."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from dataclasses import dataclass, field
from typing import Any

from anabranch.errors import LanguageError
from anabranch.language.dataframe.catalyst import SparkNode

WHOLE = ("byte", "short", "integer", "long")
NUMBERS = (*WHOLE, "float", "double")
DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


@dataclass
class SparkColumns:
    """Which column each of Spark's is, and the windows among them."""

    columns: dict[int, str] = field(default_factory=dict)
    windows: dict[int, tuple[str, str]] = field(default_factory=dict)
    """The columns with the start and the end of each window."""


def refused(part: SparkNode, why: str = "") -> LanguageError:
    """What is said of a node that has no equal here."""
    reason = f": {why}" if why else ", which has no equal here"
    return LanguageError(
        f"The DataFrame has {part.kind}{reason}. Run this query with Spark, or write it without."
    )


def kind_of(part: SparkNode) -> str:
    """Spark's name of the type of an expression, where it says so; else an empty text."""
    kind = part.fields.get("dataType", "")
    if part.kind in ("Alias", "KnownNullable", "AggregateExpression", "Min", "Max"):
        return kind_of(part.children[0])
    if part.kind == "TimestampAddInterval":
        return "timestamp"
    if part.kind in ("Count", "Sum"):
        whole = part.kind == "Count" or kind_of(part.children[0]) in WHOLE
        return "long" if whole else kind_of(part.children[0])
    if part.kind in ("Average", "VarianceSamp", "StddevSamp"):
        return "double"
    return kind if isinstance(kind, str) else "struct"


def constant(part: SparkNode) -> Any:
    """The value of a literal."""
    value, kind = part.fields.get("value"), part.fields["dataType"]
    if value is None:
        return None
    if kind in WHOLE:
        return int(value)
    if kind in ("double", "float"):
        return float(value)
    if kind == "boolean":
        return str(value).lower() == "true"
    if kind == "string":
        return value
    if kind == "date":
        return dt.date.fromisoformat(value)
    if isinstance(kind, str) and DECIMAL.fullmatch(kind):
        return decimal.Decimal(value)
    if isinstance(kind, str) and re.fullmatch(r"interval (day|hour|minute|second).*", kind):
        return dt.timedelta(microseconds=int(value))
    raise refused(part, f"a constant of type {kind}")
