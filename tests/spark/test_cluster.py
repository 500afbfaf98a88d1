"""A real standalone cluster of two workers: commands as a new user types them, deaths, slow machines."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import psutil
import pytest
from standalone import MEMORY, SPARK, Standalone, standalone

pytestmark = pytest.mark.spark

ANABRANCH = str(Path(sys.executable).with_name("anabranch"))
COMMON = ["--conf", f"spark.executor.memory={MEMORY}", "--json"]
QUERIES = """
CREATE STREAM calls ORDERED BY time LATENESS 5 WITH (path = 'in');
CREATE QUERY flows AS SELECT tb, k, COUNT(*) AS n, SUM(v) AS total FROM calls GROUP BY time/20 AS tb, k;
CREATE SINK flows TO 'out';
SET checkpoint = 'ckpt';
SET at_end = 'close';
SET max_files_per_epoch = 1;
"""
JOB = "from anabranch.cli import main\n\nmain()\n"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Standalone]:
    with standalone(tmp_path / "cluster") as made:
        yield made


def make_input(folder: Path, files: int, rows: int = 4_000, more: str = "") -> None:
    (folder / "in").mkdir(parents=True)
    for number in range(files):
        frame = pl.select(
            time=20 * number + pl.int_range(rows) % 20, k=(pl.int_range(rows) * 7919) % 1009,
            v=pl.int_range(rows) % 100,
        )  # fmt: skip
        path = folder / "in" / f"{number:04d}.parquet"
        frame.write_parquet(path)
        os.utime(path, ns=(number * 10**9, number * 10**9))
    (folder / "queries.sql").write_text(QUERIES + more)
    (folder / "job.py").write_text(JOB)


def environment() -> dict[str, str]:
    """Of a user who has set nothing but where Java is."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    kept.pop("SPARK_LOCAL_IP", None)
    return kept


