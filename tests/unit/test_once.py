"""Results of emit="once": groups that are told as soon as their first row is there, and never again."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from anabranch import Session, count, first
from anabranch.errors import AnabranchError, LanguageError
from anabranch.testing.sources import EpochSource

FRAMES = [
    pl.DataFrame({"time": [1, 1, 2, 8], "k": ["a", "a", "b", "a"], "v": [1, 2, 3, 4]}),
    # The watermark is at 3: the row of 2 is late
    pl.DataFrame({"time": [8, 2, 9], "k": ["a", "a", "b"], "v": [5, 6, 7]}),
    pl.DataFrame({"time": [9, 4], "k": ["b", "c"], "v": [8, 9]}),
]
TOLD = {
    "SELECT DISTINCT time, k FROM s EMIT ONCE": [
        {(1, "a"), (2, "b"), (8, "a")}, {(9, "b")}, {(4, "c")},
    ],
    "SELECT tb, k FROM s GROUP BY time/5 AS tb, k HAVING k <> 'b' EMIT ONCE": [
        {(0, "a"), (1, "a")}, set(), {(0, "c")},
    ],
    "SELECT time, k, FIRST(v) AS v FROM s GROUP BY time, k EMIT ONCE": [
        {(1, "a", 1), (2, "b", 3), (8, "a", 4)}, {(9, "b", 7)}, {(4, "c", 9)},
    ],
    "SELECT DISTINCT k FROM s EMIT ONCE": [{("a",), ("b",)}, set(), {("c",)}],
    "SELECT time, k FROM s UNION SELECT time + 1 AS time, k FROM s EMIT ONCE": [
        {(1, "a"), (2, "b"), (8, "a"), (2, "a"), (3, "b"), (9, "a")}, {(9, "b"), (10, "b")},
        {(4, "c"), (5, "c")},
    ],
}  # fmt: skip


def session_of(sites: int = 2, **settings: Any) -> Session:
    session = Session.in_process(sites, {"allow_unbounded_state": True, **settings})
    session.stream("s", EpochSource(FRAMES), ordered="time", lateness=5)
    return session


@pytest.mark.parametrize("sites", [1, 3])
@pytest.mark.parametrize("sql", TOLD)
def test_a_group_comes_in_the_epoch_of_its_first_row(sql: str, sites: int) -> None:
    session = session_of(sites)
    session.query("q", sql)
    told: list[set[Any]] = [set() for _ in FRAMES]
    rows: list[Any] = []

    def keep(table: Any, epoch: int) -> None:
        found = pl.DataFrame(table).rows()
        told[epoch] |= set(found)
        rows.extend(found)

    assert session.start(sinks={"q": keep}).await_termination(30)
    assert told == TOLD[sql]
    assert len(rows) == sum(map(len, told))


def test_others_can_read_what_is_told_once() -> None:
    session = session_of()
    session.query("seen", "SELECT DISTINCT time, k FROM s EMIT ONCE")
    session.query("counts", "SELECT tb, COUNT(*) AS n FROM seen GROUP BY time/5 AS tb")
    run = session.start(sinks={"counts": "memory"}, at_end="close")
    assert run.await_termination(30)
    assert sorted(run.results("counts").rows()) == [(0, 3), (1, 2)]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT tb, COUNT(*) AS n FROM s GROUP BY time/5 AS tb EMIT ONCE", r"when COUNT\(\*\) is"),
        ("SELECT tb, FIRST(v) AS v FROM s GROUP BY time/5 AS tb EMIT ONCE", r"when FIRST\(v\) is"),
        (
            "SELECT k, FIRST(v) AS v FROM s GROUP BY k EMIT ONCE",
            r"when FIRST\(v\) is not known yet",
        ),
        ("SELECT k FROM s GROUP BY SESSION(time, 5), k EMIT ONCE", "not available for .* windows"),
        ("SELECT DISTINCT k FROM s", "EMIT ONCE, and SET allow_unbounded_state"),
    ],
)
def test_what_is_not_known_at_first_sight_is_refused(sql: str, why: str) -> None:
    with pytest.raises(LanguageError, match=why):
        session_of().query("q", sql)


def test_the_builder_refuses_it_in_its_own_words() -> None:
    rows = session_of().from_stream("s")
    assert rows.group_by("time", "k").agg(first("v"), emit="once").node.ordered is not None
    with pytest.raises(LanguageError, match="emit='once' tells a group as soon as"):
        rows.group_by("time", "k").agg(count(), emit="once")
    with pytest.raises(LanguageError, match="expected one of final, update, once"):
        rows.group_by("time", "k").agg(emit="now")


def test_keys_without_a_time_need_leave_to_grow_for_ever() -> None:
    session = session_of(allow_unbounded_state=False)
    session.query("q", "SELECT DISTINCT k FROM s EMIT ONCE")
    with pytest.raises(AnabranchError, match="allow_unbounded_state"):
        session.start(sinks={"q": "memory"})
