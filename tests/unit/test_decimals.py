"""DECIMAL as DuckDB has it: the types of results, all digits, and an error where digits run out."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pytest

from anabranch import Session, col
from anabranch.errors import AnabranchError, LanguageError, RunError, SourceError
from anabranch.language.expression import to_polars, type_of
from anabranch.language.sql.expression import read_expression
from anabranch.spec.sql_file import read_sql
from anabranch.testing.sources import EpochSource

SCHEMA = pl.Schema(
    {
        "price": pl.Decimal(10, 2), "rate": pl.Decimal(8, 3), "wide": pl.Decimal(38, 4),
        "whole": pl.Decimal(18, 0), "i": pl.Int64(), "small": pl.Int16(), "f": pl.Float64(),
        "n": pl.String(),
    }
)  # fmt: skip
ROWS = pl.DataFrame(
    {
        "price": ["12.34", "-0.05", "0.15", "99999999.99", None, "0.00", "-7.50"],
        "rate": ["5.678", "0.001", "-0.005", "99999.999", "1.000", None, "2.500"],
        "wide": ["0.0001", "-12.3456", "1e20", "7", "0", None, "-0.5"],
        "whole": ["3", "-4", "7", "10", None, "0", "999999999"],
        "i": [7, -3, 1, 2**62, None, 0, -1],
        "small": [1, -1, 300, 0, 5, None, 2],
        "f": [1.5, -2.5, 0.125, 3.0, None, 0.0, 1e9],
        "n": ["1.235", "-1.235", " 7 ", "x", None, "", "1e2"],
    }
).cast(SCHEMA)


def ours(text: str) -> tuple[str, list[object]]:
    expression = read_expression(text, SCHEMA)
    values = ROWS.with_columns(value=to_polars(expression, SCHEMA))["value"]
    assert values.dtype == type_of(expression, SCHEMA, text), "the type is known before it runs"
    shown = str(values.dtype)
    shown = {"String": "VARCHAR", "Boolean": "BOOLEAN", "Float64": "DOUBLE"}.get(shown, shown)
    if isinstance(values.dtype, pl.Decimal):
        shown = f"DECIMAL({values.dtype.precision},{values.dtype.scale})"
    return shown, values.to_list()


def theirs(text: str) -> tuple[str, list[object]]:
    with duckdb.connect() as connection:
        connection.register("arrow", ROWS.to_arrow())
        connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
        found = connection.execute(f"SELECT {text}, typeof({text}) FROM t").fetchall()
    return found[0][1], [value for value, _ in found]


@pytest.mark.parametrize(
    "text",
    [
        "price * rate", "rate * rate", "price * i", "price * 16", "0.10 * price", "wide * 2",
        "price + rate", "price - whole", "price + i", "price + 1", "small + price", "price - 0.005",
        "price * (1 - 0.1)", "-price", "abs(price)", "round(price, 1)", "round(rate)", "round(price, 5)",
        "floor(price)", "ceil(rate)", "CAST(price AS decimal(12, 1))", "CAST(price AS decimal(38, 10))",
        "CAST(f AS decimal(18, 1))", "CAST(i AS decimal(30, 2))", "CAST(2.675 AS decimal(5, 2))",
        "TRY_CAST(n AS decimal(5, 2))", "TRY_CAST(price AS decimal(4, 2))", "TRY_CAST(n AS numeric)",
        "coalesce(price, i)", "coalesce(price, 0.5)", "greatest(price, rate)", "least(price, 0, rate)",
        "CASE WHEN price > 0 THEN price ELSE rate END", "CASE WHEN i > 0 THEN whole ELSE 0.25 END",
        "trunc(price)", "trunc(-price)", "trunc(wide)", "{'a': wide, 'b': i}.a", "[price, rate][2]",
        "[price, 1][2]", "[whole, i][2]", "list_concat([price], [rate, 2])[2]", "concat_ws('/', price, wide)",
        "list_contains([price, rate], rate)", "list_contains([wide], wide)", "list_contains([price], 0.15)",
        "list_contains([f], price)", "concat_ws('/', TIMESTAMP '2026-01-01 00:00:00', price)",
        "list_contains([i], whole)", "[price, f][1]",
    ],
)  # fmt: skip
def test_results_have_the_types_and_digits_of_duckdb(text: str) -> None:
    assert ours(text) == theirs(text)


@pytest.mark.parametrize(
    "text",
    [
        "price > 0.1", "price = 12.340", "price <> i", "rate < whole", "price >= rate", "wide = 0.0001",
        "price IN (0.15, 12.34, 7)", "price IN (0.151, NULL)", "i IN (1, 2.5)", "i IN (7.0, 2)",
        "f IN (1.5, 3)", "price IS DISTINCT FROM rate", "price BETWEEN -1 AND 0.15", "price IS NULL",
        "CAST(whole AS bigint)", "CAST(rate AS integer)", "CAST(price AS varchar)", "CAST(price AS boolean)",
        "sign(whole)",
    ],
)  # fmt: skip
def test_comparisons_and_casts_are_those_of_duckdb(text: str) -> None:
    assert ours(text)[1] == theirs(text)[1]


@pytest.mark.parametrize(
    "text", ["price / 16", "price / rate", "i / price", "sqrt(whole * whole)", "price * f"]
)
def test_quotients_and_functions_of_floats_are_floats(text: str) -> None:
    kind, values = ours(text)
    assert kind == "DOUBLE"
    for mine, other in zip(values, theirs(text)[1], strict=True):
        if mine is None or mine != mine or abs(mine) == float("inf"):  # type: ignore[arg-type]
            continue  # a division by zero
        assert mine == pytest.approx(other)


def test_whole_quotients_and_remainders_round_down_as_those_of_integers() -> None:
    values = ROWS.select(
        q=to_polars(col("price") // col("rate"), SCHEMA),
        r=to_polars(col("price") % col("rate"), SCHEMA),
    ).rows()
    assert values[1] == (Decimal("-50"), Decimal("0.000"))
    assert values[2] == (Decimal("-30"), Decimal("0.000"))
    assert values[6] == (Decimal("-3"), Decimal("0.000"))
    zero = read_expression("price // (whole * 0)", SCHEMA)
    assert ROWS.select(v=to_polars(zero, SCHEMA))["v"].null_count() == ROWS.height


@pytest.mark.parametrize(
    "text", ["price * price * price * price", "wide * wide * 1000000000000", "CAST(price AS decimal(4, 2))",
             "CAST(n AS decimal(5, 2))"],
)  # fmt: skip
def test_what_needs_more_digits_is_an_error(text: str) -> None:
    expression = read_expression(text, SCHEMA)
    with pytest.raises(pl.exceptions.PolarsError):
        ROWS.select(to_polars(expression, SCHEMA))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("coalesce(CAST(wide AS decimal(38, 0)), price)", "no decimal holds the values of"),
        (
            "CAST(wide AS decimal(38, 30)) * CAST(rate AS decimal(38, 30))",
            "60 digits after the point",
        ),
        ("CAST(i AS decimal(39, 2))", "A decimal has 1 to 38 digits"),
        ("price IN (1, 'a')", "IN compares decimal"),
        ("i IN (1, 'a')", "IN compares int64 with (1, 'a')"),
        ("n IN (1, 2.5)", "IN compares string with (1, 2.5)"),
    ],
)
def test_what_no_decimal_can_be_is_refused(text: str, reason: str) -> None:
    with pytest.raises(LanguageError) as caught:
        type_of(read_expression(text, SCHEMA), SCHEMA, text)
    assert reason in str(caught.value)


def results(sql: str, *frames: pl.DataFrame) -> pl.DataFrame:
    session = Session.in_process(2, {"fsync": False})
    session.stream("t", EpochSource(list(frames)), ordered="time")
    session.query("q", sql)
    run = session.start(sinks={"q": "memory"}, at_end="close")
    assert run.await_termination(60)
    return run.results("q")


def amounts(values: list[str], kind: pl.Decimal) -> pl.DataFrame:
    decimals = pl.Series([Decimal(value) for value in values], dtype=kind)
    return pl.DataFrame({"time": range(len(values)), "v": decimals})


SUMS = "SELECT tb, SUM(v) AS s, AVG(v) AS m, MIN(v) AS low, MAX(v) AS high FROM t GROUP BY time/100 AS tb"


def test_sums_are_exact_in_38_digits() -> None:
    rows = amounts(["0.10", "0.20", "-0.05", "99999999.99"], pl.Decimal(10, 2))
    found = results(SUMS, rows[:2], rows[2:])
    assert found.schema["s"] == pl.Decimal(38, 2)
    assert found["s"].to_list() == [Decimal("100000000.24")]
    assert found["high"].to_list() == [Decimal("99999999.99")]
    assert found["m"].to_list() == [pytest.approx(25000000.06)]


def test_a_sum_that_comes_back_within_38_digits_is_right() -> None:
    nines, most = "9" * 38, pl.Decimal(38, 0)
    found = results(SUMS, amounts([nines, f"-{nines}", nines, f"-{nines}", "5"], most))
    assert found["s"].to_list() == [Decimal(5)]


def test_sums_of_different_values_are_exact_in_38_digits() -> None:
    different = "SELECT SUM(DISTINCT v) AS s FROM t GROUP BY time/100"
    rows = amounts(["0.10", "0.20", "0.10", "12345678901234567.89"], pl.Decimal(20, 2))
    found = results(different, rows[:2], rows[2:])
    assert found.schema["s"] == pl.Decimal(38, 2)
    assert found["s"].to_list() == [Decimal("12345678901234568.19")]
    with pytest.raises(RunError, match="leaves the 38 digits"):
        results(different, amounts(["9" * 38, "1"], pl.Decimal(38, 0)))


@pytest.mark.parametrize("cut", [1, 2])
def test_a_sum_beyond_38_digits_ends_the_run(cut: int) -> None:
    rows = amounts(["9" * 38, "1"], pl.Decimal(38, 0))
    with pytest.raises(RunError, match=r"SUM\(v\) leaves the 38 digits"):
        results(SUMS, rows[:cut], rows[cut:])


def test_a_product_that_does_not_fit_ends_the_run_with_its_query() -> None:
    with pytest.raises(RunError, match=r"has more digits than DECIMAL\(18, 4\)"):
        results("SELECT v * v AS p FROM t", amounts(["99999999.99"], pl.Decimal(18, 2)))


def test_a_cast_that_fails_points_to_try_cast() -> None:
    rows = pl.DataFrame({"time": [1, 2, 3], "s": ["1", "17", "x"]})
    with pytest.raises(RunError, match=r"TRY_CAST\(x AS type\)"):
        results("SELECT s FROM t WHERE s LIKE '1%' AND CAST(s AS BIGINT) > 1", rows)
    found = results("SELECT s FROM t WHERE TRY_CAST(s AS BIGINT) > 1", rows)
    assert found["s"].to_list() == ["17"]


@pytest.mark.parametrize("cut", [1, 3])
def test_rows_and_lists_keep_all_digits_of_a_group(cut: int) -> None:
    most = "9" * 37
    frame = amounts([f"{most}.1", f"{most}.3", f"{most}.2"], pl.Decimal(38, 1))
    sql = (
        "SELECT tb, max_by(v, v) AS top, array_agg(v ORDER BY v) AS every FROM t "
        "GROUP BY time/9 AS tb"
    )
    frames = [frame[first : first + cut] for first in range(0, 3, cut)]
    (found,) = results(sql, *frames).rows(named=True)
    assert found["top"] == Decimal(f"{most}.3")
    assert found["every"] == [Decimal(f"{most}.{digit}") for digit in "123"]


def test_decimals_can_be_keys_and_be_joined_at_other_scales() -> None:
    session = Session.in_process(2, {"fsync": False})
    left = amounts(["1.50", "2.25"], pl.Decimal(10, 2))
    right = amounts(["1.5000", "2.2500"], pl.Decimal(20, 4)).rename({"v": "w"})
    session.stream("l", EpochSource([left]), ordered="time")
    session.stream("r", EpochSource([right]), ordered="time")
    on = "l.v = r.w AND r.time BETWEEN l.time - 9 AND l.time + 9"
    session.query("q", f"SELECT l.v, r.w FROM l JOIN r ON {on}")
    session.query("g", "SELECT tb, v, COUNT(*) AS n FROM l GROUP BY time/10 AS tb, v")
    run = session.start(sinks={"q": "memory", "g": "memory"}, at_end="close")
    assert run.await_termination(60)
    assert run.results("q").height == 2
    assert sorted(run.results("g")["v"].to_list()) == [Decimal("1.50"), Decimal("2.25")]


def test_files_are_read_with_the_decimals_of_their_schema(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("time,v\n1,0.1\n2,12.34\n")
    session = Session.in_process(2, {"fsync": False})
    schema = {"time": "int64", "v": "decimal(10, 2)"}
    rows = session.stream("t", path=tmp_path / "in", format="csv", schema=schema, ordered="time")
    session.query("q", rows.select("v", (col("v") * Decimal("1.5")).alias("more")))
    run = session.start(sinks={"q": "memory"}, at_end="close")
    assert run.await_termination(60)
    found = run.results("q").sort("v")
    assert dict(found.schema) == {"v": pl.Decimal(10, 2), "more": pl.Decimal(12, 3)}
    assert found["more"].to_list() == [Decimal("0.150"), Decimal("18.510")]
    with pytest.raises(SourceError, match="A decimal has 1 to 38 digits"):
        session.stream("u", path=tmp_path / "in", schema={"time": "decimal(40)"}, ordered="time")


def test_create_stream_has_decimals(tmp_path: Path) -> None:
    path = tmp_path / "x.sql"
    text = "CREATE STREAM t (time BIGINT, v DECIMAL(10, 2), w NUMERIC) ORDERED BY time WITH (path = 'x');"
    text += " CREATE QUERY q AS SELECT v FROM t;"
    path.write_text(text)
    kinds = {"time": "bigint", "v": "decimal(10, 2)", "w": "decimal"}
    assert read_sql(path).streams["t"]["schema"] == kinds
    path.write_text(text.replace("10, 2", "50, 2"))
    with pytest.raises(AnabranchError, match="A decimal has 1 to 38"):
        read_sql(path)
