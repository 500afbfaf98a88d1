"""A condition on two rows, computed for all pairs of two blocks of rows at once.

Numbers are compared as arrays of rows by columns, without bringing the pairs together first: many times
faster than row by row. What is not about plain numbers (text, NULL, NaN, division) is left to the way
that brings pairs together.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from anabranch.language.expression import Call, Column, Expression, Literal

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "negate": operator.neg, "abs": np.abs,
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "not": np.logical_not,
}  # fmt: skip
_LOGICAL = {"&": np.logical_and, "|": np.logical_or}


def numbers(column: pl.Series) -> np.ndarray | None:
    """A column as an array to compute with; None if it has anything but plain numbers."""
    kind = column.dtype
    if column.null_count() or not (kind.is_integer() or kind.is_float()) or kind == pl.UInt64:
        return None
    values = column.cast(pl.Int64 if kind.is_integer() else pl.Float64).to_numpy()
    return None if kind.is_float() and np.isnan(values).any() else values


def holds(condition: Expression, columns: Mapping[str, np.ndarray | None]) -> np.ndarray | None:
    """Where the condition is true, for arrays that are broadcast; None if it cannot be told so.

    >>> from anabranch.language.expression import col
    >>> columns = {"a": np.array([[1], [2]]), "b": np.array([[1, 2]])}
    >>> holds(col("a") < col("b"), columns)
    array([[False,  True],
           [False, False]])
    """
    found = _value(condition, columns)
    return found if isinstance(found, np.ndarray) and found.dtype == bool else None


def _value(expression: Expression, columns: Mapping[str, np.ndarray | None]) -> Any:
    match expression:
        case Column(name):
            return columns.get(name)
        case Literal(value):
            return value if type(value) in (int, float, bool) and value == value else None
        case Call(function, arguments) if function in _FUNCTIONS or function in _LOGICAL:
            values = [_value(part, columns) for part in arguments]
            if any(value is None for value in values):
                return None
            if function in _LOGICAL:
                return _LOGICAL[function](*values) if all(map(_is_truth, values)) else None
            if function != "not" and any(map(_is_truth, values)):
                return None
            return _FUNCTIONS[function](*values)
    return None


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, np.ndarray) and value.dtype == bool)
