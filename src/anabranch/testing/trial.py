"""A case the hard way: maps that change every epoch, stops and crashes in between, other numbers of sites
after a restart. Whatever happens on the way, the results of every epoch must be the oracle's.

How a trial is drawn and judged; `course.py` runs it.

>>> from anabranch.testing.cases import SeededChooser, draw_case
>>> chooser = SeededChooser(1)
>>> case = draw_case(chooser)
>>> outcome = check(case, draw_trial(chooser, case.epochs))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from anabranch.sinks.driver import MemorySink
from anabranch.testing.aggregates import USER_SQL
from anabranch.testing.cases import Case
from anabranch.testing.chooser import Chooser
from anabranch.testing.compare import assert_same_rows
from anabranch.testing.course import run_trial
from anabranch.testing.legs import Leg, Outcome, Scene, Trial
from anabranch.testing.oracle import Oracle
from anabranch.testing.sql_expression import EPOCH, SEQ
from anabranch.testing.stage import SessionMaker

STEPS = ("begin", "before-tasks", "before-commit", "after-commit", "after-publish")
SITES = (1, 2, 7)


def draw_trial(chooser: Chooser, epochs: int, sites: Sequence[int] = SITES) -> Trial:
    """Random sites, settings, moves and restarts."""
    legs: list[Leg] = []
    for _ in range(chooser.choice([0, 0, 1, 2])):
        step = chooser.choice(["stop", "end", *STEPS])
        legs.append(Leg(chooser.choice(sites), step, chooser.integer(0, epochs)))
    legs.append(Leg(chooser.choice(sites)))
    settings: dict[str, Any] = {
        "partitions_per_site": chooser.choice([1, 2, 3, 8]),
        "compaction_fan": chooser.choice([2, 2, 3, 8]),
        "compaction_floor_rows": chooser.choice([1, 0, 50_000]),
        "compaction_share": chooser.choice([2.0, 0.0]),
        "combine_reduction": chooser.choice([0.1, 2.0, 1000.0]),
        "keep_manifests": chooser.choice([1, 2]),
        "strategy": chooser.choice(["subquery", "subquery", "query", "operator"]),
        "central": chooser.flag(0.15),
    }
    moves = chooser.integer(0, 2**31) if chooser.flag(0.8) else None
    settings["overlap"] = (moves or 0) % 4 < 3
    return Trial(tuple(legs), settings, moves, close=not chooser.flag(0.1))


def check(
    case: Case,
    trial: Trial,
    make_session: SessionMaker | None = None,
    outcome: Outcome | None = None,
) -> Outcome:
    """Runs the case and compares the results of every epoch, and the late rows, with the oracle's.

    What is seen on the way goes to `outcome`, if one is given: it is there even when the trial fails.
    """
    lateness = {name: late * case.clock.factor for name, late in case.lateness.items()}
    oracle = Oracle(
        case.queries,
        case.frames,
        lateness,
        lanes=case.lanes,
        ended=trial.close,
        user=USER_SQL,
        tables=case.tables,
    )

    def judge(sinks: Mapping[str, MemorySink]) -> None:
        for query, sink in sinks.items():
            oracle.check(query, sink.epochs if trial.by_epoch else _rows(oracle, query, sink))

    outcome = run_trial(case, trial, make_session, outcome, judge)
    judge(outcome.sinks)
    judge(outcome.beside)
    late = {name: record.late for name, record in outcome.manifests[-1].streams.items()}
    assert late == oracle.late, f"late rows: got {late}, expected {oracle.late}"
    for name in oracle.late if trial.letters else ():
        _check_letters(case, name, oracle, outcome)
    return outcome


def _check_letters(case: Case, stream: str, oracle: Oracle, outcome: Outcome) -> None:
    """Every row of a stream is either one that counts or among the dead letters."""
    if stream in case.late:
        # What one query leaves out another may count
        assert outcome.letters[stream].height == oracle.late[stream], f"Dead letters of '{stream}'"
        return
    rows = pl.concat(case.frames[stream])
    admitted = oracle.plain(f'SELECT * FROM "{stream}"').drop(EPOCH, SEQ).cast(rows.schema)
    letters = outcome.letters[stream].select(rows.columns)
    assert_same_rows(pl.concat([admitted, letters]), rows, where=f"Dead letters of '{stream}'")


def _rows(oracle: Oracle, query: str, sink: MemorySink) -> pl.DataFrame:
    rows = sink.rows()
    return rows if rows.width else pl.DataFrame(schema=oracle.schema(query))


__all__ = ["STEPS", "Leg", "Outcome", "Scene", "Trial", "check", "draw_trial", "run_trial"]
