"""Files that no reader was made for: each is told by name, and on request the stream goes on without it."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import Session
from anabranch.errors import SourceError
from anabranch.sources import formats, opening, quotes
from anabranch.sources.formats import read_file
from helpers import source_metrics

SCHEMA = {"t": "int64", "x": "string"}
GOOD = {"csv": b"t,x\n5,a\n", "json": b'{"t":5,"x":"a"}\n'}
CUT = b't,x\n1,a\n2,"b c"\n3,d\n4,"e\n5,f\n6,g\n'


def read(
    folder: Path, format: str, on_bad: str, **options: Any
) -> tuple[list[Any], dict[str, Any]]:
    """The rows of all files of a folder, and what is counted of them."""
    session = Session.in_process(2, {"fsync": False})
    stream = {"path": folder / "in", "format": format, "schema": SCHEMA, **options}
    session.stream("s", ordered="t", lateness=100, on_bad=on_bad, **stream)
    session.query("q", "SELECT * FROM s")
    dead = folder / "dead" if on_bad == "dead-letter" else None
    run = session.start(sinks={"q": "memory"}, checkpoint=folder / "checkpoint", dead_letter=dead)
    assert run.await_termination(60)
    return sorted(run.results("q").rows()), source_metrics(run) if run.last_progress else {}


def put(folder: Path, name: str | bytes, content: bytes) -> None:
    (folder / "in").mkdir(exist_ok=True)
    with open(os.path.join(os.fsencode(folder / "in"), os.fsencode(name)), "wb") as file:
        file.write(content)


POISON = {
    "nested deep": ("deep.json", b'{"t":1,"x":' + b"[" * 5000 + b"]" * 5000 + b"}\n"),
    "nested very deep": ("deep.json", b'{"t":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"),
    "a long header": ("long.csv", b"a" * 200_000),
    "an open header": ("open.csv", b'"' + b"a\n" * 100_000),
    "a long name": ("n" * 250 + ".csv", b"t\nx\n"),
    "a long name of wide letters": ("é" * 120 + ".csv", b"t\nx\n"),
    "a name that is no UTF-8": (b"\xff.csv", b"t\nx\n"),
    "a line break in its name": ("a\nb.csv", b"t\nx\n"),
}


@pytest.mark.parametrize("case", POISON)
def test_a_stream_goes_on_without_a_file_that_no_reader_can_take(tmp_path: Path, case: str) -> None:
    name, content = POISON[case]
    format = os.fsdecode(name).rsplit(".")[-1]
    put(tmp_path, f"good.{format}", GOOD[format])
    put(tmp_path, name, content)
    rows, counted = read(tmp_path, format, "dead-letter")
    assert rows == [(5, "a")]
    assert counted["badFilesTotal"] + counted["badRowsTotal"] == 1
    (reason,) = (tmp_path / "dead").rglob("*.reason.json")
    told = json.loads(reason.read_text())["file"]
    assert Path(told).name == os.fsencode(name).decode("utf-8", "backslashreplace")
    rows, _ = read(tmp_path, format, "stop")
    assert rows == [], "what was put aside is not read again"


@pytest.mark.parametrize("case", POISON)
def test_a_run_that_stops_names_the_file(tmp_path: Path, case: str) -> None:
    name, content = POISON[case]
    put(tmp_path, name, content)
    with pytest.raises(SourceError) as caught:
        read(tmp_path, os.fsdecode(name).rsplit(".")[-1], "stop")
    told = str(caught.value)
    assert os.fsencode(name).decode("utf-8", "backslashreplace") in told
    told.encode()


@pytest.mark.parametrize("format", ["parquet", "arrow", "csv", "json"])
def test_good_files_whose_names_are_no_utf8_are_read_once(tmp_path: Path, format: str) -> None:
    rows = pl.DataFrame({"t": [1], "x": ["a"]})
    for number, name in enumerate((b"\xff", b"\xfe", b"\\xff", b"f\xff/a")):
        content = io.BytesIO()
        frame = rows.with_columns(t=pl.col("t") + number)
        getattr(frame, f"write_{ {'arrow': 'ipc', 'json': 'ndjson'}.get(format, format) }")(content)
        path = os.path.join(os.fsencode(tmp_path / "in"), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        put(tmp_path, name + b"." + format.encode(), content.getvalue())
    taken, _ = read(tmp_path, format, "stop", schema=None)
    assert taken == [(number, "a") for number in (1, 2, 3, 4)]
    assert read(tmp_path, format, "stop", schema=None)[0] == []


@pytest.mark.parametrize(
    "kind", [RuntimeError, MemoryError, KeyError, pl.exceptions.PanicException]
)
def test_whatever_a_reader_raises_is_the_fault_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    def fail(path: str, *rest: object) -> pa.Table:
        raise kind("of the reader's own")

    put(tmp_path, "a.csv", GOOD["csv"])
    monkeypatch.setitem(formats._READERS, "csv", fail)
    with pytest.raises(SourceError, match=r"a\.csv': cannot be read as csv: .*of the reader's own"):
        read(tmp_path, "csv", "stop")


# -- quotes -----------------------------------------------------------------------------------------


def test_a_file_cut_off_within_quotes_is_bad(tmp_path: Path) -> None:
    """Its last value has swallowed the lines after the quote."""
    put(tmp_path, "cut.csv", CUT)
    with pytest.raises(SourceError, match=r"cut\.csv': .* a quote is open where the file ends"):
        read(tmp_path, "csv", "stop")
    rows, counted = read(tmp_path, "csv", "dead-letter")
    assert rows == [(1, "a"), (2, "b c"), (3, "d")]
    assert (counted["badRowsTotal"], counted["badFilesTotal"]) == (1, 0)
    (lines,) = (tmp_path / "dead").rglob("*.lines.jsonl")
    line = json.loads(lines.read_text())
    assert (line["row"], line["line"]) == (5, '4,"e\n5,f\n6,g\n"')
    assert "a quote is open" in line["reason"]


@pytest.mark.parametrize("column", ["t", "x"])
def test_it_is_bad_whichever_columns_are_read(tmp_path: Path, column: str) -> None:
    put(tmp_path, "cut.csv", b't,x\n1,a\n2,"3')
    schema = pl.Schema({"t": pl.Int64(), "x": pl.String()})
    path = str(tmp_path / "in" / "cut.csv")
    assert read_file("s", path, "csv", schema, [column], None, False).rows is None
    salvaged = read_file("s", path, "csv", schema, [column], None, True)
    assert salvaged.rows is not None
    assert salvaged.rows.height == 1


@pytest.mark.parametrize("block", [1, 2, 3, 5, 1 << 24])
@settings(max_examples=150, deadline=None)
@given(text=st.text(st.sampled_from('",\n\ra'), max_size=14))
def test_open_quotes_are_those_of_the_parser(block: int, text: str) -> None:
    """A row that follows is swallowed by a quote that is open, and by nothing else."""
    before = opening.BLOCK
    opening.BLOCK = block
    try:
        with tempfile.NamedTemporaryFile() as file:
            file.write(text.encode())
            file.flush()
            is_open = quotes.ends_in_quotes(file.name)
    finally:
        opening.BLOCK = before
    *_, last = csv.reader(io.StringIO(f"{text}\nend\n", newline=""))
    assert is_open == (last != ["end"])
