"""The smallest plans with an exchange, for governors that are explored."""

from __future__ import annotations

import polars as pl

from anabranch.language.aggregate import count
from anabranch.language.expression import col
from anabranch.plan.plan import Plan
from anabranch.session import Session
from anabranch.testing.sources import EpochSource

STREAM, EXCHANGE = "rows", "sums@1"


def small_plan() -> Plan:
    """One stream, counted by a key."""
    session = Session.in_process(1)
    source = EpochSource([pl.DataFrame({"time": [0], "key": [0]})])
    rows = session.stream(STREAM, source, ordered="time", lateness=0)
    groups = rows.group_by((col("time") // 1).alias("at"), "key")
    session.query("sums", groups.agg(count().alias("n")))
    return session.plan()


def joined_plan(outer: bool) -> Plan:
    """One stream, joined with itself by a key without a bound."""
    session = Session.in_process(1, settings={"allow_unbounded_state": True})
    source = EpochSource([pl.DataFrame({"time": [0], "key": [0]})])
    session.stream(STREAM, source, ordered="time", lateness=0)
    kind = "LEFT JOIN" if outer else "JOIN"
    bound = " AND b.time BETWEEN a.time AND a.time + 1000" if outer else ""
    session.query(
        "met",
        f"SELECT a.time AS one, b.time AS other FROM {STREAM} a {kind} {STREAM} b "
        f"ON a.key = b.key{bound}",
    )
    return session.plan()
