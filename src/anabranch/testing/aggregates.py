"""The aggregates of random queries, by what they can be asked of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.language.aggregate import (
    AggregateCall,
    UserAggregate,
    approx_distinct,
    approx_quantile,
    avg,
    bit_and,
    bit_or,
    bit_xor,
    count,
    count_distinct,
    first,
    last,
    max_,
    min_,
    stddev,
    sum_,
    var,
)
from anabranch.language.expression import Expression

Asking: TypeAlias = Callable[[Expression], AggregateCall]


def _add_twice(states: pa.Array, values: pa.Array, groups: pa.Array) -> pa.Array:
    return _add(states, pc.multiply(pc.fill_null(values, 0).cast(pa.int64()), 2), groups)


def _add(states: pa.Array, parts: pa.Array, groups: pa.Array) -> pa.Array:
    table = pa.table({"group": groups, "part": parts}).group_by("group", use_threads=False)
    return pc.add(states, table.aggregate([("part", "sum")])["part_sum"].combine_chunks())


DOUBLED = UserAggregate(
    "doubled", lambda: 0, _add_twice, _add, lambda states: pc.add(states, 1), pa.int64(), pa.int64()
)
USER_SQL = {"doubled": "2 * coalesce(sum({}), 0) + 1"}
"""The user aggregates of random queries, as the oracle wants them."""

IN_ORDER: tuple[Asking, ...] = (first, last)
OF_ANYTHING: tuple[Asking, ...] = (count, count_distinct, approx_distinct, min_, max_)
OF_NUMBERS: tuple[Asking, ...] = (
    sum_, avg, var, stddev, lambda x: approx_quantile(x, 0.5),
    lambda x: approx_quantile(x, 0.0), lambda x: approx_quantile(x, 0.9),
)  # fmt: skip
OF_INTEGERS: tuple[Asking, ...] = (bit_or, bit_and, bit_xor, DOUBLED)
ROUNDED = (avg, var, stddev)
