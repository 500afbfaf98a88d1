"""The queries of `bench nexmark`: ours in SQL, DuckDB's over the same files, and what tells results apart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from anabranch.bench.duck import connect
from anabranch.errors import RunError

BUCKET = "time_bucket(INTERVAL '10 seconds', date_time)"
HOPS = """(SELECT *, unnest(generate_series(
    time_bucket(INTERVAL '2 seconds', date_time) - INTERVAL '8 seconds',
    time_bucket(INTERVAL '2 seconds', date_time), INTERVAL '2 seconds')) AS w FROM bid)"""
AT = "epoch_us(date_time::TIMESTAMP)"
"""The time of a row as a number, whatever type a side has written it in."""
OPEN_SECONDS = 60
"""Results of the last seconds of the streams may not be out yet: they are not compared."""


@dataclass(frozen=True)
class NexmarkQuery:
    """A query in our words and in DuckDB's."""

    streams: tuple[str, ...]
    text: str
    columns: str
    """What of a result is compared, in DuckDB's words."""
    expected: str = ""
    """The same query for DuckDB, if it needs other words."""
    time: str = ""
    """The column of results that come when a window closes by which the last are left out."""

    @property
    def oracle(self) -> str:
        return self.expected or self.text


QUERIES = {
    "q0": NexmarkQuery(
        ("bid",), "SELECT auction, bidder, price, date_time, extra FROM bid",
        f"auction, bidder, price, {AT}, extra",
    ),
    "q1": NexmarkQuery(
        ("bid",), "SELECT auction, bidder, 0.908 * price AS price, date_time FROM bid",
        f"auction, bidder, round(price * 1000)::BIGINT, {AT}",
    ),
    "q2": NexmarkQuery(
        ("bid",), "SELECT auction, price FROM bid WHERE auction % 123 = 0", "auction, price"
    ),
    "q3": NexmarkQuery(
        ("auction", "person"),
        "SELECT p.name AS name, p.city AS city, p.state AS state, a.id AS id FROM auction a "
        "JOIN person p ON a.seller = p.id WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
        "name, city, state, id",
    ),
    "q5": NexmarkQuery(
        ("bid",),
        """SELECT AuctionBids.auction AS auction, AuctionBids.num AS num, AuctionBids.starttime AS date_time
        FROM (SELECT auction, count(*) AS num, window_start AS starttime
              FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
              GROUP BY window_start, auction) AS AuctionBids
        JOIN (SELECT max(CountBids.num) AS maxn, CountBids.starttime_c
              FROM (SELECT count(*) AS num, window_start AS starttime_c
                    FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
                    GROUP BY auction, window_start) AS CountBids
              GROUP BY CountBids.starttime_c) AS MaxBids
        ON AuctionBids.starttime = MaxBids.starttime_c AND AuctionBids.num >= MaxBids.maxn""",
        f"auction, num::BIGINT, {AT}",
        f"""SELECT auction, num, w AS date_time
        FROM (SELECT w, auction, count(*) AS num FROM {HOPS} GROUP BY w, auction)
        QUALIFY num = max(num) OVER (PARTITION BY w)""",
        "date_time",
    ),
    "q7": NexmarkQuery(
        ("bid",),
        """SELECT B.auction AS auction, B.price AS price, B.bidder AS bidder, B.date_time AS date_time
        FROM bid B
        JOIN (SELECT MAX(price) AS maxprice, window_end AS date_time
              FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND) GROUP BY window_end) B1
        ON B.price = B1.maxprice
        WHERE B.date_time BETWEEN B1.date_time - INTERVAL '10' SECOND AND B1.date_time""",
        f"auction, price, bidder, {AT}",
        f"""SELECT b.auction, b.price, b.bidder, b.date_time FROM bid b JOIN
        (SELECT max(price) AS most, {BUCKET} + INTERVAL '10 seconds' AS e FROM bid GROUP BY 2) m
        ON b.price = m.most WHERE b.date_time BETWEEN m.e - INTERVAL '10 seconds' AND m.e""",
        "date_time",
    ),
    "q8": NexmarkQuery(
        ("person", "auction"),
        """SELECT P.id AS id, P.name AS name, P.starttime AS date_time FROM (
            SELECT id, name, window_start AS starttime, window_end AS endtime
            FROM TUMBLE(person, date_time, INTERVAL '10' SECOND)
            GROUP BY id, name, window_start, window_end) P
        JOIN (
            SELECT seller, window_start AS starttime, window_end AS endtime
            FROM TUMBLE(auction, date_time, INTERVAL '10' SECOND)
            GROUP BY seller, window_start, window_end) A
        ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime""",
        f"id, name, {AT}",
        f"""SELECT DISTINCT p.id, p.name, p.w AS date_time
        FROM (SELECT *, {BUCKET} AS w FROM person) p
        JOIN (SELECT *, {BUCKET} AS w FROM auction) a ON p.id = a.seller AND p.w = a.w""",
        "date_time",
    ),
    "q9": NexmarkQuery(
        ("auction", "bid"),
        """SELECT id, date_time, auction, bidder, price FROM (
            SELECT a.id AS id, a.date_time AS date_time, b.auction AS auction, b.bidder AS bidder,
                   b.price AS price, b.date_time AS bid_time
            FROM auction a JOIN bid b ON a.id = b.auction
            AND b.date_time BETWEEN a.date_time AND a.date_time + INTERVAL '10' SECOND) w
        QUALIFY ROW_NUMBER() OVER (PARTITION BY id, date_time ORDER BY price DESC, bid_time) = 1""",
        f"id, {AT}, auction, bidder, price",
        time="date_time",
    ),
    "q20": NexmarkQuery(
        ("bid", "auction"),
        """SELECT b.auction AS auction, b.bidder AS bidder, b.price AS price, b.channel AS channel,
               b.url AS url, b.date_time AS date_time, b.extra AS extra, a.item_name AS item_name,
               a.initial_bid AS initial_bid, a.reserve AS reserve, a.seller AS seller
        FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10""",
        f"auction, bidder, price, channel, url, {AT}, extra, item_name, initial_bid, reserve, seller",
    ),
}  # fmt: skip
"""In q9 an auction lasts ten seconds, as the rows have no other end of it."""
UNBOUNDED = ("q3", "q20")
"""Joins without a bound of time, which keep all rows."""


