"""Every query of the porting pages runs as it stands there, and gives DuckDB's rows."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session
from anabranch.testing.nexmark import nexmark
from anabranch.testing.oracle import Oracle
from anabranch.testing.sources import EpochSource

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"from-flink.md": "flink", "from-risingwave.md": "risingwave"}
EVENTS = 3_000


def frames() -> dict[str, list[pl.DataFrame]]:
    return {
        name: [rows[: rows.height // 2], rows[rows.height // 2 :]]
        for name, rows in nexmark(EVENTS).items()
    }


@pytest.mark.parametrize(("page", "dialect"), PAGES.items())
def test_queries_of_the_page_run_and_give_the_rows_of_duckdb(page: str, dialect: str) -> None:
    texts = re.findall(r"```sql\n(.*?)```", (DOCS / page).read_text(), flags=re.S)
    assert len(texts) >= 10
    rows = frames()
    session = Session.in_process(sites=2, settings={"fsync": False})
    for name, parts in rows.items():
        session.stream(name, EpochSource(parts), ordered="date_time")
    queries = {
        f"q{number}": session.query(f"q{number}", text, dialect=dialect)
        for number, text in enumerate(texts)
    }
    run = session.start(sinks=dict.fromkeys(queries, "memory"), at_end="close")
    assert run.await_termination(300)
    oracle = Oracle(queries, rows)
    for name, text in zip(queries, texts, strict=True):
        got = run.results(name)
        assert got.height, f"{page}: no rows of\n{text}"
        oracle.check(name, got)
