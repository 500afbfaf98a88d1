"""Queries in SQL, whole from text to rows, beside DuckDB's own reading of the same question."""

from __future__ import annotations

import duckdb
import numpy as np
import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import LanguageError
from anabranch.testing.compare import assert_same_rows
from anabranch.testing.sources import EpochSource

SEED = 20261115

CASES = {
    "flows": (
        "SELECT tb, srcIP, destIP, COUNT(*) AS cnt, SUM(len) AS bytes FROM tcp"
        " GROUP BY time/60 AS tb, srcIP, destIP HAVING BIT_OR(flags) = 7",
        "SELECT time // 60 AS tb, srcIP, destIP, count(*) AS cnt, sum(len)::BIGINT AS bytes FROM tcp"
        " GROUP BY ALL HAVING bit_or(flags) = 7",
    ),
    "subnets by alias": (
        "SELECT time/30 AS tb, srcIP & 0xFFF0 AS net, SUM(len) / COUNT(*) AS mean FROM tcp"
        " WHERE len > 100 AND destIP IS NOT NULL GROUP BY tb, net",
        "SELECT time // 30 AS tb, srcIP & 65520 AS net, (sum(len) // count(*))::BIGINT AS mean"
        " FROM tcp WHERE len > 100 AND destIP IS NOT NULL GROUP BY ALL",
    ),
    "arithmetic over aggregates": (
        "SELECT time/60 AS tb, MAX(len) - MIN(len) AS spread, COUNT(DISTINCT srcIP) + 1 AS sources"
        " FROM tcp GROUP BY time/60",
        "SELECT time // 60 AS tb, max(len) - min(len) AS spread, count(DISTINCT srcIP) + 1 AS sources"
        " FROM tcp GROUP BY ALL",
    ),
    "hop": (
        "SELECT window_start, COUNT(*) AS cnt FROM tcp GROUP BY HOP(time, 60, 20)",
        "SELECT s AS window_start, count(*) AS cnt FROM tcp, range(-60, 400, 20) r(s)"
        " WHERE time >= s AND time < s + 60 GROUP BY ALL",
    ),
    "window() of Spark": (
        "SELECT window_end, srcIP, AVG(len) AS mean FROM tcp GROUP BY window(time, 60), srcIP",
        "SELECT (time // 60 + 1) * 60 AS window_end, srcIP, avg(len) AS mean FROM tcp GROUP BY ALL",
    ),
    "sub-query and WITH": (
        "WITH big AS (SELECT * FROM tcp WHERE len > 700)"
        " SELECT tb, MAX(cnt) AS most FROM (SELECT tb, srcIP, COUNT(*) AS cnt FROM big"
        " GROUP BY time/60 AS tb, srcIP) AS f GROUP BY tb",
        "SELECT tb, max(cnt) AS most FROM (SELECT time // 60 AS tb, srcIP, count(*) AS cnt FROM tcp"
        " WHERE len > 700 GROUP BY ALL) GROUP BY tb",
    ),
    "union all": (
        "SELECT time, len FROM tcp WHERE len < 50 UNION ALL SELECT time, len FROM tcp WHERE len > 1400",
        "SELECT time, len FROM tcp WHERE len < 50 OR len > 1400",
    ),
    "case and in": (
        "SELECT time, CASE WHEN len > 750 THEN 'big' ELSE 'small' END AS size FROM tcp"
        " WHERE srcIP IN (1, 2, 3)",
        "SELECT time, CASE WHEN len > 750 THEN 'big' ELSE 'small' END AS size FROM tcp"
        " WHERE srcIP IN (1, 2, 3)",
    ),
    "history": (
        "SELECT number, SUM(len) OVER (PARTITION BY srcIP ORDER BY time ROWS 2 PRECEDING) AS last3"
        " FROM tcp",
        "SELECT number, (sum(len) OVER (PARTITION BY srcIP ORDER BY time, number ROWS 2 PRECEDING))"
        "::BIGINT AS last3 FROM tcp",
    ),
    "count window": (
        "SELECT window_end, srcIP, SUM(len) AS total FROM tcp GROUP BY COUNT_WINDOW(6, 2), srcIP",
        "SELECT time AS window_end, srcIP, total::BIGINT AS total FROM (SELECT *, row_number() OVER w AS n,"
        " sum(len) OVER (PARTITION BY srcIP ORDER BY time, number ROWS 5 PRECEDING) AS total FROM tcp"
        " WINDOW w AS (PARTITION BY srcIP ORDER BY time, number)) WHERE n >= 6 AND (n - 6) % 2 = 0",
    ),
    "session": (
        "SELECT window_start, srcIP, COUNT(*) AS cnt FROM tcp GROUP BY SESSION(time, 3), srcIP",
        "SELECT min(time) AS window_start, srcIP, count(*) AS cnt FROM (SELECT *, sum(fresh) OVER"
        " (PARTITION BY srcIP ORDER BY time, number) AS s FROM (SELECT *, CASE WHEN time - lag(time)"
        " OVER (PARTITION BY srcIP ORDER BY time, number) < 3 THEN 0 ELSE 1 END AS fresh FROM tcp))"
        " GROUP BY srcIP, s",
    ),
}  # fmt: skip


