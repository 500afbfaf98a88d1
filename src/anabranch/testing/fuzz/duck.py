"""DuckDB as it answers in our dialect: macros for what the guide says is different here."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import polars as pl

MACROS = """
CREATE MACRO wrapped(x) AS CAST(
  (((x + 9223372036854775808) % 18446744073709551616) + 18446744073709551616) % 18446744073709551616
  - 9223372036854775808 AS BIGINT);
CREATE MACRO wide(x) AS CAST(x AS HUGEINT);
CREATE MACRO floor_mod(a, b) AS wrapped(((wide(a) % wide(nullif(b, 0))) + wide(b)) % wide(nullif(b, 0)));
CREATE MACRO floor_div(a, b) AS wrapped(
  (wide(a) - ((wide(a) % wide(nullif(b, 0))) + wide(b)) % wide(nullif(b, 0))) // wide(nullif(b, 0)));
CREATE MACRO power2(bits) AS CAST(1 AS HUGEINT) << CAST(bits AS INTEGER);
CREATE MACRO halved(x, bits) AS CAST(
  (wide(x) - ((wide(x) % power2(bits)) + power2(bits)) % power2(bits)) // power2(bits) AS BIGINT);
CREATE MACRO cut(x) AS CAST(trunc(x) AS BIGINT);
CREATE MACRO micros(t) AS epoch_us(t);
CREATE MACRO dotted(n) AS CASE WHEN n >= 0 AND n < 4294967296 THEN
  concat_ws('.', n // 16777216, n // 65536 % 256, n // 256 % 256, n % 256) END;
"""
"""`/` and `%` of whole numbers round down and give NULL for zero, arithmetic wraps around at 64 bits."""


def connect(tables: Mapping[str, pl.DataFrame]) -> duckdb.DuckDBPyConnection:
    """DuckDB with the streams as tables; `__n` is the order in which rows arrived."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(MACROS)
    for name, frame in tables.items():
        arrow = frame.with_row_index("__n").to_arrow(compat_level=pl.CompatLevel.oldest())
        connection.register(f"arrow_{name}", arrow)
        connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM arrow_{name}')
        connection.unregister(f"arrow_{name}")
    return connection


def answer(connection: duckdb.DuckDBPyConnection, sql: str) -> pl.DataFrame:
    """The rows of a query, in types of Polars."""
    try:
        table = connection.sql(sql).to_arrow_table()
    except duckdb.InvalidInputException as error:
        if "BindBuiltinScalarFunction" not in str(error):
            raise
        # DuckDB 2.0 stumbles over constants that it has made itself of columns without a value
        connection.execute("PRAGMA disable_optimizer")
        table = connection.sql(sql).to_arrow_table()
        connection.execute("PRAGMA enable_optimizer")
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
