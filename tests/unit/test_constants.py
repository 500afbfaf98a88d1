"""Constants wherever an expression may stand: each is as long as the rows, whatever the plan."""

from __future__ import annotations

import duckdb
import polars as pl
import pytest

from anabranch import Session, col, lit, when
from anabranch.errors import LanguageError
from anabranch.testing.sources import EpochSource

A = pl.DataFrame({"t": [1, 2, 3, 4, 5], "k": [1, None, 3, 10, 3], "v": [1, 2, 3, 4, 5]})
B = pl.DataFrame({"t": [1, 2, 3, 4], "k": [1, 2, 3, 11], "w": [10, 20, 30, 40]})
STRATEGIES = ("subquery", "query", "operator")


def rows(sql: str, strategy: str = "subquery") -> list[tuple[object, ...]]:
    session = Session.in_process(2, {"fsync": False, "strategy": strategy})
    session.stream("a", EpochSource([A[:2], A[2:]]), ordered="t")
    session.stream("b", EpochSource([B[:1], B[1:]]), ordered="t")
    session.query("q", sql)
    run = session.start(sinks={"q": "memory"}, at_end="close")
    assert run.await_termination(60)
    return sorted(run.results("q").rows(), key=repr)


def duck(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.register("a", A.to_arrow())
        connection.register("b", B.to_arrow())
        return sorted(connection.execute(sql).fetchall(), key=repr)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS c FROM a", "SELECT 1 + 1 AS c, 'x' AS d FROM a WHERE v > 1", "SELECT NULL AS c FROM a",
        "SELECT v FROM a WHERE NULL", "SELECT v FROM a WHERE TRUE", "SELECT v FROM a WHERE 1 = 2",
        "SELECT v FROM a WHERE 10 <> COALESCE(3, k)", "SELECT v, COALESCE(3, k) + v AS c FROM a",
        "SELECT v FROM a WHERE v > 1 AND NULL", "SELECT v FROM a WHERE v > 1 OR 10 = COALESCE(3, k)",
        "SELECT COALESCE(NULL, 7, v) AS c FROM a", "SELECT CASE WHEN NULL THEN v ELSE 2 END AS c FROM a",
        "SELECT CASE WHEN TRUE THEN 1 ELSE v END AS c FROM a", "SELECT 3 IN (1, 2) AS c FROM a",
        "SELECT t // 10 AS tb, COUNT(1) AS n, SUM(2) AS s, COUNT(NULL) AS z FROM a GROUP BY t // 10",
        "SELECT t // 10 AS tb, 1 AS x, COUNT(*) AS n FROM a GROUP BY ALL",
        "SELECT t // 10 AS tb, COUNT(*) FILTER (WHERE NULL) AS n FROM a GROUP BY t // 10 HAVING TRUE",
        "SELECT t // 10 AS tb, COUNT(*) FILTER (WHERE TRUE) AS n FROM a GROUP BY t // 10 HAVING NULL",
        "SELECT 5 AS c FROM (SELECT 1 AS d FROM a)", "SELECT -NULL AS c, UPPER(NULL) AS d FROM a",
        "SELECT v, 0.1 >= CASE WHEN v > 100 THEN v ELSE 3 END AS c FROM a",
        "SELECT v FROM a WHERE 1 < CASE WHEN v < 100 THEN 3 ELSE v END AND v > 1",
        "SELECT v FROM a WHERE 2 = GREATEST(CASE WHEN v > 9 THEN v END, 2)",
        "SELECT v FROM a WHERE NULL LIKE 'a%' OR ABS(NULL) > 1 OR v = 2",
    ],
)  # fmt: skip
def test_constants_are_as_long_as_the_rows(sql: str, strategy: str) -> None:
    assert rows(sql, strategy) == duck(sql)


@pytest.mark.parametrize("join", ["INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"])
@pytest.mark.parametrize(
    "constant",
    ["1 = 1", "TRUE", "FALSE", "NULL", "1 = 2", "10 <> COALESCE(3, a.v)", "1 = 1 AND a.v > 2"],
)
def test_constants_in_the_condition_of_a_join(join: str, constant: str) -> None:
    columns = "a.v" if join in ("SEMI", "ANTI") else "a.v, b.w"
    on = f"a.k = b.k AND b.t BETWEEN a.t - 2 AND a.t + 2 AND {constant}"
    sql = f"SELECT {columns} FROM a {join} JOIN b ON {on}"
    assert rows(sql) == duck(sql)


@pytest.mark.parametrize("constant", ["1 = 1", "NULL", "FALSE", "1 = 1 AND b.w > a.v"])
def test_constants_in_a_join_without_an_equality(constant: str) -> None:
    sql = f"SELECT a.v, b.w FROM a JOIN b ON b.t BETWEEN a.t - 1 AND a.t + 1 AND {constant}"
    assert rows(sql) == duck(sql)


def test_constants_of_python_are_numbers_texts_times_or_none() -> None:
    session = Session.in_process(1)
    a = session.stream("a", EpochSource([A]), ordered="t")
    a.select(when((lit(True), 1), otherwise=col("v")).alias("c"))
    with pytest.raises(LanguageError, match=r"got \[1\]"):
        a.select(lit([1]).alias("c"))  # type: ignore[arg-type]


@pytest.mark.parametrize("number", ["20e", "1.5e", "9223372036854775808e"])
def test_numbers_that_end_in_the_midst_of_an_exponent_are_refused(number: str) -> None:
    with pytest.raises(LanguageError, match=f"'{number}' is no number"):
        rows(f"SELECT t, v + {number} AS x FROM a")


def test_what_is_made_of_constants_alone_is_as_wide_as_it_is_said_to_be() -> None:
    """A CASE of two floats beside a float of 32 bits: Polars would narrow it, and parts would not fit."""
    rows = pl.DataFrame({"t": [1, 2], "y": [0.5, 1.5]}, schema_overrides={"y": pl.Float32})
    session = Session.in_process(1)
    session.stream("a", EpochSource([rows]), ordered="t")
    session.query(
        "q",
        "SELECT t, CAST(1.5e0 * y AS DOUBLE) AS c FROM a UNION ALL SELECT t, CAST(CASE t WHEN 1 THEN y "
        "WHEN 2 THEN CASE WHEN y > 1 THEN 3.25e0 ELSE -4.5e0 END ELSE y END AS DOUBLE) AS c FROM a",
    )
    run = session.start(sinks={"q": "memory"}, at_end="close")
    assert run.await_termination(60)
    assert sorted(run.results("q").rows()) == [(1, 0.5), (1, 0.75), (2, 2.25), (2, 3.25)]
