"""What a run asks of an object store: requests an epoch, by kind, as epochs go by and while the store fails.

Stream, results and checkpoint are in a bucket of a real S3 server on loopback. A wire in front of it counts,
and for the second run does harm to a share of the requests.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from anabranch.bench.duck import connect
from anabranch.bench.measure import load, machine
from anabranch.bench.result import Result
from anabranch.errors import RunError
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.session import Session
from anabranch.sinks.objects import whole_epochs
from anabranch.sources.generate import Generator
from anabranch.state.place import place, place_at
from anabranch.testing.object_server import ServedBucket, installed, serving
from anabranch.testing.wire import Request, Wire, seeded_faults

EPOCHS, ROWS, SITES = 240, 200, 2
PUTS = 50
SHARE = 0.05
"""The share of requests that harm is done to."""
LONGEST = 600
QUERY = "SELECT tb, srcIP, COUNT(*) AS cnt, SUM(len) AS bytes FROM packets GROUP BY time/60 AS tb, srcIP"
NOTES = (
    f"In-process, {SITES} sites; one object of {ROWS} packets an epoch, taken by name as it comes; stream, "
    "results and checkpoint in one bucket of S3Proxy on loopback. An epoch's requests are those between two "
    "entries of the ledger.",
    "growth: the mean number of requests in the last third of the epochs against that in the second; both "
    "see whole cycles of compaction and of whole manifests.",
    f"faults: the same with {SHARE:.0%} of all requests answered by a 500, done without an answer, or cut.",
)


def run_store(quick: bool, steps: Steps) -> Result:
    """One run that is counted, one with faults, and two that put the same entries."""
    epochs = EPOCHS // 4 if quick else EPOCHS
    steps.expect(3)
    before = load()
    java = f"{os.environ['JAVA_HOME']}/bin/java" if "JAVA_HOME" in os.environ else "java"
    with (
        TemporaryDirectory(prefix="anabranch-bench-") as scratch,
        serving(Path(scratch), installed(), java) as bucket,
    ):
        steps.begin(f"{epochs} epochs")
        counted = _measured(bucket, "counted", epochs, Wire(bucket.port))
        steps.begin("The same while the store fails")
        harmful = seeded_faults(1, SHARE, ("error", "lost", "cut"))
        harmed = _measured(bucket, "harmed", epochs // 4, Wire(bucket.port, harmful))
        steps.begin("Two drivers")
        with reached(bucket.variables):
            winners = _rivals(bucket.uri(bucket.folder / "rivals"))
    figures: dict[str, Any] = {
        "quick": quick,
        "epochs": epochs,
        **{name: counted[name] for name in ("requests_per_epoch", "most", "growth", "by_kind")},
        "faults": {name: harmed[name] for name in ("faults", "requests_per_epoch", "equal")},
        "two_drivers": {"entries": PUTS, "with_one_winner": winners},
        "equal": counted["equal"] and harmed["equal"],
    }
    bars = (
        Bar("growth", figures["growth"], "<=", 1.1),
        Bar("entries with one winner", winners, ">=", PUTS),
    )
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result(
        "store", figures, bars, NOTES, figures["equal"] and winners == PUTS, circumstances
    )


def store_lines(figures: dict[str, Any]) -> Iterator[str]:
    """What the figures say, for people."""
    kinds = ", ".join(f"{name} {count}" for name, count in figures["by_kind"].items())
    yield f"{figures['requests_per_epoch']} requests an epoch, at most {figures['most']}: {kinds}"
    faults = figures["faults"]
    yield f"with {faults['faults']} faults: {faults['requests_per_epoch']} requests an epoch"


@contextmanager
def reached(variables: Mapping[str, str]) -> Iterator[None]:
    """Lets this process in to a store, for as long as the block lasts."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    place_at.cache_clear()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        place_at.cache_clear()


