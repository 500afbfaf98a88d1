"""Sites run where the driver says, on executors that come and go."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session

pytestmark = [pytest.mark.spark, pytest.mark.chaos]

ROWS, KILL_AT = 110_000, 10


def test_sites_keep_their_executors_and_survive_the_loss_of_one(tmp_path: Path) -> None:
    program = Path(__file__).with_name("cluster.py")
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path), str(ROWS), str(KILL_AT)],
        capture_output=True, text=True, timeout=400, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout.splitlines()[-1])
    epochs = told["epochs"]
    assert len(epochs) >= ROWS // 5_000
    calm = [sites for number, sites in enumerate(epochs) if number != KILL_AT]
    right = [all(one["executor"] == one["askedExecutor"] for one in sites) for sites in calm]
    assert sum(right) >= 0.99 * len(right), right
    assert {one["executor"] for one in epochs[0]} == {"0", "1", "2"}
    # The partitions of the lost executor's site are spread over the others, at once
    after = epochs[KILL_AT + 1]
    assert after[1]["rowsIn"] == 0
    assert after[0]["rowsIn"] > 0
    assert after[2]["rowsIn"] > 0
    assert any(entry["cause"] == "site 1 is gone" for entry in told["history"])
    assert "1" not in {one["executor"] for one in epochs[-2]}
    found = pl.read_parquet(tmp_path / "out" / "**/*.parquet")
    plain = Session.in_process(1)
    plain.stream("tcp", generator="packets", rows=ROWS, ordered="time", rows_per_second=500,
                 keys=500, seed=9)  # fmt: skip
    plain.query("flows", "SELECT tb, srcIP, COUNT(*) AS c FROM tcp GROUP BY time/60 AS tb, srcIP")
    run = plain.start(sinks={"flows": "memory"}, at_end="close")
    assert run.await_termination(120)
    assert sorted(found.rows()) == sorted(run.results("flows").rows())