def packets() -> list[pl.DataFrame]:
    rng = np.random.default_rng(SEED)
    rows = 900
    frame = pl.DataFrame(
        {
            "number": np.arange(rows),
            "time": np.sort(rng.integers(0, 300, rows)),
            "srcIP": rng.integers(0, 40, rows),
            "destIP": pl.Series(rng.integers(0, 5, rows)).replace(4, None),
            "len": rng.integers(40, 1500, rows),
            "flags": rng.choice([1, 2, 4], rows),
        }
    )
    return [frame[start : start + 150] for start in range(0, rows, 150)]


@pytest.mark.parametrize("sites", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_sql_equals_duckdb(case: str, sites: int) -> None:
    ours, theirs = CASES[case]
    session = Session.in_process(sites=sites, settings={"fsync": False})
    frames = packets()
    session.stream("tcp", EpochSource(frames), ordered="time")
    session.query("q", ours)
    run = session.start(sinks={"q": "memory"}, at_end="close")
    run.await_termination()
    tcp = pl.concat(frames)  # noqa: F841 - DuckDB finds it by its name
    assert_same_rows(run.results("q"), duckdb.sql(theirs).pl(), where=case)


REFUSED = {
    "SELECT len FROM tpc": "character 17: there is no stream or query 'tpc'. Did you mean 'tcp'?",
    "SELECT lenn FROM tcp": "character 8: column 'lenn' is not found. Did you mean 'len'?",
    "SELECT len, COUNT(*) AS n FROM tcp GROUP BY time/60": "column 'len' is neither grouped by nor",
    "SELECT len FROM tcp ORDER BY len": "ORDER BY has no meaning in an endless stream",
    "SELECT len FROM tcp LIMIT 3": "LIMIT has no meaning in an endless stream",
    "SELECT DISTINCT len FROM tcp": "SELECT DISTINCT would have to remember every row for ever",
    "SELECT tcp.len FROM tcp JOIN tcp AS b ON 1 = 1": "character 30: nothing says which rows of 'b'",
    "SELECT len FROM tcp UNION SELECT len FROM tcp": "write UNION ALL",
    "SELECT COUNT(*) AS n FROM tcp": "has no window",
    "SELECT COUNT(*) AS n FROM tcp GROUP BY HOP(time, 60)": "HOP needs a size and a slide",
    "SELECT COUNT(*) AS n FROM tcp GROUP BY TUMBLE(len, 60)": "TUMBLE needs the ordered attribute",
    "SELECT SUM(len) OVER (PARTITION BY srcIP) AS s FROM tcp": "OVER needs ORDER BY time",
    "INSERT INTO tcp VALUES (1)": "expected a SELECT, but this is INSERT",
    "SELECT len FROM": "cannot be understood near",
    "SELECT len": "FROM is missing",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_there_is_refused_by_name(text: str) -> None:
    session = Session.in_process()
    session.stream("tcp", EpochSource(packets()), ordered="time")
    with pytest.raises(LanguageError) as caught:
        session.query("q", text)
    assert REFUSED[text] in str(caught.value)
