"""`anabranch fuzz` on the terminal: progress, failures as they come, a summary. Logic: `many.py`."""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec

from anabranch.errors import SettingsError
from anabranch.observe.steps import live


def show_fuzz(first: int, cases: int, jobs: int, as_json: bool, quiet: bool) -> bool:
    """Runs the cases and prints what became of them; whether none failed."""
    if find_spec("duckdb") is None:
        raise SettingsError(
            "Fuzz compares results with DuckDB, which is not installed: pip install 'anabranch[dev]' "
            "or duckdb."
        )
    # Frames are tiny: more threads would only wait for each other
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    from anabranch.testing.fuzz.judge import Outcome
    from anabranch.testing.fuzz.many import fuzz

    with live("fuzz", quiet) as steps:
        steps.expect(cases)
        steps.begin("")
        failed = 0

        def tell(outcome: Outcome) -> None:
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
    return not report.failed
