"""Every golden file: its plan, and its rows at several numbers of sites, strategies and cuts into epochs.

The rows are compared with those written in the file and with DuckDB's.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import duckdb
import polars as pl
import pytest
from golden_file import FOLDER, GoldenFile, read, with_plan
from outline import outline

from anabranch.errors import AnabranchError
from anabranch.testing.compare import assert_same_rows
from anabranch.testing.oracle import Oracle

FILES = sorted((FOLDER / "sql").glob("*.sql"))
FAILING = sorted((FOLDER / "fail").glob("*.sql"))
Frames = dict[str, list[pl.DataFrame]]


def name_of(path: Path) -> str:
    return path.stem


def as_written(golden: GoldenFile) -> Frames:
    return {stream: golden.frames(stream) for stream in golden.ordered}


def in_one_epoch(frames: Frames) -> Frames:
    return {stream: [pl.concat(parts)] for stream, parts in frames.items()}


def row_by_row(frames: Frames, ordered: dict[str, str]) -> Frames | None:
    """An epoch for every row, if time never goes back and there is one stream; else rows would be late."""
    if len(frames) > 1:
        return None
    ((stream, parts),) = frames.items()
    rows = pl.concat(parts)
    times = rows[ordered[stream]].to_list()
    if not rows.height or any(later < earlier for earlier, later in pairwise(times)):
        return None
    return {stream: [rows[number : number + 1] for number in range(rows.height)]}


def check(golden: GoldenFile, sites: int, strategy: str, frames: Frames) -> None:
    session, queries = golden.session(sites, strategy, frames)
    run = session.start(sinks=dict.fromkeys(golden.expected, "memory"), at_end="close")
    assert run.await_termination(60)
    lateness = {name: stream.lateness for name, stream in session.plan().streams.items()}
    oracle = None if golden.no_oracle else Oracle(queries, frames, lateness, tables=golden.tables)
    for query in golden.expected:
        got = run.results(query)
        where = f"{golden.path.name}, {query}, {sites} site(s), {strategy}"
        assert_same_rows(got, golden.results(query), where=where)
        if oracle:
            oracle.check(query, got)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_rows(path: Path) -> None:
    golden = read(path)
    assert golden.about, "the first lines of the file say what it shows"
    assert golden.expected, "there is no --expect"
    frames = as_written(golden)
    check(golden, 1, "operator", frames)
    check(golden, 3, "subquery", frames)
    if not golden.epochs_matter:
        check(golden, 2, "operator", in_one_epoch(frames))
        single = row_by_row(frames, golden.ordered)
        if single:
            check(golden, 2, "subquery", single)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_plan(path: Path) -> None:
    golden = read(path)
    session, _ = golden.session(2, "query", as_written(golden))
    told = f"{path.name}: the plan is another one; python -m tests.golden.refresh writes it anew"
    assert golden.plan == outline(session.plan()), told


@pytest.mark.parametrize("path", [p for p in FILES if read(p).duckdb], ids=name_of)
def test_plain_sql_in_duckdb(path: Path) -> None:
    """The expected rows again, by SQL that went through nothing of ours."""
    golden = read(path)
    connection = duckdb.connect()
    for stream, parts in as_written(golden).items():
        connection.register(stream, pl.concat(parts).to_arrow())
    for table, rows in golden.tables.items():
        connection.register(table, rows.to_arrow())
    for query, text in golden.duckdb.items():
        text = golden.queries[query] if text == "same" else text
        wanted = golden.results(query)
        found = connection.sql(text).pl()
        assert found.columns == wanted.columns
        assert_same_rows(found.cast(dict(wanted.schema)), wanted, where=f"{path.name}, {query}")


@pytest.mark.parametrize("path", FAILING, ids=name_of)
def test_failures(path: Path) -> None:
    golden = read(path)
    assert golden.about, "the first lines of the file say what it shows"
    assert golden.fail, "there is no --fail="
    with pytest.raises(AnabranchError) as caught:
        start(golden)
    for text in golden.fail:
        assert text in str(caught.value)


def start(golden: GoldenFile) -> None:
    session, queries = golden.session(2, "query", as_written(golden))
    session.start(sinks=dict.fromkeys(queries, "memory"))


def test_there_are_enough_of_them() -> None:
    assert len(FILES) >= 60
    assert len(FAILING) >= 20


def test_a_plan_is_written_into_its_section_only() -> None:
    path = FILES[0]
    text = path.read_text()
    changed = with_plan(text, "a\nb")
    assert "--plan\n-- a\n-- b\n" in changed
    kept = re.compile(r"(?m)^--plan\n(?:-- .*\n)*")
    assert kept.sub("", changed) == kept.sub("", text)
