"""The oracle itself: against results worked out by hand, and against Polars for every expression."""

from __future__ import annotations

import datetime as dt
import sys
from typing import Any

import polars as pl
import pytest

from anabranch import (
    approx_quantile,
    avg,
    call,
    col,
    count,
    count_window,
    first,
    hop,
    last,
    lit,
    max_,
    session_window,
    sum_,
    tumble,
    when,
)
from anabranch.errors import PlanningError, SourceError
from anabranch.language.builder import Query
from anabranch.language.expression import FUNCTIONS, Call, Expression, columns_of, to_polars
from anabranch.language.node import Stream
from anabranch.language.order import Ordered
from anabranch.testing.aggregates import DOUBLED
from anabranch.testing.compare import assert_same_rows
from anabranch.testing.oracle import Oracle
from anabranch.testing.sources import EpochSource

SCHEMA = {"time": pl.Int64, "k": pl.String, "v": pl.Int64}
ROWS = Query(Stream("rows", pl.Schema(SCHEMA), Ordered("time", False)))
Rows = list[tuple[Any, ...]]


def frames(*epochs: Rows) -> list[pl.DataFrame]:
    return [pl.DataFrame(rows, schema=SCHEMA, orient="row") for rows in epochs]


def expected(query: Query, *epochs: Rows, lateness: int = 0, **options: Any) -> Rows:
    oracle = Oracle({"q": query}, {"rows": frames(*epochs)}, {"rows": lateness}, **options)
    return sorted(oracle.expected("q").rows(), key=repr)


