"""What operators say they remember is what lies in their segments."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from anabranch import Session
from anabranch.state.line import read_newest
from anabranch.state.place import place
from anabranch.state.segment import DUE, LOCATOR, open_arrow
from anabranch.state.table import BY_WATERMARK, FOR_GOOD, GIVEN_BACK, inputs_by_table
from anabranch.testing.sources import EpochSource

ROWS = pl.DataFrame({"t": [1, 1, 2, 3, 5, 8], "k": [1, 2, 1, 2, 1, 1], "v": [5, 6, 7, 8, 9, 1]})
NEAR = "a.t BETWEEN b.t - 50 AND b.t + 50"
QUERIES = {
    "tumble": ("SELECT tb, k, SUM(v) AS s, AVG(v) AS m FROM a GROUP BY t/100 AS tb, k", "final"),
    "update": ("SELECT k, MAX(v) AS m FROM a GROUP BY k", "update"),
    "hop": ("SELECT window_start, COUNT(*) AS n FROM a GROUP BY HOP(t, 100, 50)", "final"),
    "session": ("SELECT k, COUNT(*) AS n FROM a GROUP BY SESSION(t, 50), k", "final"),
    "count": ("SELECT COUNT(*) AS n, SUM(v) AS s FROM a GROUP BY COUNT_WINDOW(3, 1)", "final"),
    "inner": (f"SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k AND {NEAR}", "final"),
    "tree": (f"SELECT a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k AND {NEAR} "
             "JOIN a AS c ON a.k = c.k AND c.t BETWEEN a.t - 9 AND a.t + 9", "final"),
    "left": (f"SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k AND a.v < b.v AND {NEAR}", "final"),
    "theta": (f"SELECT a.v, b.v AS w FROM a JOIN b ON a.v < b.v AND {NEAR}", "final"),
    "rows": ("SELECT a.v, b.v AS w FROM a JOIN b ON a.v < b.v AND WITHIN_ROWS(4)", "final"),
}  # fmt: skip


@pytest.mark.parametrize("kind", QUERIES)
def test_segments_have_the_columns_that_are_declared(kind: str, tmp_path: Path) -> None:
    sql, emit = QUERIES[kind]
    settings = {"fsync": False, "allow_unbounded_state": True, "join_shape": "left-deep"}
    session = Session.in_process(2, settings)
    for name in ("a", "b"):
        session.stream(name, EpochSource([ROWS[:3], ROWS[3:]]), ordered="t")
    session.query("q", sql, emit=emit)
    run = session.start(sinks={"q": "memory"}, checkpoint=tmp_path)
    assert run.await_termination(60)
    folder = place(str(tmp_path))
    manifest = read_newest(folder)
    assert manifest
    seen, records = 0, manifest.subqueries.values()
    for name, record in manifest.subqueries.items():
        tables = {table.name: table for table in run.plan.subqueries[name].operator.tables}
        for ref in record.shelf:
            seen += 1
            found = open_arrow(folder, ref.file, ref.checksum).schema.names
            assert sorted(found) == sorted([LOCATOR, DUE, *tables[ref.table].columns]), ref.table
            assert tables[ref.table].goes in (BY_WATERMARK, GIVEN_BACK, FOR_GOOD)
            assert {*tables[ref.table].derived_from} <= {*tables}
        if kind == "tree":
            assert inputs_by_table([*tables.values()]) == {
                "in0": (0,), "in1": (1,), "in2": (2,), "mid01": (0, 1), "mid02": (0, 2), "mid12": (1, 2),
            }  # fmt: skip
    assert seen
    assert (kind == "tree") == any("mid01" in record.shelf.rows_by_table for record in records)
