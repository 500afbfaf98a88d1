"""Conditions on two rows, computed for all pairs of two blocks of rows at once.

Numbers are compared as arrays of rows by columns, without bringing the pairs together first. Of several
conditions the one that the fewest pairs meet, by a sample, is computed for all pairs; the others only for
those that it leaves. What is not about plain numbers (text, NULL, NaN, division) is left to whoever brings
the pairs together.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from anabranch.language.decimals import Pointed
from anabranch.language.expression import (
    COMPARISONS,
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
)

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "negate": operator.neg, "abs": np.abs,
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "not": np.logical_not,
}  # fmt: skip
_LOGICAL = {"&": np.logical_and, "|": np.logical_or}


Columns = Mapping[str, np.ndarray | None]
SAMPLE = 128
"""Rows of each side that tell which condition the fewest pairs meet."""


@dataclass(frozen=True)
class Conditions:
    """Conditions over the columns of two frames."""

    rows: Columns
    others: Columns
    quick: tuple[Expression, ...]
    """Those that arrays can tell, the most selective first."""
    left: tuple[Expression, ...]
    """The others."""

    @classmethod
    def of(cls, conditions: Sequence[Expression], rows: Columns, others: Columns) -> Conditions:
        some = {**_cut(rows, slice(SAMPLE), None), **_cut(others, None, slice(SAMPLE))}
        shares: list[tuple[float, Expression]] = []
        left = []
        for condition in conditions:
            found = true_pairs(condition, some)
            if found is None:
                left.append(condition)
            else:
                shares.append((float(found.mean()) if found.size else 0.0, condition))
        shares.sort(key=lambda share: share[0])
        return cls(rows, others, tuple(condition for _, condition in shares), tuple(left))

    def pairs(self, rows: slice, others: slice) -> tuple[np.ndarray, np.ndarray] | None:
        """The places of the pairs in two runs of rows for which all quick conditions hold.

        None if a value on the way cannot be compared as numbers are.
        """
        columns = {**_cut(self.rows, rows, None), **_cut(self.others, None, others)}
        mask = true_pairs(self.quick[0], columns)
        if mask is None:
            return None
        width = others.stop - others.start
        mask = np.broadcast_to(mask, (rows.stop - rows.start, width))
        mine, theirs = np.divmod(np.flatnonzero(mask), width)
        mine, theirs = mine + rows.start, theirs + others.start
        for condition in self.quick[1:]:
            names = set(columns_of(condition))
            values = {n: a[mine] for n, a in self.rows.items() if a is not None and n in names}
            values |= {n: a[theirs] for n, a in self.others.items() if a is not None and n in names}
            kept = true_pairs(condition, values)
            if kept is None:
                return None
            mine, theirs = mine[kept], theirs[kept]
        return mine, theirs


def _cut(
    columns: Columns, rows: slice | None, others: slice | None
) -> dict[str, np.ndarray | None]:
    """Columns as parts of arrays of rows by others."""
    return {
        name: None if values is None else values[rows, others] for name, values in columns.items()
    }


def numbers(column: pl.Series) -> np.ndarray | None:
    """A column as an array to compute with; None if it has anything but plain numbers."""
    kind = column.dtype
    if column.null_count() or not (kind.is_integer() or kind == pl.Float64) or kind == pl.UInt64:
        return None
    if kind.is_integer():
        return column.cast(pl.Int64).to_numpy()
    values = column.to_numpy()
    return values if np.isfinite(values).all() else None


def true_pairs(condition: Expression, columns: Columns) -> np.ndarray | None:
    """Where the condition is true, for arrays that are broadcast; None if it cannot be told so.

    >>> from anabranch.language.expression import col
    >>> columns = {"a": np.array([[1], [2]]), "b": np.array([[1, 2]])}
    >>> true_pairs(col("a") < col("b"), columns)
    array([[False,  True],
           [False, False]])
    """
    with np.errstate(all="ignore"):
        found = _value(condition, columns)
    return found if isinstance(found, np.ndarray) and found.dtype == bool else None


def _value(expression: Expression, columns: Columns) -> Any:
    match expression:
        case Column(name):
            return columns.get(name)
        case Literal(value):
            known = type(value) in (int, float, bool, Pointed)
            return value if known and value == value else None
        case Call(function, arguments) if function in _FUNCTIONS or function in _LOGICAL:
            values = [_value(part, columns) for part in arguments]
            if any(value is None for value in values):
                return None
            if function in _LOGICAL:
                return _LOGICAL[function](*values) if all(map(_is_truth, values)) else None
            if function != "not" and any(map(_is_truth, values)):
                return None
            numbers = _as_numbers(function, values)
            return None if numbers is None else _finite(_FUNCTIONS[function](*numbers))
    return None


def _as_numbers(function: str, values: list[Any]) -> list[Any] | None:
    """The values with those that have a point as floats; None where that would not be exact."""
    pointed = [isinstance(value, Pointed) for value in values]
    if not any(pointed):
        return values
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    compared = function in COMPARISONS and any(array.dtype.kind == "i" for array in arrays)
    if not arrays or compared:
        return None
    return [float(value) if point else value for value, point in zip(values, pointed, strict=True)]


def _finite(value: Any) -> Any:
    """None for what has become infinite or no number: SQL and arrays compare that in different ways."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
        return None
    return value


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, np.ndarray) and value.dtype == bool)
