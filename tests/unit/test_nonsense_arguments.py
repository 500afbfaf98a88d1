"""Whatever is given to the public surface, what comes back is an error of ours, or a result."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pytest

import anabranch
from anabranch import Session, UserAggregate, col, count
from anabranch.errors import AnabranchError, LanguageError, SettingsError
from anabranch.settings import BOUNDS, Settings, read_settings
from anabranch.sinks import FileSink

NONSENSE: list[Any] = [
    None, True, -5, 2**70, math.inf, math.nan, 1.5, "", "x" * 300, "\x00", "\ud800", b"bytes", [], {}, (),
    object(), pl.DataFrame(), [None], {"a": None}, print, col("nothing"), count(),
]  # fmt: skip


def session() -> Session:
    made = Session.in_process(sites=2)
    made.stream("t", generator="packets", rows=10, ordered="time")
    return made


def only_ours(work: Callable[[], object]) -> None:
    with contextlib.suppress(AnabranchError):
        work()


@pytest.mark.parametrize("at", range(7))
@pytest.mark.parametrize(
    "value", [None, 5, pl.col("t"), object(), [], {}], ids=lambda one: type(one).__name__
)
def test_an_aggregate_of_ones_own_says_what_it_expects(at: int, value: Any) -> None:
    given: list[Any] = ["mine", *[lambda *_: None] * 4, pa.int64(), pa.int64()]
    given[at] = value
    with pytest.raises(LanguageError, match="of an aggregate of your own is"):
        UserAggregate(*given)


WITHOUT = ("row_number", "rank", "dense_rank")
"""Those that take nothing."""
FUNCTIONS = [name for name in anabranch.__all__ if name.islower() and name not in WITHOUT]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_builder_refuse_nonsense(name: str) -> None:
    for value in NONSENSE:
        more = (1,) if name in ("hop", "approx_quantile", "nth_value") else ()
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
    "split": lambda run, v: run.partition_map("q@1").split(v),
    "merged": lambda run, v: run.partition_map("q@1").merged(v),
    "on": lambda run, v: run.partition_map("q@1").on(v),
    "moved": lambda run, v: run.partition_map("q@1").moved(v),
    "moved to": lambda run, v: run.partition_map("q@1").moved({0: v}),
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
def test_runs_refuse_nonsense(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for value in NONSENSE:
        made = session()
        made.query("q", "SELECT time FROM t")
        options: dict[str, Any] = {"sinks": {"q": "memory"}, option: value}

        def start(made: Session = made, options: dict[str, Any] = options) -> None:
            made.start(**options).stop()

        only_ours(start)


@pytest.mark.parametrize("kind", ["sink", "path", "format", "FileSink", "format of FileSink"])
def test_sinks_refuse_nonsense(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for value in NONSENSE:

        def start(value: Any = value) -> None:
            made = session()
            made.query("q", "SELECT time FROM t")
            sink = {
                "sink": lambda: value,
                "path": lambda: {"path": value},
                "format": lambda: {"path": "out", "format": value},
                "FileSink": lambda: FileSink(value),
                "format of FileSink": lambda: FileSink(Path("out"), value),
            }[kind]()
            made.start(sinks={"q": sink}).stop()

        only_ours(start)


def test_plans_of_nonsense_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = session()
    made.query("q", "SELECT time FROM t")
    for value in NONSENSE:
        for look in (made.explain, made.plan, made.explain_svg, made.partitioning):
            only_ours(lambda value=value, look=look: look(checkpoint=value))  # type: ignore[misc]


@pytest.mark.parametrize(
    "option", ["exponent", "rows", "rate", "seed", "skew", "keys", "disorder", "rows_per_second"]
)
def test_generators_refuse_nonsense(option: str) -> None:
    for value in NONSENSE:
        options: dict[str, Any] = {
            "generator": "packets",
            "ordered": "time",
            "rows": 10,
            option: value,
        }
        only_ours(lambda options=options: Session.in_process().stream("s", **options))  # type: ignore[misc]


@pytest.mark.parametrize(
    "option", ["path", "format", "schema", "file_order", "partitioned_by", "ordered", "on_bad"]
)
def test_file_streams_refuse_nonsense(option: str, tmp_path: Path) -> None:
    pl.DataFrame({"time": [1]}).write_parquet(tmp_path / "a.parquet")
    for value in NONSENSE:
        options: dict[str, Any] = {"path": tmp_path, "ordered": "time", option: value}
        only_ours(lambda options=options: Session.in_process().stream("s", **options))  # type: ignore[misc]


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_numbers_of_settings_are_finite_and_within_their_bounds(name: str) -> None:
    least, most = BOUNDS[name]
    wrong = [least - 1, -(2**70)] + ([most + 1] if most == 1 else [])
    kind = {field.name: field.type for field in msgspec.structs.fields(Settings)}[name]
    if float in (kind, *getattr(kind, "__args__", ())):
        wrong += [math.nan, math.inf, -math.inf]
    for value in wrong:
        with pytest.raises(SettingsError, match=name):
            read_settings({name: value})
        with pytest.raises(SettingsError, match=rf"Setting '{name}' is .*; expected"):
            Settings(**{name: value})


def test_every_number_among_the_settings_has_bounds() -> None:
    numbers = {
        field.name
        for field in msgspec.structs.fields(Settings)
        if {int, float} & {field.type, *getattr(field.type, "__args__", ())}
    }
    assert numbers == BOUNDS.keys()


@pytest.mark.parametrize("value", ["", "\x00", "\ud800"])
def test_a_checkpoint_that_is_no_name_is_refused_and_not_taken_for_none(value: str) -> None:
    made = session()
    made.query("q", "SELECT time FROM t")
    for use in (
        made.explain,
        lambda checkpoint: made.start(sinks={"q": "memory"}, checkpoint=checkpoint),
    ):
        with pytest.raises(AnabranchError, match=r"The checkpoint is .*Was a variable not set"):
            use(checkpoint=value)


@pytest.mark.parametrize("place", ["dead_letter", "sink"])
def test_a_folder_without_a_name_is_refused(place: str) -> None:
    made = session()
    made.query("q", "SELECT time FROM t")
    options: dict[str, Any] = {"sinks": {"q": "memory"}, "dead_letter": ""}
    if place == "sink":
        options = {"sinks": {"q": ""}}
    with pytest.raises(SettingsError, match="Was a variable not set"):
        made.start(**options)


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
        f"SELECT a.time FROM t a JOIN t b ON a.len = b.len AND WITHIN_ROWS({2**62})",
        f"SELECT time, len + {10**40} AS x FROM t",
        f"SELECT window_start, COUNT(*) AS n FROM t GROUP BY TUMBLE(time, {2**62})",
    ],
)
def test_numbers_that_fit_nowhere_are_refused(sql: str) -> None:
    with pytest.raises(LanguageError, match=r"expected at most|does not fit"):
        session().query("q", sql)


def test_numbers_of_several_kinds_in_one_list_are_taken() -> None:
    made = session()
    made.query("q", "SELECT time FROM t WHERE len IN (1, 2.5) OR len NOT IN (1, 2.5)")
    run = made.start(sinks={"q": "memory"}, at_end="close")
    run.await_termination()
    assert run.results("q").height == 10


@pytest.mark.parametrize("value", NONSENSE, ids=range(len(NONSENSE)))
def test_a_lateness_that_cannot_be_counted_with_is_refused(value: Any) -> None:
    with pytest.raises(AnabranchError, match="lateness"):
        Session.in_process().stream(
            "s", generator="packets", rows=5, ordered="time", lateness=value
        )
