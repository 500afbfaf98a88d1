"""Large text files in pieces: several tasks read one, and it is as if one had."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from anabranch import Session
from anabranch.sources import cutting
from anabranch.sources.files import file_source
from anabranch.sources.form import USUAL, FileForm
from anabranch.sources.listing import ListedFile, measure
from anabranch.sources.tree import FileEntry

FIELDS = st.lists(st.sampled_from(["a", '"', '""', ",", "\n", "\r\n", "é", " "]), max_size=6)
CELLS = st.one_of(
    FIELDS.map(lambda parts: '"' + "".join(parts).replace('"', '""') + '"'),
    st.sampled_from(["", "x", 'x"y', "plain"]),
)
TABLES = st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=30)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "MIN_PIECE_BYTES", 8)


def listed(path: Path) -> ListedFile:
    (file,), _ = measure([FileEntry(str(path), (path.name,))], lambda _: False)
    return file


def in_pieces(
    path: Path, schema: pl.Schema, pieces: int, form: FileForm
) -> tuple[int, list[pl.DataFrame]]:
    """What the pieces of a file have, numbered as the engine does; raises what is wrong with one."""
    source = file_source("s", str(path), None, schema, form=form)
    cut, _ = source.cut(listed(path), 0, pieces)
    frames = []
    for piece in cut:
        reading = piece.read(list(schema), salvage=False)
        assert reading.bad == []
        assert reading.rows is not None
        frames.append(reading.rows.with_row_index("n", offset=reading.first_row))
    return len(cut), frames


@pytest.mark.usefixtures("tiny")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=TABLES, pieces=st.integers(2, 7), end=st.sampled_from(["\n", "\r\n"]), bom=st.booleans(),
       header=st.booleans())  # fmt: skip
@example([('"\n"', "x"), ('x"y', '"\n""\n"'), ("plain", "")], 5, "\n", True, True)
def test_a_csv_file_in_pieces_has_the_rows_of_the_whole(
    tmp_path: Path, rows: list[tuple[str, str]], pieces: int, end: str, bom: bool, header: bool
) -> None:
    lines = [*(["a,b"] if header else []), *(f"{a},{b}" for a, b in rows)]
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbf" * bom + (end.join(lines) + end).encode())
    schema, form = pl.Schema({"a": pl.String(), "b": pl.String()}), FileForm(header=header)
    _, [whole] = in_pieces(path, schema, 1, form)
    _, frames = in_pieces(path, schema, pieces, form)
    together = pl.concat(frames)
    assert together.drop("n").rows() == whole.drop("n").rows()
    assert together["n"].is_sorted()
    assert together["n"].is_unique().all()


@pytest.mark.usefixtures("tiny")
def test_a_json_file_in_pieces_may_lack_a_column_in_some(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    rows = [{"a": n, "b": "first"} if n < 3 else {"a": n} for n in range(50)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    schema = pl.Schema({"a": pl.Int64(), "b": pl.String()})
    count, frames = in_pieces(path, schema, 6, USUAL)
    assert count == 6
    together = pl.concat(frames)
    assert together["a"].to_list() == list(range(50))
    assert together["b"].drop_nulls().len() == 3


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    "text",
    [gzip.compress(b"a\n" + b"1\n" * 99), b"[" + b'{"a": 1},\n' * 99 + b'{"a": 1}]'],
    ids=["packed", "one array"],
)
def test_what_is_packed_or_one_array_is_read_whole(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / ("t.json" if text.startswith(b"[") else "t.csv.gz")
    path.write_bytes(text)
    count, _ = in_pieces(path, pl.Schema({"a": pl.Int64()}), 6, USUAL)
    assert count == 1


@pytest.mark.usefixtures("tiny")
def test_bad_lines_are_told_with_the_part_they_are_in(tmp_path: Path) -> None:
    lines = [f"{n},x" for n in range(40)]
    lines[30] = "thirty,x"
    path = tmp_path / "in" / "t.csv"
    path.parent.mkdir()
    path.write_text("time,v\n" + "\n".join(lines) + "\n")
    with Session.in_process(sites=2) as session:
        session.stream("s", path=path, schema={"time": "bigint", "v": "string"}, ordered="time",
                       on_bad="dead-letter")  # fmt: skip
        session.query("q", "SELECT time FROM s")
        run = session.start(sinks={"q": "memory"}, dead_letter=tmp_path / "letters")
        assert run.await_termination(60)
        assert sorted(run.results("q")["time"]) == [n for n in range(40) if n != 30]
    letters = [file.read_text() for file in (tmp_path / "letters").rglob("*") if file.is_file()]
    assert any(" of the file; the rest of it was read" in letter for letter in letters), letters
