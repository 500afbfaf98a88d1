"""Whole numbers of all 64 bits: shifts, comparisons with constants that have a point, the least of them."""

from __future__ import annotations

import duckdb
import polars as pl
import pytest

from anabranch import Session, col
from anabranch.errors import LanguageError, RunError
from anabranch.language.expression import to_polars, type_of
from anabranch.language.sql.expression import read_expression
from anabranch.operators.block import true_pairs
from anabranch.sinks.driver import MemorySink
from anabranch.testing.sources import EpochSource

LEAST, MOST = -(2**63), 2**63 - 1
ROWS = pl.DataFrame(
    {
        "v": [LEAST, LEAST + 1, -(2**62), -5, -1, 0, 1, 5, 2**53, 2**53 + 1, 2**62 - 1, 2**62, MOST, None],
        "n": [0, 1, 2, 31, 61, 62, 63, 64, 65, 200, -1, None, 63, 3],
        "u": [0, 1, 2**63, 2**64 - 1, 5, 6, 2**63, 2**64 - 1, 9, 10, 11, 12, None, 14],
    },
    schema={"v": pl.Int64, "n": pl.Int64, "u": pl.UInt64},
)  # fmt: skip


def values(text: str) -> list[object]:
    expression = read_expression(text, ROWS.schema)
    kind = type_of(expression, ROWS.schema, text)
    found = ROWS.with_columns(value=to_polars(expression, ROWS.schema))["value"]
    assert found.dtype == kind
    return found.to_list()


def duck(text: str) -> list[object]:
    with duckdb.connect() as connection:
        connection.register("arrow", ROWS.to_arrow())
        connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
        return [value for (value,) in connection.execute(f"SELECT {text} FROM t").fetchall()]


@pytest.mark.parametrize(
    "text",
    [
        *(f"v >> {bits}" for bits in (0, 1, 31, 62, 63, 64, 100)), "v >> n", "u >> 1", "u >> 63", "u >> 64",
        "v = -9223372036854775808", "v > -9223372036854775808",
        "-9223372036854775808",
    ],
)  # fmt: skip
def test_shifts_and_the_least_number_are_those_of_duckdb(text: str) -> None:
    assert values(text) == duck(text)


