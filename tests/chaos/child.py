"""The process that crash tests kill: one run of a query set over a folder of files.

    python child.py '{"root": "…", "engine": "twin", "kill": ["before-commit", 3]}'

Every step of every epoch is a line on standard output, so that the one who kills knows where it is; with
`kill` the process kills itself at exactly that step, with `kill_at_change` right before or after the
n-th time it renames or deletes a file or an object. With `await_executors` it waits at those epochs for two
executors, with `joins` it runs those (`joining.py`), with `replan` one of three inputs, in other shapes from
given epochs on. With `tables` results go to tables of that kind (`tabled.py`), with `kill_at_table` the
process dies before or after one takes in an epoch. A last line says that the run ended by itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joining
import obstore
import pyarrow as pa
import pyarrow.compute as pc

from anabranch import (
    Session,
    UserAggregate,
    col,
    count,
    count_window,
    last,
    max_,
    session_window,
    sum_,
)
from anabranch.engine.run import Run
from anabranch.language.builder import Query

LATENESS = 20
GAP = 25
QUERIES = ("flows", "visits", "recent", "pairs", "live", "peaks", "big")


def stream(place: Session, source: Path, lanes: int = 0) -> Query:
    return place.stream(
        "rows", path=source, format="parquet", ordered="time", lateness=LATENESS,
        schema={"time": "int64", "k": "string", "v": "int64"}, on_late="dead-letter",
        partitioned_by=["k"] if lanes else [],
    )  # fmt: skip


def register(place: Session, rows: Query, naps: float = 0.0) -> None:
    """Several kinds of state: windows, sessions, histories, updates, a query over a query, none."""
    tb = (col("time") // 20).alias("tb")
    total = sum_("v") if not naps else _slow_sum(naps)("v")
    flows = place.query(
        "flows",
        rows.group_by(tb, "k").agg(
            count().alias("n"), total.alias("total"), last("v").alias("latest")
        ),
    )
    visits = rows.group_by(session_window(GAP), "k")
    place.query("visits", visits.agg(count().alias("n"), sum_("v").alias("total")))
    place.query("recent", rows.history("k", rows=3).agg(sum_("v").alias("of_three")))
    pairs = rows.group_by(count_window(2), "k")
    place.query("pairs", pairs.agg(sum_("v").alias("total"), last("v").alias("latest")))
    updated = rows.group_by(tb, (col("v") % 16).alias("g"))
    place.query("live", updated.agg(count().alias("n"), max_("v").alias("top"), emit="update"))
    peaks = flows.group_by((col("tb") // 3).alias("hour"))
    place.query("peaks", peaks.agg(count().alias("groups"), max_("n").alias("most")))
    place.query("big", _plain(rows))


def queries_of(spec: dict[str, Any]) -> tuple[str, ...]:
    if spec.get("replan"):
        return (*joining.SHAPED,)
    return joining.QUERIES if spec.get("joins") else QUERIES


def _plain(rows: Query) -> Query:
    return rows.where(col("v") % 50 == 0).select("time", "k", "v")


class _Napping:
    """A sum that takes its time, so that a task can be met at work. A class, for pickle's sake."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, states: pa.Array, values: pa.Array, groups: pa.Array) -> pa.Array:
        time.sleep(self.seconds)
        table = pa.table({"g": groups, "v": values}).group_by("g", use_threads=False)
        sums = table.aggregate([("v", "sum")]).sort_by("g")["v_sum"].combine_chunks()
        return pc.add(states, sums)


def _zero() -> int:
    return 0


def _same(states: pa.Array) -> pa.Array:
    return states


def _slow_sum(naps: float) -> UserAggregate:
    add = _Napping(naps)
    return UserAggregate("slow_sum", _zero, add, add, _same, pa.int64(), pa.int64())


def open_session(spec: dict[str, Any]) -> Session:
    settings = {
        "fsync": False,
        "max_files_per_epoch": spec.get("lanes") or 1,
        # Some of the starts, of which every one may have other sites
        "overlap": spec.get("sites", 3) != 2,
        **spec.get("settings", {}),
    }
    if spec["engine"] == "twin":
        return Session.in_process(spec.get("sites", 3), settings)
    from anabranch.engine.local import local_spark

    return Session(
        local_spark(spec["engine"], conf=spec.get("conf")), spec.get("sites", 2), settings
    )


def kill_at_change(wanted: int) -> None:
    """Lets the process die around its n-th rename or deletion: before if n is odd, after if even."""
    done = 0

    def deadly(change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal done
            done += 1
            number = done  # other threads go on counting in the meantime
            if number == wanted and wanted % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return change(*arguments, **options)
            finally:  # also where there was nothing to delete
                if number == wanted:
                    os.kill(os.getpid(), signal.SIGKILL)

        return counted

    os.replace, os.unlink = deadly(os.replace), deadly(os.unlink)
    obstore.put, obstore.delete = deadly(obstore.put), deadly(obstore.delete)


def await_executors(handle: list[Run]) -> None:
    """Waits until there are two executors: at the start, and after one was killed."""
    while not handle or len(handle[0]._loop._transport._executors.living()) < 2:  # type: ignore[attr-defined]
        time.sleep(0.05)


def main(spec: dict[str, Any]) -> None:
    root = Path(spec["root"])
    place = open_session(spec)
    rows = stream(place, root / "in", spec.get("lanes", 0))
    if spec.get("replan"):
        joining.register_shaped(place, rows)
    elif spec.get("joins"):
        joining.register(place, rows)
    else:
        register(place, rows, spec.get("naps", 0.0))

    sinks: dict[str, Any] = {name: root / "out" / name for name in queries_of(spec)}
    if spec.get("tables"):
        import tabled  # its libraries take longer to import than most runs take

        sinks = tabled.sinks_of(spec, root, queries_of(spec))
        if spec.get("kill_at_table"):
            tabled.kill_at(*spec["kill_at_table"])
    if spec.get("kill_at_change"):
        kill_at_change(spec["kill_at_change"])

    handle: list[Run] = []

    def tell(step: str, epoch: int) -> None:
        if [step, epoch] == spec.get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if step == "begin" and epoch in spec.get("await_executors", ()):
            await_executors(handle)
        if step == "begin" and handle:
            joining.replan(handle[0], spec.get("replan", ()), epoch)
        # Where the driver wanted the sites of this epoch, once it has decided
        asked = getattr(handle[0]._loop._transport, "placement", {}) if handle else {}
        print(json.dumps({"step": step, "epoch": epoch, "placement": asked}), flush=True)

    run = place.start(
        sinks=sinks,
        checkpoint=spec.get("checkpoint") or root / "checkpoint",
        dead_letter=root / "dead",
        at_end="close",
        on_step=tell,
    )
    handle.append(run)
    run.await_termination()
    sites = [
        {**entry, "epoch": progress["batchId"]}
        for progress in run.recent_progress
        for entry in progress["customMetrics"]["sites"]
    ]
    print(json.dumps({"done": True, "sites": sites}), flush=True)
    place.stop()


if __name__ == "__main__":
    # By its own name, so that what it defines can be found again in Spark's workers
    import child

    child.main(json.loads(sys.argv[1]))
