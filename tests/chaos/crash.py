"""What crash tests share: input, the oracle, a child process to kill, an eye on the result folders."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import child
import duckdb
import joining
import numpy as np
import polars as pl
import psutil
import tabled

import anabranch
from helpers import Rows, manifests, missing, orphans

HERE = Path(__file__).parent
SITES = (3, 2, 5, 1)
LONGEST = 240
"""Seconds one run may take, also on a machine that has much else to do."""
LOOK_SECONDS = 0.02
"""How often somebody looks at the result folders: each look takes time of the cores that the run has."""
# As `conftest.py` has it for drivers
SHORT_LIVED = {"spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"]}
Meddler = Callable[[subprocess.Popen[str], dict[str, Any]], None]


def make_input(folder: Path, seed: int, files: int, lanes: int = 0, rows: int = 2000) -> None:
    """Files of 20 seconds each, out of order within the lateness; a few rows are far too late.

    With lanes, each file comes in so many parts, each in a folder of its own, and a key in one of them.
    """
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    for number in range(files):
        times = random.integers(max(0, 20 * number - 15), 20 * number + 20, rows)
        times -= 60 * (random.random(rows) < 0.01) * (times >= 60)
        keys = random.integers(0, rows * 2, rows)
        frame = pl.DataFrame({"time": times, "k": keys, "v": random.integers(0, 1000, rows)})
        named = pl.when(pl.col("k") % 101 == 0).then(None).otherwise(pl.format("key-{}", "k"))
        frame = frame.with_columns(k=named, lane=named.hash() % max(lanes, 1))
        for lane in range(max(lanes, 1)):
            path = folder / (f"lane-{lane}" if lanes else "") / f"{number:04d}.parquet"
            path.parent.mkdir(exist_ok=True)
            # The hash of NULL is a number too: rows without a key are in one lane like all others
            frame.filter(pl.col("lane") == lane).drop("lane").write_parquet(path)
            os.utime(path, ns=(number * 10**9, number * 10**9))


ORACLE = {
    "flows": """SELECT time // 20 AS tb, k, COUNT(*) AS n, SUM(v)::BIGINT AS total,
                       last(v ORDER BY time, file, nth) AS latest
                FROM rows GROUP BY tb, k""",
    "visits": f"""
        WITH gaps AS (SELECT k, time, v, time - lag(time) OVER every AS gap FROM rows
                      WINDOW every AS (PARTITION BY k ORDER BY time)),
             numbered AS (SELECT *, COUNT(*) FILTER (gap IS NULL OR gap >= {child.GAP})
                                    OVER (PARTITION BY k ORDER BY time) AS visit FROM gaps)
        SELECT MIN(time) AS window_start, MAX(time) + {child.GAP} AS window_end, k, COUNT(*) AS n,
               SUM(v)::BIGINT AS total
        FROM numbered GROUP BY k, visit""",
    "recent": """SELECT time, k, v, (SUM(v) OVER (PARTITION BY k ORDER BY time, file, nth
                                                  ROWS 2 PRECEDING))::BIGINT AS of_three
                 FROM rows""",
    "pairs": """WITH numbered AS (SELECT *, row_number() OVER (PARTITION BY k
                                                             ORDER BY time, file, nth) - 1 AS row FROM rows)
                SELECT MIN(time) AS window_start, MAX(time) AS window_end, k, SUM(v)::BIGINT AS total,
                       last(v ORDER BY row) AS latest
                FROM numbered GROUP BY k, row // 2 HAVING COUNT(*) = 2""",
    # One file an epoch: epoch e updates the groups of file e, over all rows so far
    "live": """SELECT DISTINCT new.file AS epoch, time // 20 AS tb, v % 16 AS g, n, top
               FROM rows AS new, LATERAL (
                   SELECT COUNT(*) AS n, MAX(old.v) AS top FROM rows AS old
                   WHERE old.file <= new.file AND old.time // 20 = new.time // 20
                         AND old.v % 16 = new.v % 16)""",
    "peaks": """SELECT tb // 3 AS hour, COUNT(*) AS groups, MAX(n) AS most
                FROM (SELECT time // 20 AS tb, k, COUNT(*) AS n FROM rows GROUP BY ALL) GROUP BY ALL""",
    "big": "SELECT time, k, v FROM rows WHERE v % 50 = 0",
}