@pytest.mark.parametrize("sign", ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"])
@pytest.mark.parametrize(
    "bound",
    [
        "4611686018427387903.5", "4611686018427387904.0", "9007199254740992.5", "9007199254740993.0", "2.5",
        "-0.5", "-5.0", "9223372036854775807.5", "-9223372036854775808.5", "99999999999999999999.5",
        "-99999999999999999999.5",
    ],
)  # fmt: skip
def test_a_constant_with_a_point_is_compared_exactly(sign: str, bound: str) -> None:
    assert values(f"v {sign} {bound}") == duck(f"v {sign} {bound}")
    assert values(f"{bound} {sign} v") == duck(f"{bound} {sign} v")
    assert values(f"u {sign} {bound}") == duck(f"u {sign} {bound}")


def test_pairs_of_rows_are_not_compared_with_a_point_as_floats() -> None:
    """Arrays cannot tell it, so the pairs are brought together and compared exactly."""
    columns = {name: ROWS[name].fill_null(0).to_numpy() for name in ("v", "n")}
    condition = read_expression("v - n > 9007199254740992.5", ROWS.schema)
    assert true_pairs(condition, columns) is None
    prices = {"x": ROWS["v"].fill_null(0).cast(pl.Float64).to_numpy()}
    assert true_pairs(read_expression("x > 0.5", {"x": pl.Float64()}), prices) is not None


def test_shifts_of_constants_are_those_of_64_bits() -> None:
    assert values("-5 >> 63")[0] == -1
    assert values("5 >> 63")[0] == 0
    assert values("-5 >> 64")[0] == 0


def test_shifts_to_the_left_wrap_around_and_end_with_the_bits() -> None:
    assert values("v << 1")[3:8] == [-10, -2, 0, 2, 10]
    assert values("v << 63")[3:8] == [LEAST, LEAST, 0, LEAST, LEAST]
    assert values("5 << n")[:3] == [5, 10, 20]
    assert values("5 << n")[7:12] == [None] * 5
    for bits in ("64", "-1"):
        with pytest.raises(LanguageError, match=f"shifts by {bits} bits; expected 0 to 63"):
            type_of(read_expression(f"v << {bits}", ROWS.schema), ROWS.schema, "q")


def test_division_rounds_down_at_both_ends() -> None:
    whole = [value for value in ROWS["v"].to_list() if value is not None]
    for size in (1, 10, 60, 2**62):
        assert values(f"v // {size}")[:-1] == [value // size for value in whole]
        assert values(f"v % {size}")[:-1] == [value % size for value in whole]


def test_what_does_not_fit_64_bits_is_refused() -> None:
    for text in ("9223372036854775808", "-9223372036854775809"):
        with pytest.raises(LanguageError, match="does not fit 64 bits"):
            read_expression(text, ROWS.schema)
    with pytest.raises(LanguageError, match="does not fit 64 bits"):
        type_of(col("v") > 2**70, ROWS.schema, "q")


def result(aggregate: str) -> list[tuple[object, ...]]:
    session, sink = Session.in_process(sites=2), MemorySink()
    rows = pl.DataFrame(
        {"time": [1, 2, 3], "k": [1, 1, 2], "u": [2**64 - 1, 2**63, 5]},
        schema={"time": pl.Int64, "k": pl.Int64, "u": pl.UInt64},
    )
    session.stream("s", EpochSource([rows.head(1), rows.tail(2)]), ordered="time")
    session.query("q", f"SELECT k, {aggregate} AS a FROM s GROUP BY k, TUMBLE(time, 10)")
    session.start(sinks={"q": sink}, at_end="close").await_termination()
    return sorted(sink.rows().rows())


def test_the_mean_of_unsigned_integers_of_all_64_bits_is_right() -> None:
    assert result("AVG(u)") == [(1, float((2**64 - 1 + 2**63) / 2)), (2, 5.0)]


def test_a_sum_of_unsigned_integers_beyond_64_bits_says_what_to_write() -> None:
    with pytest.raises(RunError, match=r"SUM\(u\) leaves the range of 64-bit integers"):
        result("SUM(u)")


def distinct_sum(kind: pl.DataType, *values: int, over: bool = False) -> list[object]:
    session, sink = Session.in_process(sites=2), MemorySink()
    rows = pl.DataFrame({"time": range(len(values)), "v": pl.Series(values, dtype=kind)})
    session.stream("s", EpochSource([rows[:1], rows[1:]]), ordered="time")
    grouped = "SELECT SUM(DISTINCT v) AS a FROM s GROUP BY time/100"
    among = "SELECT time, SUM(DISTINCT v) OVER (PARTITION BY time/100) AS a FROM s"
    session.query("q", among if over else grouped)
    session.start(sinks={"q": sink}, at_end="close").await_termination()
    return sink.rows()["a"].to_list()


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pl.Int64(), (MOST, 1, MOST)),
        (pl.Int64(), (LEAST, -1, LEAST)),
        (pl.UInt64(), (2**63 - 1, 5)),
        (pl.UInt64(), (2**63, 5)),
    ],
)
def test_a_sum_of_different_integers_beyond_64_bits_is_an_error(
    kind: pl.DataType, values: tuple[int, ...], over: bool
) -> None:
    with pytest.raises(RunError, match=r"leaves the range of 64-bit integers"):
        distinct_sum(kind, *values, over=over)


def test_a_sum_of_different_integers_has_64_bits_whatever_they_have() -> None:
    assert distinct_sum(pl.Int32(), 2**31 - 1, 2**31 - 2, 2**31 - 1) == [2**32 - 3]
    assert distinct_sum(pl.UInt32(), 2**32 - 1, 2**32 - 2) == [2**33 - 3]
    assert distinct_sum(pl.UInt64(), 2**62, 2**62 - 1, 2**62) == [2**63 - 1]
    assert distinct_sum(pl.Int64(), MOST, LEAST, MOST, 5) == [4]
    assert distinct_sum(pl.Int64(), MOST, 1, -1, over=True) == [MOST] * 3


@pytest.mark.parametrize("kind", [pl.Int8(), pl.Int32(), pl.UInt8(), pl.UInt32()])
def test_a_sum_of_a_list_has_64_bits_whatever_its_elements_have(kind: pl.DataType) -> None:
    most = int(pl.select(kind.max()).item())
    rows = pl.DataFrame({"xs": [[most, most, None]]}, schema={"xs": pl.List(kind)})
    expression = read_expression("list_sum(xs)", rows.schema)
    assert type_of(expression, rows.schema, "q") == pl.Int64()
    assert rows.select(to_polars(expression, rows.schema)).item() == 2 * most