def test_tumbling_windows_and_null_keys() -> None:
    query = ROWS.group_by((col("time") // 10).alias("tb"), "k").agg(count(), sum_("v"))
    rows: Rows = [
        (-1, "a", 1),
        (0, "a", 2),
        (9, "a", 3),
        (9, None, None),
        (10, "a", 4),
        (3, None, 5),
    ]
    assert expected(query, rows) == sorted(
        [(-1, "a", 1, 1), (0, "a", 2, 5), (0, None, 2, 5), (1, "a", 1, 4)], key=repr
    )


def test_hopping_windows() -> None:
    query = ROWS.group_by(hop(10, 4)).agg(sum_("v").alias("s"))
    assert expected(query, [(0, "a", 1), (5, "a", 2)]) == [
        (-4, 6, 3), (-8, 2, 1), (0, 10, 3), (4, 14, 2),
    ]  # fmt: skip


def test_sessions_end_at_a_gap_of_exactly_the_size() -> None:
    query = ROWS.group_by(session_window(5), "k").agg(count().alias("n"))
    rows: Rows = [(0, "a", 0), (4, "a", 0), (9, "a", 0), (9, "a", 0), (13, "a", 0), (2, "b", 0)]
    assert expected(query, rows) == [(0, 9, "a", 2), (2, 7, "b", 1), (9, 18, "a", 3)]


def test_count_windows_in_the_order_of_time_then_arrival() -> None:
    query = ROWS.group_by(count_window(3, 2), "k").agg(sum_("v").alias("s"), first("v").alias("f"))
    rows: Rows = [(2, "a", 4), (1, "a", 1), (1, "a", 2), (5, "a", 8), (3, "a", 16), (9, "a", 32)]
    # In order: 1, 2, 4, 16, 8, 32
    assert expected(query, rows) == [(1, 2, "a", 7, 1), (2, 5, "a", 28, 4)]


def test_histories() -> None:
    query = ROWS.history("k", rows=2).agg(sum_("v").alias("s"), last("v").alias("l"))
    rows: Rows = [(3, "a", 4), (1, "a", 1), (2, None, 2), (4, None, 8), (2, "a", 16)]
    wanted: Rows = [(1, "a", 1, 1, 1), (2, "a", 16, 17, 16), (3, "a", 4, 20, 4)]
    wanted += [(2, None, 2, 2, 2), (4, None, 8, 10, 8)]
    assert expected(query, rows) == sorted(wanted, key=repr)


def test_updates_of_each_epoch() -> None:
    query = ROWS.group_by("k").agg(sum_("v").alias("s"), emit="update")
    oracle = Oracle({"q": query}, {"rows": frames([(0, "a", 1), (1, "b", 2)], [], [(2, "a", 4)])})
    found = {epoch: sorted(rows.rows()) for epoch, rows in oracle.by_epoch("q").items()}
    assert found == {0: [("a", 1), ("b", 2)], 2: [("a", 5)]}


def test_the_epoch_in_which_a_window_closes() -> None:
    query = ROWS.group_by(tumble(10)).agg(count().alias("n"))
    oracle = Oracle(
        {"q": query}, {"rows": frames([(3, "a", 1)], [(12, "a", 1)], [(15, "a", 1)])}, {"rows": 5}
    )
    assert oracle.watermarks("q") == [-2, 7, 10, 1 << 62]
    found = {epoch: rows.rows() for epoch, rows in oracle.by_epoch("q").items()}
    assert found == {2: [(0, 10, 1)], 3: [(10, 20, 2)]}
    unfinished = Oracle({"q": query}, {"rows": frames([(3, "a", 1)])}, ended=False)
    assert unfinished.expected("q").height == 0


def test_branches_take_null_for_false() -> None:
    low, high, rest = ROWS.case(col("v") < 5, col("v") >= 5)
    rows: Rows = [(0, "a", 1), (1, "a", 9), (2, "a", None)]
    assert expected(low, rows) == [(0, "a", 1)]
    assert expected(high, rows) == [(1, "a", 9)]
    assert expected(rest, rows) == [(2, "a", None)]


def test_a_query_over_a_query() -> None:
    flows = ROWS.group_by((col("time") // 10).alias("tb"), "k").agg(count().alias("n"))
    heavy = flows.having(col("n") > 1).group_by("tb").agg(max_("n").alias("most"))
    rows: Rows = [
        (0, "a", 0),
        (1, "a", 0),
        (2, "b", 0),
        (11, "b", 0),
        (20, "c", 0),
        (21, "c", 0),
        (22, "c", 0),
    ]
    assert expected(heavy, rows) == [(0, 2), (2, 3)]


def test_late_rows_of_streams_that_share_a_watermark() -> None:
    other = Query(Stream("other", pl.Schema(SCHEMA), Ordered("time", False)))
    query = ROWS.union(other)
    inputs = {
        "rows": frames([(10, "r", 0)], [(30, "r", 0), (9, "r", 1)], [(12, "r", 2), (13, "r", 3)]),
        "other": frames([], [(20, "o", 0)], [(12, "o", 1)]),
    }
    oracle = Oracle({"q": query}, inputs, {"rows": 0, "other": 7})
    assert oracle.watermarks("q")[:3] == [None, 13, 13]
    assert oracle.late == {"other": 1, "rows": 3}
    alone = Oracle({"q": ROWS, "p": other}, inputs, {"rows": 0, "other": 7})
    assert alone.watermarks("q")[:3] == [10, 30, 30]
    assert alone.late == {"other": 1, "rows": 3}


def test_a_user_aggregate_needs_its_sql() -> None:
    query = ROWS.group_by(tumble(5)).agg(DOUBLED("v").alias("d"))
    with pytest.raises(PlanningError, match="needs the SQL of the user aggregate 'doubled'"):
        expected(query, [(0, "a", 1)])
    assert expected(query, [(0, "a", 3)], user={"doubled": "2 * sum({}) + 1"}) == [(0, 5, 7)]


def test_without_duckdb_there_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(PlanningError, match="The oracle needs DuckDB, which is not installed"):
        Oracle({"q": ROWS}, {"rows": frames([])})


# -- expressions ------------------------------------------------------------------------------------

VALUES = pl.DataFrame(
    {
        "i": [None, -7, -4, -1, 0, 1, 3, 8],
        "j": [2, 3, -3, 2, 5, -2, None, 4],
        "f": [None, -2.5, -0.5, 0.0, 0.5, 1.5, 2.5, 7.75],
        "t": [None, "", "a", "Abc", "it's", "b a", "aa", "xyz"],
        "b": [None, True, False, True, None, False, True, False],
        "d": [None, *(dt.date(2024, month, 28) for month in range(1, 8))],
        "s": [None, *(dt.datetime(2024, 5, 6, hour, 59) for hour in range(7))],
        "n": pl.Series([None, -128, 127, 1, 2, 3, 4, 5], dtype=pl.Int8),
        "p": [None, "10.0.0.1", "255.255.255.255", "1.2.3", "1.2.3.256", " a%b_c ", "x\ny", "01.2.3.4"],
        "a": [None, 0, 2**32 - 1, 2**32, -1, 167772161, 256, 3232235777],
        "z": [None, dt.datetime(1969, 12, 31, 23, 59, 59, 500000), dt.datetime(2024, 12, 31, 7, 8, 9, 1),
              *(dt.datetime(2023, month, 1, 12, 30, 15) for month in (1, 3, 4, 7, 10))],
        "g": [None, float("nan"), -1.5, 0.0, 2.25, 7.125, -0.375, 1e6],
    }
)  # fmt: skip
i, j, f, t, b, d, s, n, p, a, z, g = (col(name) for name in VALUES.columns)
ENTRIES = call(
    "list", call("struct", "key", "a", "value", i), call("struct", "key", "b", "value", j)
)
EXPRESSIONS: list[Expression] = [
    i + j, i - j, i * j, i / j, i // j, i % j, i // 3, i % 3, i // -3, i % -3, f // 2.0, f % 2.0, f / 4,
    i & j, i | j, i ^ j, b & (i > 0), b | (i > 0), b ^ (i > 0), ~b, ~i, -i, -f, i << 3, i >> 1, n + 1,
    i == j, i != j, i < j, i <= j, i > j, i >= j, t == "a", t < "b", f > 0, d >= dt.date(2024, 3, 1),
    s < dt.datetime(2024, 5, 6, 3), i.is_null(), t.is_not_null(), i.is_in([0, 8]), i.is_in([0, None]),
    t.is_in(["a", "it's"]), i.between(-4, 3), when((i > 0, t), (b, "yes"), otherwise="no"),
    when((i > 0, 1)), call("coalesce", i, j, 0), call("abs", i), call("abs", f), call("round", f),
    call("floor", f), call("ceil", f), call("sqrt", call("abs", f)), call("upper", t), call("lower", t),
    call("length", t), call("substring", t, 2, 2), call("starts_with", t, "a"), call("contains", t, "b"),
    call("concat", t, "-", t), call("year", d), call("month", d), call("day", d), call("hour", s),
    call("minute", s), i.cast("float64"), f.cast("int64"), i.cast("string"), d.cast("string"),
    i.cast("boolean"), b.cast("int32"), d.cast("timestamp"),
    lit("1").cast("int64") + i, lit(2.5) + i, lit(None).is_null(),
    call("is_distinct", i, j), call("is_distinct", g, f), call("is_distinct", t, None),
    call("like", p, "%a\\%%"), call("like", p, "%.%.%"), call("like", p, "x_y"), call("like", p, "%"),
    call("like", p, ""), call("like", p, " a%b_c "), call("like", p, "[a-z]*"), call("like", p, "1.2.3"),
    call("greatest", i, j, 1), call("least", i, j), call("greatest", f, g), call("least", f, g, 0.5),
    call("greatest", t, p), call("sign", i), call("sign", g), call("sign", f), call("exp", f),
    call("ln", g), call("log10", call("abs", i)), call("power", f, 2), call("power", i, j),
    call("round", g, 1), call("round", g, 2), call("round", i, 2), call("substring", t, 2),
    call("round_away", g), call("round_away", f, 1), call("round_digits", g, 1),
    call("bround", f),
    call("substring", t, i, 2), call("substring", t, i),
    call("right", t, 2), call("right", t, 0), call("left", t, 2), call("trim", p), call("ltrim", p),
    call("rtrim", p), call("trim", p, " a1"), call("ltrim", p, "12."), call("rtrim", p, ""),
    call("replace", p, ".", "$1"), call("replace", p, "%", ""), call("split_part", p, ".", 1),
    call("split_part", p, ".", 4), call("split_part", p, ".", 9), call("ends_with", t, "c"),
    call("second", z), call("dow", z), call("dow", d), call("doy", z), call("week", z), call("quarter", d),
    call("epoch", z), call("epoch", d), call("ip_number", p), call("ip_text", a),
    call("ip_prefix", a, 24), call("ip_prefix", a, 0), call("ip_prefix", a, 32), call("nullif", i, j),
    call("ifnull", i, j), call("mod", i, 3), call("if", b, i, j), call("date_part", "hour", z),
    z + dt.timedelta(hours=1),
    *(call("date_trunc", unit, z) for unit in
      ("second", "minute", "hour", "day", "week", "month", "quarter", "year")),
    call("time_bucket", dt.timedelta(minutes=7), z),
    call("time_bucket", dt.timedelta(days=1), z, dt.timedelta(hours=5)),
    call("at_zone", call("to_zone", z, "UTC"), "Europe/Berlin"), call("to_zone", z, "Asia/Tokyo"),
    call("local_trunc", "1d", call("to_zone", z, "UTC"), "America/New_York"),
    call("strftime", z, "%Y-%m-%d %H:%M:%S.%6f %j %a %B %-d %I %p"),
    call("strptime", call("strftime", z, "%d.%m.%Y %H:%M"), "%d.%m.%Y %H:%M"),
    call("try_strptime", p, "%Y-%m-%d"), call("strpdate", call("strftime", z, "%Y/%m/%d"), "%Y/%m/%d"),
    call("epoch_us", z), call("epoch_ms", s), call("from_epoch", i), call("from_epoch", f),
    call("from_epoch_ms", a), call("from_epoch_us", i),
    call("make_date", 2020 + j * 0, 2, 28), call("last_day", z), call("add_months", z, i),
    call("add_days", d, i),
    call("millisecond", z), call("microsecond", z), call("isodow", z), call("isoyear", z),
    call("monthname", z),
    call("dayname", z), call("regexp_matches", t, "^[ab]"), call("regexp_full_match", t, "a+"),
    call("regexp_replace", t, "a", "<\\0>"), call("regexp_replace", p, "([0-9])\\.", "\\1$", "g"),
    call("regexp_replace", t, "A", "x", "gi"), call("regexp_extract", p, "([0-9]+)\\.([0-9]+)", 2),
    call("regexp_extract", t, "b"), call("regexp_extract_all", p, "[0-9]+"), call("regexp_count", p, "[0-9]"),
    call("position_of", t, "b"), call("position_of", t, t), call("lpad", t, 3, "xy"), call("rpad", t, 2),
    call("rpad", t, 5, "-"), call("reverse", t), call("repeat", t, i), call("translate", t, "ab", "x"),
    call("concat_ws", "-", t, p, "z"), call("octet_length", t), call("hex", t), call("base64", t),
    call("unbase64", call("base64", t)), call("unhex", call("hex", t)), call("split", p, "."),
    call("json_text", "{\"a\": {\"b c\": [1, 2.5, \"x\"], \"n\": null}}", "$['a']['b c'][1]"),
    call("trunc", f), call("cbrt", f), call("sin", f), call("cos", f),
    call("tan", f), call("asin", f / 10), call("acos", f / 10), call("atan", f), call("atan2", f, i),
    call("degrees", f), call("radians", f), call("isnan", g), call("isfinite", g), call("bit_count", a),
    call("struct", "x", i, "y", t), call("field", call("struct", "x", i, "y", t), "y"),
    call("list", i, j), call("element", call("list", i, j), 2), call("element", call("list", i, j), j),
    call("list_length", call("split", p, ".")), call("list_contains", call("list", i, j), 3),
    call("list_join", call("split", p, "."), "|"), call("list_sort", call("split", p, ".")),
    call("sort_array", call("split", p, ".")),
    call("list_distinct", call("split", p, "1")), call("list_sum", call("list", i, j)),
    call("list_min", call("list", i, j)), call("list_max", call("list", i, j)),
    call("list_max", call("list", f, g)), call("list_min", call("list", f, g)),
    call("list_reverse", call("list", i, j)), call("list_concat", call("list", i), call("list", j)),
    call("list_slice", call("split", p, "."), 2, 3), call("map_extract_value", ENTRIES, "b"),
    call("map_keys", ENTRIES), call("map_values", ENTRIES),
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_expressions_give_what_polars_gives(expression: Expression) -> None:
    schema = pl.Schema({"time": pl.Int64(), **VALUES.schema})
    rows = (
        VALUES.with_row_index("time")
        .with_columns(pl.col("time").cast(pl.Int64))
        .select(schema.names())
    )
    values = Query(Stream("values", schema, Ordered("time", False)))
    query = values.select("time", expression.alias("value"))
    wanted = rows.with_columns(to_polars(expression, rows.schema).alias("value")).select(
        "time", "value"
    )
    assert_same_rows(Oracle({"q": query}, {"values": [rows]}).expected("q"), wanted)


def test_every_function_is_among_them() -> None:
    def functions(expression: Expression) -> set[str]:
        if not isinstance(expression, Call):
            return set()
        return {expression.function}.union(*(functions(part) for part in expression.arguments))

    # DuckDB has no function that makes first letters large
    capitals = {"initcap", "initcap_words"}
    assert set().union(*map(functions, EXPRESSIONS)) >= set(FUNCTIONS) - capitals
    assert {name for e in EXPRESSIONS for name in columns_of(e)} == set(VALUES.columns)


# -- comparing --------------------------------------------------------------------------------------


def test_same_rows_in_any_order_with_null_nan_and_small_errors() -> None:
    nan = float("nan")
    left = pl.DataFrame({"k": ["a", None, "a"], "x": [0.1 + 0.2, nan, None]})
    right = pl.DataFrame({"k": ["a", "a", None], "x": [None, 0.3, nan]})
    assert_same_rows(left, right)
    assert_same_rows(pl.DataFrame({"x": [0.0]}), pl.DataFrame({"x": [-0.0]}))


@pytest.mark.parametrize(
    ("got", "wanted", "message"),
    [
        ({"k": [1, 1]}, {"k": [1]}, r"got 2 rows, expected 1.\nUnexpected \(1\):\n  k=1"),
        ({"k": [1]}, {"k": [1, 2]}, r"got 1 rows, expected 2.\nMissing \(1\):\n  k=2"),
        ({"k": [1], "x": [1.0]}, {"k": [1], "x": [1.1]}, r"differs in x: got 1.0, expected 1.1"),
        ({"k": [1], "x": [None]}, {"k": [1], "x": [0.0]}, r"differs in x: got None, expected 0.0"),
        ({"x": [float("nan")]}, {"x": [0.0]}, r"differs in x: got nan, expected 0.0"),
        ({"x": [1]}, {"x": [1.0]}, r"the columns differ"),
        ({"x": [1]}, {"y": [1]}, r"the columns differ"),
    ],
)  # fmt: skip
def test_a_difference_is_told(got: Any, wanted: Any, message: str) -> None:
    kinds = {"x": pl.Float64} if got.get("x") == [None] else None
    with pytest.raises(AssertionError, match=message):
        assert_same_rows(pl.DataFrame(got, schema_overrides=kinds), pl.DataFrame(wanted))


def test_quantiles_are_compared_by_rank() -> None:
    query = ROWS.group_by(tumble(1000)).agg(
        approx_quantile("v", 0.5).alias("mid"), avg("v").alias("mean")
    )
    oracle = Oracle({"q": query}, {"rows": frames([(n, "a", n) for n in range(100)])})
    fitting = {"window_start": [0], "window_end": [1000], "mid": [50.0], "mean": [49.5]}
    oracle.check("q", pl.DataFrame(fitting))
    for wrong in (60.0, 50.5, None):
        with pytest.raises(AssertionError, match="differs in mid"):
            oracle.check(
                "q", pl.DataFrame({**fitting, "mid": pl.Series([wrong], dtype=pl.Float64)})
            )


# -- the source -------------------------------------------------------------------------------------


def test_frames_of_an_epoch_source_must_be_alike() -> None:
    with pytest.raises(SourceError, match="at least one frame"):
        EpochSource([])
    with pytest.raises(SourceError, match="Frame 1 of an EpochSource has the columns"):
        EpochSource([pl.DataFrame({"time": [1]}), pl.DataFrame({"time": ["1"]})])


def test_moments_on_both_sides_of_1970() -> None:
    """DuckDB's own difference of times with a zone is a millisecond off there."""
    kind = pl.Datetime("us", "UTC")
    stream = Stream("rows", pl.Schema({"time": kind, "k": kind}), Ordered("time", True))
    query = Query(stream).where(col("time") - col("k") <= lit(dt.timedelta(microseconds=17)))
    moments = {"time": [14, 15], "k": [-3, -3]}
    frame = pl.DataFrame(moments).cast(kind)
    found = Oracle({"near": query}, {"rows": [frame]}).expected("near")
    assert found["time"].dt.epoch("us").to_list() == [14]


def test_quantiles_beside_nothing() -> None:
    """An outer join fills them with NULL, a semi-join has only those of the left."""
    middle = ROWS.group_by((col("time") // 5).alias("tb"), "k").agg(
        approx_quantile("v", 0.5).alias("mid")
    )
    frames = {"rows": [pl.DataFrame({"time": [1, 7], "k": ["a", "b"], "v": [3, 4]}, SCHEMA)]}
    for kind, rows in (("full", 4), ("semi", 0), ("anti", 2)):
        pairs = middle.join(middle, on=["k", ("tb", col("tb") + 1)], how=kind)
        oracle = Oracle({"pairs": pairs}, frames)
        assert oracle.expected("pairs").height == rows
        assert set(oracle.quantiles("pairs")) == {n for n in pairs.node.schema if "mid" in n}


def test_a_row_that_is_only_close_does_not_take_the_partner_of_another() -> None:
    """Values of a billion differ by less than the tolerance and are still told apart."""
    values = [1767225601.0, 1767225602.0, 1767225603.0]
    assert_same_rows(
        pl.DataFrame({"x": [values[1], values[0], values[2]]}), pl.DataFrame({"x": values[::-1]})
    )
