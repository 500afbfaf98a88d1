"""Nonsense for everything that reads what people write: SQL, specification files, settings, source files.

Each case is something right, mutated. It must be taken or refused with an error of ours, within seconds:
anything else is a failure, told with the case's number, which repeats it. What is taken is run, on few rows
and without Spark. Whether its results are right is not looked at: fuzz does that.
"""

from __future__ import annotations

import contextlib
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from anabranch.errors import AnabranchError, RunError
from anabranch.session import Session
from anabranch.settings import Settings, read_settings
from anabranch.spec import read_spec
from anabranch.testing.processes import LostItem, spread

MOST_SECONDS = 2.0
"""A case may take so much time of the processor."""
MOST_WAITED = 5.0
"""And stand still for so long, with nothing to do: waits for a busy processor are not counted."""
LONGEST_RUN = 20.0
"""Seconds after which a run is taken to hang, and stopped."""
LONGEST = 60.0
"""Seconds after which a group of cases is taken to hang."""
GROUP = 50
"""Cases that a process is given at a time."""

TCP = {
    "time": [1, 5, 5, 58, 61, 130, 131], "srcIP": [1, 2, 1, None, 1, 2, 1],
    "len": [40, None, 7, -1, 2**40, 0, 1500],
    "name": ["a", "", None, "abc", "12", "é", "-7"],
}  # fmt: skip
QUERIES = (
    "SELECT tb, srcIP, SUM(len) / COUNT(*) AS mean FROM tcp "
    "GROUP BY time/60 AS tb, srcIP HAVING COUNT(*) > 1",
    "SELECT window_start, MAX(len) AS m FROM tcp WHERE name LIKE 'a%' GROUP BY HOP(time, 60, 20)",
    "SELECT a.time, b.len FROM tcp a LEFT JOIN tcp b "
    "ON a.srcIP = b.srcIP AND b.time BETWEEN a.time - 5 AND a.time",
    "WITH big AS (SELECT * FROM tcp WHERE len > 1e3) "
    "SELECT time, CASE WHEN len IN (1, 2) THEN 'x' END AS c FROM big",
    "SELECT time, AVG(len) OVER (PARTITION BY srcIP ORDER BY time ROWS 3 PRECEDING) AS a FROM tcp",
    "SELECT time, TRY_CAST(substring(name, 1, 2) AS BIGINT) & 0xFF AS x FROM tcp "
    "UNION ALL SELECT time, len AS x FROM tcp",
)
PARTS = {
    r"SUM|COUNT|MAX|AVG": ("SUM", "COUNT", "MAX", "AVG", "STDDEV", "ARRAY_AGG", "MEDIAN", "LEAST", "LAST"),
    r"HOP|TUMBLE": ("HOP", "TUMBLE", "SESSION", "COUNT_WINDOW"),
    r"LEFT|JOIN": ("LEFT", "JOIN", "FULL JOIN", "ASOF JOIN", ""),
    r"time|srcIP|len|name|\*": ("time", "srcIP", "len", "name", "*", "NULL", "a.len", "time / 7", "'x'"),
    r"BIGINT": ("BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "BOOLEAN", "DECIMAL(38, 37)", "TINYINT", "VARCHAR"),
    r"\d+": ("0", "1", "-1", "2", "7", "60", "1000", "0.5", "1e300", "NULL", "''", "DATE '2026-01-01'",
             "9223372036854775807", "99999999999999999999"),
    r"[-+/&><]": ("-", "+", "/", "%", "&", "<<", ">>", "<", ">=", "=", "||", " IN "),
    r"PRECEDING|PARTITION BY|HAVING|UNION ALL|AND": ("FOLLOWING", "PRECEDING", "AND", "OR", "WHERE", ""),
}  # fmt: skip
"""What in a query is exchanged, and for what."""
PART = re.compile("|".join(f"\\b(?:{part})\\b" if "[" not in part else part for part in PARTS))
YAML = """streams:
  tcp: {generator: packets, rows: 100, ordered: time, lateness: 5}
queries:
  flows: {from: tcp, where: len > 0, group_by: [time/60 AS tb, srcIP], aggregate: [count(*) AS cnt]}
  long: SELECT tb, cnt FROM flows WHERE cnt > 3
sinks: {flows: out/flows, long: console}
settings: {partitions_per_site: 8}
run: {at_end: close, sites: 2}
"""
SQL = """CREATE STREAM tcp ORDERED BY time LATENESS 5 WITH (generator = 'packets', rows = 100);
CREATE QUERY flows AS SELECT tb, srcIP, COUNT(*) AS cnt FROM tcp GROUP BY time/60 AS tb, srcIP;
SET at_end = 'close';
CREATE SINK flows TO 'out/flows' WITH (format = 'csv');
"""
WORDS = (
    *"()+-*/%&|^<>=,.;'\"~[]{}:#@!?\\\0\n\t ", "SELECT ", " FROM ", " WHERE ", " NULL ", " AND ", "NOT ",
    "((((", "))))", "0x", "1e999",
    "99999999999999999999", "-9223372036854775808", " AS ", "''", '""', "/*", "--",
    "\ud800", "é", "\U0001f600", "*", "&a ", "*a", "!!",
    "- ", " OVER (", "CASE WHEN ", " JOIN tcp ON ", " UNION ALL ",
    "INTERVAL '1' DAY", "CAST(len AS ", "${", "__x", "2**70", ".inf", ".nan",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**63, 2**70, 1.5, float("inf"), float("nan"), "", "x", "none",
    [], {}, b"", "1",
)  # fmt: skip


@dataclass
class NonsenseReport:
    """What became of the cases."""

    passed: int = 0
    failed: list[dict[str, Any]] = field(default_factory=list)


def run_nonsense(
    cases: int, first: int = 0, jobs: int = 1, tell: Callable[[int], None] = lambda cases: None
) -> NonsenseReport:
    """Runs so many cases; `tell` hears how many more are done. With one job all is in this process."""
    groups = [
        range(begin, min(first + cases, begin + GROUP))
        for begin in range(first, first + cases, GROUP)
    ]
    report = NonsenseReport()
    alone = ((group, run_group(group)) for group in groups)
    for group, faults in alone if jobs == 1 else spread(run_group, groups, jobs, LONGEST):
        if isinstance(faults, LostItem):
            problem = f"one of the cases {group[0]} to {group[-1]}: {faults.what}"
            faults = [{"case": group[0], "kind": "process", "problem": problem}]
        report.failed += faults
        report.passed += len(group) - len(faults)
        tell(len(group))
    return report


def run_group(group: range) -> list[dict[str, Any]]:
    """What went wrong with these cases."""
    with tempfile.TemporaryDirectory(prefix="anabranch-nonsense-") as folder:
        faults = (run_case(case, Path(folder)) for case in group)
        return [fault for fault in faults if fault is not None]


def run_case(case: int, folder: Path) -> dict[str, Any] | None:
    """One case; None, or what went wrong with it."""
    chance = random.Random(case)
    kind = chance.choice(list(KINDS))
    begun, used, queued = time.monotonic(), time.process_time(), _queued()
    problem = ""
    try:
        KINDS[kind](chance, folder)
    except AnabranchError as error:
        # What nobody raised on purpose is wrapped where a run ends
        if isinstance(error, RunError) and str(error).startswith("The run failed:"):
            problem = str(error)[:300]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        problem = f"{type(error).__name__}: {error}"[:300]
    seconds = time.process_time() - used
    waited = time.monotonic() - begun - seconds - max(0.0, _queued() - queued)
    if not problem and seconds > MOST_SECONDS:
        problem = f"took {seconds:.1f} s"
    if not problem and waited > MOST_WAITED:
        problem = f"waited {waited:.1f} s for nothing"
    return {"case": case, "kind": kind, "problem": problem} if problem else None


def _queued() -> float:
    """Seconds that threads of this process were ready while others had their turn, where Linux tells."""
    told = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # the thread has ended
            told += int(path.read_text().split()[1])
    return told / 1e9


def mutate(chance: random.Random, text: str) -> str:
    """The text with a few letters, words or stretches changed, doubled, moved or left out."""
    for _ in range(chance.randint(1, 5)):
        begin = chance.randint(0, len(text))
        end = min(len(text), begin + chance.randint(0, 12))
        match chance.randint(0, 4):
            case 0:
                text = text[:begin] + text[end:]
            case 1:
                text = text[:begin] + chance.choice(WORDS) + text[end:]
            case 2:
                text = text[:begin] + text[begin:end] * chance.choice((2, 3, 40)) + text[end:]
            case 3:
                other = chance.randint(0, len(text))
                text = text[:other] + text[begin:end] + text[other:]
            case _:
                text = (
                    text[:begin] + chance.choice(WORDS) * chance.choice((1, 2, 200)) + text[begin:]
                )
    return text


def _run(session: Session) -> None:
    """What was taken is run to its end, with results in memory wherever they were to go."""
    asked = [output.query for output in session.plan().outputs]
    run = session.start(sinks=dict.fromkeys(asked, "memory"), at_end="close")
    try:
        if not run.await_termination(LONGEST_RUN):
            raise TimeoutError(f"the run has not ended after {LONGEST_RUN:.0f} s")
    finally:
        run.stop()


def bend(chance: random.Random, text: str) -> str:
    """The text with a few of its names, numbers and signs exchanged for others: more of it is taken."""
    for _ in range(chance.randint(1, 3)):
        found = chance.choice(list(PART.finditer(text)))
        likes = next(part for part in PARTS if re.fullmatch(part, found[0]))
        text = text[: found.start()] + chance.choice(PARTS[likes]) + text[found.end() :]
    return text


def _query(chance: random.Random, folder: Path) -> None:
    _asked(folder, mutate(chance, chance.choice(QUERIES)))


def _bent(chance: random.Random, folder: Path) -> None:
    _asked(folder, bend(chance, chance.choice(QUERIES)))


def _asked(folder: Path, text: str) -> None:
    place = folder / "tcp"
    if not place.exists():
        place.mkdir()
        pl.DataFrame(TCP).write_parquet(place / "one.parquet")
    session = Session.in_process(sites=2)
    session.stream("tcp", path=place, ordered="time")
    session.query("q", text)
    _run(session)


def _yaml(chance: random.Random, folder: Path) -> None:
    _spec(folder / "spec.yml", mutate(chance, YAML))


def _sql(chance: random.Random, folder: Path) -> None:
    _spec(folder / "spec.sql", mutate(chance, SQL))


def _spec(path: Path, text: str) -> None:
    path.write_bytes(text.encode(errors="surrogatepass"))
    session = read_spec(path).session(in_process=True)
    # A run of very many rows or sites may take its time
    small = ("sites: 2}", "rows: 100,") if path.suffix == ".yml" else ("rows = 100)",)
    if all(number in text for number in small):
        _run(session)


def _settings(chance: random.Random, folder: Path) -> None:
    names = chance.sample(Settings.__struct_fields__, chance.randint(1, 3))
    read_settings({name: chance.choice(VALUES) for name in names})


def _file(chance: random.Random, folder: Path) -> None:
    """A source file with bytes changed."""
    ending = chance.choice(("parquet", "arrow", "csv", "json"))
    # A file of its own name for each: samples and schemas are read once
    place = folder / f"data{chance.random()}"
    place.mkdir()
    path = place / f"one.{ending}"
    try:
        rows = pl.DataFrame({"time": [1, 2, 3], "v": [1.5, None, 2.5], "s": ["a", "b,", None]})
        writers: dict[str, Callable[[Path], Any]] = {
            "parquet": rows.write_parquet,
            "arrow": rows.write_ipc,
            "csv": rows.write_csv,
        }
        writers.get(ending, rows.write_ndjson)(path)
        content = bytearray(path.read_bytes())
        for _ in range(chance.randint(1, 6)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content[: chance.choice((len(content), chance.randrange(len(content))))])
        session = Session.in_process(sites=2)
        session.stream("s", path=str(place), format=ending, ordered="time")
        session.query("q", "SELECT * FROM s")
        _run(session)
    finally:
        shutil.rmtree(place, ignore_errors=True)


KINDS: dict[str, Callable[[random.Random, Path], None]] = {
    "query": _query, "bent": _bent, "yaml": _yaml, "sql": _sql, "settings": _settings, "file": _file,
}  # fmt: skip
