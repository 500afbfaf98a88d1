"""Traffic between hosts by the minute, from generated packets, with the Python face.

python examples/flows.py [folder for the results]
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from anabranch import Session, bit_or, col, count, max_, sum_
from anabranch.engine.run import Run


def main(out: Path) -> None:
    with Session.local(cores=2, settings={"max_rows_per_epoch": 200_000}) as session:
        run = run_flows(session, out)
    if run.last_progress is None:
        print(
            f"Nothing new to read: an earlier run has read all packets. Remove {out} to run it anew."
        )
        return
    print(pl.read_parquet(out / "flows").sort("bytes", descending=True).head(5))
    print(run.results("suspicious").sort("cnt", descending=True).head(5))


def run_flows(session: Session, out: Path) -> Run:
    tcp = session.stream(
        "tcp", generator="packets", rows=1_000_000, rows_per_second=4000, skew="zipf", disorder=3,
        ordered="time", lateness=3,
    )  # fmt: skip
    minute = (col("time") // 60).alias("tb")

    flows = session.query(
        "flows",
        tcp.group_by(minute, "srcIP", "destIP").agg(
            count().alias("cnt"), sum_("len").alias("bytes")
        ),
    )
    session.query("heavy_flows", flows.group_by("tb", "srcIP").agg(max_("cnt").alias("max_cnt")))
    session.query(
        "suspicious",
        tcp.group_by(minute, "srcIP", "destIP", "srcPort", "destPort")
        .agg(bit_or("flags").alias("flags"), count().alias("cnt"))
        .having(col("flags") == 0x29),
    )
    print(session.explain())

    run = session.start(
        sinks={"flows": out / "flows", "heavy_flows": out / "heavy_flows", "suspicious": "memory"},
        checkpoint=out / "checkpoint",
        at_end="close",
    )
    run.await_termination()
    return run


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/flows-py"))
