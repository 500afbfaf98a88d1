"""What it costs to be seen: W1 with history, metrics and a page that someone reads, and without, in turn.

Both do the same work in the same session, epoch for epoch; so of each epoch the fastest time counts, for what
else the machine does only adds to it.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from anabranch.bench.data import w1
from anabranch.bench.jobs import Ours
from anabranch.bench.measure import load, machine, spread
from anabranch.bench.oracle import BenchOracle
from anabranch.bench.ours import UNLIMITED, register_files, start_ours
from anabranch.bench.result import Result, describe_spread
from anabranch.engine.run import Run
from anabranch.observe.bars import Bar
from anabranch.observe.metrics import Metrics, serve_metrics
from anabranch.observe.steps import Steps
from anabranch.session import Session
from anabranch.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, REPEATS = 10, 6
WINDOW = 60
SCRAPE_SECONDS = 1.0
HISTORY = Settings().event_history_bytes
MODES = {"seen": HISTORY, "unseen": 0}
BAR = 0.02
NOTES = (
    "seen: events are kept beside the checkpoint, a page sends them to one reader, and metrics are fetched "
    "every second; unseen: no history, and nobody listens. Events themselves are made in both.",
    f"One file an epoch, {FILES} epochs, the first left out; {REPEATS} runs of each, in turn, in one "
    "session. The cost is that of the fastest time of each epoch over all runs, summed up; by_pairs has the "
    "runs one by one.",
)


def run_observe(quick: bool, steps: Steps) -> Result:
    """W1 both ways."""
    from anabranch.engine.local import local_spark

    before, repeats = load(), 2 if quick else REPEATS
    steps.expect(2 + repeats * len(MODES))
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        spark = local_spark()
        try:
            figures = _measure(spark, Path(scratch), repeats, quick, steps)
        finally:
            spark.stop()
    bars = (Bar("cost", figures["cost"], "<=", BAR),)
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("observe", figures, bars, NOTES, figures["equal"], circumstances)


def _measure(
    spark: SparkSession, folder: Path, repeats: int, quick: bool, steps: Steps
) -> dict[str, Any]:
    steps.begin("writing")
    data, part = folder / "data", 10 if quick else 1
    for _ in w1(1_000_000 // part, FILES, 200_000 // part).write(data):
        pass
    times: dict[str, list[list[float]]] = {mode: [] for mode in MODES}
    equal, sent = True, 0
    # The first run finds Spark cold: it does not count
    warm_up = [(-1, "unseen")]
    for repeat, mode in [*warm_up, *((n, mode) for n in range(repeats) for mode in MODES)]:
        history = MODES[mode]
        steps.begin(f"{mode}, run {repeat + 1}")
        scratch = folder / f"{mode}-{repeat}"
        scratch.mkdir()
        job = Ours(data=str(data), scratch=str(scratch), window=WINDOW, streams=())
        session = Session(spark, settings={
            "max_files_per_epoch": 1, "max_bytes_per_epoch": UNLIMITED,
            "max_rows_per_epoch": UNLIMITED, "recent_progress": 1000, "event_history_bytes": history,
        })  # fmt: skip
        register_files(session, job)
        run = start_ours(session, job, "available-now")
        with _seen(run) if mode == "seen" else contextlib.nullcontext(lambda: 0) as read:
            run.await_termination()
            sent += read()
        if repeat >= 0:
            times[mode].append(
                [one["durationMs"]["triggerExecution"] for one in run.recent_progress[1:FILES]]
            )
        equal &= BenchOracle(job.data, WINDOW).check(scratch / "results").equal
    fastest = {mode: sum(map(min, zip(*some, strict=True))) for mode, some in times.items()}
    sums = {mode: [sum(run) for run in some] for mode, some in times.items()}
    return {
        "quick": quick,
        "cost": round(fastest["seen"] / fastest["unseen"] - 1, 4),
        "by_pairs": [
            round(a / b - 1, 4) for a, b in zip(sums["seen"], sums["unseen"], strict=True)
        ],
        "fastest_ms": {mode: round(ms, 1) for mode, ms in fastest.items()},
        "spread": {mode: describe_spread(spread(some)) for mode, some in sums.items()},
        "page_bytes": sent,
        "equal": equal,
    }


@contextlib.contextmanager
def _seen(run: Run) -> Iterator[Callable[[], int]]:
    """A page with a reader, and metrics that someone fetches; the function tells what the page has sent."""
    page, metrics, ending = run.page(), Metrics(), threading.Event()
    run.listen(metrics.add, recent=True)
    port, close = serve_metrics(metrics, 0)
    got = [0]

    def read() -> None:
        headers = {"Authorization": f"Bearer {page.access.token}"}
        with contextlib.suppress(OSError, http.client.HTTPException):
            asked = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
            asked.request("GET", "/api/stream", headers=headers)
            answer = asked.getresponse()
            while part := answer.readline():
                got[0] += len(part)

    def scrape() -> None:
        while not ending.wait(SCRAPE_SECONDS):
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            with contextlib.suppress(OSError, http.client.HTTPException):
                asked.request("GET", "/metrics")
                asked.getresponse().read()
            asked.close()

    threads = [threading.Thread(target=one, daemon=True) for one in (read, scrape)]
    for thread in threads:
        thread.start()
    try:
        yield lambda: got[0]
    finally:
        ending.set()
        page.close()
        close()
        for thread in threads:
            thread.join(10)
