"""The traffic and the three query sets of the experiments in the paper on query-aware partitioning.

A trace of packets of flows between hosts, 60 seconds a window. As on the taps of the paper, the stream
comes in as many parts as there are partitions: row by row in turn, or by the hash of a partitioning set.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from anabranch.language.expression import Named
from anabranch.language.sql.expression import read_expression
from anabranch.operators.stateless import compute
from anabranch.routing.hashing import hash_columns
from anabranch.routing.locator import slot_of

WINDOW = 60
ATTACK = 41
"""The flags that only suspicious flows have together: FIN, PSH and URG."""

FLOW = ("srcIP", "destIP", "srcPort", "destPort")

SUSPICIOUS = f"""
    SELECT tb, srcIP, destIP, srcPort, destPort, BIT_OR(flags) AS orflag, COUNT(*) AS cnt, SUM(len) AS bytes
    FROM tcp GROUP BY time/{WINDOW} AS tb, srcIP, destIP, srcPort, destPort
    HAVING BIT_OR(flags) = {ATTACK}"""
SUBNETS = f"""
    SELECT tb, net, destIP, COUNT(*) AS cnt, SUM(len) AS bytes
    FROM tcp GROUP BY time/{WINDOW} AS tb, srcIP & 0xFFF0 AS net, destIP"""
JITTER = """
    SELECT time, srcIP, destIP, srcPort, destPort, newest - oldest AS delay
    FROM (SELECT time, srcIP, destIP, srcPort, destPort,
                 MAX(time) OVER (PARTITION BY srcIP, destIP, srcPort, destPort ORDER BY time
                                 ROWS 1 PRECEDING) AS newest,
                 MIN(time) OVER (PARTITION BY srcIP, destIP, srcPort, destPort ORDER BY time
                                 ROWS 1 PRECEDING) AS oldest
          FROM tcp WHERE destPort = 443)
    WHERE newest - oldest >= 40"""
FLOWS = f"""
    SELECT tb, srcIP, destIP, COUNT(*) AS cnt
    FROM tcp GROUP BY time/{WINDOW} AS tb, srcIP, destIP"""
HEAVY_FLOWS = "SELECT tb, srcIP, MAX(cnt) AS max_cnt FROM flows GROUP BY tb, srcIP"
FLOW_PAIRS = """
    SELECT tb, srcIP, max_cnt, before AS max_cnt_before
    FROM (SELECT tb, srcIP, max_cnt,
                 FIRST(max_cnt) OVER (PARTITION BY srcIP ORDER BY tb ROWS 1 PRECEDING) AS before,
                 MIN(tb) OVER (PARTITION BY srcIP ORDER BY tb ROWS 1 PRECEDING) AS tb_before
          FROM heavy_flows)
    WHERE tb = tb_before + 1"""

EXPECTED = {
    "suspicious": f"""
        SELECT time // {WINDOW} AS tb, srcIP, destIP, srcPort, destPort, BIT_OR(flags) AS orflag,
               COUNT(*) AS cnt, SUM(len) AS bytes
        FROM tcp GROUP BY ALL HAVING BIT_OR(flags) = {ATTACK}""",
    "subnets": f"""
        SELECT time // {WINDOW} AS tb, srcIP & 65520 AS net, destIP, COUNT(*) AS cnt, SUM(len) AS bytes
        FROM tcp GROUP BY ALL""",
    "jitter": """
        SELECT * FROM (
            SELECT time, srcIP, destIP, srcPort, destPort,
                   time - LAG(time) OVER (PARTITION BY srcIP, destIP, srcPort, destPort ORDER BY time)
                   AS delay
            FROM tcp WHERE destPort = 443) WHERE delay >= 40""",
    "flow_pairs": f"""
        WITH flows AS (SELECT time // {WINDOW} AS tb, srcIP, destIP, COUNT(*) AS cnt
                       FROM tcp GROUP BY ALL),
             heavy AS (SELECT tb, srcIP, MAX(cnt) AS max_cnt FROM flows GROUP BY ALL)
        SELECT S1.tb, S1.srcIP, S1.max_cnt, S2.max_cnt AS max_cnt_before
        FROM heavy S1, heavy S2 WHERE S1.srcIP = S2.srcIP AND S1.tb = S2.tb + 1""",
}
"""What DuckDB is asked on the whole trace, as the paper writes the queries: with self-joins."""


@dataclass(frozen=True)
class Configuration:
    """How the stream comes, and whether the data of a host is aggregated before it is sent."""

    name: str
    partitioned_by: tuple[str, ...] = ()
    per_host: bool = False


@dataclass(frozen=True)
class Experiment:
    """One experiment."""

    name: str
    queries: dict[str, str]
    output: tuple[str, ...]
    """The queries whose results leave."""
    configurations: tuple[Configuration, ...]
    figures: tuple[int, int]
    """The figures of the paper: processor and network load."""
    spread: int = 1
    """Times as many flows of fewer packets: so many more of them meet in a group by subnet."""


NAIVE, PARTIAL = Configuration("naive"), Configuration("partial", per_host=True)

EXPERIMENTS = (
    Experiment(
        "simple", {"suspicious": SUSPICIOUS}, ("suspicious",),
        (NAIVE, PARTIAL, Configuration("optimal", FLOW)), (8, 9),
    ),
    Experiment(
        "conflict", {"subnets": SUBNETS, "jitter": JITTER}, ("subnets", "jitter"),
        (
            NAIVE,
            Configuration("suboptimal", FLOW),
            Configuration("optimal", ("srcIP & 0xFFF0", "destIP")),
        ),
        (10, 11), spread=8,
    ),
    Experiment(
        "complex", {"flows": FLOWS, "heavy_flows": HEAVY_FLOWS, "flow_pairs": FLOW_PAIRS},
        ("flow_pairs",),
        (
            NAIVE,
            PARTIAL,
            Configuration("suboptimal", ("srcIP", "destIP")),
            Configuration("optimal", ("srcIP",)),
        ),
        (13, 14),
    ),
)  # fmt: skip


def many_queries(count: int) -> dict[str, str]:
    """A query set of this size: two of three group packets somehow, the third reads the one before."""
    terms = (*FLOW, "srcIP & 0xFFFFFF00", "destIP & 0xFFFF0000", "srcIP & 0xFFFFFFF0")
    random = np.random.default_rng(0)
    queries: dict[str, str] = {}
    for number in range(count):
        if number % 3 == 2:
            text = f"SELECT tb, k0, SUM(c) AS c FROM q{number - 1} GROUP BY tb, k0"
        else:
            keys = random.choice(terms, random.integers(1, 4), replace=False)
            named = ", ".join(f"{key} AS k{at}" for at, key in enumerate(keys))
            listed = ", ".join(f"k{at}" for at in range(len(keys)))
            text = f"SELECT tb, {listed}, COUNT(*) AS c FROM tcp GROUP BY time/60 AS tb, {named}"
        queries[f"q{number}"] = text
    return queries


@dataclass(frozen=True)
class Trace:
    """Windows of packets; every window has the same flows, about `rows / flows` packets of each."""

    windows: int
    rows: int
    flows: int
    hosts: int
    seed: int = 0

    def window(self, number: int) -> pl.DataFrame:
        """The packets of one window, in the order of time."""
        fixed = np.random.default_rng(self.seed)
        source = fixed.integers(0, self.hosts, self.flows)
        target = fixed.integers(0, 64, self.flows)
        ports = fixed.integers(1024, 65536, self.flows)
        # The jitter of one service is watched: the conflict is dominated by the other query
        service = fixed.choice([80, 443, 25], self.flows, p=[0.8, 0.08, 0.12])
        suspicious = fixed.random(self.flows) < 0.05
        random = np.random.default_rng((self.seed, number))
        flow = random.integers(0, self.flows, self.rows)
        ordinary = random.choice([2, 16, 18, 24], self.rows)
        odd = random.choice([1, 8, 32], self.rows)
        start = number * WINDOW
        return pl.DataFrame(
            {
                "time": np.sort(random.integers(start, start + WINDOW, self.rows)),
                "srcIP": source[flow],
                "destIP": target[flow],
                "srcPort": ports[flow],
                "destPort": service[flow],
                "flags": np.where(suspicious[flow], odd, ordinary),
                "len": random.integers(40, 1500, self.rows),
            }
        )

    def write(self, folder: Path, parts: int, partitioned_by: tuple[str, ...]) -> None:
        """One folder for each part, one file in it for each window."""
        for number in range(self.windows):
            rows = self.window(number)
            lanes = part_of(rows, parts, partitioned_by)
            for part in range(parts):
                path = folder / f"part-{part}" / f"{number:04d}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                rows.filter(pl.Series(lanes == part)).write_parquet(path, compression="lz4")
                # Files are taken in this order, and the clock may not tell two of them apart
                os.utime(path, (number, number))


def part_of(rows: pl.DataFrame, parts: int, partitioned_by: tuple[str, ...]) -> np.ndarray:
    """The part of each row: in turn, or by the hash of the set."""
    if not partitioned_by:
        return np.arange(rows.height) % parts
    terms = [read_expression(text, rows.schema) for text in partitioned_by]
    named = [Named(f"term{at}", term) for at, term in enumerate(terms)]
    hashes = hash_columns(compute(rows, named).get_columns(), rows.height)
    return slot_of(hashes, parts).astype(np.int64)
