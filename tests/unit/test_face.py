"""The outer face: options of the command line, settings and triggers as people give them, names of Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import anabranch
from anabranch import AnabranchError, Session, Settings
from anabranch.cli import app

SPEC = """
CREATE STREAM t ORDERED BY time WITH (generator = 'packets', rows = 300, rows_per_second = 10);
CREATE QUERY q AS SELECT time, srcIP FROM t;
CREATE SINK q TO '{out}/q';
SET checkpoint = '{out}/checkpoint';
SET max_rows_per_epoch = 100;
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.sql"
    path.write_text(SPEC.format(out=tmp_path))
    return path


@pytest.fixture
def session() -> Session:
    session = Session.in_process()
    session.stream("t", generator="packets", rows=100, ordered="time")
    session.query("q", "SELECT time FROM t")
    session.query("other", "SELECT time FROM t")
    return session


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(part) for part in arguments])


def test_options_beside_the_file_count_instead_of_its_own(spec: Path, tmp_path: Path) -> None:
    instead = ["--checkpoint", str(tmp_path / "other"), "--set", "max_rows_per_epoch=300"]
    told = invoke("run", spec, "--in-process", "--json", "--set", "name=mine", *instead)
    assert told.exit_code == 0, told.output
    epochs = [json.loads(line) for line in told.stdout.splitlines()[:-1]]
    assert [epoch["numInputRows"] for epoch in epochs] == [300]
    assert epochs[0]["name"] == "mine"
    assert (tmp_path / "other").exists()
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "max_rows_per_epoch=many"],
         "--set max_rows_per_epoch=many: Setting 'max_rows_per_epoch' is 'many'; expected a whole number."),
        (["--set", "sites=two"], "--set sites=two: expected a whole number, got a text ('two')."),
        (["--set", "site=2"], "there is no option 'site'. Did you mean 'sites'?"),
        (["--set", "sites"], "--set sites: expected name=value"),
        (["--trigger", "often"], "trigger is 'often'; expected available-now, continuous"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_told(spec: Path, options: list[str], message: str) -> None:
    told = invoke("run", spec, "--in-process", *options)
    assert told.exit_code == 1
    assert message in told.stderr


def test_version_is_an_option_too() -> None:
    assert invoke("--version").stdout == f"anabranch {anabranch.__version__}\n"


@pytest.mark.parametrize(
    "command", [[], ["run"], ["explain"], ["bench", "join"], ["simulate", "flux"]]
)
def test_help_shows_flags_and_arguments_plainly(command: list[str]) -> None:
    told = invoke(*command, "--help").stdout
    assert "<bool>" not in told
    assert "{" not in told


def test_explain_says_where_the_drawing_is(spec: Path, tmp_path: Path) -> None:
    told = invoke("explain", spec, "--svg", tmp_path / "plan.svg")
    assert (told.exit_code, told.stdout) == (0, "")
    assert f"The plan is drawn in '{tmp_path}/plan.svg'." in told.stderr


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max_files_per_epoch", "many", "a whole number"),
        ("max_files_per_epoch", 1.5, "a whole number"),
        ("max_files_per_epoch", True, "a whole number"),
        ("combine_reduction", "x", "a number"),
        ("idle_after_seconds", "x", "a number or nothing"),
        ("site_memory_bytes", "x", "a number of bytes, 'auto' or nothing for no limit"),
        ("fsync", 1, "true or false"),
        ("merge", 1, "a text"),
    ],
)
def test_settings_of_another_type_are_refused_in_our_words(
    name: str, value: Any, expected: str
) -> None:
    message = f"^Setting '{name}' is {value!r}; expected {expected}\\.$"
    with pytest.raises(AnabranchError, match=message):
        Session.in_process(settings={name: value})
    with pytest.raises(AnabranchError, match=message):
        Settings(**{name: value})


def test_settings_take_whole_numbers_for_numbers() -> None:
    assert Settings(combine_reduction=3, idle_after_seconds=None).combine_reduction == 3


