"""Sets and sketches per group: exact distinct values, KMV for about how many, KLL for quantiles."""

from __future__ import annotations

import datasketches
import numpy as np
import polars as pl

from anabranch.operators.partials import Partial
from anabranch.routing.hashing import hash_column

KLL_K = 200
"""KLL's size: a rank error of about 1.3%."""


class Distinct(Partial):
    """The set of values as a list; exact."""

    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        assert self.argument
        return [pl.col(self.argument).drop_nulls().unique().alias(self.name)]

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        return [_members(self.name).unique()]

    def finish(self) -> pl.Expr:
        return pl.col(self.name).list.len().cast(pl.Int64)


class ApproximateDistinct(Partial):
    """The k least hashes of the values (a KMV sketch): mergeable, and columnar without a loop."""

    def _least(self, expression: pl.Expr) -> pl.Expr:
        assert isinstance(self.call.parameter, int)
        return expression.unique().bottom_k(self.call.parameter)

    def prepare(self, values: pl.Series) -> pl.Series:
        hashes = pl.Series(values.name, hash_column(values))
        return hashes.to_frame().select(pl.when(values.is_not_null()).then(hashes)).to_series()

    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        assert self.argument
        return [self._least(pl.col(self.argument).drop_nulls()).alias(self.name)]

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        return [self._least(_members(self.name))]

    def finish(self) -> pl.Expr:
        size = self.call.parameter
        assert isinstance(size, int)
        least = pl.col(self.name).list
        share = (least.max().cast(pl.Float64) + 1.0) / 2.0**64
        estimate = ((size - 1) / share).round(0).cast(pl.Int64)
        return (
            pl.when(least.len() < size).then(least.len().cast(pl.Int64)).otherwise(estimate)
        ).alias(self.name)


def _members(column: str) -> pl.Expr:
    return pl.col(column).list.explode(keep_nulls=False, empty_as_null=False)


class Quantile(Partial):
    """A KLL sketch per group (Apache DataSketches), as bytes. One call per group, none per row."""

    columnar = True

    def prepare(self, values: pl.Series) -> pl.Series:
        return values.cast(pl.Float64)

    def compute(
        self, rows: pl.DataFrame, ids: np.ndarray, starts: np.ndarray, merge: bool
    ) -> list[pl.Series]:
        assert self.argument
        ends = np.append(starts[1:], rows.height)
        sketches: list[bytes] = []
        if merge:
            parts = rows[self.name].to_list()
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                sketch = datasketches.kll_doubles_sketch.deserialize(parts[start])
                for part in parts[start + 1 : end]:
                    sketch.merge(datasketches.kll_doubles_sketch.deserialize(part))
                sketches.append(sketch.serialize())
        else:
            # Writable: the library refuses the read-only views Polars gives
            values = rows[self.argument].fill_null(np.nan).to_numpy(writable=True)
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                sketch = datasketches.kll_doubles_sketch(KLL_K)
                sketch.update(values[start:end])  # the library skips NaN
                sketches.append(sketch.serialize())
        return [pl.Series(self.name, sketches, pl.Binary)]

    def finish_frame(self, rows: pl.DataFrame) -> pl.Series:
        values: list[float | None] = []
        for part in rows[self.name]:
            sketch = datasketches.kll_doubles_sketch.deserialize(part)
            empty = sketch.is_empty()
            values.append(None if empty else sketch.get_quantile(self.call.parameter))
        return pl.Series(self.name, values, pl.Float64)
