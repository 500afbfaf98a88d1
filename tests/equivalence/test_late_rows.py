"""Late rows that are left out of closed windows only: the rows of every epoch are those of the oracle."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import PlanningError, SettingsError
from anabranch.testing.cases import SeededChooser, draw_case
from anabranch.testing.oracle import EpochSource
from anabranch.testing.trial import check, draw_trial

FRAMES = [
    pl.DataFrame({"time": [1, 12, 25], "k": [1, 1, 2]}),
    # Behind the watermark of 25: the window of 3 has closed, those of 21 and of 16 (by 20) have not
    pl.DataFrame({"time": [3, 16, 21, 27], "k": [1, 1, 2, 2]}),
    pl.DataFrame({"time": [22, 45], "k": [1, 2]}),
]


def started(
    late: str | None = "closed-windows", settings: dict[str, object] | None = None
) -> Session:
    session = Session.in_process(2, settings=settings or {})
    session.stream("s", EpochSource(FRAMES), ordered="time", late=late)
    return session


def results(session: Session, sql: str) -> list[tuple[object, ...]]:
    session.query("q", sql)
    run = session.start(sinks={"q": "memory"}, at_end="close")
    run.await_termination()
    return sorted(run.results("q").rows())


def test_a_late_row_counts_in_windows_that_are_open() -> None:
    """Windows of 10: 16 and 3 are too late at 25, 21 is not; 22 at 27 is not either."""
    sql = "SELECT time // 10 AS w, COUNT(*) AS n FROM s GROUP BY time // 10"
    rows = results(started(), sql)
    assert rows == [(0, 1), (1, 1), (2, 4), (4, 1)]
    rows = results(started("everything"), sql)
    assert rows == [(0, 1), (1, 1), (2, 2), (4, 1)]


def test_a_late_row_counts_in_the_open_ones_of_its_hopping_windows() -> None:
    """Windows of 20 every 10: 16 came when the one that ends at 20 had closed, that of 30 had not."""
    sql = "SELECT window_end, COUNT(*) AS n FROM s GROUP BY HOP(time, 20, 10)"
    rows = results(started(), sql)
    assert rows == [(10, 1), (20, 2), (30, 6), (40, 4), (50, 1), (60, 1)]


def test_stateless_queries_keep_late_rows_and_sessions_leave_them_out() -> None:
    rows = results(started(), "SELECT time FROM s WHERE k = 1")
    assert rows == [(1,), (3,), (12,), (16,), (22,)]
    rows = results(started(), "SELECT k, COUNT(*) AS n FROM s GROUP BY k, SESSION(time, 100)")
    assert rows == [(1, 2), (2, 3)]


def test_the_setting_is_for_streams_that_say_nothing() -> None:
    sql = "SELECT time FROM s WHERE k = 1"
    rows = results(started(None, {"late": "closed-windows"}), sql)
    assert len(rows) == 5
    rows = results(started("everything", {"late": "closed-windows"}), sql)
    assert len(rows) == 2


def test_rows_that_a_query_leaves_out_are_counted_and_kept(tmp_path: Path) -> None:
    session = Session.in_process(2)
    session.stream(
        "s", EpochSource(FRAMES), ordered="time", late="closed-windows", on_late="dead-letter"
    )
    session.query("windows", "SELECT time // 10 AS w, COUNT(*) AS n FROM s GROUP BY time // 10")
    session.query("rows", "SELECT time FROM s")
    run = session.start(
        sinks={"windows": "memory", "rows": "memory"}, at_end="close", dead_letter=tmp_path / "dead"
    )
    run.await_termination()
    kept = pl.concat(
        pl.read_parquet(part) for part in (tmp_path / "dead").rglob("late/s/**/*.parquet")
    )
    assert sorted(kept["time"].to_list()) == [3, 16]
    assert run.results("rows").height == 9


def test_refusals() -> None:
    with pytest.raises(
        SettingsError, match="late is 'never'; expected one of everything, closed-windows"
    ):
        started("never")
    session = started(settings={"strategy": "operator"})
    session.query(
        "q", "SELECT time // 10 AS w, COUNT(*) AS n FROM s WHERE k = 1 GROUP BY time // 10"
    )
    with pytest.raises(PlanningError, match="strategy='operator' would send them elsewhere"):
        session.explain()


@pytest.mark.parametrize("seed", [4, 26, 39, 47])
def test_random_queries_with_moves_and_restarts(seed: int) -> None:
    chooser = SeededChooser(seed)
    case = draw_case(chooser)
    check(case, draw_trial(chooser, case.epochs))


@pytest.mark.soak
def test_many_random_queries_with_moves_and_restarts() -> None:
    for seed in range(400):
        chooser = SeededChooser(seed)
        case = draw_case(chooser)
        if case.late:
            check(case, draw_trial(chooser, case.epochs))
