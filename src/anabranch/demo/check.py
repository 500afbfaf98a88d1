"""The results of the demonstration against the plain queries, run once by DuckDB over the whole input."""

from __future__ import annotations

from importlib.util import find_spec

import polars as pl

from anabranch.demo.input import MINUTE, STREAMS
from anabranch.demo.scenario import ATTACK, INCIDENTS, OFTEN, QUERIES, Demo
from anabranch.sources.generate import Generator

PLAIN = {
    "flows": f"SELECT time // {MINUTE} AS tb, srcIP, destIP, count(*) AS cnt, sum(len)::BIGINT AS bytes "
    "FROM tcp GROUP BY ALL",
    "heavy_flows": "SELECT tb, srcIP, max(cnt) AS max_cnt FROM flows GROUP BY ALL",
    "flow_pairs": "SELECT a.tb, a.srcIP, a.max_cnt, b.max_cnt AS max_cnt_before FROM heavy_flows a "
    "JOIN heavy_flows b ON a.srcIP = b.srcIP AND a.tb = b.tb + 1",
    "suspicious": f"SELECT time // {MINUTE} AS tb, srcIP, destIP, srcPort, destPort, "
    "bit_or(flags) AS flags, count(*) AS cnt, sum(len)::BIGINT AS bytes FROM tcp "
    f"GROUP BY tb, srcIP, destIP, srcPort, destPort HAVING bit_or(flags) = {ATTACK}",
    "names": f"SELECT time // {MINUTE} AS tb, name, count(*) AS cnt FROM lookups GROUP BY tb, name "
    f"HAVING count(*) >= {OFTEN}",
    "incidents": INCIDENTS,
}
"""The queries for DuckDB, each after those it reads."""


def checked(demo: Demo) -> dict[str, bool] | None:
    """Whether the results of each query are those of the plain one; None if there is no DuckDB."""
    if find_spec("duckdb") is None:
        return None
    import duckdb

    options = demo.generator()
    tcp = Generator(options.pop("generator"), **options).rows(0, demo.rows)
    with duckdb.connect() as connection:
        connection.register("tcp", tcp.to_arrow())
        for name in STREAMS:
            connection.execute(f"CREATE VIEW {name} AS FROM '{demo.out}/input/{name}/*.parquet'")
        for name in ("flows", "heavy_flows"):
            connection.execute(f"CREATE VIEW {name} AS {PLAIN[name]}")
        return {
            name: same(demo.results(name), connection.sql(PLAIN[name]).pl()) for name in QUERIES
        }


def same(found: pl.DataFrame, expected: pl.DataFrame) -> bool:
    """Whether two frames have the same rows, in any order.

    >>> same(pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [2, 1]}))
    True
    >>> same(pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1, 1]}))
    False
    >>> same(pl.DataFrame(), pl.DataFrame({"a": [1]}))
    False
    """
    if not found.height or not expected.height:
        return found.height == expected.height
    if found.columns != expected.columns:
        return False
    mine = found.cast(expected.schema).sort(expected.columns)
    return mine.equals(expected.sort(expected.columns))