class Truth:
    """What DuckDB makes of the whole input: the right results of every query, and the late rows."""

    def __init__(self, folder: Path, oracle: dict[str, str]) -> None:
        with duckdb.connect() as base:
            base.execute(
                f"""
                CREATE TABLE everything AS
                SELECT time, k, v, parse_filename(filename, true)::BIGINT AS file,
                       file_row_number + 1000000 * coalesce(
                           try_cast(regexp_extract(filename, 'lane-([0-9]+)', 1) AS BIGINT), 0) AS nth
                FROM read_parquet('{folder}/**/*.parquet', filename=true, file_row_number=true);
                CREATE TABLE marks AS
                SELECT file, MAX(MAX(time)) OVER (ORDER BY file ROWS BETWEEN UNBOUNDED PRECEDING
                                                  AND 1 PRECEDING) - {child.LATENESS} AS mark
                FROM everything GROUP BY file;
                CREATE TABLE rows AS
                SELECT everything.* FROM everything JOIN marks USING (file)
                WHERE mark IS NULL OR time >= mark;
                """
            )
            self.results = {name: sorted(base.execute(sql).fetchall(), key=repr)
                            for name, sql in oracle.items()}  # fmt: skip
            late = "SELECT time, k, v FROM everything WHERE (file, nth) NOT IN (SELECT file, nth FROM rows)"
            self.late = sorted(base.execute(late).fetchall(), key=repr)
            self.rows = base.execute("SELECT COUNT(*) FROM everything").fetchall()[0][0]


