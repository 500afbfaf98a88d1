"""W2 and W3: joins of two and of three streams, beside Spark; and W2 with ten times the state."""

from __future__ import annotations

from typing import Any

from anabranch.bench.join_growth import NOTES as GROWTH_NOTES
from anabranch.bench.join_growth import growth_steps, measure_growth
from anabranch.bench.join_series import Comparison, Workload, compare
from anabranch.bench.measure import load, machine
from anabranch.bench.result import Result
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps

W2 = Workload(("a", "b"), 400_000, 16, 26)
W3 = Workload(("a", "b", "c"), 2_000_000, 18, 24)
NOTES = (
    "Rows are the input rows of all streams. Rates leave out the first epoch of either side; "
    "total_seconds has it in it.",
    "Spark's rate also leaves out its last micro-batch, which has no rows and only gives back state.",
    "At 5 files of each stream an epoch, both sides read 20 files instead of 10, so that 3 epochs count.",
    "Times begin in November 2023: at time 0 Spark would take the first rows for late ones.",
    "A file covers 30 s, so a row meets rows of its own file, of two before and of two after.",
)
CHAIN = (
    "Spark joins a with b and the result with c. It takes one column with a watermark into a join, so "
    "b's time is a plain number after the first one, and a's time bounds the second."
)


def run_join(quick: bool, steps: Steps) -> Result:
    """Runs W2 on both sides, then with ten times the state; with `quick`, a tenth of the rows, once."""
    before = load()
    steps.expect(growth_steps(quick))
    compared = compare(W2, quick, steps)
    growth = measure_growth(W2, quick, steps)
    bar = Bar("state_growth.ratio", growth["ratio"], "<=", 2.0)
    figures = {**compared.figures, "state_growth": growth}
    figures["equal"] = compared.equal and growth["equal"]
    return _result("join", figures, compared, (bar,), GROWTH_NOTES, quick, before)


def run_multijoin(quick: bool, steps: Steps) -> Result:
    """Runs W3 on both sides; with `quick`, a tenth of the rows, each run once."""
    before = load()
    compared = compare(W3, quick, steps)
    return _result("multijoin", compared.figures, compared, (), (CHAIN,), quick, before)


def _result(
    name: str, figures: dict[str, Any], compared: Comparison, bars: tuple[Bar, ...],
    notes: tuple[str, ...], quick: bool, before: list[float],
) -> Result:  # fmt: skip
    circumstances = {
        "loadavg": {"before": before, "after": load()}, **machine(), "java": compared.java,
    }  # fmt: skip
    return Result(
        name, {"quick": quick, **figures}, (*compared.bars, *bars), (*NOTES, *notes),
        figures["equal"], circumstances,
    )  # fmt: skip
