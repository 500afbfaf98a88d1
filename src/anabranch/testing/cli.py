"""`anabranch chaos` on the terminal: progress, failures as they come, a summary. Logic: `chaos.py`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from anabranch.errors import SettingsError
from anabranch.testing.chaos import ChaosReport, SeedReport, read_seeds, run_seeds

Tell = Callable[[SeedReport], None]


def show_chaos(seeds: str, as_json: bool, quiet: bool) -> bool:
    """Runs the seeds and prints what became of them; whether all passed."""
    asked = read_seeds(seeds)
    if find_spec("duckdb") is None:
        raise SettingsError(
            "Chaos compares results with DuckDB, which is not installed: pip install 'anabranch[dev]' "
            "or duckdb."
        )
    with _progress(len(asked), quiet) as advance:

        def tell(report: SeedReport) -> None:
            if report.failure:
                # Where JSON is asked for, standard output belongs to it alone
                print(
                    f"\n{report.failure}\n", file=sys.stderr if as_json else sys.stdout, flush=True
                )
            advance(report)

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


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Tell]:
    """A live line on the terminal, nothing where there is none."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda report: None
        return
    columns = (
        TextColumn("[bold]chaos"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )  # fmt: skip
    failed: list[int] = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)

        def advance(report: SeedReport) -> None:
            failed.extend([report.seed] if report.failure else [])
            told = f"[red]{len(failed)} failed" if failed else ""
            progress.update(task, advance=1, description=told)

        yield advance
