"""The remainder of floats, which Polars computes from a rounded quotient: 1 % 0.05 would be 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl


def float_remainder(value: pl.Expr, by: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """What is left of a division rounded down, exact as that of the library of C."""
    wide = [part.cast(pl.Float64) for part in (value, by)]
    left = pl.map_batches(wide, _remainder, return_dtype=pl.Float64, is_elementwise=True)
    return pl.when(value.is_not_null() & by.is_not_null()).then(left).cast(kind)


def _remainder(sides: Sequence[pl.Series]) -> pl.Series:
    value, by = (side.to_numpy() for side in sides)
    with np.errstate(all="ignore"):
        return pl.Series(np.mod(value, by), dtype=pl.Float64)
