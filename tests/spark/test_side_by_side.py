"""The pairs of the page on Structured Streaming: Spark's program, our text, equal rows."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from programs.inputs import Inputs, write_inputs
from programs.written import clicked, seen, signals
from pyspark.sql import functions as F
from test_programs import by_spark, plain

from anabranch import Session

pytestmark = [pytest.mark.spark, pytest.mark.soak]

PAGE = Path(__file__).parents[2] / "docs/from-structured-streaming.md"
PAIRS = re.findall(r"```python\n([^`]*)```\n```sql\n([^`]*)```", PAGE.read_text())
ORDER = {
    "signals": ("devices", "time", "150 seconds"),
    "impressions": ("impressions", "impressionTime", "150 seconds"),
    "clicks": ("clicks", "clickTime", "210 seconds"),
}
"""The folder of each stream, its ordered attribute and its lateness."""


def test_each_pair_gives_equal_rows(spark: Any, tmp_path: Path) -> None:
    assert len(PAIRS) >= 10
    write_inputs(tmp_path)
    inputs = Inputs(spark, tmp_path)
    named = {
        "F": F,
        "signals": signals(inputs),
        "impressions": seen(inputs),
        "clicks": clicked(inputs),
    }
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        expected = []
        for program, _ in PAIRS:
            known = dict(named)
            exec(program, known)
            expected.append(Counter(by_spark(known["query"], "append")))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    for (_, text), rows in zip(PAIRS, expected, strict=True):
        # One session each: streams that queries bring together have one watermark
        session = Session.in_process(2, {"fsync": False})
        for name, (folder, ordered, lateness) in ORDER.items():
            order = {"ordered": ordered, "lateness": lateness, "late": "closed-windows"}
            session.stream(name, path=str(tmp_path / folder), **order)
        session.query("q", text, dialect="spark")
        run = session.start(sinks={"q": "memory"})
        assert run.await_termination(60)
        assert rows, f"nothing to compare: {text}"
        assert Counter(map(plain, run.results("q").rows())) == rows, text
