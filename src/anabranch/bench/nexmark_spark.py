"""The queries of `bench nexmark` as Spark Structured Streaming can be asked for them."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

Opened = Callable[[str], DataFrame]
"""A stream by its name, as it is read."""


def nexmark_frame(name: str, opened: Opened) -> DataFrame:
    """The streaming frame of a query."""

    def watched(stream: str) -> DataFrame:
        # Files have times without a zone; only those with one can have a watermark
        rows = opened(stream).withColumn("date_time", F.col("date_time").cast("timestamp"))
        return rows.withWatermark("date_time", "0 seconds")

    return FRAMES[name](watched)


def _q0(watched: Opened) -> DataFrame:
    return watched("bid").select("auction", "bidder", "price", "date_time", "extra")


def _q1(watched: Opened) -> DataFrame:
    price = (F.lit(0.908) * F.col("price")).alias("price")
    return watched("bid").select("auction", "bidder", price, "date_time")


def _q2(watched: Opened) -> DataFrame:
    return watched("bid").where("auction % 123 = 0").select("auction", "price")


def _q3(watched: Opened) -> DataFrame:
    auctions = watched("auction").where("category = 10").select("id", "seller")
    people = watched("person").where("state IN ('OR', 'ID', 'CA')")
    people = people.select(F.col("id").alias("person"), "name", "city", "state")
    joined = auctions.join(people, F.expr("seller = person"))
    return joined.select("name", "city", "state", "id")


def _q5(watched: Opened) -> DataFrame:
    """All auctions of a window are collected, since its best may be several."""
    counts = watched("bid").groupBy(F.window("date_time", "10 seconds", "2 seconds"), "auction")
    bids = counts.agg(F.count("*").alias("num"))
    each = bids.groupBy("window").agg(
        F.collect_list(F.struct("auction", "num")).alias("all"), F.max("num").alias("most")
    )
    best = each.select(
        "window", F.explode(F.expr("filter(all, one -> one.num = most)")).alias("one")
    )
    return best.select("one.auction", "one.num", F.col("window.start").alias("date_time"))


def _q7(watched: Opened) -> DataFrame:
    """The bids of a window are collected with its highest price; one more may come as the next one begins."""
    most = (
        watched("bid")
        .groupBy(F.window("date_time", "10 seconds"))
        .agg(F.max("price").alias("most"))
    )
    # The time of a window is a microsecond before its end
    ends = most.select("most", F.window_time("window").alias("ended"))
    near = (
        "price = most AND date_time >= ended + INTERVAL 1 MICROSECOND - INTERVAL 10 SECONDS "
        "AND date_time <= ended + INTERVAL 1 MICROSECOND"
    )
    joined = (
        watched("bid").select("auction", "price", "bidder", "date_time").join(ends, F.expr(near))
    )
    return joined.select("auction", "price", "bidder", "date_time")


def _q8(watched: Opened) -> DataFrame:
    people = (
        watched("person")
        .groupBy(F.window("date_time", "10 seconds"), "id", "name")
        .agg(F.count("*").alias("came"))
    )
    sellers = watched("auction").groupBy(
        F.window("date_time", "10 seconds").alias("sold"), "seller"
    ).agg(F.count("*").alias("auctions"))  # fmt: skip
    joined = people.join(sellers, F.expr("id = seller AND window = sold"))
    return joined.select("id", "name", F.col("window.start").alias("date_time"))


def _q9(watched: Opened) -> DataFrame:
    """The greatest struct of each auction: Spark has no ROW_NUMBER over a stream."""
    auctions = watched("auction").select("id", F.col("date_time").alias("opened"))
    bids = watched("bid").select("auction", "bidder", "price", "date_time")
    near = "id = auction AND date_time BETWEEN opened AND opened + INTERVAL 10 SECONDS"
    joined = auctions.join(bids, F.expr(near))
    # One column with a watermark goes on; the earlier of equal prices is the greater of these
    earlier = (-F.unix_micros("date_time")).alias("earlier")
    bid = joined.select("id", "opened", "price", earlier, "auction", "bidder")
    best = bid.groupBy(
        F.window("opened", "10 milliseconds"), "id", F.unix_micros("opened").alias("at")
    )
    found = best.agg(F.max(F.struct("price", "earlier", "auction", "bidder")).alias("best"))
    date_time = F.timestamp_micros("at").alias("date_time")
    return found.select("id", date_time, "best.auction", "best.bidder", "best.price")


def _q20(watched: Opened) -> DataFrame:
    auctions = watched("auction").where("category = 10").select(
        "id", "item_name", "initial_bid", "reserve", "seller"
    )  # fmt: skip
    joined = watched("bid").join(auctions, F.expr("auction = id"))
    return joined.select(
        "auction", "bidder", "price", "channel", "url", "date_time", "extra", "item_name",
        "initial_bid", "reserve", "seller",
    )  # fmt: skip


FRAMES: dict[str, Callable[[Opened], DataFrame]] = {
    "q0": _q0, "q1": _q1, "q2": _q2, "q3": _q3, "q5": _q5, "q7": _q7, "q8": _q8, "q9": _q9, "q20": _q20,
}  # fmt: skip
