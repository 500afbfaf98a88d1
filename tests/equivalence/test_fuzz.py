"""Random SQL over random files, cuts, sites and restarts gives DuckDB's rows; and fuzzing notices if not."""

from __future__ import annotations

import pytest

from anabranch.language.functions import FUNCTIONS
from anabranch.testing.fuzz import many
from anabranch.testing.fuzz.case import draw_case
from anabranch.testing.fuzz.judge import FAILED, PASSED, Judgement
from anabranch.testing.fuzz.many import GROUP, fuzz, run_case
from anabranch.testing.fuzz.world import draw_world

CASES = 500
STEP = 20


@pytest.mark.parametrize("first", range(0, CASES, STEP))
def test_random_sql_gives_the_rows_of_duckdb(first: int) -> None:
    report = fuzz(first, STEP, jobs=1)
    assert not report.failed, "\n\n".join(one.reason for one in report.failed)
    assert report.passed + report.refused == STEP


@pytest.mark.parametrize("seed", [1056, 3216, 3328])
def test_rows_of_one_time_within_it_are_told_apart_by_content(seed: int) -> None:
    """PARTITION BY the time itself is a window, in which arrival does not count."""
    judgement = run_case(seed)
    assert judgement.verdict == PASSED, judgement.reason


def test_a_row_that_waited_for_others_keeps_its_rank() -> None:
    """RANK beside LEAD, where rows of the same time are no longer kept when it is answered."""
    judgement = run_case(3695)
    assert judgement.verdict == PASSED, judgement.reason


def test_few_of_the_cases_are_refused() -> None:
    report = fuzz(0, 40, jobs=1)
    assert report.refused <= 4


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
