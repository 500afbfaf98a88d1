"""What each aggregate function keeps per group: update from rows, merge parts, finish.

A partial is a few columns of the state. `update` and `merge` are Polars expressions evaluated over
groups; functions that Polars does not have compute their columns over all groups at once.
NULL as in SQL: skipped by every function but count(*), first and last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import datasketches
import numpy as np
import polars as pl
import pyarrow as pa

from anabranch.errors import RunError
from anabranch.language.aggregate import AggregateCall, NamedAggregate, UserAggregate
from anabranch.routing.hashing import hash_column

TIME, SEQ = "__time", "__seq"
KLL_K = 200
"""KLL's size: a rank error of about 1.3%."""


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
        _check_range(values, self.call)
        return _reduced(np.add, values, starts)

    def _sum(self, column: str, rows: pl.DataFrame) -> pl.Expr:
        values = rows[column]
        _check_range(values, self.call)
        if values.null_count() == 0:
            return pl.col(column).sum()
        return pl.when(pl.col(column).count() > 0).then(pl.col(column).sum())


def _check_range(values: pl.Series, call: AggregateCall) -> None:
    """Refuses integer sums that might not fit; the bound is what all rows together could reach."""
    if values.dtype != pl.Int64 or values.len() == values.null_count():
        return
    low, high = values.min(), values.max()
    assert isinstance(low, int)
    assert isinstance(high, int)
    if max(-low, high) * values.len() < 1 << 63:
        return
    total = values.cast(pl.Float64).abs().sum()
    if total >= float(1 << 63):
        raise RunError(
            f"{call} leaves the range of 64-bit integers (values from {low} to {high}). "
            f"Sum a decimal or a float instead: cast the argument."
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


class Mean(Partial):
    def names(self) -> list[str]:
        return [f"{self.name}_sum", f"{self.name}_n"]

    def prepare(self, values: pl.Series) -> pl.Series:
        return values.cast(pl.Float64)

    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        assert self.argument
        total, number = self.columns
        return [
            pl.col(self.argument).sum().alias(total),
            pl.col(self.argument).count().cast(pl.Int64).alias(number),
        ]

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        return [pl.col(self.columns).sum()]

    def finish(self) -> pl.Expr:
        total, number = self.columns
        return pl.when(pl.col(number) > 0).then(pl.col(total) / pl.col(number)).alias(self.name)


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
        variance = pl.when(pl.col(number) > 1).then(pl.col(squares) / (pl.col(number) - 1))
        return (variance.sqrt() if self.call.function == "stddev" else variance).alias(self.name)


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


class Edge(Partial):
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
            values = rows[self.argument].fill_null(np.nan).to_numpy()
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


class User(Partial):
    """A user's aggregate: Arrow arrays in, Arrow arrays out, checked for length and type."""

    columnar = True

    def compute(
        self, rows: pl.DataFrame, ids: np.ndarray, starts: np.ndarray, merge: bool
    ) -> list[pl.Series]:
        user = self._user()
        assert self.argument
        if merge:
            stage, function, values = "merge", user.merge, rows[self.name].to_arrow()
            values = values.cast(user.state_type)
        else:
            stage, function, values = "update", user.update, rows[self.argument].to_arrow()
        empty = pa.repeat(pa.scalar(user.init(), user.state_type), len(starts))
        states = self._call(stage, function, empty, values, pa.array(ids))
        return [self._checked(states, len(starts), user.state_type, stage)]

    def finish_frame(self, rows: pl.DataFrame) -> pl.Series:
        user = self._user()
        states = rows[self.name].to_arrow().cast(user.state_type)
        results = self._call("finish", user.finish, states)
        return self._checked(results, rows.height, user.result_type, "finish")

    def _user(self) -> UserAggregate:
        assert self.call.user
        return self.call.user

    def _call(self, stage: str, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            raise RunError(
                f"The {stage} function of the aggregate '{self.call.function}' failed: {error!r}."
            ) from error

    def _checked(self, result: Any, rows: int, kind: pa.DataType, stage: str) -> pl.Series:
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if not isinstance(result, pa.Array) or len(result) != rows:
            got = f"{type(result).__name__} of length {len(result) if hasattr(result, '__len__') else '?'}"
            raise RunError(
                f"The {stage} function of the aggregate '{self.call.function}' must return an Arrow "
                f"array of {rows} values, one per group; it returned a {got}."
            )
        return pl.Series(self.name, result.cast(kind))


KINDS: dict[str, type[Partial]] = {
    "count": Count, "sum": Sum, "min": Extreme, "max": Extreme, "avg": Mean, "var": Variance,
    "stddev": Variance, "bit_or": Bits, "bit_and": Bits, "bit_xor": Bits, "first": Edge,
    "last": Edge, "count_distinct": Distinct, "approx_distinct": ApproximateDistinct,
    "approx_quantile": Quantile,
}  # fmt: skip


def partials_for(aggregates: Sequence[NamedAggregate]) -> list[Partial]:
    """The partial of each aggregate; functions that read the same values share a column of them."""
    partials: list[Partial] = []
    names: dict[tuple[str, object], str] = {}
    for number, named in enumerate(aggregates):
        kind = User if named.call.user else KINDS[named.call.function]
        argument = None
        if named.call.arguments:
            wanted = (str(named.call.arguments[0]), kind.prepare)
            argument = names.setdefault(wanted, f"__a{len(names)}")
        partials.append(kind(f"__p{number}", argument, named.call))
    return partials


def ordered_by_time(partials: Sequence[Partial]) -> bool:
    """Whether a function depends on the order of rows, so that time and arrival must travel along."""
    return any(isinstance(partial, Edge) for partial in partials)


def finish(rows: pl.DataFrame, partials: Sequence[Partial], names: Sequence[str]) -> pl.DataFrame:
    """The rows with their partials turned into results under these names."""
    columns: list[pl.Expr | pl.Series] = []
    for partial, name in zip(partials, names, strict=True):
        series = partial.finish_frame(rows)
        columns.append(partial.finish().alias(name) if series is None else series.alias(name))
    used = [name for partial in partials for name in partial.columns]
    return rows.with_columns(columns).drop([name for name in used if name not in names])
