"""What operators without parentheses mean, and which types may meet in them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import pytest

from anabranch.errors import LanguageError
from anabranch.language.expression import to_polars
from anabranch.language.sql.expression import read_expression

FRAME = pl.DataFrame(
    {
        "i": [5, None, -1], "j": [1, 2, 3], "o": [True, None, False], "s": ["a", "b", None],
        "d": [dt.date(2024, 1, 3)] * 3, "e": [dt.date(2024, 1, 1)] * 3, "tm": [dt.time(1)] * 3,
        "y": [b"a"] * 3, "f": [1.5, 2.0, None],
    }
)  # fmt: skip


def values(text: str) -> list[Any]:
    return FRAME.select(v=to_polars(read_expression(text, FRAME.schema), FRAME.schema))[
        "v"
    ].to_list()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("i > 0 IS NULL", "(i > 0) IS NULL"),
        ("i <> 1 IS NOT NULL", "(i <> 1) IS NOT NULL"),
        ("i + j > 2 IS NULL", "((i + j) > 2) IS NULL"),
        ("s = 'a' IS NULL", "(s = 'a') IS NULL"),
        ("NOT i > 0 IS NULL", "NOT ((i > 0) IS NULL)"),
        ("i > j IS DISTINCT FROM o", "(i > j) IS DISTINCT FROM o"),
        ("o IS NOT DISTINCT FROM i = j", "o IS NOT DISTINCT FROM (i = j)"),
        ("i > 0 IS TRUE", "(i > 0) IS TRUE"),
        ("i = j IS NOT TRUE", "NOT ((i = j) IS TRUE)"),
        ("CASE WHEN i > 0 IS NULL THEN 1 ELSE 0 END", "CASE WHEN (i > 0) IS NULL THEN 1 ELSE 0 END"),
        ("s LIKE 'a%' IS NULL AND o", "((s LIKE 'a%') IS NULL) AND o"),
        ("i IS NULL = o", "(i IS NULL) = o"),
    ],
)  # fmt: skip
def test_is_binds_below_comparisons(text: str, meant: str) -> None:
    assert values(text) == values(meant)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("~i + 1", "~ before an operator is read in two ways"),
        ("j * ~i << 1", "~ before an operator is read in two ways"),
        ("i < j < 5", "comparisons cannot be chained"),
        ("i = j = o", "comparisons cannot be chained"),
        ("o IS DISTINCT FROM o IS DISTINCT FROM o", "comparisons cannot be chained"),
        ("s || NOT o", "NOT is an operand"),
        ("i BETWEEN 1 AND 2 IN (TRUE)", "IN follows another condition"),
    ],
)
def test_what_engines_read_in_other_ways_needs_parentheses(text: str, said: str) -> None:
    with pytest.raises(LanguageError, match=said):
        values(text)


def test_written_parentheses_decide() -> None:
    assert values("(~i) + 1") == [-5, None, 1]
    assert values("~(i + 1)") == [-7, None, -1]
    assert values("j & ~i") == [0, None, 0]
    assert values("(i < j) = o") == [False, None, False]
    assert values("(i BETWEEN 1 AND 9) IN (TRUE)") == [True, None, False]


@pytest.mark.parametrize(
    "text",
    [
        "i = o", "s = o", "o = TRUE = o", "s = tm", "s = y", "o = 'true'", "i < o", "f IS DISTINCT FROM o",
        "d = i", "COALESCE(i, s)", "CASE WHEN o THEN s ELSE i END", "GREATEST(s, y)", "o + o",
        "s + s", "o * i", "tm - tm", "SQRT(o)",
    ],
)  # fmt: skip
def test_values_of_different_kinds_do_not_meet(text: str) -> None:
    with pytest.raises(LanguageError, match=r"of one kind|expected numbers|chained"):
        values(text)


def test_a_date_less_a_date_is_a_number_of_days() -> None:
    assert values("d - e") == [2, 2, 2]
    assert values("d - e > 1") == [True] * 3
