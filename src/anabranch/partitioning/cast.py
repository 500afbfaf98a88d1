"""Casts that lose nothing: different values stay different, and there is a way back."""

from __future__ import annotations

import polars as pl

from anabranch.language.expression import TYPES, type_named

EXACT_BITS = {"float32": 24, "float64": 53}
"""Integers up to two to this power are floats of their own."""


def loses_nothing(kind: pl.DataType, name: str) -> bool:
    """Whether a cast from this type to that named one keeps different values different.

    >>> loses_nothing(pl.UInt32(), "int64"), loses_nothing(pl.Int64(), "int32")
    (True, False)
    """
    target = type_named(name)
    assert target is not None
    if kind == target:
        return True
    if kind.is_integer():
        low, high = _range(kind)
        if target.is_integer():
            least, most = _range(target)
            return least <= low and high <= most
        return target == pl.String or high < 2 ** EXACT_BITS.get(name, 0)
    if kind == pl.Boolean:
        return target.is_integer()
    return (kind == pl.Float32 and name == "float64") or (kind == pl.Date and name == "timestamp")


def is_integer_type(name: str) -> bool:
    kind = type_named(name)
    return kind is not None and kind.is_integer()


def type_name(kind: pl.DataType) -> str | None:
    """The name to cast to for this type."""
    return next((name for name, known in TYPES.items() if known == kind), None)


def _range(kind: pl.DataType) -> tuple[int, int]:
    width = int("".join(filter(str.isdigit, str(kind))))
    if kind.is_signed_integer():
        return -(2 ** (width - 1)), 2 ** (width - 1) - 1
    return 0, 2**width - 1
