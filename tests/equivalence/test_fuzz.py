"""Random SQL over random files, cuts, sites and restarts gives DuckDB's rows; and fuzzing notices if not."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from anabranch import Session
from anabranch.engine.run import Run
from anabranch.errors import (
    LanguageError,
    PlanningError,
    RunError,
    SettingsError,
    SourceError,
    StateError,
)
from anabranch.language.functions import FUNCTIONS
from anabranch.testing.fuzz import many
from anabranch.testing.fuzz.case import draw_case
from anabranch.testing.fuzz.cli import show_fuzz
from anabranch.testing.fuzz.judge import FAILED, PASSED, REFUSED, Judgement, judge
from anabranch.testing.fuzz.many import GROUP, fuzz, run_case
from anabranch.testing.fuzz.world import draw_world

CASES = 500
STEP = 20


@pytest.mark.parametrize("first", range(0, CASES, STEP))
def test_random_sql_gives_the_rows_of_duckdb(first: int) -> None:
    report = fuzz(first, STEP, jobs=1)
    assert not report.failed, "\n\n".join(one.reason for one in report.failed)
    assert report.passed + report.refused == STEP
    assert report.good, f"{report.refused} of {STEP} cases were refused"


@pytest.mark.parametrize("seed", [1056, 3216, 3328])
def test_rows_of_one_time_within_it_are_told_apart_by_content(seed: int) -> None:
    """PARTITION BY the time itself is a window, in which arrival does not count."""
    judgement = run_case(seed)
    assert judgement.verdict == PASSED, judgement.reason


def test_a_row_that_waited_for_others_keeps_its_rank() -> None:
    """RANK beside LEAD, where rows of the same time are no longer kept when it is answered."""
    judgement = run_case(3695)
    assert judgement.verdict == PASSED, judgement.reason


def test_cases_that_are_mostly_refused_are_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor for the command, whose exit code people and machines go by."""

    def refuse(*_: object, **__: object) -> None:
        raise LanguageError("There is nothing that could be asked.")

    assert many.FuzzReport(passed=20, refused=3).good
    assert not many.FuzzReport(passed=95, refused=5).good
    assert many.FuzzReport(passed=19_800, refused=200).good
    assert not many.FuzzReport(passed=19_700, refused=300).good
    monkeypatch.setattr(Session, "query", refuse)
    assert not show_fuzz(0, 10, jobs=1, as_json=False, quiet=True)


ERRORS: dict[str, tuple[Exception, str]] = {
    "state": (StateError("The checkpoint is of other queries."), FAILED),
    "source": (SourceError("A file has a column less."), FAILED),
    "settings": (SettingsError("There is no such setting."), FAILED),
    "run": (RunError("The table did not take the results."), FAILED),
    "crash": (RunError("The run failed: KeyError('x')"), FAILED),
    "planning": (PlanningError("This join cannot be run."), REFUSED),
    "language": (LanguageError("There is no such function."), FAILED),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_what_was_read_is_refused_by_the_plan_only(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error after the restart, of a checkpoint that the case itself has written, is none of the case."""
    error, verdict = ERRORS[kind]
    seed = next(seed for seed in range(100) if len(draw_world(seed // GROUP).runs) > 1)
    world, started = draw_world(seed // GROUP), Session.start
    starts = 0

    def start(self: Session, **options: Any) -> Run:
        nonlocal starts
        starts += 1
        if starts > 1:
            raise error
        return started(self, **options)

    monkeypatch.setattr(Session, "start", start)
    (outcome,) = judge(world, [draw_case(seed, world)])
    assert starts > 1
    assert outcome.verdict == verdict, outcome


@pytest.mark.parametrize(("seed", "verdict"), [(904, REFUSED), (902, FAILED)])
def test_values_that_do_not_fit_are_refused_where_duckdb_refuses_them(
    seed: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 904 multiplies to more digits than its decimals have; in 902 DuckDB has an answer."""
    error = RunError("Query 'q': 10.5 has more digits than DECIMAL(2, 1)")
    if verdict == FAILED:
        monkeypatch.setattr(Session, "start", Mock(side_effect=error))
    world = draw_world(seed // GROUP)
    assert judge(world, [draw_case(seed, world)])[0].verdict == verdict


def test_a_condition_cast_to_a_number_stays_a_number_in_what_rows_are_split_by() -> None:
    """GROUP BY (us ^ ub) - CAST(p AS BIGINT), which the plan took for (us ^ ub) - p."""
    judgement = run_case(4023)
    assert judgement.verdict == PASSED, judgement.reason


def test_a_seed_always_gives_the_same_case() -> None:
    for seed in (0, 7, 1234):
        worlds = [draw_world(seed // GROUP) for _ in range(2)]
        assert worlds[0].told() == worlds[1].told()
        assert draw_case(seed, worlds[0]) == draw_case(seed, worlds[1])


def test_a_wrong_answer_is_found_and_told_with_a_small_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(FUNCTIONS, "<=", lambda a, b: a < b)  # type: ignore[attr-defined]
    wrong = next(outcome for outcome in map(run_case, range(8, 200)) if outcome.verdict == FAILED)
    assert f"anabranch fuzz --first {wrong.seed} --cases 1" in wrong.reason
    assert "DuckDB: SELECT" in wrong.reason
    assert "stream a" in wrong.reason
    monkeypatch.undo()
    assert run_case(wrong.seed).verdict == PASSED


def test_a_process_that_hangs_or_dies_is_a_failure_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(many, "LONGEST", 0.0)
    report = fuzz(0, 2 * GROUP, jobs=2)
    assert [one.seed for one in report.failed] == [0, GROUP]
    assert all("--jobs 1" in one.reason for one in report.failed)


def test_the_report_has_what_programs_want() -> None:
    report = many.FuzzReport()
    report.note(Judgement(3, PASSED))
    report.note(Judgement(4, FAILED, "differs"))
    assert report.plain() == {
        "passed": 1, "failed": [{"seed": 4, "reason": "differs"}], "refused": 0, "seconds": 0.0,
    }  # fmt: skip
