"""What each aggregate function keeps per group: update from rows, merge parts, finish.

A partial is a few columns of the state. `update` and `merge` are Polars expressions evaluated over
groups; functions that Polars does not have compute their columns over all groups at once
(`sketches.py`, `user.py`). `functions.py` is the list of all.
NULL as in SQL: skipped by every function but count(*), first and last.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from anabranch.errors import RunError
from anabranch.language.aggregate import AggregateCall

TIME, SEQ = "__time", "__seq"
DECIMAL_DIGITS = 38


class Partial:
    """The state of one aggregate: column names and how they are made, merged and finished."""

    columnar = False
    """Whether `compute` is used in place of `update` and `merge`."""

    def __init__(self, name: str, argument: str | None, call: AggregateCall) -> None:
        self.name = name
        self.argument = argument
        self.call = call
        self.columns = self.names()

    def names(self) -> list[str]:
        return [self.name]

    def prepare(self, values: pl.Series) -> pl.Series:
        """The argument as `update` wants it; done once, before rows are sent."""
        return values

    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        raise NotImplementedError

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        raise NotImplementedError

    def compute(
        self, rows: pl.DataFrame, ids: np.ndarray, starts: np.ndarray, merge: bool
    ) -> list[pl.Series]:
        raise NotImplementedError

    def shortcut(self, rows: pl.DataFrame, starts: np.ndarray, merge: bool) -> pl.Series | None:
        """The values where NumPy can reduce plain numbers directly, several times faster."""
        return None

    def finish(self) -> pl.Expr:
        return pl.col(self.name)

    def finish_frame(self, rows: pl.DataFrame) -> pl.Series | None:
        """The results where an expression cannot give them."""
        return None


class Count(Partial):
    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        rows_or_values = pl.col(self.argument).count() if self.argument else pl.len()
        return [rows_or_values.cast(pl.Int64).alias(self.name)]

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        return [pl.col(self.name).sum()]

    def shortcut(self, rows: pl.DataFrame, starts: np.ndarray, merge: bool) -> pl.Series | None:
        if merge:
            return _reduced(np.add, rows[self.name], starts)
        if self.argument and rows[self.argument].null_count():
            return None
        lengths = np.diff(starts, append=rows.height)
        return pl.Series(self.name, lengths, pl.Int64)


def _reduced(function: np.ufunc, values: pl.Series, starts: np.ndarray) -> pl.Series | None:
    """One value per group by a NumPy function, for whole numbers without NULL."""
    if values.dtype != pl.Int64 or values.null_count():
        return None
    return pl.Series(function.reduceat(values.to_numpy(), starts))


class Sum(Partial):
    def prepare(self, values: pl.Series) -> pl.Series:
        if values.dtype == pl.UInt64 and (values >= 1 << 63).any():
            raise _out_of_range(self.call, values)
        if values.dtype.is_integer():
            return values.cast(pl.Int64)
        if isinstance(values.dtype, pl.Decimal):
            return values.cast(pl.Decimal(38, values.dtype.scale))
        return values.cast(pl.Float64)

    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        assert self.argument
        return [self._sum(self.argument, rows).alias(self.name)]

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        return [self._sum(self.name, rows)]

    def shortcut(self, rows: pl.DataFrame, starts: np.ndarray, merge: bool) -> pl.Series | None:
        assert self.argument
        values = rows[self.name if merge else self.argument]
        _check_range(values, starts, self.call)
        return _reduced(np.add, values, starts)

    def _sum(self, column: str, rows: pl.DataFrame) -> pl.Expr:
        if rows[column].null_count() == 0:
            return pl.col(column).sum()
        return pl.when(pl.col(column).count() > 0).then(pl.col(column).sum())


def _check_range(values: pl.Series, starts: np.ndarray, call: AggregateCall) -> None:
    """Refuses exact sums that do not fit: a quick bound over all rows first, then group by group."""
    if values.len() == values.null_count():
        return
    if isinstance(values.dtype, pl.Decimal):
        _check_digits(values, starts, call)
    if values.dtype != pl.Int64:
        return
    low, high = values.min(), values.max()
    assert isinstance(low, int)
    assert isinstance(high, int)
    if max(-low, high) * values.len() < 1 << 63:
        return
    # Sums of the upper and of the lower halves cannot overflow; with its carry the upper one must fit
    plain = values.fill_null(0).to_numpy()
    upper = np.add.reduceat(plain >> 32, starts)
    upper += np.add.reduceat(plain & 0xFFFFFFFF, starts) >> 32
    if upper.min() < -(1 << 31) or upper.max() >= 1 << 31:
        raise _out_of_range(call, values)


def _out_of_range(call: AggregateCall, values: pl.Series) -> RunError:
    return RunError(
        f"{call} leaves the range of 64-bit integers (values from {values.min()!r} to {values.max()!r}). "
        f"Sum a decimal or a float instead: cast the argument."
    )


def _check_digits(values: pl.Series, starts: np.ndarray, call: AggregateCall) -> None:
    """Refuses sums of more than 38 digits, which Polars would let wrap around."""
    most = 10**DECIMAL_DIGITS
    whole = values.to_physical()
    plain = whole.cast(pl.Float64).fill_null(0.0).to_numpy()
    if np.abs(plain).max() * len(plain) < most:
        return
    # Floats tell which sums are far from the end; of the others every digit is looked at
    sums = np.abs(np.add.reduceat(plain, starts))
    ends = np.append(starts[1:], len(plain))
    for place in np.flatnonzero(sums > most * (1 - 1e-6)):
        group = whole[int(starts[place]) : int(ends[place])].drop_nulls().to_list()
        if abs(sum(group)) >= most:
            raise RunError(
                f"{call} leaves the {DECIMAL_DIGITS} digits that a decimal can have. Sum a float instead, "
                "CAST(x AS DOUBLE), or fewer digits after the point."
            )


class Extreme(Partial):
    """min and max; NaN counts as greater than any number, as in SQL."""

    def _extreme(self, column: str, rows: pl.DataFrame) -> pl.Expr:
        expression = pl.col(column)
        if self.call.function == "min":
            return expression.min()
        return expression.nan_max() if rows.schema[column].is_float() else expression.max()

    def shortcut(self, rows: pl.DataFrame, starts: np.ndarray, merge: bool) -> pl.Series | None:
        assert self.argument
        function = np.minimum if self.call.function == "min" else np.maximum
        return _reduced(function, rows[self.name if merge else self.argument], starts)

    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        assert self.argument
        return [self._extreme(self.argument, rows).alias(self.name)]

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        return [self._extreme(self.name, rows)]


class Variance(Partial):
    """Count, mean and squared distance from the mean, merged without cancellation (Chan et al.)."""

    def names(self) -> list[str]:
        return [f"{self.name}_n", f"{self.name}_mean", f"{self.name}_m2"]

    def prepare(self, values: pl.Series) -> pl.Series:
        return values.cast(pl.Float64)

    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        assert self.argument
        number, mean, squares = self.columns
        value = pl.col(self.argument)
        return [
            value.count().cast(pl.Int64).alias(number),
            value.mean().fill_null(0.0).alias(mean),
            (value.var(ddof=0) * value.count()).fill_null(0.0).alias(squares),
        ]

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        number, mean, squares = self.columns
        n, m = pl.col(number), pl.col(mean)
        overall = pl.when(n.sum() > 0).then((n * m).sum() / n.sum()).otherwise(0.0)
        return [
            n.sum(),
            overall.alias(mean),
            (pl.col(squares).sum() + (n * (m - overall) ** 2).sum()).alias(squares),
        ]

    def finish(self) -> pl.Expr:
        number, _, squares = self.columns
        less = 0 if self.call.function.endswith("_pop") else 1
        variance = pl.when(pl.col(number) > less).then(pl.col(squares) / (pl.col(number) - less))
        root = self.call.function.startswith("stddev")
        return (variance.sqrt() if root else variance).alias(self.name)


class Bits(Partial):
    def _combine(self, column: str) -> pl.Expr:
        expression = pl.col(column)
        match self.call.function:
            case "bit_or":
                return expression.bitwise_or()
            case "bit_and":
                return expression.bitwise_and()
        return expression.bitwise_xor()

    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        assert self.argument
        return [self._combine(self.argument).alias(self.name)]

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        return [self._combine(self.name)]


class FirstOrLast(Partial):
    """first and last: the value with the time and the arrival number that make it so."""

    def names(self) -> list[str]:
        return [self.name, f"{self.name}_time", f"{self.name}_seq"]

    def _pick(self, value: str, time: str, seq: str) -> list[pl.Expr]:
        first = self.call.function == "first"

        def end(column: str) -> pl.Expr:
            ordered = pl.col(column).sort_by(time, seq)
            return ordered.first() if first else ordered.last()

        return [
            end(column).alias(name)
            for column, name in zip((value, time, seq), self.columns, strict=True)
        ]

    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        assert self.argument
        return self._pick(self.argument, TIME, SEQ)

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        return self._pick(*self.columns)
