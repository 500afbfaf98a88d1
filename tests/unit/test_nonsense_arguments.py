"""Whatever is given to the public surface, what comes back is an error of ours, or a result."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import pytest

import anabranch
from anabranch import Session, col, count
from anabranch.errors import AnabranchError
from anabranch.settings import Settings, read_settings

NONSENSE: list[Any] = [
    None, True, -5, 2**70, math.inf, math.nan, 1.5, "", "x" * 300, "\x00", b"bytes", [], {}, (), object(),
    [None], {"a": None}, print, col("nothing"), count(),
]  # fmt: skip


def session() -> Session:
    made = Session.in_process(sites=2)
    made.stream("t", generator="packets", rows=10, ordered="time")
    return made


def only_ours(work: Callable[[], object]) -> None:
    with contextlib.suppress(AnabranchError):
        work()


FUNCTIONS = [name for name in anabranch.__all__ if name.islower()]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_builder_refuse_nonsense(name: str) -> None:
    for value in NONSENSE:
        more = (1,) if name in ("hop", "approx_quantile") else ()
        only_ours(lambda v=value, more=more: getattr(anabranch, name)(v, *more))  # type: ignore[misc]


@pytest.mark.parametrize("name", ["where", "select", "case", "union", "group_by", "join"])
def test_queries_refuse_nonsense(name: str) -> None:
    query = session().from_stream("t")
    for value in NONSENSE:
        only_ours(lambda value=value: getattr(query, name)(value))  # type: ignore[misc]


TAKING = {
    "on": lambda q, v: q.join(q, on=v),
    "how": lambda q, v: q.join(q, on="len", how=v),
    "rows of a join": lambda q, v: q.join(q, on="len", rows=v),
    "suffix": lambda q, v: q.join(q, on="len", suffix=v),
    "condition": lambda q, v: q.join(q, on="len", where=v),
    "aggregate": lambda q, v: q.group_by("time").agg(v),
    "emit": lambda q, v: q.group_by("time").agg(count(), emit=v),
    "history": lambda q, v: q.history(v, rows=3).agg(count()),
    "rows of a history": lambda q, v: q.history("len", rows=v).agg(count()),
    "alias": lambda q, v: q.select(col("len").alias(v)),
    "cast": lambda q, v: q.select(col("len").cast(v)),
    "operand": lambda q, v: q.select((col("len") + v).alias("z")),
    "compared": lambda q, v: q.where(col("len") == v),
    "is_in": lambda q, v: q.where(col("len").is_in(v)),
    "call": lambda q, v: q.select(anabranch.call("abs", v).alias("z")),
    "case": lambda q, v: q.select(anabranch.when((col("len") > 1, v)).alias("z")),
}


@pytest.mark.parametrize("name", TAKING)
def test_arguments_of_queries_refuse_nonsense(name: str) -> None:
    query = session().from_stream("t")
    for value in NONSENSE:
        only_ours(lambda value=value: TAKING[name](query, value))  # type: ignore[misc]


def test_sessions_and_sources_refuse_nonsense() -> None:
    for value in NONSENSE:
        only_ours(lambda value=value: Session(value))  # type: ignore[misc]
        only_ours(lambda value=value: Session(None, value))  # type: ignore[misc]
        only_ours(lambda value=value: Session(None, 2, value))  # type: ignore[misc]
        only_ours(lambda value=value: session().stream("s", value, ordered="time"))  # type: ignore[misc]
        only_ours(lambda value=value: session().permit(value))  # type: ignore[misc]
        only_ours(lambda value=value: session().permit({"t": value}))  # type: ignore[misc]


HANDS = {
    "move": lambda run, v: run.move("q@1", v, 1),
    "move of": lambda run, v: run.move(v, 0, 1),
    "move to": lambda run, v: run.move("q@1", 0, v),
    "pin": lambda run, v: run.pin("q@1", v, 0),
    "unpin": lambda run, v: run.unpin(v, 0),
    "pause": lambda run, v: run.pause(v, 0),
    "resume": lambda run, v: run.resume("q@1", v),
    "release": lambda run, v: run.release(v),
    "set_sites": lambda run, v: run.set_sites(v),
    "partition_map": lambda run, v: run.partition_map(v),
    "repartition": lambda run, v: run.repartition("q@1", v),
    "results": lambda run, v: run.results(v),
    "await_termination": lambda run, v: run.await_termination(v),
}


def test_the_hands_on_a_run_refuse_nonsense() -> None:
    made = session()
    made.query("q", "SELECT tb, COUNT(*) AS n FROM t GROUP BY time/60 AS tb")
    run = made.start(sinks={"q": "memory"}, trigger="continuous")
    for name, hand in HANDS.items():
        for value in NONSENSE:
            forever = value is None or (isinstance(value, float | int) and value > 10)
            forever = forever and name == "await_termination"
            if not forever:
                only_ours(lambda hand=hand, value=value: hand(run, value))  # type: ignore[misc]
    run.stop()
    assert run.exception() is None


@pytest.mark.parametrize(
    "option", ["trigger", "at_end", "checkpoint", "dead_letter", "name", "sinks"]
)
def test_runs_refuse_nonsense(option: str) -> None:
    for value in (None, True, -5, math.inf, math.nan, [], object()):
        made = session()
        made.query("q", "SELECT time FROM t")
        options: dict[str, Any] = {"sinks": {"q": "memory"}, option: value}

        def start(made: Session = made, options: dict[str, Any] = options) -> None:
            made.start(**options).stop()

        only_ours(start)


@pytest.mark.parametrize("value", [None, True, -5, math.inf, math.nan])
def test_a_trigger_that_is_no_time_is_refused_with_what_was_expected(value: Any) -> None:
    made = session()
    made.query("q", "SELECT time FROM t")
    with pytest.raises(AnabranchError, match=r"trigger is .*; expected"):
        made.start(sinks={"q": "memory"}, trigger=value)


def test_names_and_queries_refuse_nonsense() -> None:
    for value in NONSENSE:
        only_ours(lambda value=value: session().query(value, "SELECT time FROM t"))  # type: ignore[misc]
        only_ours(lambda value=value: session().query("q", value))  # type: ignore[misc]
        only_ours(lambda value=value: session().from_stream(value))  # type: ignore[misc]


@pytest.mark.parametrize("name", Settings.__struct_fields__)
def test_settings_refuse_nonsense(name: str) -> None:
    for value in NONSENSE:
        only_ours(lambda value=value: read_settings({name: value}))  # type: ignore[misc]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT time FROM t WHERE len IN (1, 2.5)",
        f"SELECT a.time FROM t a JOIN t b ON a.len = b.len AND WITHIN_ROWS({2**62})",
        f"SELECT time, len + {10**40} AS x FROM t",
        f"SELECT window_start, COUNT(*) AS n FROM t GROUP BY TUMBLE(time, {2**62})",
    ],
)
def test_numbers_that_fit_nowhere_are_refused(sql: str) -> None:
    only_ours(lambda: session().query("q", sql))


def test_a_lateness_that_cannot_be_counted_with_is_refused() -> None:
    for value in NONSENSE:
        only_ours(
            lambda value=value: Session.in_process().stream(  # type: ignore[misc]
                "s", generator="packets", rows=5, ordered="time", lateness=value
            )
        )
