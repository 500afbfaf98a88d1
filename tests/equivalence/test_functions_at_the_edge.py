"""Functions of lists, JSON and numbers at their edges: NULL elements, ends before starts, signs."""

from __future__ import annotations

import decimal

import duckdb
import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import LanguageError
from anabranch.testing.compare import assert_same_rows
from anabranch.testing.sources import EpochSource

ROWS = pl.DataFrame(
    {
        "time": range(8),
        "k": [1, -1, 2, 0, -7, None, 3, 25],
        "f": [0.5, -0.25, 2.0, -5.5, 0.0, None, float("nan"), 7.25],
        "d": [*map(decimal.Decimal, ("1.25", "-7.5", "0.05", "-0.05", "3", "-3", "9.99")), None],
        "xs": [[1, 2, 3], [None, 3, None, -1], [], None, [5], [None], [2, 1], [4, None]],
        "s": ["é", "a", "", None, "€uro", "ab", "😀", "x"],
        "j": [
            '{"c.d": 1}', '{"c": {"d": "é"}, "e": [1, 2]}', "[]", None,
            '{"e": []}', '{"a/b": 5}', "{}", "[1]",
        ],
    },
    schema_overrides={"d": pl.Decimal(8, 2)},
)  # fmt: skip
ENDS = (-9, -2, -1, 0, 1, 2)
SLICES = [f"xs[{first}:{last}]" for first in ENDS for last in ENDS]
LISTS = [
    "list_slice(xs, k, k + 1)", "list_slice(xs, 1, NULL)", "list_slice(xs, k, -1)", "list_sort(xs)",
    "array_sort(xs)", "list_concat(xs, xs)", "list_concat(xs, [k])", "list_reverse(xs)", "list_sum(xs)",
]  # fmt: skip
TEXTS = [
    "strlen(s)", "length(s)", "j ->> 'c.d'", "j ->> '$.c.d'", "json_extract_string(j, '/c/d')",
    "json_extract_string(j, '/e/1')", "json_extract_string(j, '/a~1b')",
]  # fmt: skip
REMAINDERS = [
    f"{one.format(left, right)}"
    for one in ("{} % {}", "MOD({}, {})")
    for left in ("k", "d", "f")
    for right in (
        "3",
        "-3",
        "CAST(2.5 AS DECIMAL(4, 1))",
        "-d" if left != "f" else "CAST(-2 AS DOUBLE)",
    )
]


def test_functions_give_what_duckdb_gives_at_the_edge() -> None:
    expressions = [*SLICES, *LISTS, *TEXTS, *REMAINDERS]
    columns = ", ".join(f"{one} AS c{n}" for n, one in enumerate(expressions))
    session = Session.in_process(sites=1)
    session.stream("a", EpochSource([ROWS]), ordered="time")
    session.query("q", f"SELECT time, {columns} FROM a", dialect="duckdb")
    run = session.start(sinks={"q": "memory"}, at_end="close")
    run.await_termination()
    connection = duckdb.connect()
    connection.register("a", ROWS.to_arrow())
    for number, one in enumerate(expressions):
        found = connection.sql(f"SELECT time, {one} AS value FROM a").to_arrow_table()
        got = run.results("q").select("time", value=f"c{number}")
        expected = pl.from_arrow(found)
        assert isinstance(expected, pl.DataFrame)
        expected = expected.with_columns(pl.col("value").cast(got.schema["value"]))
        assert_same_rows(got, expected, where=one)


def test_remainders_are_never_below_zero_in_our_own_sql() -> None:
    session = Session.in_process(sites=1)
    session.stream("a", EpochSource([ROWS]), ordered="time")
    session.query(
        "q", "SELECT k % 3 AS a, MOD(k, 3) AS b, f % 2 AS c FROM a WHERE k = -7 OR k = -1"
    )
    run = session.start(sinks={"q": "memory"}, at_end="close")
    run.await_termination()
    assert sorted(run.results("q").rows()) == [(2, 2, 0.0), (2, 2, 1.75)]


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("len([])", "without elements has no type"),
        ("json_extract_string(j, '$.e[*]')", "means several values"),
        ("json_extract_string(j, '$..d')", "means several values"),
        ("json_extract_string(j, '$.e[0:1]')", "means several values"),
    ],
)
def test_what_has_no_one_value_is_refused(written: str, reason: str) -> None:
    session = Session.in_process(sites=1)
    session.stream("a", EpochSource([ROWS]), ordered="time")
    with pytest.raises(LanguageError, match=reason):
        session.query("q", f"SELECT {written} AS x FROM a")
