"""`anabranch chaos` on the terminal: progress, failures as they come, a summary. Logic: `chaos.py`."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec

from anabranch.errors import SettingsError
from anabranch.observe.steps import live
from anabranch.testing.chaos import ChaosReport, SeedReport, read_seeds, run_seeds


def show_chaos(seeds: str, as_json: bool, quiet: bool) -> bool:
    """Runs the seeds and prints what became of them; whether all passed."""
    asked = read_seeds(seeds)
    if find_spec("duckdb") is None:
        raise SettingsError(
            "Chaos compares results with DuckDB, which is not installed: pip install 'anabranch[dev]' "
            "or duckdb."
        )
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

        report = run_seeds(asked, tell)
    if as_json:
        print(json.dumps(report.plain()))
    else:
        print(summary(report))
    return not report.failed


def summary(report: ChaosReport) -> str:
    """The report in a few lines."""
    told = report.plain()
    passed, failed, seconds = (told.pop(name) for name in ("passed", "failed", "seconds"))
    happened = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in told.items())
    lines = [
        f"{passed} of {passed + len(failed)} seeds passed in {seconds} s.",
        f"There were {happened}.",
    ]
    if failed:
        lines.append(f"Failed: {', '.join(map(str, failed))}.")
    return "\n".join(lines)