@dataclass
class Crashing:
    """One run, killed again and again, over one input."""

    root: Path
    seed: int
    files: int
    engine: str = "twin"
    options: dict[str, Any] = field(default_factory=dict)
    kills: int = 0
    pace: float = 0.1
    """Seconds an epoch takes, as far as is known."""
    seen: dict[str, set[tuple[tuple[str, int, int], ...]]] = field(default_factory=dict)
    family: set[psutil.Process] = field(default_factory=set)

    def __post_init__(self) -> None:
        print(f"seed {self.seed}")
        self.watchdog = threading.Timer(0, int)
        make_input(self.root / "in", self.seed, self.files, self.options.get("lanes", 0))
        oracle = joining.ORACLE if self.options.get("joins") else ORACLE
        if self.options.get("replan"):
            oracle = joining.SHAPED
        if self.options.get("tables"):
            oracle = {**oracle, **tabled.ORACLE}
        self.truth = Truth(self.root / "in", oracle)

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def end(self) -> int:
        """The number of the last epoch, which closes all windows."""
        return self.files

    def spawn(self, **orders: Any) -> subprocess.Popen[str]:
        spec = {"root": str(self.root), "engine": self.engine, "conf": SHORT_LIVED}
        # Another number of sites each time: the next try of an epoch is not a copy of the last
        spec |= {"sites": SITES[self.kills % len(SITES)], **self.options, **orders}
        source = Path(anabranch.__file__).parents[1]
        path = [str(source), str(HERE), str(HERE.parent)]
        with open(self.root / "stderr", "a") as errors:
            process = subprocess.Popen(
                [sys.executable, str(HERE / "child.py"), json.dumps(spec)],
                stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            )  # fmt: skip
        # A run that never ends must not keep the test waiting, nor outlive it
        self.watchdog = threading.Timer(LONGEST, process.kill)
        self.watchdog.daemon = True
        self.watchdog.start()
        return process

    def wait(self, process: subprocess.Popen[str]) -> int:
        """How the process ended, once all it said is read."""
        code = process.wait()
        assert self.watchdog.is_alive(), self.complaint(f"a run took longer than {LONGEST} s")
        self.watchdog.cancel()
        return code

    def kill_exactly(self, step: str, epoch: int) -> None:
        """Runs until the process kills itself at this step."""
        process = self.spawn(kill=(step, epoch))
        for _ in process.stdout or ():
            self.note_family(process)
        assert self.wait(process) == -signal.SIGKILL, self.complaint(f"no kill at {step} {epoch}")
        self.count(f"at {step} of epoch {epoch}")

    def kill_at_table(self, when: str, number: int) -> None:
        """Runs until the process kills itself before or after a table has taken in its n-th epoch."""
        process = self.spawn(kill_at_table=(when, number))
        told = [json.loads(line) for line in process.stdout or ()]
        assert self.wait(process) == -signal.SIGKILL, self.complaint(f"no kill {when} {number}")
        self.count(f"{when} table commit {number}, after {last_step(told)}")

    def kill_at_change(self, number: int) -> bool:
        """Runs until the process kills itself at a rename or deletion; False if it ended before."""
        process = self.spawn(kill_at_change=number)
        told = [json.loads(line) for line in process.stdout or ()]
        code = self.wait(process)
        assert code in (0, -signal.SIGKILL), self.complaint(f"failed before change {number}")
        self.count(f"at change {number}, after {last_step(told)}", code != 0)
        return code != 0

    def kill_timed(self, epoch: int, part: float, pace: float | None = None) -> bool:
        """Kills the process when it is through this part of this epoch, or the first after it that is
        left; False if it ended before that. How long an epoch takes (`pace`) is, if not given, taken
        from the one before."""
        process = self.spawn()
        assert process.stdout
        began = None
        for line in process.stdout:
            told = json.loads(line)
            if told.get("step") == "begin":
                now = time.monotonic()
                self.pace = now - began if began else self.pace
                began = now
                if told["epoch"] >= epoch:
                    epoch = told["epoch"]
                    break
        time.sleep(part * (pace or self.pace))
        self.note_family(process)
        process.kill()
        rest = [json.loads(line) for line in process.stdout.read().splitlines()]
        killed = self.wait(process) == -signal.SIGKILL
        self.count(f"{part:.0%} into epoch {epoch}, after {last_step(rest) or 'begin'}", killed)
        return killed

    def count(self, where: str, killed: bool = True) -> None:
        """Notes a kill and looks at what it left: no manifest may name what is not there."""
        self.kills += killed
        self.look()
        print(f"killed {where}" if killed else f"too late to kill {where}")
        assert missing(self.checkpoint) == set()

    def finish(
        self, meddle: Meddler | None = None, code: int = 0, **orders: Any
    ) -> list[dict[str, Any]]:
        """Runs to the end and returns all the process said; `meddle` hears every word of it."""
        process = self.spawn(**orders)
        words = []
        for line in process.stdout or ():
            words.append(json.loads(line))
            if meddle:
                meddle(process, words[-1])
        assert self.wait(process) == code, self.complaint(f"expected the run to end with {code}")
        assert words[-1].get("done", False) == (code == 0)
        return words

    def complaint(self, what: str) -> str:
        return f"seed {self.seed}: {what}\n{(self.root / 'stderr').read_text()[-3000:]}"

    def note_family(self, process: subprocess.Popen[str]) -> None:
        """Remembers the processes this one has started: the JVM and Spark's workers."""
        if self.engine != "twin":
            with contextlib.suppress(psutil.NoSuchProcess):
                self.family |= set(psutil.Process(process.pid).children(recursive=True))

    def check_family_is_gone(self) -> None:
        """Without its driver, nothing of Spark may go on for long."""
        _, alive = psutil.wait_procs(self.family, timeout=60)
        for process in alive:
            process.kill()
        assert alive == [], self.complaint("processes of Spark outlive their driver")

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Keeps looking at the result folders as a reader would, and notes what it sees of each epoch."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(LOOK_SECONDS):
                self.look(since=time.time() - 1)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            self.watchdog.cancel()
            self.watchdog.function()
            over.set()
            watcher.join()

    def look(self, since: float = 0.0) -> None:
        """Notes the files of every visible epoch that was changed since then."""
        for name in self.truth.results:
            with (
                contextlib.suppress(FileNotFoundError),
                os.scandir(self.root / "out" / name) as epochs,
            ):
                for epoch in epochs:
                    if epoch.name.startswith("epoch=") and epoch.stat().st_ctime >= since:
                        with os.scandir(epoch.path) as files:
                            found = sorted((f.name, f.stat().st_size, f.inode()) for f in files)
                        self.seen.setdefault(epoch.path, set()).add(tuple(found))

    def check(self, columns: Mapping[str, int] = MappingProxyType({})) -> None:
        """Nothing lost, nothing doubled, nothing half, nothing left over.

        Of the queries in `columns` only so many of the first columns must be right.
        """
        for name in self.truth.results:
            found, wanted = (
                sorted((row[: columns.get(name)] for row in rows), key=repr)
                for rows in (self.results(name), self.truth.results[name])
            )
            assert len(found) == len(wanted), self.complaint(f"{name}: rows lost or doubled")
            assert found == wanted, self.complaint(f"{name}: other values")
        self.look()
        for folder, looks in self.seen.items():
            assert len(looks) == 1, self.complaint(
                f"{folder} was visible before it was whole: {looks}"
            )
        assert orphans(self.checkpoint) == set(), self.complaint("segments nobody names")
        stray = [path for path in self.root.rglob("*") if path.name.endswith(".tmp")]
        assert stray == [], self.complaint(f"half-written files are left: {stray}")
        assert list(self.root.glob("out/*/_epoch=*")) + list(self.root.glob("dead/*/*/_*")) == []
        record = manifests(self.checkpoint)[-1].streams["rows"]
        assert (record.rows, record.late) == (self.truth.rows, len(self.truth.late))
        kept = sorted((self.root / "dead").glob("late/rows/epoch=*/*.parquet"))
        rows = [
            row for part in kept for row in pl.read_parquet(part, hive_partitioning=False).rows()
        ]
        assert sorted(rows, key=repr) == self.truth.late

    def results(self, name: str) -> Rows:
        """All rows a reader finds; for updates with the epoch they came in, unless a table merges them."""
        rows: Rows = []
        if self.options.get("tables"):
            return tabled.read(self.options, self.root, name)
        for part in sorted((self.root / "out" / name).glob("epoch=*/*.parquet")):
            found = pl.read_parquet(part, hive_partitioning=False).rows()
            epoch = int(part.parent.name.split("=")[1])
            rows += [(epoch, *row) for row in found] if name == "live" else found
        return sorted(rows, key=repr)


def last_step(words: list[dict[str, Any]]) -> str:
    """The last step a process told of: `before-commit 3`."""
    steps = [f"{word['step']} {word['epoch']}" for word in words if "step" in word]
    return steps[-1] if steps else ""
