"""Trees against the flat shape where a row meets 1, 10 and 100 rows of each other stream.

Of the pairs of B and C few suit each other. The more rows a row meets, the more a tree saves that keeps them.
Nothing is emulated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from anabranch.bench.shape_runs import ADAPTIVE, TREES, Frames, expected_digest, run_in_turn
from anabranch.observe.steps import Steps

MATCHES = (1, 10, 100)
"""Rows of another stream that a row meets, over all its time."""
ROWS = 3_000
"""Rows of a stream in an epoch."""
EPOCHS = 20
SETTLING = 12
"""Epochs that are not counted: state grows for ten, and shapes are chosen."""
REPEATS = 3
"""Runs of each shape, in turn; of each epoch the least time counts."""
SECONDS = 100
REACH = 5
"""Rows meet within so many epochs on either side."""
SQL = (
    "SELECT a.t AS t, a.v AS x, b.v AS y, c.v AS z FROM a "
    f"JOIN b ON a.k = b.k AND b.t BETWEEN a.t - {REACH * SECONDS} AND a.t + {REACH * SECONDS} "
    f"JOIN c ON a.k = c.k AND c.t BETWEEN a.t - {REACH * SECONDS} AND a.t + {REACH * SECONDS} "
    "AND b.v > c.v + 93"
)


def by_matches(quick: bool, steps: Steps) -> dict[str, Any]:
    """For each number of matches: rows a second and bytes of state of every shape, and of the chosen one."""
    rows = ROWS // 4 if quick else ROWS
    found: dict[str, Any] = {}
    for matches in MATCHES:
        frames = _frames(rows, matches)
        steps.begin(f"{matches} matches a row: DuckDB")
        expected = expected_digest(frames, SQL)
        courses = run_in_turn(frames, SQL, (*TREES, ADAPTIVE), REPEATS, steps)
        equal = all(course.digest == expected for course in courses.values())
        runs: dict[str, dict[str, Any]] = {
            shape: {
                "rows_per_s": course.rate(slice(SETTLING, EPOCHS)),
                "pairs_per_row": course.pairs_per_row(slice(SETTLING, EPOCHS)),
                "state_bytes": max(course.state),
                "shapes": [line["shape"] for line in course.lines],
            }
            for shape, course in courses.items()
        }
        fastest = max(runs[shape]["rows_per_s"] for shape in TREES)
        smallest = min(runs[shape]["state_bytes"] for shape in TREES)
        own = runs[ADAPTIVE]
        found[str(matches)] = {
            "equal": equal,
            "results": expected[0],
            "time_over_best": round(fastest / own["rows_per_s"], 3),
            "bytes_over_least": round(own["state_bytes"] / max(smallest, 1), 3),
            "runs": runs,
        }
    return found


def _frames(rows: int, matches: int) -> Frames:
    """The epochs of each stream, with so many keys that rows meet so many of each other one."""
    rng = np.random.default_rng(11)
    keys = max(1, 2 * REACH * rows // matches)
    return {
        name: [
            pl.DataFrame(
                {
                    "t": np.sort(rng.integers(epoch * SECONDS, (epoch + 1) * SECONDS, rows)),
                    "k": rng.integers(0, keys, rows),
                    "v": rng.integers(0, 100, rows),
                }
            )
            for epoch in range(EPOCHS)
        ]
        for name in "abc"
    }
