"""Texts become the same trees as the builder's, compute what SQL says, and are refused with a place."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import polars as pl
import pytest

from anabranch.errors import LanguageError
from anabranch.language.aggregate import AggregateCall, NamedAggregate
from anabranch.language.expression import FUNCTIONS, Literal, Named, to_polars, type_of
from anabranch.language.order import Ordered, tumble_size
from anabranch.language.shorthand import SHORTHANDS
from anabranch.language.sql.aggregate import read_aggregate
from anabranch.language.sql.expression import read_expression, read_named
from anabranch.language.sql.function import NAMED_FUNCTIONS
from anabranch.language.sql.rewrites import REWRITES
from anabranch.operators.stateless import compute

ROWS = pl.DataFrame(
    {
        "time": [0, 59, 60, -1, 3600, None],
        "flags": pl.Series([0, 1, 41, 16, 255, None], dtype=pl.Int16),
        "len": [40, 1500, None, 7, -7, 3],
        "price": [0.5, 2.0, None, -3.25, 1e9, 0.0],
        "name": ["ada", "Bob", None, "", "it's", "x%y"],
        "open": [True, False, None, True, False, None],
        "moment": [dt.datetime(2026, 1, 31, 23, 59), None, *[dt.datetime(2020, 2, 29, 1, 2)] * 4],
    }
)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("time/60", "time // 60"),
        ("time // 60", "time // 60"),
        ("price/60", "price / 60"),
        ("time/60.0", "time / 60.0"),
        ("(time + len)/2", "(time + len) // 2"),
        ("flags & 0xFFF0", "flags & 65520"),
        ("1_000_000", "1000000"),
        ("- 5", "-5"),
        ("-time", "-time"),
        ("NOT open AND len > 0", "NOT (open) & (len > 0)"),
        ("time BETWEEN 1 AND 2", "(time >= 1) & (time <= 2)"),
        ("len IN (1, -2, NULL)", "len IN (1, -2, NULL)"),
        ("name NOT IN ('a')", "NOT (name IN ('a'))"),
        ("len IS NULL", "len IS NULL"),
        ("len IS NOT NULL", "len IS NOT NULL"),
        ("CASE WHEN len > 9 THEN 'big' END", "CASE WHEN len > 9 THEN 'big' ELSE NULL END"),
        ("case flags when 2 then 1 else 0 end", "CASE WHEN flags = 2 THEN 1 ELSE 0 END"),
        ("CAST(len AS double)", "CAST(len AS float64)"),
        ("len::bigint", "CAST(len AS int64)"),
        ("cast(len as uint8)", "CAST(len AS uint8)"),
        ("name || '!'", "CONCAT(name, '!')"),
        ("len != 3", "len <> 3"),
        ("len == 3", "len = 3"),
        ('"len" + 1', "len + 1"),
        ("Upper(name)", "UPPER(name)"),
        ("flags & (1 | 8)", "flags & (1 | 8)"),
        ("flags & 1 & 8", "(flags & 1) & 8"),
        ("ip_prefix(time, 24)", "time & 4294967040"),
        ("ip_prefix(name, 8)", "IP_NUMBER(name) & 4278190080"),
        ("ip_prefix('10.1.2.3', 8)", "167838211 & 4278190080"),
        ("ip_number('10.0.0.1')", "167772161"),
        ("ip_text(time)", "IP_TEXT(time)"),
        ("name LIKE 'a%'", "name LIKE 'a%'"),
        ("open IS TRUE", "COALESCE(open, FALSE)"),
        ("left(name, 3)", "SUBSTRING(name, 1, 3)"),
        ("len IS DISTINCT FROM 3", "len IS DISTINCT FROM 3"),
        ("INTERVAL '2' HOUR", "INTERVAL '2:00:00'"),
    ],
)
def test_tree(text: str, tree: str) -> None:
    assert str(read_expression(text, ROWS.schema)) == tree


@pytest.mark.parametrize(
    "text",
    [
        "time + 1", "time - len", "time * 2", "abs(len) % 7 + 1", "price / 2", "abs(len) // 60",
        "flags & 12", "flags | 3", "xor(flags, 5)|flags ^ 5", "flags << 2", "flags >> 1", "-len",
        "len = 7", "len <> 7", "len < 7", "len <= 7", "len > 7", "len >= 7",
        "open AND len > 0", "open OR len > 0", "NOT open", "open AND NULL", "open OR NULL",
        "len IN (7, 3)", "len IN (7, NULL)", "len NOT IN (7, 3)", "len NOT IN (7, NULL)",
        "len BETWEEN 3 AND 40", "len NOT BETWEEN 3 AND 40", "len IS NULL", "len IS NOT NULL",
        "CASE WHEN len > 39 THEN 'big' WHEN len > 5 THEN 'small' END",
        "CASE flags WHEN 41 THEN 1 WHEN 0 THEN 2 ELSE 3 END",
        "CAST(len AS double)", "CAST(flags AS bigint) + 100000", "name || '-' || name",
        "coalesce(len, time, 5)", "abs(len)", "floor(price)", "ceil(price)", "sqrt(abs(price))",
        "upper(name)", "lower(name)", "length(name)", "substring(name, 2, 1)",
        "starts_with(name, 'a')", "contains(name, '%')", "concat(name, '-')",
        "year(moment)", "month(moment)", "day(moment)", "hour(moment)", "minute(moment)",
        "moment >= TIMESTAMP '2026-01-31 00:00:00'", "CAST(moment AS date) = DATE '2020-02-29'",
        "name = 'it''s'", "0x29 = flags|41 = flags",
        "name LIKE '%b'", "name NOT LIKE '_d%'", "name ILIKE 'B%'", "name NOT ILIKE '%O%'",
        "open IS TRUE", "open IS NOT TRUE", "open IS FALSE", "open IS NOT FALSE",
        "len IS DISTINCT FROM 7", "len IS NOT DISTINCT FROM time", "nullif(len, 7)", "ifnull(len, -1)",
        "if(open, len, time)", "mod(abs(len), 3)", "greatest(len, time)", "least(len, time, 5)",
        "sign(price)", "ln(price * price + 1)", "log10(abs(price) + 1)",
        "exp(price / 1e9)",
        "power(price, 2)", "pow(flags, 2)", "ceiling(price)", "left(name, 2)", "right(name, 2)",
        "substr(name, 2)", "substring(name, 0, 2)", "substring(name, -2, 1)",
        "SUBSTRING(name FROM 2 FOR 1)", "trim(name, 'a')", "TRIM(BOTH 'a' FROM name)",
        "TRIM(LEADING 'a' FROM name)", "ltrim(name)", "rtrim(name, 'b')", "replace(name, '%', 'per')",
        "split_part(name, '%', 2)", "ends_with(name, 'y')", "char_length(name)", "EXTRACT(hour FROM moment)",
        "EXTRACT(DOW FROM moment)", "date_part('minute', moment)", "date_part('epoch', moment)",
        "date_trunc('hour', moment)", "date_trunc('MONTH', CAST(moment AS date))", "second(moment)",
        "quarter(moment)", "week(moment)", "dayofyear(moment)", "dayofweek(moment)", "epoch(moment)",
        "moment + INTERVAL '90 minutes'", "moment - INTERVAL 1 DAY", "moment NOT BETWEEN "
        "TIMESTAMP '2020-01-01 00:00:00' AND TIMESTAMP '2021-01-01 00:00:00'",
    ],
)  # fmt: skip
def test_same_as_duckdb(text: str) -> None:
    """One text for both, or `duckdb's|ours` where the dialects differ."""
    theirs, _, ours = text.partition("|") if text[0] in "x0" else (text, "", text)
    theirs, ours = (ours, theirs) if text[0] == "0" else (theirs, ours)
    mine = ROWS.select(value=to_polars(read_expression(ours, ROWS.schema), ROWS.schema))[
        "value"
    ].to_list()
    rows = ROWS.to_arrow()  # noqa: F841 - DuckDB reads it by its name
    oracle = [row[0] for row in duckdb.sql(f"SELECT {theirs} FROM rows").fetchall()]
    if text.startswith("concat"):  # DuckDB's function skips NULL, its operator does not
        oracle = [value if name is not None else None for value, name in zip(oracle, ROWS["name"],
                                                                             strict=True)]  # fmt: skip
    exact = not any(isinstance(value, float) for value in oracle)
    assert mine == (oracle if exact else [v if v is None else pytest.approx(v) for v in oracle])


def test_integer_division_is_floor_division_below_zero() -> None:
    minutes = ROWS.select(to_polars(read_expression("time/60", ROWS.schema), ROWS.schema))[
        "time"
    ].to_list()
    assert minutes == [0, 0, 1, -1, 60, None]


def test_division_by_a_constant_is_recognised_as_a_window() -> None:
    for text in ("time/60", "time // 60", "time / 0x3C"):
        assert tumble_size(read_expression(text, ROWS.schema), Ordered("time", False)) == 60


def test_names() -> None:
    assert read_named("time/60 AS tb", ROWS.schema).name == "tb"
    assert read_named('len as "a b"', ROWS.schema).name == "a b"
    assert read_named("len AS\n  bytes", ROWS.schema).name == "bytes"
    assert read_named("len", ROWS.schema).name == "len"
    assert read_named("len + 1", ROWS.schema).name == "len + 1"


def test_prefixes_of_addresses_are_integers_of_64_bits() -> None:
    for kind in (pl.UInt32(), pl.UInt64(), pl.Int64()):
        schema = {"ip": kind}
        prefix = read_expression("ip_prefix(ip, 24)", schema)
        frame = pl.DataFrame({"ip": [0x0A000001, 0xFFFFFFFF]}, schema=schema).select(
            v=to_polars(prefix, schema)
        )
        assert frame.schema["v"] == pl.Int64
        assert frame["v"].to_list() == [0x0A000000, 0xFFFFFF00]


@pytest.mark.parametrize(
    "kind",
    ["bigint", "smallint", "integer", "double", "boolean", "date", "timestamp", "decimal(6, 2)"],
)
def test_try_cast_of_texts_gives_what_duckdb_gives(kind: str) -> None:
    texts = [
        "1", " 7 ", "-3.5", "2.5", "+4", "1e2", "300", "70000", "", "x", "1x", "true", "F", "No", "nan", None,
        "2020-02-29", "2021-02-29", "2020-01-02 03:04:05", "2020-01-02T03:04:05.678", "2020-01-02 03:04",
        "99999999999999999999", "0.005", "-0.005",
    ]  # fmt: skip
    rows = pl.DataFrame({"s": texts})
    expression = read_expression(f"TRY_CAST(s AS {kind})", rows.schema)
    mine = rows.select(v=to_polars(expression, rows.schema))["v"].to_list()
    with duckdb.connect() as connection:
        connection.register("t", rows.to_arrow())
        found = connection.execute(f"SELECT TRY_CAST(s AS {kind}) FROM t").fetchall()
    assert [repr(value) for value in mine] == [repr(value) for (value,) in found]


def test_dates_become_constants() -> None:
    for text, value in (
        ("DATE '2026-01-31'", dt.date(2026, 1, 31)),
        ("TIMESTAMP '2026-01-31 10:00:00'", dt.datetime(2026, 1, 31, 10)),
    ):
        found = read_expression(text, ROWS.schema)
        assert isinstance(found, Literal)
        assert found.value == value


def test_every_named_function_can_be_called() -> None:
    samples = {"name": "name", "number": "price", "time": "moment"}
    times = (
        "year",
        "quarter",
        "month",
        "week",
        "day",
        "dow",
        "doy",
        "hour",
        "minute",
        "second",
        "epoch",
    )
    numbers = (
        "abs",
        "sign",
        "round",
        "floor",
        "ceil",
        "sqrt",
        "exp",
        "ln",
        "log10",
        "power",
        "mod",
    )
    arguments: dict[str, str] = dict.fromkeys(times, "time") | dict.fromkeys(numbers, "number")
    extra = {"substring": ", 1, 2", "starts_with": ", 'a'", "ends_with": ", 'a'", "contains": ", 'a'",
             "right": ", 2", "left": ", 2", "replace": ", 'a', 'b'", "split_part": ", 'a', 1",
             "power": ", 2", "mod": ", 2", "nullif": ", 'a'", "ifnull": ", 'a'",
             "ip_prefix": ", 24"}  # fmt: skip
    whole = {
        "date_trunc": "'day', moment",
        "date_part": "'day', moment",
        "if": "open, 1, 2",
        "ip_text": "len",
        "time_bucket": "'1 hour', moment", "date_bin": "'1 hour', moment",
        "datetrunc": "'day', moment", "log": "10, price",
        "strftime": "moment, '%Y'", "date_format": "moment, 'yyyy'", "to_char": "moment, 'YYYY'",
        "strptime": "name, '%Y'", "try_strptime": "name, '%Y'", "from_epoch": "len", "from_epoch_ms": "len",
        "make_date": "len, 1, 2", "date_diff": "'day', moment, moment", "datediff": "moment, moment",
        "date_add": "CAST(moment AS DATE), 1", "date_sub": "CAST(moment AS DATE), 1",
        "add_months": "moment, 1", "to_timestamp": "len",
        "from_unixtime": "len", "unix_timestamp": "moment", "to_unix_timestamp": "moment",
        "split": "name, 'a'", "string_split": "name, 'a'", "string_to_array": "name, 'a'",
        "str_split": "name, 'a'", "repeat": "name, 2", "lpad": "name, 2", "rpad": "name, 2",
        "translate": "name, 'a', 'b'", "concat_ws": "',', name, name", "atan2": "price, price",
        "regexp_replace": "name, 'a', 'b'", "strpos": "name, 'a'", "instr": "name, 'a'",
        "locate": "'a', name", "charindex": "'a', name", "position": "'a', name", "nvl2": "name, 1, 2",
        "split_index": "name, 'a', 0", "struct": "len AS x", "list": "len, 1", "bit_count": "len",
        "json_extract_string": "name, '$.a'", "get_json_object": "name, '$.a'", "json_value": "name, '$.a'",
        "json_extract_path_text": "name, 'a'", "json_extract_scalar": "name, '$.a'",
    }  # fmt: skip
    times = ("last_day", "epoch_us", "epoch_ms", "millisecond", "microsecond", "isodow", "isoyear",
             "monthname", "dayname", "dayofweek", "weekday", "date", "to_date")  # fmt: skip
    whole |= dict.fromkeys(times, "moment")
    floats = ("trunc", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "degrees", "radians", "isnan",
              "isfinite", "log2", "square")  # fmt: skip
    whole |= dict.fromkeys(floats, "price")
    patterns = (
        "regexp_matches",
        "regexp_full_match",
        "regexp_extract",
        "regexp_extract_all",
        "regexp_count",
    )
    whole |= dict.fromkeys(patterns, "name, 'a'")
    lists = [name for name in NAMED_FUNCTIONS if name.startswith("list_")]
    whole |= dict.fromkeys(lists, "[len, 1]")
    whole |= {"list_join": "split(name, 'a'), ','", "list_contains": "[len], 1", "list_concat": "[len], [1]",
              "list_slice": "[len], 1, 2", "element": "[len], 1", "map": "['a'], [len]",
              "map_extract_value": "map('a', len), 'a'", "map_keys": "map('a', len)",
              "map_values": "map('a', len)"}  # fmt: skip
    for name in NAMED_FUNCTIONS:
        column = samples[arguments.get(name, "name")]
        inner = whole.get(name, column + extra.get(name, ""))
        if name != "log":  # its base depends on the dialect
            read_expression(f"{name}({inner})", ROWS.schema)
    assert set(NAMED_FUNCTIONS) <= {*FUNCTIONS, *SHORTHANDS, *REWRITES}


@pytest.mark.parametrize(
    ("text", "name", "call"),
    [
        ("count(*) AS cnt", "cnt", "COUNT(*)"),
        ("COUNT(len) AS n", "n", "COUNT(len)"),
        ("count(DISTINCT name) AS names", "names", "COUNT_DISTINCT(name)"),
        ("sum(len * 8) AS bits", "bits", "SUM(len * 8)"),
        ("min(len) AS least", "least", "MIN(len)"),
        ("bit_or(flags) AS flags", "flags", "BIT_OR(flags)"),
        ("first(name) AS a", "a", "FIRST(name)"),
        ("last(name) AS a", "a", "LAST(name)"),
        ("approx_distinct(name) AS a", "a", "APPROX_DISTINCT(name, 1024)"),
        ("approx_distinct(name, 64) AS a", "a", "APPROX_DISTINCT(name, 64)"),
        ("approx_quantile(len, 0.5) AS a", "a", "APPROX_QUANTILE(len, 0.5)"),
        ("OR_AGGR(flags) AS a", "a", "BIT_OR(flags)"),
        ("and_aggr(flags) AS a", "a", "BIT_AND(flags)"),
        ("Xor_Aggr(flags) AS a", "a", "BIT_XOR(flags)"),
        ("approx_count_distinct(name) AS a", "a", "APPROX_DISTINCT(name, 1024)"),
        (
            "count(*) FILTER (WHERE len > 9) AS a",
            "a",
            "COUNT(CASE WHEN len > 9 THEN 1 ELSE NULL END)",
        ),
        ("sum(len) FILTER (WHERE open) AS a", "a", "SUM(CASE WHEN open THEN len ELSE NULL END)"),
    ],
)
def test_aggregate(text: str, name: str, call: str) -> None:
    found = read_aggregate(text, ROWS.schema)
    assert isinstance(found, NamedAggregate)
    assert (found.name, str(found.call)) == (name, call)


def test_aggregate_without_a_name() -> None:
    assert isinstance(read_aggregate("sum(len)", ROWS.schema), AggregateCall)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lenn > 0", "at character 1: column 'lenn' is not found. Did you mean 'len'?"),
        ("time + lenn", "at character 8: column 'lenn'"),
        ("len >> > 0", "at character 8: cannot be understood near '>'"),
        ("len > 'a", "is a quote left open?"),
        ("", "the text is empty"),
        ("len > 0 AND name LIKE name", "at character 13: LIKE needs a constant pattern"),
        ("len LIKE 'a'", "LIKE needs a text, but len is int64"),
        ("name LIKE 'a!%' ESCAPE '!!'", "ESCAPE takes one sign"),
        ("name LIKE 'a!' ESCAPE '!'", "the pattern 'a!' ends with !, which escapes nothing"),
        ("name SIMILAR TO 'a' ESCAPE '!'", "ESCAPE belongs to LIKE and ILIKE"),
        ("name SIMILAR TO 'a'", "SIMILAR TO is not available: use REGEXP_FULL_MATCH"),
        ("len > (SELECT 1)", "a sub-query stands in FROM, in WHERE or among the columns"),
        ("len IN (SELECT 1)", "IN (SELECT …) stands in WHERE"),
        ("EXISTS (SELECT 1)", "EXISTS stands in WHERE"),
        ("sum(len) OVER (PARTITION BY name)", "OVER is not available here"),
        ("INTERVAL '1' MONTH + moment", "Months and years have no fixed length"),
        ("CAST(moment AS date) + INTERVAL '1' DAY", "is a date: CAST it to timestamp"),
        ("len BETWEEN SYMMETRIC 1 AND 2", "at character 1: BETWEEN is not available"),
        ("len = ANY (1, 2)", "ANY is not available: use IN"),
        ("len; time", "there is more than one statement"),
        ("extract(era FROM moment)", "there is no part 'era' of a time"),
        ("date_trunc('fortnight', moment)", "argument 1 of DATE_TRUNC is 'fortnight'; expected a"),
        ("date_trunc(name, moment)", "the unit of DATE_TRUNC must be a constant text, got name"),
        ("left(name, len)", "LEFT needs a constant number of characters, got len"),
        ("split_part(name, '', 1)", "argument 2 of SPLIT_PART is ''; expected a"),
        ("round(price, len)", "argument 2 of ROUND is len"),
        ("log(price)", "LOG is the natural logarithm in some engines"),
        ("now()", "NOW is the time of the epoch, known in WHERE"),
        ("row_number()", "ROW_NUMBER is not available: it belongs to OVER"),
        ("tumble(time, 60)", "TUMBLE is a window: it belongs into GROUP BY"),
        ("ip_number('10.0.0.256')", "'10.0.0.256' is not an IPv4 address"),
        ("ip_prefix(len, 33)", "IP_PREFIX needs a constant number of bits from 0 to 32, got 33"),
        ("ip_prefix(price, 8)", "IP_PREFIX needs an address as an integer, but price is float64"),
        ("ip_text(name)", "IP_TEXT needs an address as an integer"),
        ("uper(name)", "at character 1: there is no function 'uper'. Did you mean 'upper'?"),
        ("upper(name, 2)", "UPPER takes 1 argument, got 2"),
        ("substring(name)", "SUBSTRING takes 2 to 3 arguments, got 1"),
        ("coalesce()", "COALESCE takes one or more arguments, got 0"),
        ("len + sum(time)", "at character 7: SUM is an aggregate"),
        ("tcp.len", "write 'len' without 'tcp.'"),
        ("len IN (time)", "IN needs a list of constants"),
        ("len AND open", "at character 1: AND needs a condition, but len is int64"),
        ("NOT len", "NOT needs a condition"),
        ("open & open", "& needs an integer, but open is boolean"),
        ("~name", "~ needs an integer"),
        ("flags & 1 | 8", "different bit operators meet"),
        ("CAST(len AS decimal(39, 2))", "there is no type 'decimal(39, 2)'. A decimal has 1 to 38"),
        ("CAST(len AS int46)", "there is no type 'int46'. Did you mean 'int64'?"),
        ("DATE '2026-02-30'", "'2026-02-30' is not a date"),
        ("99999999999999999999", "does not fit 64 bits"),
        ("len AS x", "a name ('x') has no use here"),
        ("abs(name) / 2", "cannot be computed from name string"),
    ],
)  # fmt: skip
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        read_expression(text, ROWS.schema, "query 'q', where")
    assert message in str(caught.value)
    assert str(caught.value).startswith("query 'q', where")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("len", "COLUMN is not an aggregate"),
        ("summ(len) AS x", "there is no aggregate 'summ'. Did you mean 'sum'?"),
        ("sum(len) / count(*) AS x", "DIV is not an aggregate"),
        (
            "var(DISTINCT len) AS x",
            "DISTINCT is available in COUNT, SUM, AVG and ARRAY_AGG, not in VAR",
        ),
        ("sum() AS x", "SUM takes 1 argument, got 0"),
        ("sum(len, time)", "SUM takes 1 argument, got 2"),
        ("approx_quantile(len)", "APPROX_QUANTILE takes 2 arguments, got 1"),
        ("approx_quantile(len, time)", "second argument of APPROX_QUANTILE must be a number"),
        ("approx_distinct(len, 0.5)", "must be a whole number"),
        ("approx_quantile(len, 2)", "a fraction from 0 to 1"),
        ("sum(lenn)", "column 'lenn' is not found"),
        ("sum(max(len))", "SUM of an aggregate: aggregates cannot be nested"),
        ("count(DISTINCT len, name)", "COUNT(DISTINCT …) takes one value"),
        ("first(len) FILTER (WHERE open)", "FILTER is not available for FIRST"),
        ("first(len IGNORE NULLS)", "IGNORENULLS is not available in FIRST"),
    ],
)
def test_aggregate_refusals(text: str, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        read_aggregate(text, ROWS.schema)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["len bytes", "1a", "alias x"])
def test_a_name_needs_as(text: str) -> None:
    with pytest.raises(LanguageError, match="expected an operator or AS before"):
        read_named(text, {**ROWS.schema, "alias": pl.Int64()})


def test_position_in_several_lines() -> None:
    text = "len > 0\n  AND lenn > 1"
    with pytest.raises(LanguageError, match="line 2, character 7: column 'lenn'"):
        read_expression(text, ROWS.schema)
    with pytest.raises(LanguageError, match="line 2, character 15: cannot be understood"):
        read_expression("len > 0\n  AND len > * 1", ROWS.schema)


def test_any_schema_will_do() -> None:
    schema: dict[str, Any] = {"end": pl.Int64(), "start": pl.Int64(), "rows": pl.Int64()}
    assert str(read_expression("end - start + rows", schema)) == "(end - start) + rows"


def test_narrow_columns_do_not_wrap_around() -> None:
    rows = pl.DataFrame(
        {"a": [80], "b": [443], "i": [2_000_000_000], "u": [200]},
        schema={"a": pl.UInt16, "b": pl.UInt16, "i": pl.Int32, "u": pl.UInt8},
    )
    for text, expected in {
        "a - b": -363, "abs(a - b)": 363, "i + i": 4_000_000_000, "a * b": 35_440, "u + u": 400,
        "-u": -200, "COALESCE(u, a) * COALESCE(b, u)": 88_600, "u << 3": 1600,
    }.items():  # fmt: skip
        expression = read_expression(text, rows.schema)
        (value,) = compute(rows, [Named("v", expression)])["v"]
        assert value == expected, text
        assert type_of(expression, rows.schema, "") == pl.Int64


def test_a_time_without_a_zone_is_in_that_of_the_column() -> None:
    zoned = pl.Series("ts", ["2026-03-01T22:05:00", "2026-03-01T22:15:00"]).str.to_datetime(
        "%Y-%m-%dT%H:%M:%S"
    )
    rows = pl.DataFrame(zoned.dt.replace_time_zone("Europe/Berlin"))
    for text, expected in {
        "ts > TIMESTAMP '2026-03-01 22:10:00'": [False, True],
        "TIMESTAMP '2026-03-01 22:05:00' = ts": [True, False],
        "ts BETWEEN TIMESTAMP '2026-03-01 22:00:00' AND TIMESTAMP '2026-03-01 22:10:00'": [
            True,
            False,
        ],
    }.items():
        expression = read_expression(text, rows.schema)
        assert compute(rows, [Named("v", expression)])["v"].to_list() == expected, text
