"""Results posted to an address as JSON lines: a function as a sink.

python examples/webhook.py http://127.0.0.1:8080/results

After a crash the last epoch may be posted again. It then has the same key, by which a receiver knows it.
"""

from __future__ import annotations

import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa

from anabranch import Session, col, count

TRIES = 5
LONGEST = 30.0
"""Seconds to wait for an answer."""


def webhook(address: str, name: str, wait: float = 0.5) -> Callable[[pa.Table, int], None]:
    """A sink that posts each epoch; `name` and the epoch are the key of a message."""

    def post(table: pa.Table, epoch: int) -> None:
        frame = pl.DataFrame(table)
        request = urllib.request.Request(
            address,
            data=frame.write_ndjson().encode(),
            headers={"Content-Type": "application/x-ndjson", "Idempotency-Key": f"{name}-{epoch}"},
        )
        for trial in range(TRIES):
            try:
                with urllib.request.urlopen(request, timeout=LONGEST):
                    return
            except urllib.error.HTTPError as error:
                # Whoever refuses a message will refuse it again; a server in trouble may not
                if error.code < 500 or trial == TRIES - 1:
                    raise
            except urllib.error.URLError:
                if trial == TRIES - 1:
                    raise
            time.sleep(wait * 2**trial)

    return post


def main(address: str) -> None:
    with Session.local(cores=2) as session:
        tcp = session.stream("tcp", generator="packets", rows=200_000, ordered="time")
        minute = (col("time") // 60).alias("tb")
        session.query("flows", tcp.group_by(minute, "srcIP").agg(count().alias("cnt")))
        session.start(
            sinks={"flows": webhook(address, "flows")},
            checkpoint=Path("webhook-checkpoint"),
            at_end="close",
        ).await_termination()


if __name__ == "__main__":
    main(sys.argv[1])
