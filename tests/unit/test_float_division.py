"""Division and powers of floats: the same to the last bit by a constant, by a column, and in every cut."""

from __future__ import annotations

import math

import duckdb
import polars as pl
import pytest

from anabranch import Session
from anabranch.language.lowering import lower
from anabranch.language.sql.expression import read_expression
from anabranch.testing.sources import EpochSource

NUMBERS = [
    49.0,
    98.0,
    3.0,
    0.7,
    -49.0,
    1e300,
    5e-324,
    0.0,
    None,
    float("inf"),
    *(n / 7 for n in range(1, 90)),
]
ROWS = pl.DataFrame(
    {
        "time": range(len(NUMBERS)),
        "x": NUMBERS,
        "k": range(-40, len(NUMBERS) - 40),
        "ts": pl.datetime_range(
            pl.datetime(2024, 1, 1), pl.datetime(2024, 1, 2), interval="14m33s123456us", eager=True
        ).head(len(NUMBERS)),
    },
    schema_overrides={"x": pl.Float64},
)  # fmt: skip
BY_CONSTANT = [
    *(f"{value} {sign} {by}" for value in "xk" for sign in "/%" for by in ("49.0", "10.0", "0.1")),
    "x // 49.0", "x // 0.1", "k / 10.0 + 1", "1.0 / k", "power(x, 3)", "power(x, 0.5)", "power(k, 3)",
    "power(2, k)", "epoch(ts)", "x / 3 / 7.0",
]  # fmt: skip


def computed(text: str, rows: pl.DataFrame) -> list[float | None]:
    expression = lower(read_expression(text, rows.schema), rows.schema).expr
    return rows.select(value=expression)["value"].to_list()


@pytest.mark.parametrize("text", [*BY_CONSTANT, "power(x, k)", "x / k", "x // k", "x % k"])
def test_a_row_alone_gives_what_it_gives_among_others(text: str) -> None:
    alone = [computed(text, ROWS[n : n + 1])[0] for n in range(len(ROWS))]
    assert repr(alone) == repr(computed(text, ROWS))
    assert computed(text, ROWS[:0]) == []


@pytest.mark.parametrize("by", ["49.0", "10.0", "0.1", "3.0"])
@pytest.mark.parametrize("text", ["x / {}", "x // {}", "x % {}", "k / {}", "power(x, {})"])
def test_a_constant_divides_as_a_column_does(text: str, by: str) -> None:
    beside = ROWS.with_columns(pl.Series("by", [float(by)] * len(ROWS)))
    assert repr(computed(text.format(by), beside)) == repr(computed(text.format("by"), beside))


def test_remainders_are_exact() -> None:
    frame = pl.DataFrame(
        {"x": [1.0, 1e300, -1.5, None, 2.5], "by": [0.05, 7.0, 0.3, 1.0, float("inf")]}
    )
    assert computed("x % by", frame) == [
        0.04999999999999995, 1.0, math.fmod(-1.5, 0.3) + 0.3, None, 2.5,
    ]  # fmt: skip
    assert computed("x % 7.0", frame)[1] == 1.0
    assert computed("1 % 0.1 + x * 0", frame)[0] == 0.0


def test_quotients_are_those_of_duckdb() -> None:
    session = Session.in_process(sites=1)
    session.stream("a", EpochSource([ROWS.select("time", "x", "k", "ts")]), ordered="time")
    columns = ["x / 49.0", "x / 3.0", "k / 10.0", "power(x, 3)", "epoch(ts)", "x % 49.0"]
    listed = ", ".join(f"{one} AS c{number}" for number, one in enumerate(columns))
    session.query("q", f"SELECT time, {listed} FROM a WHERE x > 0 AND x < 1e9", dialect="duckdb")
    run = session.start(sinks={"q": "memory"}, at_end="close")
    run.await_termination()
    got = pl.DataFrame(run.results("q")).sort("time")
    rows = ROWS
    assert rows is not None
    doubles = (
        listed.replace("49.0", "49::DOUBLE")
        .replace("10.0", "10::DOUBLE")
        .replace("3.0", "3::DOUBLE")
    )
    want = duckdb.sql(
        f"SELECT time, {doubles} FROM ROWS WHERE x > 0 AND x < 1e9 ORDER BY time"
    ).pl()
    for name in want.columns:
        assert got[name].to_list() == want[name].to_list(), name
