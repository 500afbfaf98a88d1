"""Every example gives what DuckDB gives over the same rows, and what its own header promises."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from anabranch.sources.generate import Generator
from anabranch.spec import Spec, read_spec
from anabranch.testing.oracle import Oracle, assert_same_rows

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(
    path.name
    for path in [*EXAMPLES.glob("*.sql"), *EXAMPLES.glob("*.yml")]
    if path.stem != "nexmark"
)
SHOWN = {
    "network.sql": ("attackers", "flow_pairs"),
    "calls.sql": ("robots", "boxes"),
    "auctions.sql": ("turnover", "unwanted"),
}
"""The queries of which the header shows rows, in this order."""

HOPS = """
    (SELECT *, {hop} * unnest(range(floor((time - {size}) / {hop})::BIGINT + 1, time // {hop} + 1)) AS w
     FROM {of})"""
SESSIONS = """
    (SELECT *, sum(new) OVER (PARTITION BY {key} ORDER BY time) AS s FROM
      (SELECT *, CASE WHEN time - lag(time) OVER (PARTITION BY {key} ORDER BY time) < {gap}
                      THEN 0 ELSE 1 END AS new FROM {of}))"""
LAST = "OVER (PARTITION BY caller ORDER BY time, __seq ROWS 9 PRECEDING)"
PLAIN = {
    "robots": f"""
        SELECT w + 60 AS time, caller, count(*) AS calls, count(DISTINCT callee) AS callees
        FROM {HOPS.format(size=60, hop=20, of="calls")} WHERE duration < 30
        GROUP BY w, caller HAVING count(*) >= 180""",
    "cloned": f"""
        SELECT caller, min(time) AS window_start, max(time) + 30 AS window_end, count(*) AS calls,
          count(DISTINCT district) AS districts, max(x) - min(x) AS kilometres_east,
          max(y) - min(y) AS kilometres_north
        FROM {SESSIONS.format(gap=30, key="caller", of="calls")}
        GROUP BY caller, s HAVING count(DISTINCT district) >= 5""",
    "ringing": f"""
        SELECT time, caller, since, longest
        FROM (SELECT time, caller, count(*) {LAST} AS calls, min(time) {LAST} AS since,
                max(duration) {LAST} AS longest FROM calls)
        WHERE calls = 10 AND longest <= 15""",
    "hottest": f"""
        SELECT w AS window_start, w + 60 AS window_end, max(n) AS bids, count(*) AS auctions
        FROM (SELECT w, auction, count(*) AS n FROM {HOPS.format(size=60, hop=20, of="bids")}
              GROUP BY w, auction) GROUP BY w""",
    "sold": f"""
        SELECT auction, min(time) AS opened, max(time) + 30 AS closed, count(*) AS bids,
          first(price ORDER BY time, __seq) AS first_bid, max(price) AS highest_bid
        FROM {SESSIONS.format(gap=30, key="auction", of="bids")} GROUP BY auction, s""",
    "categories": """
        SELECT time // 300 * 300 AS window_start, time // 300 * 300 + 300 AS window_end, category,
          count(*) AS auctions, avg(reserve) AS mean_reserve, max(reserve) AS highest_reserve
        FROM auctions GROUP BY ALL""",
    "flow_pairs": """
        WITH heavy AS (
          SELECT tb, srcIP, max(packets) AS heaviest
          FROM (SELECT time // 60 AS tb, srcIP, destIP, count(*) AS packets FROM tcp GROUP BY ALL)
          GROUP BY ALL HAVING max(packets) >= 100)
        SELECT a.tb, a.srcIP, b.heaviest AS before, a.heaviest AS after
        FROM heavy a JOIN heavy b ON a.srcIP = b.srcIP AND a.tb - 1 = b.tb""",
    "impossible_trips": """
        SELECT b.time, a.caller, a.district AS here, b.district AS there, b.start - a.time AS seconds,
          sqrt((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)) AS kilometres
        FROM calls a JOIN calls b USING (caller)
        WHERE b.time >= a.time AND b.time - a.time <= 60 AND b.start >= a.time
          AND (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) >= 6724""",
    "boxes": """
        WITH long AS (FROM calls WHERE duration >= 600 AND duration <= 900)
        SELECT b.time, a.caller, b.caller AS other, a.time - b.start AS seconds, a.x, a.y
        FROM long a, long b
        WHERE a.caller <> b.caller AND b.time >= a.time AND b.time - a.time <= 900
          AND b.start < a.time AND abs(a.x - b.x) < 0.06 AND abs(a.y - b.y) < 0.06""",
    "reached": """
        SELECT b.time // 300 * 300 AS window_start, b.time // 300 * 300 + 300 AS window_end, category,
          count(*) AS bids, max(price) AS highest_bid
        FROM bids b JOIN auctions a USING (auction)
        WHERE b.time - a.time BETWEEN 0 AND 60 AND price >= reserve GROUP BY ALL""",
    "own_goods": """
        SELECT b.time, seller, b.auction, price, reserve FROM bids b JOIN auctions a USING (auction)
        WHERE bidder = seller AND b.time - a.time BETWEEN 0 AND 60 AND price > reserve""",
    "unwanted": """
        SELECT time, auction, seller, reserve FROM auctions a
        WHERE reserve >= 9000 AND NOT EXISTS (
          FROM bids b WHERE b.auction = a.auction AND b.time - a.time BETWEEN 0 AND 60)""",
}
"""Queries once more as one would write them for a table: the oracle's SQL comes from our reading."""


def epochs(spec: Spec) -> dict[str, list[pl.DataFrame]]:
    """The rows of every stream as a run takes them: epochs of whole slices."""
    step = spec.settings.max_rows_per_epoch
    frames = {}
    for name, options in spec.streams.items():
        known = Generator.__dataclass_fields__
        made = Generator(
            options["generator"],
            **{key: value for key, value in options.items() if key in known},
        )
        rows = options["rows"]
        frames[name] = [made.rows(at, min(step, rows - at)) for at in range(0, rows, step)]
    return frames


def promised(path: Path) -> list[tuple[list[str], list[tuple[str, ...]]]]:
    """The tables in the header: lines of the first comment with two spaces between columns."""
    header = path.read_text().split("\n\n")[0]
    tables = []
    for block in re.findall(r"(?:^--   .*  .*\n)+", header, flags=re.M):
        lines = [line.removeprefix("--").strip() for line in block.splitlines()]
        names, *rows = [re.split(r"\s{2,}", line) for line in lines]
        tables.append((names, [tuple(row) for row in rows]))
    return tables


@pytest.mark.parametrize("name", FILES)
def test_example_equals_the_plain_queries(name: str, tmp_path: Path) -> None:
    spec = read_spec(EXAMPLES / name)
    session = spec.session(in_process=True)
    run = session.start(
        sinks=dict.fromkeys(spec.sinks, "memory"), checkpoint=tmp_path, at_end=spec.run["at_end"]
    )
    run.await_termination()
    queries = {query: session.from_stream(query) for query in spec.sinks}
    lateness = {stream: options.get("lateness", 0) for stream, options in spec.streams.items()}
    oracle = Oracle(queries, epochs(spec), lateness)
    for query in spec.sinks:
        results = run.results(query)
        assert results.height > 0, query
        oracle.check(query, results)
        if query in PLAIN and name.endswith(".sql"):
            expected = oracle.plain(PLAIN[query])
            wanted = [pl.col(column).cast(kind) for column, kind in results.schema.items()]
            assert_same_rows(results, expected.select(wanted), where=query)
    if name in SHOWN:
        shown = zip(SHOWN[name], promised(EXAMPLES / name), strict=True)
        for query, (columns, rows) in shown:
            given = run.results(query).select(pl.col(columns).cast(pl.String)).rows()
            assert rows
            assert set(rows) <= set(given), query


def test_every_sql_example_shows_first_rows() -> None:
    assert [name for name in FILES if name.endswith(".sql")] == sorted(SHOWN)
