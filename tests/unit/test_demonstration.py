"""The demonstration without Spark: its input, its phases, both runs, what it says of them, the check."""

from __future__ import annotations

import io
import re
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

from anabranch.cli import app
from anabranch.demo.check import checked
from anabranch.demo.command import _show_ways
from anabranch.demo.course import RunCourse, described, times_as_fast
from anabranch.demo.input import EPOCHS, MINUTE, rows_in_files, rows_of
from anabranch.demo.scenario import PHASES, QUERIES, SLOW_SITE, SLOWDOWN, Demo, phase_of
from anabranch.demo.view import ending, picture
from anabranch.session import Session
from anabranch.sources.generate import Generator

ROWS = 72_000


def test_phases_follow_the_minutes() -> None:
    assert [phase_of(minute * MINUTE) for minute in range(-1, 8)] == [0, 0, 1, 2, 3, 4, 4, 4, 4]


def test_a_surge_has_half_of_the_rows_on_one_key() -> None:
    rows = Generator("packets", rows_per_second=100, skew="surge", surge_from=60, keys=500).rows(
        0, 12_000
    )
    most = [
        part["srcIP"].value_counts()["count"].max() / part.height
        for part in (rows.filter(pl.col("time") < 60), rows.filter(pl.col("time") >= 60))
    ]
    assert most[0] < 0.02
    assert 0.45 < most[1] < 0.55


def test_the_slow_site_is_slow_from_the_third_phase_on(tmp_path: Path) -> None:
    demo = Demo(ROWS, tmp_path)
    slow = [demo.burdens(epoch)[SLOW_SITE].slowdown for epoch in range(EPOCHS)]
    assert slow == [1.0] * 12 + [SLOWDOWN] * 24
    assert demo.burdens(20)[0].slowdown == 1.0


def test_files_have_the_rows_that_are_told(tmp_path: Path) -> None:
    demo = Demo(ROWS, tmp_path)
    demo.write_input()
    rows = {
        name: [
            pl.read_parquet(file).height for file in sorted((tmp_path / "input" / name).iterdir())
        ]
        for name in ("lookups", "logins", "alerts")
    }
    assert rows["lookups"][20] == 3 * rows["lookups"][0] == 60 * rows["lookups"][30]
    assert sum(map(sum, rows.values())) == rows_in_files(ROWS)
    assert rows["logins"][30] == rows_of("logins", 30, ROWS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Demo, RunCourse, RunCourse]:
    """Both runs in this process, where nothing sleeps: memory and joins are decided on all the same."""
    demo = Demo(ROWS // 2, tmp_path_factory.mktemp("demo"), sites=2)
    demo.write_input()
    courses = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Demo, "burdens", lambda self, epoch: {})
        for adaptive in (True, False):
            settings = demo.settings(adaptive) | (
                {"site_memory_bytes": 300_000} if adaptive else {}
            )
            run = demo.start(Session.in_process(demo.sites, settings), adaptive)
            run.await_termination()
            course = RunCourse(ended=True)
            for progress in run.recent_progress:
                course.add(progress)
            courses.append(course)
    return demo, *courses


def test_results_are_those_of_the_plain_queries(runs: tuple[Demo, RunCourse, RunCourse]) -> None:
    demo, adapting, fixed = runs
    assert checked(demo) == dict.fromkeys(QUERIES, True)
    assert adapting.totals.rows == fixed.totals.rows == demo.all_rows
    assert adapting.results == fixed.results
    assert all(demo.results(query).height for query in QUERIES)


def test_a_wrong_row_is_noticed(runs: tuple[Demo, RunCourse, RunCourse]) -> None:
    demo, _, _ = runs
    file = next(iter(sorted((demo.out / "names").glob("epoch=*/*.parquet"))))
    whole = file.read_bytes()
    pl.read_parquet(file).with_columns(cnt=pl.col("cnt") + 1).write_parquet(file)
    told = checked(demo)
    file.write_bytes(whole)
    assert told is not None
    assert [query for query, same in told.items() if not same] == ["names"]


def test_only_the_one_that_adapts_does_anything(runs: tuple[Demo, RunCourse, RunCourse]) -> None:
    _, adapting, fixed = runs
    # What else it does follows from times, which a busy machine makes longer
    assert sum(phase.actions["spill"] for phase in adapting.phases) > 0
    assert max(phase.aside for phase in adapting.phases) > 0
    # Which share of the sites an exchange has at first is measured in any case
    assert {one.kind for one in fixed.done} <= {"allot"}
    assert all(phase["rowsPerSecond"] for phase in described(fixed)["phases"])


@pytest.mark.parametrize("width", [80, 120])
def test_the_picture_fits_the_terminal(runs: tuple[Demo, RunCourse, RunCourse], width: int) -> None:
    demo, adapting, fixed = runs
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(picture(demo, adapting, fixed, 20.0, "", height=40))
    for part in ending(adapting, fixed):
        console.print(part)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert all(phase.title in text for phase in PHASES)
    assert "What Anabranch does" in text
    # What it says adaptation won is what both runs have measured
    won = sum(fixed.seconds[1:]) / sum(adapting.seconds[1:])
    assert f"{won:.2f} times as fast" in " ".join(text.split())


def test_what_was_won_counts_the_epochs_of_both() -> None:
    assert (
        times_as_fast(RunCourse(seconds=[9.0, 1.0, 1.0, 1.0]), RunCourse(seconds=[1.0, 2.0, 4.0]))
        == 3.0
    )
    assert times_as_fast(RunCourse(seconds=[9.0]), RunCourse()) is None


def test_nothing_is_said_of_runs_that_have_not_begun() -> None:
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(picture(Demo(ROWS, Path("x")), RunCourse(), RunCourse(), 1.0, "", height=24))
    assert "starts its workers" in console.export_text()
    assert list(ending(RunCourse(), RunCourse()))


def test_the_ways_to_go_on_exist(tmp_path: Path) -> None:
    printed = io.StringIO()
    _show_ways(tmp_path, Console(file=printed))
    ways = re.findall(r"^  anabranch (.*?) /", printed.getvalue(), flags=re.M)
    assert len(ways) == 3
    for way in ways:
        assert CliRunner().invoke(app, [*way.split(), "--help"]).exit_code == 0, way
