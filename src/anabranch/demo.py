"""`anabranch demo`: generated packets with skewed sources through four network queries.

    flows        packets and bytes of each pair of addresses and minute
    heavy_flows  the largest of them for each source, computed from `flows`
    flow_pairs   sources with flows in two minutes in a row, `heavy_flows` joined with itself
    suspicious   connections whose flags add up to FIN, PSH and URG alone: no honest one does that

What it shows is in `observe/`; what it writes lies in one folder, which it makes anew each time.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console

from anabranch.amount import several, table
from anabranch.engine.run import Run
from anabranch.errors import SettingsError
from anabranch.language.aggregate import bit_or, count, max_, sum_
from anabranch.language.expression import col
from anabranch.observe.totals import Totals
from anabranch.session import Session

MARK = ".anabranch-demo"
QUERIES = ("flows", "heavy_flows", "flow_pairs", "suspicious")
MINUTES = 5
EPOCHS = 10
DISORDER_SECONDS = 3
ATTACK = 0b101001  # URG, PSH, FIN
TOP_ROWS = 3
TOP_BY = {"flows": "bytes", "heavy_flows": "max_cnt", "flow_pairs": "max_cnt", "suspicious": "cnt"}


@dataclass(frozen=True)
class Demo:
    """What to run and where to put it."""

    rows: int
    out: Path
    seed: int = 0

    def generator(self) -> dict[str, Any]:
        """The options of the packets' generator: five minutes of traffic, whatever the rows."""
        return {
            "generator": "packets", "skew": "zipf", "seed": self.seed, "disorder": DISORDER_SECONDS,
            "rows_per_second": max(1, self.rows // (60 * MINUTES)),
        }  # fmt: skip

    def define(self, session: Session) -> None:
        """Registers the stream and the queries."""
        minute = (col("time") // 60).alias("tb")
        tcp = session.stream(
            "tcp", ordered="time", lateness=DISORDER_SECONDS, rows=self.rows,
            rows_per_epoch=max(1, self.rows // EPOCHS), **self.generator(),
        )  # fmt: skip
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
            for name in (*QUERIES, "checkpoint"):
                shutil.rmtree(out / name, ignore_errors=True)
            (out / MARK).touch()
        except OSError as error:
            raise SettingsError(f"Cannot use the folder '{out}': {error.strerror}.") from error

    def start(self, session: Session) -> Run:
        """Starts the run, from nothing if the folder was cleared."""
        return session.start(
            sinks={query: self.out / query for query in QUERIES},
            checkpoint=self.out / "checkpoint",
            at_end="close",
            name="demo",
        )

    def results(self, query: str) -> pl.DataFrame:
        """What the run has written for a query."""
        files = sorted((self.out / query).glob("epoch=*/*.parquet"))
        return pl.read_parquet(files, hive_partitioning=False) if files else pl.DataFrame()


def summary(demo: Demo, totals: Totals) -> dict[str, Any]:
    """The demonstration as one JSON object."""
    return {
        **totals.summary(),
        "generator": demo.generator(),
        "out": str(demo.out.absolute()),
        "queries": {
            query: {
                "rows": totals.results.get(query, 0),
                "path": str((demo.out / query).absolute()),
            }
            for query in QUERIES
        },
    }


def show_results(demo: Demo, totals: Totals, console: Console) -> None:
    """The top rows of each query, the rate, and where the output lies."""
    for query, by in TOP_BY.items():
        rows = demo.results(query)
        if rows.height:
            count = several(rows.height, "row")
            console.print(f"\n[bold]{query}[/]  {count}, top by {by}", highlight=False)
            head, *lines = top_rows(rows, by)
            console.print(head, style="dim", highlight=False, soft_wrap=True)
            for line in lines:
                console.print(line, highlight=False, soft_wrap=True)
    written = sum(totals.results.values())
    console.print(
        f"\n{several(totals.rows, 'packet')} in {totals.seconds:.1f} s, {several(written, 'result row')}: "
        f"[bold cyan]{totals.rate:,.0f} rows/s[/]",
        highlight=False,
    )
    if totals.warm_rate:
        console.print(
            f"[bold cyan]{totals.warm_rate:,.0f} rows/s[/] once Spark had started its workers",
            highlight=False,
        )
    if not written:
        return
    console.print(f"\nThe results lie in [bold]{demo.out}/[/]. To read them:", highlight=False)
    for tool, line in (
        ("polars", f'pl.read_parquet("{demo.out}/flows")'),
        ("duckdb", f"FROM '{demo.out}/flows/*/*.parquet'"),
    ):
        console.print(f"  [dim]{tool}[/]  [green]{line}[/]", highlight=False, soft_wrap=True)


def top_rows(rows: pl.DataFrame, by: str) -> list[str]:
    """The rows with the greatest values below their names; addresses as people write them."""
    shown: list[Callable[[int], str]] = []
    for name in rows.columns:
        plain = name in ("tb", "srcPort", "destPort")
        shown.append(address if name.endswith("IP") else str if plain else "{:,}".format)
    # Every column takes part, so that equal values do not change places from run to run
    best = rows.sort([by, *rows.columns], descending=True).head(TOP_ROWS)
    cells = [[show(value) for show, value in zip(shown, row, strict=True)] for row in best.rows()]
    return table([rows.columns, *cells], ">" * rows.width)


def address(number: int) -> str:
    """An IPv4 address in its usual form.

    >>> address(0x0A000001)
    '10.0.0.1'
    """
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
