"""What `anabranch demo` runs: six minutes of a network's traffic, in which trouble comes.

    flows        packets and bytes of each pair of addresses and minute
    heavy_flows  the largest of them for each source, computed from `flows`
    flow_pairs   sources with flows in two minutes in a row, `heavy_flows` joined with itself
    suspicious   connections whose flags add up to FIN, PSH and URG alone: no honest one does that
    names        names that were looked up often in a minute
    incidents    lookups, logins and alerts of one host close to each other: three streams joined

The trouble is in the input (`demo/input.py`), but for the slow site, which the hook for faults slows down;
the display (`demo/view.py`) knows no more of it than the run tells.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from anabranch.demo.input import (
    EPOCHS,
    MINUTE,
    MINUTES,
    STREAMS,
    packets,
    rows_in_files,
    write_files,
)
from anabranch.engine.faults import Burden
from anabranch.engine.run import Run
from anabranch.errors import SettingsError
from anabranch.language.aggregate import bit_or, count, max_, sum_
from anabranch.language.expression import col
from anabranch.session import Session

MARK = ".anabranch-demo"
QUERIES = ("flows", "heavy_flows", "flow_pairs", "suspicious", "names", "incidents")
FOLDERS = (*QUERIES, "checkpoint", "as-it-began", "input")
ATTACK = 0b101001  # URG, PSH, FIN
OFTEN = 12
"""So many lookups of a name in a minute are often."""
REACH = 20
"""Seconds within which lookups, logins and alerts belong together."""
INCIDENTS = (
    "SELECT a.time AS time, a.host AS host, a.length AS length, b.tries AS tries, c.level AS level "
    "FROM lookups a JOIN logins b ON a.host = b.host "
    f"AND b.time BETWEEN a.time - {REACH} AND a.time + {REACH} "
    f"JOIN alerts c ON a.host = c.host AND c.time BETWEEN a.time - {REACH} AND a.time + {REACH} "
    "AND b.tries > c.level + 93 AND a.length > c.level + 80"
)
SECONDS_PER_ROW = 45e-6
"""What a row takes a site more: so that sites that share two cores are like machines of their own."""
SLOW_SITE, SLOWDOWN = 1, 3.0
SITE_MEMORY = 2_600_000
"""Bytes of state that a site may keep."""


@dataclass(frozen=True)
class DemoPhase:
    """What goes on in a minute of the traffic, or in several."""

    title: str
    trouble: str
    kinds: tuple[str, ...]
    """What is done about it, if it is: kinds of actions."""


PHASES = (
    DemoPhase("calm", "nothing unusual", ()),
    DemoPhase(
        "skewed key", "half of all packets come from one address",
        ("condense", "split", "move", "merge", "combine", "allot"),
    ),
    DemoPhase("slow site", f"site {SLOW_SITE} takes {SLOWDOWN:g} times as long", ("move", "split", "merge")),
    DemoPhase("state", "every lookup has a new name", ("spill", "cleanup", "move")),
    DemoPhase("join order", "few lookups, many logins", ("replan",)),
)  # fmt: skip


def phase_of(time: int) -> int:
    """Which phase a moment of the traffic belongs to."""
    return min(max(0, time) // MINUTE, len(PHASES) - 1)


@dataclass(frozen=True)
class Demo:
    """What to run and where to put it."""

    rows: int
    out: Path
    sites: int = 4
    seed: int = 0

    @property
    def rows_per_second(self) -> int:
        return max(1, self.rows // (MINUTE * MINUTES))

    @property
    def all_rows(self) -> int:
        """Rows of all streams."""
        return self.rows + rows_in_files(self.rows)

    def settings(self, adaptive: bool) -> dict[str, Any]:
        """The settings of the run that adapts, or of the one beside it that stays as it began."""
        shared = {
            "max_files_per_epoch": 1, "partitions_per_site": 8, "split_tasks": 1, "fsync": False,
            "recent_progress": 10 * EPOCHS, "replan_effort": 0.2,
        }  # fmt: skip
        if adaptive:
            return {**shared, "site_memory_bytes": SITE_MEMORY}
        # Memory without end, but a figure, so that it is told what sites keep
        none = {
            "policy": "none",
            "plans": "fixed",
            "combine_reduction": 1e9,
            "allot_imbalance": 1e9,
        }
        return {**shared, **none, "site_memory_bytes": 1 << 40}

    def generator(self) -> dict[str, Any]:
        """The options of the packets' generator: six minutes of traffic, whatever the rows."""
        return packets(self.rows_per_second, self.seed)

    def burdens(self, epoch: int) -> dict[int, Burden]:
        """What a row takes more on each site, and on the slow one when its time has come."""
        slow = phase_of(epoch * MINUTE * MINUTES // EPOCHS) >= 2
        return {
            site: Burden(
                SECONDS_PER_ROW, SLOWDOWN if slow and site == SLOW_SITE % self.sites else 1.0
            )
            for site in range(self.sites)
        }

    def define(self, session: Session) -> None:
        """Registers the streams and the queries."""
        tcp = session.stream(
            "tcp", ordered="time", lateness=self.generator()["disorder"], rows=self.rows,
            rows_per_epoch=max(1, self.rows_per_second * MINUTE * MINUTES // EPOCHS),
            **self.generator(),
        )  # fmt: skip
        for name in STREAMS:
            session.stream(name, path=self.out / "input" / name, ordered="time")
        minute = (col("time") // MINUTE).alias("tb")
        flows = session.query(
            "flows",
            tcp.group_by(minute, "srcIP", "destIP").agg(
                count().alias("cnt"), sum_("len").alias("bytes")
            ),
        )
        heavy_flows = session.query(
            "heavy_flows", flows.group_by("tb", "srcIP").agg(max_("cnt").alias("max_cnt"))
        )
        session.query(
            "flow_pairs",
            heavy_flows.join(
                heavy_flows, on=["srcIP", ("tb", col("tb") + 1)], suffix="before"
            ).select("tb", "srcIP", "max_cnt", "max_cnt_before"),
        )
        session.query(
            "suspicious",
            tcp.group_by(minute, "srcIP", "destIP", "srcPort", "destPort")
            .agg(bit_or("flags").alias("flags"), count().alias("cnt"), sum_("len").alias("bytes"))
            .having(col("flags") == ATTACK),
        )
        session.query(
            "names",
            session.from_stream("lookups")
            .group_by(minute, "name")
            .agg(count().alias("cnt"))
            .having(col("cnt") >= OFTEN),
        )
        session.query("incidents", INCIDENTS)

    def clear(self) -> None:
        """Makes the folder and empties it; one that the demo has not made is left alone."""
        out = self.out
        try:
            out.mkdir(parents=True, exist_ok=True)
            if any(out.iterdir()) and not (out / MARK).exists():
                raise SettingsError(
                    f"The folder '{out}' is not empty and was not made by the demo: "
                    "choose another one with --out."
                )
            for name in FOLDERS:
                shutil.rmtree(out / name, ignore_errors=True)
            (out / MARK).touch()
        except OSError as error:
            raise SettingsError(f"Cannot use the folder '{out}': {error.strerror}.") from error

    def write_input(self) -> None:
        """Writes the files of the streams that are none of the generator's."""
        write_files(self.out / "input", self.rows, self.seed)

    def start(self, session: Session, adaptive: bool = True) -> Run:
        """Starts a run, from nothing if the folder was cleared."""
        self.define(session)
        beside = self.out / "as-it-began"
        return session.start(
            sinks={q: self.out / q if adaptive else beside / q for q in QUERIES},
            checkpoint=(self.out if adaptive else beside) / "checkpoint",
            at_end="close",
            name="demo" if adaptive else "demo-as-it-began",
            burdens=self.burdens,
        )

    def results(self, query: str) -> pl.DataFrame:
        """What the run has written for a query."""
        files = sorted((self.out / query).glob("epoch=*/*.parquet"))
        return pl.read_parquet(files, hive_partitioning=False) if files else pl.DataFrame()
