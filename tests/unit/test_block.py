"""Conditions over blocks of pairs: the same as row by row, or left to others."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from anabranch import call, col, lit
from anabranch.language.expression import Expression, to_polars
from anabranch.operators.block import Conditions, numbers

LEFT = pl.DataFrame(
    {"a": [1, 5, -3, 7], "f": [0.5, 2.0, -1.0, 9.0], "n": [1, None, 3, 4], "t": [*"abcd"]}
)
RIGHT = pl.DataFrame({"b": [2, 5, 9], "g": [0.5, float("nan"), 1.0], "u": [*"bcd"]})


def conditions_of(*conditions: Expression) -> Conditions:
    columns = [{name: numbers(frame[name]) for name in frame.columns} for frame in (LEFT, RIGHT)]
    return Conditions.of(conditions, columns[0], columns[1])


@pytest.mark.parametrize(
    "condition",
    [
        col("a") < col("b"),
        col("a") + 3 >= col("b") * 2 - 1,
        call("abs", col("a") - col("b")) <= 4,
        ~(col("a") == col("b")),
        (col("a") > 0) & (col("b") > 2),
        (col("a") > 5) | (col("b") < 3),
        -col("a") < col("b"),
        col("f") * 2 > col("b"),
        col("a") > 2,
        col("b") != 5,
    ],
)
def test_as_row_by_row(condition: Expression) -> None:
    found = conditions_of(condition)
    assert found.left == ()
    mine, theirs = found.pairs(slice(0, 4), slice(0, 3))
    pairs = LEFT.with_row_index("i").join(RIGHT.with_row_index("j"), how="cross")
    wanted = pairs.filter(to_polars(condition, pairs.schema))
    assert sorted(zip(mine.tolist(), theirs.tolist(), strict=True)) == sorted(
        wanted.select("i", "j").rows()
    )
    part = found.pairs(slice(1, 3), slice(1, 3))
    inside = wanted.filter(pl.col("i").is_between(1, 2) & pl.col("j").is_between(1, 2))
    assert sorted(zip(*map(np.ndarray.tolist, part), strict=True)) == sorted(
        inside.select("i", "j").rows()
    )


@pytest.mark.parametrize(
    "condition",
    [
        col("t") < col("u"), col("n") < col("b"), col("f") < col("g"), col("a") // 2 == col("b"),
        col("a") / 0 > col("b"), lit(True), (col("a") > 1) & (col("t") == "a"),
    ],
)  # fmt: skip
def test_left_to_others(condition: Expression) -> None:
    """Text, NULL, NaN and division are not for arrays."""
    found = conditions_of(condition)
    assert (found.quick, found.left) == ((), (condition,))


def test_the_most_selective_comes_first() -> None:
    found = conditions_of(col("a") < 100, col("a") == col("b"), col("t") == col("u"))
    assert [str(part) for part in found.quick] == ["a = b", "a < 100"]
    assert [str(part) for part in found.left] == ["t = u"]
