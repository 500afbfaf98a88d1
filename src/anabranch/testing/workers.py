"""Chaos seeds in processes of their own, so that all cores are used.

A worker reads a seed a line from its standard input and writes its report as a line of JSON. So it needs
nothing of the program that started it, and a seed does the same as in that program.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from anabranch.errors import RunError
from anabranch.testing.chaos_report import SeedReport

WORKER = "from anabranch.testing.workers import work; work()"


def apart(seeds: Iterable[int], jobs: int) -> Iterator[SeedReport]:
    """Runs the seeds in so many processes; reports come as they are ready."""
    waiting, ready = iter(seeds), queue.Queue[SeedReport | Exception | None]()
    taking = threading.Lock()
    # Frames are small here: threads of each process would only be in each other's way
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=environment,
        )
        for _ in range(jobs)
    ]  # fmt: skip

    def drive(worker: subprocess.Popen[str]) -> None:
        assert worker.stdin
        assert worker.stdout
        try:
            while True:
                with taking:
                    seed = next(waiting, None)
                if seed is None:
                    break
                with contextlib.suppress(BrokenPipeError):
                    worker.stdin.write(f"{seed}\n")
                    worker.stdin.flush()
                line = worker.stdout.readline()
                if not line:
                    raise RunError(f"The process that ran seed {seed} of chaos has died.")
                ready.put(_read(json.loads(line)))
            ready.put(None)
        except Exception as error:
            ready.put(error)

    for worker in workers:
        threading.Thread(target=drive, args=(worker,), daemon=True).start()
    try:
        at_work = jobs
        while at_work:
            report = ready.get()
            if isinstance(report, Exception):
                raise report
            if report is None:
                at_work -= 1
            else:
                yield report
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                assert pipe
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def _read(plain: dict[str, Any]) -> SeedReport:
    return SeedReport(
        plain["seed"], plain["seconds"], Counter(plain["counts"]), Counter(plain["fired"]),
        plain["failure"],
    )  # fmt: skip


def work() -> None:
    """Runs the seeds that come on standard input until there are no more."""
    from anabranch.testing.chaos import run_seed

    told = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    # What anything prints meanwhile must not come between the reports
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        print(json.dumps(vars(run_seed(int(line)))), file=told, flush=True)
