"""Rows that several subqueries behind one exchange want are sent once; each takes what it wants."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import polars as pl

from anabranch import Session
from anabranch.testing.sources import EpochSource

ROWS = pl.DataFrame(
    {
        "time": [n // 20 for n in range(4000)],
        "k": [n * 7919 % 997 for n in range(4000)],
        "a": [n % 13 for n in range(4000)],
        "b": [f"text-{n % 50}" for n in range(4000)],
        "c": [n / 8 for n in range(4000)],
    }
)
# Nothing is sub-aggregated: every group has few rows
KEYS = "GROUP BY time/20 AS tb, k"


def session(queries: Mapping[str, str], sites: int = 3, **settings: Any) -> Session:
    made = Session.in_process(sites, {"fsync": False, "policy": "none", **settings})
    made.stream("rows", EpochSource([ROWS[:2000], ROWS[2000:]]), ordered="time")
    for name, sql in queries.items():
        made.query(name, sql)
    return made


def run(queries: Mapping[str, str], **settings: Any) -> tuple[dict[str, list[Any]], int]:
    """The results of each query, and the bytes that went through the exchanges."""
    ran = session(queries, **settings).start(sinks=dict.fromkeys(queries, "memory"), at_end="close")
    assert ran.await_termination(60)
    received = sum(
        operator["customMetrics"]["bytesReceived"]
        for told in ran.recent_progress
        for operator in told["stateOperators"]
    )
    return {name: sorted(ran.results(name).rows()) for name in queries}, received


def apart(queries: Mapping[str, str]) -> tuple[dict[str, list[Any]], int]:
    """The same with every query in a run of its own."""
    alone = [run({name: sql}) for name, sql in queries.items()]
    return {k: v for found, _ in alone for k, v in found.items()}, sum(size for _, size in alone)


def test_ten_queries_that_read_the_same_columns_take_hardly_more_than_one() -> None:
    calls = ("SUM(a)", "MAX(a)", "MIN(a)", "COUNT(a)", "AVG(a)")
    queries = {
        f"q{n}": f"SELECT tb, k, {calls[n % 5]} AS x FROM rows WHERE a > {n - 6} {KEYS}"
        for n in range(10)
    }
    found, together = run(queries)
    expected, separately = apart(queries)
    assert found == expected
    _, one = run({"q0": queries["q0"]})
    assert together <= 1.3 * one
    assert separately > 5 * one


def test_rows_that_nobody_wants_stay_where_they_are() -> None:
    queries = {
        "few": f"SELECT tb, k, SUM(a) AS x FROM rows WHERE a = 3 {KEYS}",
        "others": f"SELECT tb, k, MAX(a) AS x FROM rows WHERE a = 4 {KEYS}",
    }
    found, together = run(queries)
    expected, separately = apart(queries)
    assert found == expected
    assert together < separately
    _, everything = run({"all": f"SELECT tb, k, SUM(a) AS x FROM rows {KEYS}"})
    assert together < 0.4 * everything


def test_what_one_copy_would_make_larger_goes_apart() -> None:
    """Rows and columns that have nothing in common."""
    queries = {
        "texts": f"SELECT tb, k, MAX(b) AS x FROM rows WHERE a = 3 {KEYS}",
        "numbers": f"SELECT tb, k, SUM(c) AS x FROM rows WHERE a <> 3 {KEYS}",
    }
    found, together = run(queries)
    expected, separately = apart(queries)
    assert found == expected
    assert together == separately


def test_both_sides_of_a_self_join_are_one_copy() -> None:
    sql = "SELECT x.time, x.k, y.a FROM rows x JOIN rows y ON x.k = y.k AND x.time - y.time = 1"
    made = session({"pairs": sql})
    (common,) = made.plan().common
    assert [(reader.name, path.input) for reader, path in common.readers] == [
        ("pairs@1", 0), ("pairs@1", 1),
    ]  # fmt: skip
    found, _ = run({"pairs": sql})
    rows = ROWS.rows(named=True)
    by_key: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        by_key.setdefault((row["k"], row["time"]), []).append(row["a"])
    expected = [
        (row["time"], row["k"], a)
        for row in rows
        for a in by_key.get((row["k"], row["time"] - 1), ())
    ]
    assert found["pairs"] == sorted(expected)


def test_what_is_sub_aggregated_goes_on_its_own() -> None:
    """The few groups of one query shrink before they are sent; those of the others do not."""
    queries = {
        "few": "SELECT tb, g, SUM(a) AS x FROM rows GROUP BY time/100 AS tb, k % 2 AS g",
        "many": f"SELECT tb, k, SUM(a) AS x FROM rows {KEYS}",
        "more": f"SELECT tb, k, MAX(a) AS x FROM rows {KEYS}",
    }
    made = session(queries)
    made.permit({"rows": ["k % 2"]})
    ran = made.start(sinks=dict.fromkeys(queries, "memory"), at_end="close")
    assert ran.await_termination(60)
    second = {
        o["operatorName"]: o["customMetrics"] for o in ran.recent_progress[1]["stateOperators"]
    }
    assert second["few@1"]["rowsReceived"] < 100
    assert second["many@1"]["rowsReceived"] == second["more@1"]["rowsReceived"] == 2000
    assert second["many@1"]["bytesReceived"] == second["more@1"]["bytesReceived"]
    expected, _ = apart(queries)
    assert {name: sorted(ran.results(name).rows()) for name in queries} == expected


def test_rows_that_wait_are_sent_apart() -> None:
    """What is held back is kept for each reader: it may have moved when it goes on."""
    queries = {
        "sums": f"SELECT tb, k, SUM(a) AS x FROM rows {KEYS}",
        "most": f"SELECT tb, k, MAX(a) AS x FROM rows {KEYS}",
    }
    holder: list[Any] = []
    there = threading.Event()

    def step(name: str, epoch: int) -> None:
        assert there.wait(60)
        if name == "begin" and epoch == 0:
            for start in holder[0].partition_map("sums@1").starts[::2]:
                holder[0].pause("sums@1", start)

    made = session(queries, skew_buffer="shared")
    started = made.start(sinks=dict.fromkeys(queries, "memory"), at_end="close", on_step=step)
    holder.append(started)
    there.set()
    assert started.await_termination(60)
    first = started.recent_progress[0]["customMetrics"]["adaptation"]
    assert first["waitingRows"] > 1000
    expected, _ = apart(queries)
    assert {name: sorted(started.results(name).rows()) for name in queries} == expected
