"""The process that the tests of crashes in a change kill: one run, of the query set of before or after.

    python changing.py '{"root": "…", "changed": true, "kill_at_link": 3}'

With `kill_at_link` it dies right before (odd) or after (even) the n-th time that it puts a manifest in
place, with `kill_at_change` around the n-th rename or deletion.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import polars as pl
from child import kill_at_change

from anabranch import Session

FRAMES = [
    pl.DataFrame(
        {"t": [10 * n + i % 10 for i in range(30)], "k": [(7 * n + i) % 5 for i in range(30)]}
    )
    for n in range(7)
]
BEFORE = {
    "kept": "SELECT tb, k, COUNT(*) AS c FROM rows GROUP BY t/25 AS tb, k",
    "gone": "SELECT tb, MAX(k) AS k FROM rows GROUP BY t/40 AS tb",
}
AFTER = {
    "renamed": BEFORE["kept"],
    "fresh": "SELECT tb, SUM(k) AS s FROM rows GROUP BY t/25 AS tb",
    "past": "SELECT tb, MIN(t) AS t FROM rows GROUP BY t/30 AS tb",
}
FOLDERS = {"renamed": "kept"}
"""A query that was renamed writes on where it wrote."""


def kill_at_link(wanted: int) -> None:
    """Lets the process die around the moment at which a manifest counts."""
    link, done = os.link, 0

    def deadly(*arguments: Any, **options: Any) -> None:
        nonlocal done
        done += 1
        if 2 * done - 1 == wanted:
            os.kill(os.getpid(), signal.SIGKILL)
        link(*arguments, **options)
        if 2 * done == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    os.link = deadly  # type: ignore[assignment]


def run(root: Path, queries: dict[str, str], frames: int, **options: Any) -> None:
    for number, frame in enumerate(FRAMES[:frames]):
        path = root / "in" / f"{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            frame.write_parquet(path.with_name(f"_{number}"))
            path.with_name(f"_{number}").rename(path)
    settings = {"fsync": False, "max_files_per_epoch": 1, "keep_manifests": 2}
    session = Session.in_process(2, settings)
    session.stream("rows", path=root / "in", ordered="t", file_order="name")
    for name, text in queries.items():
        session.query(name, text)
    sinks = {name: root / "out" / FOLDERS.get(name, name) for name in queries}
    started = session.start(sinks=sinks, checkpoint=root / "checkpoint", **options)
    assert started.await_termination(60)


def main(spec: dict[str, Any]) -> None:
    if spec.get("kill_at_link"):
        kill_at_link(spec["kill_at_link"])
    if spec.get("kill_at_change"):
        kill_at_change(spec["kill_at_change"])
    run(Path(spec["root"]), AFTER, 5, changed="keep-same", backfill=spec["backfill"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