def typed(
    folder: Path, command: list[str], watch: Callable[[int], None] | None = None
) -> list[Any]:
    """The epochs that a command tells of; `watch` is told the number of each as it ends."""
    process = subprocess.Popen(
        command, cwd=folder, env=environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    said: list[str] = []
    assert process.stdout
    assert process.stderr
    listening = threading.Thread(target=said.extend, args=[process.stderr])
    listening.start()
    epochs = []
    for line in process.stdout:
        told = json.loads(line)
        if "batchId" in told:
            epochs.append(told)
            if watch is not None:
                watch(len(epochs))
    listening.join()
    assert process.wait() == 0, "".join(said)[-3000:]
    return epochs


def check(folder: Path) -> None:
    """The results are DuckDB's."""
    query = f"""SELECT time // 20 AS tb, k, COUNT(*) AS n, SUM(v)::BIGINT AS total
                FROM '{folder}/in/*.parquet' GROUP BY ALL"""
    with duckdb.connect() as oracle:
        expected = oracle.sql(query).fetchall()
    found = pl.read_parquet(folder / "out" / "**/*.parquet").select("tb", "k", "n", "total")
    assert sorted(found.rows()) == sorted(expected)


def placed(epochs: list[Any]) -> list[bool]:
    """Of each site of each epoch for which there was a choice, whether it ran where it was to."""
    sites = [site for epoch in epochs for site in epoch["customMetrics"]["sites"]]
    asked = [site for site in sites if site["askedExecutor"]]
    return [site["executor"] == site["askedExecutor"] for site in asked]


def test_a_file_runs_on_a_cluster_whose_executor_is_killed(
    tmp_path: Path, cluster: Standalone
) -> None:
    """Started with nothing set but the master: the package is found by executors, each has a site."""
    make_input(tmp_path, files=6)
    killed: list[int] = []

    def kill(epoch: int) -> None:
        if epoch == 2:
            (victim,) = cluster.executors("worker-1")
            victim.send_signal(signal.SIGKILL)
            killed.append(victim.pid)

    run = [ANABRANCH, "run", "queries.sql", "--master", cluster.master, *COMMON]
    epochs = typed(tmp_path, run, kill)
    assert killed
    assert {site["executor"] for site in epochs[0]["customMetrics"]["sites"]} == {"0", "1"}
    assert placed(epochs[:2]) == [True] * 4
    check(tmp_path)


def submitted(master: str, *given: str) -> list[str]:
    """`spark-submit` of the same, as the installed Spark has it."""
    options = ["--master", master, "--conf", f"spark.executor.memory={MEMORY}", *given]
    local = [
        "--conf",
        "spark.driver.host=127.0.0.1",
        "--conf",
        "spark.driver.bindAddress=127.0.0.1",
    ]
    submit = str(SPARK / "bin" / "spark-submit")
    return [submit, *options, *local, "job.py", "run", "queries.sql", "--json"]


@pytest.fixture
def without_us(tmp_path: Path) -> Path:
    """An interpreter that has our libraries and not this package."""
    folder = tmp_path / "without"
    venv.create(folder, symlinks=True)
    (installed,) = Path(sys.prefix).glob("lib/python*/site-packages")
    (there,) = folder.glob("lib/python*/site-packages")
    for path in installed.iterdir():
        if (
            "anabranch" not in path.name
            and path.suffix != ".pth"
            and not (there / path.name).exists()
        ):
            (there / path.name).symlink_to(path)
    return folder / "bin" / "python"


@pytest.mark.soak
def test_submitted_to_executors_without_the_package_that_come_go_and_race(
    tmp_path: Path, cluster: Standalone, without_us: Path
) -> None:
    """By spark-submit, with dynamic allocation and speculation: the driver sends its package along."""
    make_input(tmp_path, files=8)
    conf = {
        "spark.pyspark.python": str(without_us), "spark.pyspark.driver.python": sys.executable,
        "spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "1", "spark.dynamicAllocation.executorIdleTimeout": "2s",
        "spark.speculation": "true", "spark.speculation.quantile": "0.1",
        "spark.speculation.multiplier": "1.01", "spark.speculation.minTaskRuntime": "1ms",
        "spark.speculation.interval": "5ms",
    }  # fmt: skip
    given = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    epochs = typed(tmp_path, submitted(cluster.master, *given))
    assert len(epochs) >= 8
    check(tmp_path)


@pytest.mark.soak
def test_bare_executors_get_all_from_an_archive(tmp_path: Path, cluster: Standalone) -> None:
    """An interpreter with nothing is refused in one line that says what to do; doing that helps."""
    make_input(tmp_path, files=3)
    venv.create(tmp_path / "bare", symlinks=True)
    bare = ["--conf", f"spark.pyspark.python={tmp_path / 'bare' / 'bin' / 'python'}"]
    run = [ANABRANCH, "run", "queries.sql", "--master", cluster.master, *COMMON, *bare]
    refused = subprocess.run(run, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert refused.returncode == 1
    told = " ".join(refused.stderr.split())
    assert "No module named" in told
    assert "`anabranch package FILE.tar.gz`" in told
    pack = [ANABRANCH, "package", "libraries.tar.gz", "--json"]
    done = subprocess.run(pack, cwd=tmp_path, capture_output=True, text=True, check=True)
    typed(tmp_path, [*run, "--conf", json.loads(done.stdout)["conf"]])
    check(tmp_path)


@pytest.mark.soak
def test_a_worker_is_killed_and_another_joins(tmp_path: Path, cluster: Standalone) -> None:
    make_input(tmp_path, files=100, rows=100_000)

    def meddle(epoch: int) -> None:
        if epoch == 8:
            cluster.kill("worker-0")
        elif epoch == 14:
            cluster.start_worker("worker-2")

    run = [ANABRANCH, "run", "queries.sql", "--master", cluster.master, *COMMON]
    epochs = typed(tmp_path, run, meddle)
    right = placed(epochs)
    # Those of the epoch in which it died may have run elsewhere
    assert sum(right) >= 0.99 * len(right) - 2, right
    last = epochs[-1]["customMetrics"]["sites"]
    assert {site["executor"] for site in last} - {"0", "1"}, "the executor of the new worker"
    check(tmp_path)


CGROUP = Path("/sys/fs/cgroup/cpu")


@contextlib.contextmanager
def slowed(processes: list[psutil.Process], share: float) -> Iterator[None]:
    """Processes, and those that they start, with so much of a core."""
    group = CGROUP / f"anabranch-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text("20000")
        (group / "cpu.cfs_quota_us").write_text(str(int(20_000 * share)))
        for process in processes:
            for each in [process, *process.children(recursive=True)]:
                (group / "cgroup.procs").write_text(str(each.pid))
        yield
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (CGROUP / "cgroup.procs").write_text(pid)
        group.rmdir()


@pytest.mark.soak
@pytest.mark.skipif(
    not os.access(CGROUP, os.W_OK), reason="needs root and the cpu controller of cgroup v1"
)
def test_adaptation_takes_partitions_from_a_machine_that_is_slow(
    tmp_path: Path, cluster: Standalone
) -> None:
    """A worker gets a quarter of a core: its site ends with clearly fewer rows than the other."""
    make_input(tmp_path, files=60, rows=400_000)
    with contextlib.ExitStack() as stack:

        def meddle(epoch: int) -> None:
            if epoch == 10:
                stack.enter_context(slowed(cluster.executors("worker-1"), 0.25))

        run = [ANABRANCH, "run", "queries.sql", "--master", cluster.master, *COMMON]
        epochs = typed(tmp_path, run, meddle)
    sites = [epoch["customMetrics"]["sites"] for epoch in epochs]
    hosts = {site["executor"]: site["site"] for site in sites[5]}
    assert len(hosts) == 2
    (slow,) = [site for epoch in [sites[12]] for site in _slower(epoch)]
    before = sum(epoch[slow]["rowsIn"] for epoch in sites[4:10])
    after = sum(epoch[slow]["rowsIn"] for epoch in sites[-12:-6])
    assert after < 0.7 * before, (before, after)
    check(tmp_path)


def _slower(sites: list[dict[str, Any]]) -> list[int]:
    return [max(sites, key=lambda site: site["busySeconds"])["site"]]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_half_an_hour_of_deaths(tmp_path: Path, cluster: Standalone) -> None:
    """Every half minute an executor or a worker dies, or a worker joins; results are exact."""
    make_input(tmp_path, files=40, more="SET trigger = 'continuous';")
    begun, ended = time.monotonic(), threading.Event()
    seconds = float(os.environ.get("ANABRANCH_SOAK_SECONDS", "1800"))
    workers = ["worker-0", "worker-1"]

    def meddle() -> None:
        number = 2
        while not ended.wait(30):
            if number % 3 == 0 and len(workers) > 1:
                cluster.kill(workers.pop(0))
                name = f"worker-{number}"
                cluster.start_worker(name)
                workers.append(name)
            else:
                for victim in cluster.executors(workers[number % len(workers)]):
                    victim.kill()
            number += 1

    def feed() -> None:
        number, frame = 40, pl.read_parquet(tmp_path / "in" / "0000.parquet")
        while time.monotonic() - begun < seconds:
            path = tmp_path / "in" / f".{number:04d}"
            frame.with_columns(time=pl.col("time") + 20 * number).write_parquet(path)
            path.rename(tmp_path / "in" / f"{number:04d}.parquet")
            number += 1
            time.sleep(2)

    run = [ANABRANCH, "run", "queries.sql", "--master", cluster.master, *COMMON]
    process = subprocess.Popen(run, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL)
    meddling = threading.Thread(target=meddle)
    meddling.start()
    try:
        feed()
    finally:
        ended.set()
        meddling.join()
    assert process.poll() is None, "the run ended by itself"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=300) == 130
    # The rest is done anywhere
    rest = [ANABRANCH, "run", "queries.sql", "--in-process", "--trigger", "available-now"]
    subprocess.run(rest, cwd=tmp_path, check=True, capture_output=True, timeout=600)
    check(tmp_path)