@dataclass(frozen=True)
class NexmarkDigest:
    """What tells results from others, in whatever order: how many rows, and the sum of their hashes."""

    rows: int
    checksum: int


def expected_digest(data: str, name: str) -> NexmarkDigest:
    """DuckDB's result of a query over the files."""
    return _digest(data, name, QUERIES[name].oracle)


def found_digest(data: str, name: str, results: Path) -> NexmarkDigest:
    """What a run over the files has left."""
    if not any(results.glob("**/*.parquet")):
        raise RunError(f"The run of {name} left no results in '{results}'.")
    files = f"FROM read_parquet('{results}/**/*.parquet', hive_partitioning = false)"
    return _digest(data, name, files)


def _digest(data: str, name: str, query: str) -> NexmarkDigest:
    asked = QUERIES[name]
    with connect() as duck:
        for stream in asked.streams:
            duck.execute(f"CREATE VIEW {stream} AS FROM '{data}/{stream}/*.parquet'")
        where = ""
        if asked.time:
            newest = " UNION ALL ".join(
                f"SELECT max(date_time) AS t FROM {stream}" for stream in asked.streams
            )
            cut = f"(SELECT min(t) FROM ({newest})) - INTERVAL '{OPEN_SECONDS} seconds'"
            where = f"WHERE {asked.time}::TIMESTAMP < {cut}"
        found = duck.execute(
            f"SELECT count(*), coalesce(sum(hash({asked.columns})::HUGEINT), 0) FROM ({query}) {where}"
        ).fetchone()
    assert found is not None
    return NexmarkDigest(int(found[0]), int(found[1]))
