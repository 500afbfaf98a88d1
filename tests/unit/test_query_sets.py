"""Queries beside each other: what is written alike is shared, what only looks alike is not."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from anabranch import Query, Session, col, count, first, lit, session_window, sum_, tumble
from anabranch.errors import LanguageError
from anabranch.language.expression import Expression
from anabranch.language.node import Stream
from anabranch.language.order import Ordered
from helpers import Stage, oracle, plain, sample

ROWS = [sample(number) for number in range(3)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    for number in range(3):
        stage.write(number)
    return stage


def results(session: Session, *queries: str) -> list[pl.DataFrame]:
    run = session.start(sinks=dict.fromkeys(queries, "memory"), at_end="close")
    assert run.await_termination(60)
    return [run.results(query) for query in queries]


def test_windows_that_differ_in_the_name_of_their_number(stage: Stage) -> None:
    session, rows = stage.stream()
    for name, window in (
        ("a", (col("time") // 10).alias("tb")),
        ("b", (col("time") // 10).alias("minute")),
        ("c", tumble(10)),
        ("d", (col("time") // 10).alias("tb")),
    ):
        session.query(name, rows.group_by(window, "k").agg(count().alias("n")))
    assert list(session.plan().subqueries) == ["a@1", "b@1", "c@1"]
    a, b, c, d = results(session, "a", "b", "c", "d")
    wanted = oracle("SELECT time // 10, k, COUNT(*) FROM rows GROUP BY ALL", rows=pl.concat(ROWS))
    assert plain(a) == plain(b) == plain(d) == wanted
    assert (a.columns, b.columns) == (["tb", "k", "n"], ["minute", "k", "n"])
    assert plain(c.drop("window_end").with_columns(pl.col("window_start") // 10)) == wanted


def test_constants_of_different_types(stage: Stage) -> None:
    session, rows = stage.stream()
    for name, value in (("a", 1.5), ("b", Decimal("1.5"))):
        scaled = rows.group_by(tumble(10)).agg(sum_(col("v") * lit(value)).alias("s"))
        session.query(name, scaled)
    kinds = [frame.schema["s"] for frame in results(session, "a", "b")]
    assert kinds[0] == pl.Float64
    assert isinstance(kinds[1], pl.Decimal)


def test_a_key_called_due_in_a_session_window(stage: Stage) -> None:
    session, rows = stage.stream()
    named = rows.select("time", col("k").alias("DUE"))
    session.query("s", named.group_by(session_window(3), "DUE").agg(count().alias("n")))
    (found,) = results(session, "s")
    assert found["n"].sum() == sum(frame.height for frame in ROWS)


def test_first_without_an_order_is_refused(stage: Stage) -> None:
    _, rows = stage.stream()
    with pytest.raises(LanguageError, match=r"nothing is first or last\. Keep it in the select"):
        rows.select("k", "v").group_by("k").agg(first("v").alias("f"), emit="update")


@pytest.mark.parametrize(
    "predicate", [col("ts") > 5, lit(5) == col("ts"), (col("v") > 1) & (col("ts") < 2.5)]
)
def test_times_and_numbers_are_not_compared(predicate: Expression) -> None:
    node = Stream("s", pl.Schema({"ts": pl.Datetime("us"), "v": pl.Int64}), Ordered("ts", True))
    with pytest.raises(LanguageError, match=r"compares .*Compare with a time"):
        Query(node).where(predicate)
    Query(node).where(col("ts") > dt.datetime(2026, 1, 31))


def test_a_wrong_name_in_a_window(stage: Stage) -> None:
    _, rows = stage.stream()
    with pytest.raises(LanguageError, match=r"column 'tiem' is not found\. Did you mean 'time'"):
        rows.group_by((col("tiem") // 60).alias("tb")).agg(count())
