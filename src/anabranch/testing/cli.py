"""`anabranch chaos` on the terminal: progress, failures as they come, a summary. Logic: `chaos.py`."""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec

from anabranch.errors import SettingsError
from anabranch.observe.steps import live
from anabranch.testing.bugs import BUGS
from anabranch.testing.chaos import SeedReport, read_seeds, run_seeds
from anabranch.testing.explore.bugs import BUGS as EXPLORED_BUGS
from anabranch.testing.explore.suite import MODELS, explore_all
from anabranch.testing.planted import find_bug, hunt


def show_chaos(seeds: str, jobs: int, as_json: bool, quiet: bool) -> bool:
    """Runs the seeds and prints what became of them; whether all passed."""
    asked = read_seeds(seeds)
    _require_oracle()
    failed = 0
    with live("chaos", quiet) as steps:
        steps.expect(len(asked))
        steps.begin("")

        def tell(report: SeedReport) -> None:
            nonlocal failed
            if report.failure:
                failed += 1
                # Where JSON is asked for, standard output belongs to it alone
                print(
                    f"\n{report.failure}\n", file=sys.stderr if as_json else sys.stdout, flush=True
                )
            if steps.done + 1 < len(asked):
                steps.begin(f"{failed} failed" if failed else "")

        report = run_seeds(asked, tell, jobs=_processes(jobs, len(asked)))
    if as_json:
        print(json.dumps(report.plain()))
    else:
        print(report.text())
    return report.good


def show_planted(name: str, as_json: bool) -> bool:
    """Plants one bug, or all of them in turn, and prints which seed caught it; whether each was caught."""
    _require_oracle()
    names = [bug.name for bug in BUGS] if name == "all" else [find_bug(name).name]
    catches = []
    for one in names:
        catches.append(catch := hunt(one))
        if not as_json:
            found = f"caught by seed {catch.seed}" if catch.caught else "NOT caught"
            print(f"{one}: {found}, after {catch.tried} seed(s). {find_bug(one).what}", flush=True)
    caught = sum(catch.caught for catch in catches)
    if as_json:
        missed = [catch.bug for catch in catches if not catch.caught]
        plain = [catch.plain() for catch in catches]
        print(json.dumps({"caught": caught, "missed": missed, "planted": plain}))
    return caught == len(catches)


def show_exploration(asked: bool, depth: int | None, as_json: bool, quiet: bool) -> bool:
    """Explores the ledger and the protocols and prints what was found; whether all is as it must be."""
    if not asked:
        raise SettingsError("--depth says how deep --exhaustive goes: give both, or neither.")
    with live("exploring", quiet) as steps:

        def tell(name: str, states: int, deep: int) -> None:
            if not states:
                steps.begin(name)
            else:
                steps.listener(
                    f"{name}: {states:,} states, {deep} steps deep", steps.done, steps.total
                )

        steps.expect(len(MODELS) + len(EXPLORED_BUGS))
        exploration = explore_all(depth=depth, tell=tell)
    print(json.dumps(exploration.plain()) if as_json else exploration.text())
    return exploration.good


def _require_oracle() -> None:
    if find_spec("duckdb") is None:
        raise SettingsError(
            "Chaos compares results with DuckDB, which is not installed: pip install 'anabranch[dev]' "
            "or duckdb."
        )


def _processes(jobs: int, seeds: int) -> int:
    """How many processes: as many as asked for or, for 0, as there are cores; never more than seeds."""
    if jobs < 0:
        raise SettingsError(f"Expected 0 or more processes for --jobs, got {jobs}.")
    return max(1, min(jobs or len(os.sched_getaffinity(0)), seeds))