@pytest.mark.parametrize(
    ("trigger", "seconds"), [("10 seconds", 10.0), ("500 ms", 0.5), ("2 minutes", 120.0), (3, 3.0)]
)
def test_triggers_take_lengths_of_time(session: Session, trigger: Any, seconds: float) -> None:
    with session.start(sinks={"q": "memory"}, trigger=trigger) as run:
        assert run.options.interval == seconds
        assert not run.options.available_now
    assert not run.is_active


@pytest.mark.parametrize("trigger", ["often", "-1 seconds", "1.5 hours", -1, float("nan")])
def test_triggers_that_are_none_are_refused(session: Session, trigger: Any) -> None:
    with pytest.raises(AnabranchError, match=r"expected available-now, continuous, a number"):
        session.start(sinks={"q": "memory"}, trigger=trigger)


def test_results_of_no_such_query_name_those_there_are(session: Session, tmp_path: Path) -> None:
    run = session.start(sinks={"q": "memory", "other": tmp_path / "other"})
    run.await_termination()
    with pytest.raises(AnabranchError, match=r"no results of a query 'x'\. Existing: other, q\."):
        run.results("x")
    with pytest.raises(
        AnabranchError, match=r"'other' has no memory sink: its results go to .*/other"
    ):
        run.results("other")


@pytest.mark.parametrize(
    ("owner", "name", "instead"),
    [
        ("query", "filter", "where("), ("query", "groupBy", "group_by("),
        ("query", "writeStream", "session.start("), ("run", "awaitTermination", "await_termination()"),
        ("session", "readStream", "session.stream("),
    ],
)  # fmt: skip
def test_names_of_spark_lead_to_ours(session: Session, owner: str, name: str, instead: str) -> None:
    run = session.start(sinks={"q": "memory"})
    run.await_termination()
    owners = {"query": session.from_stream("t"), "run": run, "session": session}
    with pytest.raises(AnabranchError) as told:
        getattr(owners[owner], name)
    assert f"There is no '{name}' here: write {instead}" in str(told.value)
    assert not hasattr(owners[owner], name)
    with pytest.raises(AnabranchError, match=f"There is no 'wher' of a {owner}"):
        _ = owners[owner].wher  # type: ignore[attr-defined]


def test_a_session_is_left_with_the_spark_it_was_given_running() -> None:
    class Spark:
        stopped = False

        class sparkContext:
            defaultParallelism = 2

        def stop(self) -> None:
            self.stopped = True

    spark = Spark()
    with Session(spark) as session:  # type: ignore[arg-type]
        assert session.sites == 2
    assert not spark.stopped
    with Session(spark) as session:  # type: ignore[arg-type]
        session._own_spark = True  # as Session.local does
    assert spark.stopped


def test_runs_end_with_the_block_of_their_session() -> None:
    with Session.in_process(1) as session:
        session.stream("t", generator="packets", rows=100, ordered="time")
        session.query("q", "SELECT time FROM t")
        run = session.start(sinks={"q": "memory"}, trigger="continuous")
        assert run.is_active
    assert not run.is_active


def test_a_run_that_failed_raises_at_the_end_of_its_block(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("time,v\n1,2\n")
    session = Session.in_process(1)
    session.stream("t", path=tmp_path, ordered="time", schema={"time": "int64", "v": "int64"})
    session.query("q", "SELECT time, v FROM t")
    (tmp_path / "2.csv").write_text("time,v\n1,x\n")
    with (
        pytest.raises(AnabranchError, match=r"2\.csv"),
        session.start(sinks={"q": "memory"}) as run,
    ):
        _until(lambda: not run.is_active)
    # What the block itself failed with says more
    with pytest.raises(ZeroDivisionError), session.start(sinks={"q": "memory"}) as run:
        _until(lambda: not run.is_active and bool(1 // 0))


def _until(reached: Callable[[], bool]) -> None:
    while not reached():
        time.sleep(0.01)
