"""The Nexmark queries of `examples/nexmark.sql` give what DuckDB gives over the same files."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from anabranch.spec import read_spec
from anabranch.testing.compare import assert_same_rows
from anabranch.testing.nexmark import write_nexmark

FILE = Path(__file__).parents[2] / "examples" / "nexmark.sql"
BUCKET = "time_bucket(INTERVAL '10 seconds', date_time)"
DAY = "strftime(date_time, '%Y-%m-%d')"
HOPS = """(SELECT *, unnest(generate_series(
    time_bucket(INTERVAL '2 seconds', date_time) - INTERVAL '8 seconds',
    time_bucket(INTERVAL '2 seconds', date_time), INTERVAL '2 seconds')) AS w FROM bid)"""
COUNTS = f"(SELECT w, auction, count(*) AS num FROM {HOPS} GROUP BY w, auction)"
PLAIN = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q1": "SELECT auction, bidder, CAST(0.908 * price AS DOUBLE) AS price, date_time FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q5": f"""SELECT auction, num, w AS starttime FROM {COUNTS}
        QUALIFY num = max(num) OVER (PARTITION BY w)""",
    "q7": f"""SELECT b.auction, b.price, b.bidder, b.date_time FROM bid b JOIN
        (SELECT max(price) AS most, {BUCKET} + INTERVAL '10 seconds' AS e FROM bid GROUP BY 2) m
        ON b.price = m.most WHERE b.date_time BETWEEN m.e - INTERVAL '10 seconds' AND m.e""",
    "q8": f"""SELECT DISTINCT p.id, p.name, p.w AS starttime FROM (SELECT *, {BUCKET} AS w FROM person) p
        JOIN (SELECT *, {BUCKET} AS w FROM auction) a ON p.id = a.seller AND p.w = a.w""",
    "q9": """SELECT a.id, a.item_name, a.seller, a.date_time, b.auction, b.bidder, b.price,
        b.date_time AS bid_time FROM auction a JOIN bid b ON a.id = b.auction AND b.date_time
        BETWEEN a.date_time AND a.date_time + INTERVAL '10 seconds'
        QUALIFY row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) = 1""",
    "q10": f"""SELECT auction, bidder, price, date_time, extra, {DAY} AS date,
        strftime(date_time, '%H:%M') AS time FROM bid""",
    "q11": """SELECT bidder, count(*) AS bid_count, min(date_time) AS starttime,
        max(date_time) + INTERVAL '10 seconds' AS endtime FROM (SELECT *, sum(fresh) OVER
        (PARTITION BY bidder ORDER BY date_time) AS s FROM (SELECT *, CASE WHEN date_time - lag(date_time)
        OVER
        (PARTITION BY bidder ORDER BY date_time) < INTERVAL '10 seconds' THEN 0 ELSE 1 END AS fresh FROM bid))
        GROUP BY bidder, s""",
    "q13": """SELECT b.auction, b.bidder, b.price, b.date_time, s.value FROM bid b
        JOIN side_input s ON b.auction % 10000 = s.key""",
    "q14": """SELECT auction, bidder, CAST(0.908 * price AS DOUBLE) AS price, CASE
        WHEN hour(date_time) BETWEEN 8 AND 18 THEN 'dayTime'
        WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime' ELSE 'otherTime' END
        AS bidTimeType, date_time, extra, len(extra) - len(replace(extra, 'c', '')) AS c_counts FROM bid
        WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"""SELECT {DAY} AS day, count(*) AS total_bids, count(*) FILTER (price < 10000) AS rank1_bids,
        count(*) FILTER (price >= 10000 AND price < 1000000) AS rank2_bids,
        count(*) FILTER (price >= 1000000) AS rank3_bids, count(DISTINCT bidder) AS total_bidders,
        count(DISTINCT bidder) FILTER (price < 10000) AS rank1_bidders,
        count(DISTINCT auction) AS total_auctions FROM bid GROUP BY 1""",
    "q16": f"""SELECT channel, {DAY} AS day, max(strftime(date_time, '%H:%M')) AS minute,
        count(*) AS total_bids, count(*) FILTER (price >= 1000000) AS rank3_bids,
        count(DISTINCT bidder) AS total_bidders,
        count(DISTINCT auction) FILTER (price < 10000) AS rank1_auctions FROM bid GROUP BY 1, 2""",
    "q17": f"""SELECT auction, {DAY} AS day, count(*) AS total_bids, count(*) FILTER (price < 10000) AS
        rank1_bids, min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price,
        sum(price) AS sum_price FROM bid GROUP BY 1, 2""",
    "q20": """SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra,
        a.item_name, a.initial_bid, a.reserve, a.date_time AS begun, a.seller, a.category
        FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10""",
    "q21": """SELECT auction, bidder, price, channel, CASE lower(channel) WHEN 'apple' THEN '0'
        WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
        ELSE split_part(url, 'channel_id=', 2) END AS channel_id FROM bid""",
    "q22": """SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1,
        split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3 FROM bid""",
}


@pytest.mark.parametrize(
    "events", [20_000, pytest.param(1_000_000, marks=pytest.mark.soak)], ids=str
)
def test_queries_give_what_duckdb_gives(
    events: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_nexmark("nexmark", events)
    spec = read_spec(FILE)
    assert set(spec.sinks) == set(PLAIN)
    session = spec.session(in_process=True)
    run = session.start(sinks=dict.fromkeys(spec.sinks, "memory"), at_end="close")
    assert run.await_termination(600)
    connection = duckdb.connect()
    for stream in ("person", "auction", "bid", "side_input"):
        connection.execute(f"CREATE VIEW {stream} AS SELECT * FROM 'nexmark/{stream}/*.parquet'")
    for query, sql in PLAIN.items():
        got = run.results(query)
        wanted = connection.sql(sql).pl()
        assert wanted.height, f"{query} has no rows to compare"
        assert wanted.columns == got.columns
        # As sets with counts: millions of rows are compared by DuckDB sooner than here
        if got.height > 100_000:
            kinds = {name: kind for name, kind in got.schema.items() if not kind.is_float()}
            connection.register("ours", got.select(list(kinds)).to_arrow())
            connection.register("theirs", wanted.select(list(kinds)).cast(dict(kinds)).to_arrow())
            for one, other in (("ours", "theirs"), ("theirs", "ours")):
                left = connection.sql(f"SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other}").pl()
                assert left.height == 0, f"{query}: {left}"
        else:
            assert_same_rows(got, wanted.cast(dict(got.schema)), where=query)
