"""Rows among others: what the best rows of windows and the rows before cost, and what is kept of them.

Three parts over the same packets. The ten largest of each destination and long window: what is kept must stay
far below the rows of the window, and the time of a row must not grow with the window. The packet before of
each source: one row of each is kept. The largest packet of each source and minute beside Spark, which has no
ROW_NUMBER over a stream and is asked for the greatest struct of the columns instead.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anabranch.bench.data import Packets
from anabranch.bench.duck import connect
from anabranch.bench.jobs import Ours, Reference, run_job
from anabranch.bench.measure import load, machine
from anabranch.bench.ours import BEST
from anabranch.bench.result import Result
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.session import Session

FILES, ROWS = 24, 250_000
"""Files, one an epoch, and the rows of each."""
SOURCES = 20_000
SECONDS_PER_FILE = 20
MOST = 10
WINDOW = FILES * SECONDS_PER_FILE
"""One window of all rows: what is kept is never given back before the end."""
TOP = (
    "SELECT * FROM (SELECT time, srcIP, destIP, len, ROW_NUMBER() OVER (PARTITION BY time // {window}, "
    "destIP ORDER BY len DESC, time, srcIP) AS n FROM tcp) WHERE n <= {most}"
)
BEFORE = (
    "SELECT time, srcIP, len, LAG(len) OVER (PARTITION BY srcIP ORDER BY time) AS before FROM tcp"
)
NOTES = (
    f"{FILES} files of packets with {SOURCES:,} sources and 8 destinations, one an epoch.",
    "kept_ratio is the most rows of state after an epoch, of the ten best of each destination, against the "
    "rows of the window so far; before_ratio that of LAG against the sources.",
    "growth is the time of a row in the last quarter of the epochs against that in the second: one window "
    "holds all rows, so what is kept grows no more, and nor should the time.",
    "ratio is rows per second beside Spark, the first epoch of each left out; Spark is asked for the "
    "greatest struct by window and source, since it refuses ROW_NUMBER over a stream.",
)


def run_topn(quick: bool, steps: Steps) -> Result:
    """All three parts; with `quick`, a tenth of the rows."""
    rows = ROWS // 10 if quick else ROWS
    packets = Packets((rows,) * FILES, SOURCES, SECONDS_PER_FILE)
    steps.expect(6)
    before = load()
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        folder = Path(scratch)
        data = folder / "packets"
        steps.begin(f"Writing {packets.total:,} rows")
        list(packets.write(data))
        steps.begin("The ten best of each destination")
        top = _in_process(data, folder / "top", TOP.format(window=WINDOW, most=MOST))
        steps.begin("The packet before of each source")
        lag = _in_process(data, folder / "before", BEFORE)
        steps.begin("Anabranch, the largest packet of each source and minute")
        ours = run_job(Ours(data=str(data), scratch=str(folder / "ours"), best=True))
        steps.begin("Spark, the same")
        spark = run_job(Reference(data=str(data), scratch=str(folder / "spark"), best=True))
        steps.begin("DuckDB's answers")
        equal = {
            "top": _equal(data, folder / "top" / "results", TOP.format(window=WINDOW, most=MOST)),
            "before": _counted(data, folder / "before" / "results"),
            "best": _among(data, ours.results, BEST),
            "spark_best": _among(data, spark.results, BEST),
        }
    figures: dict[str, Any] = {
        "quick": quick,
        "rows": packets.total,
        "rows_per_s": round(ours.rate),
        "spark_rows_per_s": round(spark.rate),
        "ratio": round(ours.rate / spark.rate, 2),
        "top_rows_per_s": top["rows_per_s"],
        "before_rows_per_s": lag["rows_per_s"],
        "kept_rows": top["most_state"],
        "kept_ratio": round(top["most_state"] / packets.total, 5),
        "before_ratio": round(lag["most_state"] / SOURCES, 3),
        "growth": top["growth"],
        "equal": all(equal.values()),
        "answers": equal,
    }
    bars = (
        Bar("ratio", figures["ratio"], ">=", 5),
        Bar("kept_ratio", figures["kept_ratio"], "<=", 0.01),
        Bar("growth", figures["growth"], "<=", 1.5),
    )
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("topn", figures, bars, NOTES, figures["equal"], circumstances)


def _in_process(data: Path, scratch: Path, text: str) -> dict[str, Any]:
    limits = {"max_bytes_per_epoch": 1 << 40, "max_rows_per_epoch": 1 << 40}
    session = Session.in_process(2, {"max_files_per_epoch": 1, "recent_progress": 1000, **limits})
    session.stream("tcp", path=data, ordered="time")
    session.query("q", text)
    run = session.start(
        sinks={"q": scratch / "results"}, checkpoint=scratch / "checkpoint", at_end="close"
    )
    run.await_termination()
    told = [epoch for epoch in run.recent_progress if epoch["numInputRows"]]
    state = [sum(one["numRowsTotal"] for one in epoch["stateOperators"]) for epoch in told]
    times = [epoch["durationMs"]["triggerExecution"] / epoch["numInputRows"] for epoch in told]
    quarter = len(times) // 4
    return {
        "most_state": max(state),
        "growth": round(sum(times[-quarter:]) / sum(times[quarter : 2 * quarter]), 3),
        "rows_per_s": round(quarter * 1000 / sum(times[-quarter:])),
    }


def _equal(data: Path, results: Path, text: str) -> bool:
    """Whether results are exactly DuckDB's."""
    with connect() as duck:
        duck.execute(f"CREATE VIEW tcp AS FROM '{data}/*.parquet'")
        given = f"(SELECT * FROM read_parquet('{results}/**/*.parquet', hive_partitioning = false))"
        wrong = f"(({text}) EXCEPT ALL {given}) UNION ALL ({given} EXCEPT ALL ({text}))"
        return _count(duck, f"SELECT count(*) FROM ({wrong})") == 0


def _among(data: Path, results: Path, text: str) -> bool:
    """Whether all results are DuckDB's, and those of no closed window are missing."""
    with connect() as duck:
        duck.execute(f"CREATE VIEW tcp AS FROM '{data}/*.parquet'")
        given = f"read_parquet('{results}/**/*.parquet', hive_partitioning = false)"
        found = f"(SELECT tb, srcIP, len, time, destIP FROM {given})"
        last = _count(duck, f"SELECT max(tb) FROM {found}")
        wanted = f"(SELECT * FROM ({text}) WHERE tb <= {last})"
        wrong = f"({wanted} EXCEPT ALL {found}) UNION ALL ({found} EXCEPT ALL {wanted})"
        return _count(duck, f"SELECT count(*) FROM ({wrong})") == 0


def _counted(data: Path, results: Path) -> bool:
    """Whether the rows before are as many, and sum up to as much, as DuckDB's.

    Packets of one source and second are told apart by arrival, which a file does not tell DuckDB.
    """
    with connect() as duck:
        given = f"read_parquet('{results}/**/*.parquet', hive_partitioning = false)"
        ours = duck.execute(f"SELECT count(*), count(before), sum(len) FROM {given}").fetchall()
        whole = f"FROM '{data}/*.parquet'"
        rows = duck.execute(f"SELECT count(*), count(*) - count(DISTINCT srcIP), sum(len) {whole}")
        return bool(ours == rows.fetchall())


def _count(duck: Any, text: str) -> int:
    return int(duck.execute(text).fetchall()[0][0])
