"""`anabranch fuzz` on the terminal: progress, failures as they come, a summary. Logic: `many.py`."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec

from anabranch.errors import SettingsError
from anabranch.observe.steps import live


def show_fuzz(first: int, cases: int, jobs: int, as_json: bool, quiet: bool) -> bool:
    """Runs the cases and prints what became of them; whether none failed and few were refused."""
    if find_spec("duckdb") is None:
        raise SettingsError(
            "Fuzz compares results with DuckDB, which is not installed: pip install 'anabranch[dev]' "
            "or duckdb."
        )
    from anabranch.testing.fuzz.judge import Judgement
    from anabranch.testing.fuzz.many import fuzz

    with live("fuzz", quiet) as steps:
        steps.expect(cases)
        steps.begin("")
        failed = 0

        def tell(outcome: Judgement) -> None:
            nonlocal failed
            if outcome.verdict == "failed":
                failed += 1
                # Where JSON is asked for, standard output belongs to it alone
                print(
                    f"\n{outcome.reason}\n", file=sys.stderr if as_json else sys.stdout, flush=True
                )
            if steps.done + 1 < cases:
                steps.begin(f"{failed} failed" if failed else "")

        report = fuzz(first, cases, jobs, tell)
    if as_json:
        print(json.dumps(report.plain()))
    else:
        print(
            f"{report.passed} of {cases} cases passed, {report.refused} were refused, "
            f"{len(report.failed)} failed in {report.seconds:.0f} s."
        )
        if report.failed:
            print(f"Failed: {', '.join(str(one.seed) for one in report.failed)}.")
        if not report.few_refused:
            print("Too many were refused: at most one in a hundred, and three more, may be.")
    return report.good


def show_nonsense(first: int, cases: int, jobs: int, as_json: bool, quiet: bool) -> bool:
    """Runs cases of nonsense and prints what became of them; whether none failed."""
    from anabranch.testing.nonsense import run_nonsense

    with live("nonsense", quiet) as steps:
        steps.expect(cases)
        steps.begin("")

        def tell(more: int) -> None:
            steps.done = min(cases - 1, steps.done + more - 1)
            steps.begin("")

        report = run_nonsense(cases, first, jobs, tell)
    if as_json:
        print(json.dumps({"passed": report.passed, "failed": report.failed}))
    else:
        for fault in report.failed:
            print(f"case {fault['case']} ({fault['kind']}): {fault['problem']}")
        print(f"{report.passed} of {cases} cases of nonsense were taken or refused cleanly.")
    return not report.failed
