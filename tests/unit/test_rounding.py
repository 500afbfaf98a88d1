"""ROUND, BROUND and INITCAP, lists of one kind, and how calls are told."""

from __future__ import annotations

import decimal
from typing import Any

import polars as pl
import pytest

from anabranch import call, col, lit
from anabranch.errors import LanguageError
from anabranch.language.expression import to_polars, type_of
from anabranch.language.sql.dialect import Scope, parse
from anabranch.language.sql.expression import translate
from anabranch.language.sql.spelling import spelling_named
from anabranch.language.tree import Expression

D = decimal.Decimal
ROWS = pl.DataFrame(
    {
        "x": [2.5, -2.5, 1.005, 15.0, None],
        "n": [15, -15, 14, 2**62, None],
        "price": pl.Series(["2.55", "-2.45", "15.00", "99.99", None]).cast(pl.Decimal(4, 2)),
        "s": ["o'neil mac-donald x1y2", "ünï", "", "A  b", None],
        "xs": [[1, 2], [], [3], None, [None]],
        "tags": [["a"], [], ["b"], None, [None]],
    }
)


def read(text: str, dialect: str) -> Expression:
    scope = Scope(text, ROWS.schema, "query", spelling=spelling_named(dialect))
    expression = translate(parse(scope), scope)
    type_of(expression, ROWS.schema, "query")
    return expression


def values(text: str, dialect: str = "anabranch") -> list[Any]:
    expression = to_polars(read(text, dialect), ROWS.schema)
    return ROWS.select(expression.alias("value"))["value"].to_list()


@pytest.mark.parametrize(
    ("text", "dialect", "wanted"),
    [
        ("ROUND(2.5)", "anabranch", [D(3)]),
        ("ROUND(-2.5)", "duckdb", [D(-3)]),
        ("ROUND(1.005, 2)", "duckdb", [D("1.01")]),
        ("ROUND(1234.5, -2)", "anabranch", [D(1200)]),
        ("ROUND(x)", "anabranch", [2.0, -2.0, 1.0, 15.0, None]),
        ("ROUND(x)", "duckdb", [3.0, -3.0, 1.0, 15.0, None]),
        ("ROUND(x, 2)", "duckdb", [2.5, -2.5, 1.0, 15.0, None]),
        ("ROUND(x, -1)", "duckdb", [0.0, 0.0, 0.0, 20.0, None]),
        ("ROUND(x, 2)", "spark", [2.5, -2.5, 1.01, 15.0, None]),
        ("ROUND(x, 2)", "flink", [2.5, -2.5, 1.01, 15.0, None]),
        ("ROUND(x, -1)", "spark", [0.0, 0.0, 0.0, 20.0, None]),
        ("BROUND(x)", "spark", [2.0, -2.0, 1.0, 15.0, None]),
        ("BROUND(x, 2)", "spark", [2.5, -2.5, 1.0, 15.0, None]),
        ("BROUND(2.5)", "spark", [D(2)]),
        ("BROUND(n, -1)", "spark", [20, -20, 10, 4611686018427387900, None]),
        ("ROUND(n, -1)", "anabranch", [20, -20, 10, 4611686018427387900, None]),
        ("ROUND(n, 2)", "anabranch", [15, -15, 14, 2**62, None]),
        ("ROUND(price, 1)", "anabranch", [D("2.6"), D("-2.5"), D("15.0"), D("100.0"), None]),
        ("BROUND(price, 1)", "anabranch", [D("2.6"), D("-2.4"), D("15.0"), D("100.0"), None]),
        ("ROUND(price, -1)", "anabranch", [D(0), D(0), D(20), D(100), None]),
        ("ROUND(price, -9)", "anabranch", [D(0), D(0), D(0), D(0), None]),
        ("COALESCE(TRY_CAST(s AS DECIMAL(5, 2)), 1.5)", "anabranch", [D("1.50")] * 5),
        ("price < TRY_CAST('x' AS DECIMAL(5, 2))", "anabranch", [None] * 5),
        ("INITCAP(s)", "postgres", ["O'Neil Mac-Donald X1y2", "Ünï", "", "A  B", None]),
        ("INITCAP(s)", "spark", ["O'neil Mac-donald X1y2", "Ünï", "", "A  B", None]),
        ("list_contains(xs, 2)", "anabranch", [True, False, False, None, False]),
        ("list_contains(xs, 1.5)", "anabranch", [False, False, False, None, False]),
        ("list_contains([x, 2], 2)", "anabranch", [True] * 5),
    ],
)  # fmt: skip
def test_values(text: str, dialect: str, wanted: list[Any]) -> None:
    assert values(text, dialect) == wanted


def test_a_whole_number_that_leaves_64_bits_is_an_error() -> None:
    with pytest.raises(LanguageError, match="conversion from a number of 128 bits to int64"):
        values("ROUND(9223372036854775807, -1)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ROUND(x, n)", "argument 2 of ROUND is n; expected a constant: a number of digits"),
        ("ROUND(x, 99)", "argument 2 of ROUND is 99"),
        ("ROUND(s)", "'ROUND(s)' cannot be computed from s string"),
        ("INITCAP(n)", "'INITCAP(n, ' ')' cannot be computed from n int64: expected string, got int64"),
        ("list_contains(xs, 'a')", "elements of list(int64) and string in one list"),
        ("list_contains(tags, 1)", "elements of list(string) and int64 in one list"),
        ("[n, s]", "'[n, s]' has elements of int64 and string in one list"),
        ("list_concat(xs, tags)", "elements of list(int64) and list(string)"),
        ("COALESCE(xs, tags)", "lists of different kinds, list(int64) and list(string)"),
        ("xs = tags", "lists of different kinds"),
    ],
)  # fmt: skip
def test_refusals_speak_of_sql(text: str, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        read(text, "spark")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "dialect", "shown"),
    [
        ("ROUND(x, 2)", "anabranch", "ROUND(x, 2)"),
        ("ROUND(x, 2)", "duckdb", "ROUND(x, 2 AWAY FROM ZERO)"),
        ("ROUND(x, 2)", "spark", "ROUND(x, 2 AS WRITTEN)"),
        ("{'a': {'b': n}}.a.b", "anabranch", "{'a': {'b': n}}.a.b"),
        ("[n, 1][1]", "anabranch", "ELEMENT([n, 1], 1)"),
        ("strpos(s, 'a')", "anabranch", "STRPOS(s, 'a')"),
        ("DATE '2026-01-31'", "anabranch", "DATE '2026-01-31'"),
        ("TIMESTAMP '2026-01-31 01:00:00'", "anabranch", "TIMESTAMP '2026-01-31 01:00:00'"),
        ("INTERVAL '90 minutes'", "anabranch", "INTERVAL '1:30:00'"),
        ("INTERVAL '26 hours'", "anabranch", "INTERVAL '1 day 2:00:00'"),
        ("INTERVAL '2 days'", "anabranch", "INTERVAL '2 days'"),
        ("INTERVAL '-2 hours'", "anabranch", "INTERVAL '-7200000000 microseconds'"),
    ],
)  # fmt: skip
def test_expressions_are_told_as_sql(text: str, dialect: str, shown: str) -> None:
    assert str(read(text, dialect)) == shown


def test_no_function_that_nobody_can_call_is_suggested() -> None:
    with pytest.raises(LanguageError) as caught:
        call("round_awy", col("x"))
    assert "round_away" not in str(caught.value)
    assert str(lit(D("1.50"))) == "DECIMAL '1.50'"
