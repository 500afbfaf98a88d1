"""Results of emit="update": what may read them, and how a group that leaves them is told."""

from __future__ import annotations

import polars as pl
import pytest

from anabranch import Session, col, count, max_, min_, sum_
from anabranch.errors import LanguageError
from anabranch.testing.oracle import Oracle
from anabranch.testing.sources import EpochSource

FRAMES = [
    pl.DataFrame({"time": [1, 2, 3, 4], "k": [1, 2, 3, 3], "v": [50, 90, 5, 5]}),
    pl.DataFrame({"time": [5, 6], "k": [1, 2], "v": [99, 10]}),
    pl.DataFrame({"time": [7, 8, 9], "k": [1, 4, 3], "v": [10, 60, 0]}),
]


def session_of(**settings: object) -> Session:
    session = Session.in_process(sites=3, settings={"allow_unbounded_state": True, **settings})
    session.stream("t", EpochSource(FRAMES), ordered="time")
    return session


READERS = {
    "average": "SELECT AVG(m) AS a FROM live",
    "join": "SELECT t.time, live.m FROM t JOIN live ON t.k = live.k",
    "anti join": "SELECT t.time FROM t ANTI JOIN live ON t.k = live.k",
    "count": "SELECT COUNT(*) AS n FROM live",
    "union": "SELECT k, m FROM live UNION ALL SELECT k, v AS m FROM t",
}


@pytest.mark.parametrize("sql", READERS.values(), ids=READERS)
def test_what_counts_joins_or_orders_rows_cannot_read_updates(sql: str) -> None:
    session = session_of()
    session.query("live", "SELECT k, MAX(v) AS m FROM t GROUP BY k", emit="update")
    with pytest.raises(LanguageError, match=r"reads results of EMIT UPDATE.* \(time/60, TUMBLE"):
        session.query("reader", sql, emit="update")


def test_the_builder_refuses_readers_of_updates_too() -> None:
    rows = session_of().from_stream("t")
    live = rows.group_by("k").agg(max_("v").alias("m"), emit="update")
    for read in (
        lambda: live.group_by("m").agg(count(), emit="update"),
        lambda: live.join(rows, on="k"),
        lambda: rows.join(live, on="k", how="anti"),
        lambda: live.where(col("m") > 1).union(live),
        lambda: live.select("m").history("m", rows=2).agg(count()),
    ):
        with pytest.raises(LanguageError, match="old values would be taken as rows"):
            read()


def test_an_aggregate_over_one_without_a_window_is_refused_in_one_text() -> None:
    with pytest.raises(LanguageError, match="has no window"):
        session_of().query(
            "mean", "SELECT AVG(m) AS a FROM (SELECT k, MAX(v) AS m FROM t GROUP BY k)",
            emit="update",
        )  # fmt: skip


def test_only_the_outermost_aggregate_of_a_text_is_updated() -> None:
    session = session_of()
    within = "SELECT tb, k, MAX(v) AS m FROM t GROUP BY time/2 AS tb, k"
    texts = {
        "nested": f"SELECT k, SUM(m) AS s FROM ({within}) GROUP BY k",
        "named": f"WITH w AS ({within}), x AS (SELECT * FROM w) SELECT k, SUM(m) AS s FROM x GROUP BY k",
        "above": f"WITH w AS ({within}) SELECT tb, k, m FROM w WHERE m > 20",
    }
    for name, sql in texts.items():
        session.query(name, sql, emit="update")
    run = session.start(sinks=dict.fromkeys(texts, "memory"), at_end="close")
    assert run.await_termination()
    whole = pl.concat(FRAMES)
    groups = whole.group_by((pl.col("time") // 2).alias("tb"), "k").agg(pl.col("v").max())
    sums = dict(groups.group_by("k").agg(pl.col("v").sum()).iter_rows())
    for name in ("nested", "named"):
        last = run.results(name).group_by("k", maintain_order=True).last()
        assert dict(last.iter_rows()) == sums
    assert run.results("above").columns == ["tb", "k", "m", "gone"]


@pytest.mark.parametrize("strategy", ["subquery", "query", "operator"])
@pytest.mark.parametrize("central", [False, True])
def test_a_group_that_leaves_the_results_is_marked_as_gone(strategy: str, central: bool) -> None:
    session = session_of(strategy=strategy, central=central)
    queries = {
        "having": session.query(
            "having", "SELECT k, MIN(v) AS m FROM t GROUP BY k HAVING MIN(v) > 20", emit="update"
        ),
        "where": session.query(
            "where",
            session.from_stream("t")
            .group_by("k")
            .agg(sum_("v").alias("s"), min_("v").alias("m"), emit="update")
            .where(col("s") < 200)
            .select("k", (col("m") * 2).alias("twice"))
            .where(col("twice") > 15),
        ),
    }
    run = session.start(sinks=dict.fromkeys(queries, "memory"), at_end="close")
    assert run.await_termination()
    oracle = Oracle(queries, {"t": FRAMES})
    for name in queries:
        oracle.check(name, run.results(name))
    assert sorted(run.results("having").rows()) == [
        (1, 50, False), (1, 50, False), (1, 50, True), (2, 90, False), (2, 90, True), (4, 60, False),
    ]  # fmt: skip


def test_conditions_on_keys_alone_need_no_mark() -> None:
    session = session_of()
    session.query("some", "SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING k > 1", emit="update")
    run = session.start(sinks={"some": "memory"})
    assert run.await_termination()
    assert run.results("some").columns == ["k", "n"]


def test_a_column_called_gone_already_is_refused() -> None:
    session = session_of()
    sql = "SELECT k, COUNT(*) AS gone FROM t GROUP BY k HAVING COUNT(*) > 1"
    session.query("some", sql, emit="update")
    with pytest.raises(LanguageError, match="another name"):
        session.start(sinks={"some": "memory"})


def test_groups_that_leave_need_the_columns_that_tell_them_apart() -> None:
    """A row that says only that some group has left can be taken back by nobody."""
    unkeyed = "SELECT MAX(v) AS m FROM t GROUP BY k HAVING MAX(v) < 9"
    session = session_of()
    session.query("some", unkeyed, emit="update")
    with pytest.raises(LanguageError, match=r"'some'.*groups can leave.*GROUP BY"):
        session.start(sinks={"some": "memory"})
    session = session_of()
    session.query("live", "SELECT k, MAX(v) AS m FROM t GROUP BY k", emit="update")
    session.query("some", "SELECT m FROM live WHERE m < 9")
    with pytest.raises(LanguageError, match="groups can leave"):
        session.explain()
    for sql in (
        "SELECT MAX(v) AS m FROM t GROUP BY k",
        "SELECT MAX(v) AS m FROM t HAVING MAX(v) < 9",
        "SELECT MAX(v) AS m, k + 0 AS j, k FROM t GROUP BY k HAVING MAX(v) < 9",
        "SELECT window_start AS w, MAX(v) AS m FROM t GROUP BY TUMBLE(time, 60, 7) HAVING MAX(v) < 9",
        "SELECT window_start AS w, COUNT(*) AS c FROM TUMBLE(t, time, 9, 2) "
        "GROUP BY window_start, window_end HAVING COUNT(*) < 9",
    ):
        session = session_of()
        session.query("all", sql, emit="update")
        session.explain()