def _measured(bucket: ServedBucket, name: str, epochs: int, wire: Wire) -> dict[str, Any]:
    """A run over so many objects; requests by epoch, and whether the results are right."""
    folder = bucket.folder / name
    (folder / "in").mkdir(parents=True)
    packets = Generator("packets", keys=50).rows(0, epochs * ROWS)
    for number in range(epochs):
        rows = packets[number * ROWS : (number + 1) * ROWS]
        rows.write_parquet(folder / "in" / f"{number:06d}.parquet")
    variables = {**bucket.variables, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{wire.port}"}
    with wire, reached(variables):
        _run(bucket, folder, "continuous", epochs)
        seen = len(wire.requests)
        _run(bucket, folder, "available-now", epochs)
    with reached(bucket.variables):
        parts = whole_epochs(bucket.uri(folder / "out")).values()
    files = [bucket.folder / part.split("/", 3)[3] for some in parts for part in some]
    each = per_epoch(wire.requests[:seen])[2:]
    third = len(each) // 3
    kinds = Counter(request.kind for request in wire.requests[:seen])
    return {
        "requests_per_epoch": median(map(len, each)),
        "most": max(map(len, each)),
        "growth": round(_mean(each[-third:]) / _mean(each[third : 2 * third]), 3),
        "by_kind": {kind: round(count / epochs, 2) for kind, count in sorted(kinds.items())},
        "faults": sum(wire.faults.values()),
        "equal": _right(packets, files),
    }


def _run(bucket: ServedBucket, folder: Path, trigger: str, epochs: int) -> None:
    session = Session.in_process(SITES, {"max_files_per_epoch": 1, "poll_interval_seconds": 0.01})
    session.stream(
        "packets",
        path=bucket.uri(folder / "in"),
        format="parquet",
        ordered="time",
        file_order="name",
    )
    session.query("flows", QUERY)
    run = session.start(
        sinks={"flows": bucket.uri(folder / "out")},
        checkpoint=bucket.uri(folder / "checkpoint"),
        trigger=trigger,
        at_end="close",
    )
    if trigger == "available-now":
        run.await_termination(LONGEST)
        return
    until = time.monotonic() + LONGEST
    while run.is_active and (run.last_progress or {}).get("batchId", -1) < epochs - 1:
        if time.monotonic() > until:
            raise RunError(
                f"The run of the benchmark has not come to epoch {epochs} in {LONGEST} s."
            )
        time.sleep(0.02)
    run.stop()


def per_epoch(requests: Sequence[Request]) -> list[list[Request]]:
    """Requests from one entry of the ledger to the next; those after the last are left out."""
    epochs: list[list[Request]] = [[]]
    for request in requests:
        epochs[-1].append(request)
        if request.conditional and "/manifests/" in request.target:
            epochs.append([])
    return epochs[:-1]


def _mean(epochs: Sequence[Sequence[Request]]) -> float:
    return sum(map(len, epochs)) / max(1, len(epochs))


def _right(packets: pl.DataFrame, files: Sequence[Path]) -> bool:
    """Whether these files have what DuckDB makes of the packets."""
    flows = QUERY.replace("SELECT tb", "SELECT time // 60 AS tb").replace(
        "time/60 AS tb, srcIP", "ALL"
    )
    digest = "SELECT count(*), sum(cnt), sum(bytes), sum(hash(tb::BIGINT, srcIP::BIGINT)::HUGEINT)"
    with connect() as duck:
        duck.register("packets", packets.to_arrow())
        ours = f"read_parquet({[str(file) for file in files]}, hive_partitioning = false)"
        told = [duck.execute(f"{digest} FROM {rows}").fetchall() for rows in (f"({flows})", ours)]
    return bool(told[0] == told[1])


def _rivals(uri: str) -> int:
    """How many entries, put by two at the same time, have one winner."""
    barrier = threading.Barrier(2)
    won: list[set[int]] = [set(), set()]

    def put(own: int) -> None:
        durable = place(uri)
        for number in range(PUTS):
            barrier.wait()
            if durable.put(f"manifests/{number}", f"token {own}".encode(), True):
                won[own].add(number)

    threads = [threading.Thread(target=put, args=(own,)) for own in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(won[0] ^ won[1])
