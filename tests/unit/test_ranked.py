"""The rows that can still be among the best, whatever their order is made of."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from anabranch.language.expression import Column, Named
from anabranch.language.node import Stream
from anabranch.language.order import Ordered
from anabranch.language.over import Sort
from anabranch.language.ranked import BestOf, Ranked
from anabranch.operators.base import Spread
from anabranch.operators.ranked import RankedRows
from anabranch.routing.frame import Frame

ROWS = 400
CHANCE = np.random.default_rng(7)
NUMBERS = CHANCE.integers(-3, 3, ROWS)
VALUES: dict[str, Any] = {
    "Int64": pl.Series(NUMBERS),
    "UInt8": pl.Series(NUMBERS + 3).cast(pl.UInt8),
    "Float64": pl.Series(np.where(NUMBERS == 2, np.nan, NUMBERS)),
    "Datetime": pl.Series([datetime(2026, 1, 4 + int(n)) for n in NUMBERS]),
    "String": pl.Series([str(n) for n in NUMBERS]),
    "NULL": pl.Series([None if n == 2 else int(n) for n in NUMBERS], dtype=pl.Int64),
}


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", VALUES)
def test_the_best_are_those_of_a_full_sort(kind: str, descending: bool, most: int) -> None:
    rows = pl.DataFrame(
        {
            "time": np.arange(ROWS) // 10,
            "k": NUMBERS % 4,
            "value": VALUES[kind],
            "other": CHANCE.integers(0, 4, ROWS),
        }
    )
    stream = Stream("s", rows.schema, Ordered("time", False))
    order = (Sort(Column("value"), descending), Sort(Column("time"), True))
    keys = (Named("k", Column("k")),)
    operator = RankedRows(Ranked(stream, 20, keys, order, (), BestOf("row_number", most)))
    found = operator.combine(Frame(operator.intake(rows, Spread(16))))
    expected = (
        rows.with_columns(w=pl.col("time") // 20)
        .sort(
            ["value", "time", "other"],
            descending=[descending, True, False],
            nulls_last=[True, True, False],
        )
        .group_by("w", "k")
        .head(most)
        .select(rows.columns)
    )
    assert sorted(map(str, found.select(rows.columns).rows())) == sorted(map(str, expected.rows()))
