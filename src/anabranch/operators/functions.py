"""All aggregate functions by name, and the way from partial aggregates to results."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from anabranch.language.aggregate import NamedAggregate
from anabranch.language.collecting import PAIRED
from anabranch.language.expression import type_of
from anabranch.operators.collected import Collected, Pairs, RowOfExtreme, Values
from anabranch.operators.float_sum import FloatSum, Mean
from anabranch.operators.partials import (
    Bits,
    Count,
    Extreme,
    FirstOrLast,
    Partial,
    Sum,
    Variance,
)
from anabranch.operators.sketches import ApproximateDistinct, Distinct, Quantile
from anabranch.operators.user import User

KINDS: dict[str, type[Partial]] = {
    "count": Count, "sum": Sum, "min": Extreme, "max": Extreme, "avg": Mean, "var": Variance,
    "stddev": Variance, "bit_or": Bits, "bit_and": Bits, "bit_xor": Bits, "first": FirstOrLast,
    "last": FirstOrLast, "count_distinct": Distinct, "approx_distinct": ApproximateDistinct,
    "approx_quantile": Quantile, "var_pop": Variance, "stddev_pop": Variance, "sum_distinct": Values,
    "avg_distinct": Values, "collect_set": Values, "quantile_cont": Values, "quantile_disc": Values,
    "array_agg": Collected, "string_agg": Collected, "max_by": RowOfExtreme, "min_by": RowOfExtreme,
    **dict.fromkeys(PAIRED, Pairs),
}  # fmt: skip


def partials_for(aggregates: Sequence[NamedAggregate], schema: pl.Schema) -> list[Partial]:
    """The partial of each aggregate over rows of a schema; those that read the same values share a column."""
    partials: list[Partial] = []
    names: dict[tuple[str, object], str] = {}
    for number, named in enumerate(aggregates):
        kind = User if named.call.user else KINDS[named.call.function]
        if kind is Sum and type_of(named.call.arguments[0], schema, str(named)).is_float():
            kind = FloatSum
        argument = None
        if named.call.arguments:
            wanted = (str(named.call.arguments[0]), kind.prepare)
            argument = names.setdefault(wanted, f"__a{len(names)}")
        partials.append(kind(f"__p{number}", argument, named.call))
    return partials


def ordered_by_time(partials: Sequence[Partial]) -> bool:
    """Whether a function depends on the order of rows, so that time and arrival must travel along."""
    return any(isinstance(partial, (FirstOrLast, Collected)) for partial in partials)


def finish(rows: pl.DataFrame, partials: Sequence[Partial], names: Sequence[str]) -> pl.DataFrame:
    """The rows with their partials turned into results under these names."""
    columns: list[pl.Expr | pl.Series] = []
    for partial, name in zip(partials, names, strict=True):
        series = partial.finish_frame(rows)
        columns.append(partial.finish().alias(name) if series is None else series.alias(name))
    used = [name for partial in partials for name in partial.columns]
    return rows.with_columns(columns).drop([name for name in used if name not in names])
