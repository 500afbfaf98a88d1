"""Samples of results: the newest ones, at a cost that neither the history nor a file's size has a part in."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from anabranch.observe.samples import SAMPLE_ROWS, Samples
from anabranch.sinks.driver import MemorySink
from anabranch.sinks.files import FileSink
from anabranch.sinks.staging import SUFFIX, visible_epoch

WRITERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "parquet": lambda rows, path: rows.write_parquet(path, row_group_size=1_000),
    "arrow": lambda rows, path: rows.write_ipc(path, record_batch_size=1_000),
    "csv": lambda rows, path: rows.write_csv(path),
    "json": lambda rows, path: rows.write_ndjson(path),
}


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Folders that were listed."""
    listed: list[str] = []
    real = os.scandir

    def heard(path: Path) -> Any:
        listed.append(str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", heard)
    return listed


def put(folder: Path, epoch: int, rows: pl.DataFrame, form: str = "parquet") -> Path:
    path = folder / visible_epoch(epoch) / f"part-site-0001-x.{SUFFIX[form]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    WRITERS[form](rows, path)
    return path


def counted(first: int, rows: int = 3) -> pl.DataFrame:
    return pl.DataFrame({"n": range(first, first + rows), "text": ["x"] * rows})


@pytest.mark.parametrize("form", list(SUFFIX))
def test_the_newest_epoch_is_shown_whatever_was_touched_last(tmp_path: Path, form: str) -> None:
    samples, sink = Samples(), FileSink(tmp_path, form)
    assert samples.newest(sink) is None
    for epoch in (9, 10, 11):
        put(tmp_path, epoch, counted(epoch * 100), form)
    os.utime(put(tmp_path, 3, counted(0), form), (2**33, 2**33))
    put(tmp_path / "_waiting", 12, counted(0), form)
    expected = {"columns": ["n", "text"], "rows": [[str(n), "x"] for n in (1100, 1101, 1102)]}
    assert samples.newest(sink) == expected
    assert samples.newest(f"{tmp_path} ({form})") == expected, "as a checkpoint tells of it"


def test_an_epoch_that_was_emptied_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path, 1, counted(7, 1))
    (tmp_path / visible_epoch(2)).mkdir()
    assert Samples().newest(FileSink(tmp_path)) == {"columns": ["n", "text"], "rows": [["7", "x"]]}


def test_an_epoch_is_read_once_and_listed_once(tmp_path: Path, listings: list[str]) -> None:
    samples, sink = Samples(), FileSink(tmp_path)
    for epoch in range(50):
        path = put(tmp_path, epoch, counted(epoch))
    os.utime(tmp_path, (1e9, 1e9))
    listings.clear()
    first = samples.newest(sink)
    assert first is not None
    assert len(listings) == 2, "the folder and its newest epoch, none of the others"
    path.write_bytes(b"no longer what it was")
    assert samples.newest(sink) == first
    assert len(listings) == 2
    put(tmp_path, 50, counted(50))
    assert samples.newest(sink) != first, "there is a newer one"


def test_of_a_long_file_only_the_beginning_is_read(tmp_path: Path) -> None:
    path = put(tmp_path, 1, counted(0, 20_000))
    groups = pq.ParquetFile(path).metadata
    data = bytearray(path.read_bytes())
    later = groups.row_group(1).column(0)
    beginning = later.dictionary_page_offset or later.data_page_offset
    last = groups.row_group(groups.num_row_groups - 1).column(1)
    end = last.data_page_offset + last.total_compressed_size // 2
    data[beginning:end] = b"\xff" * (end - beginning)
    path.write_bytes(data)
    found = Samples().newest(FileSink(tmp_path))
    assert found is not None, "what is broken further on was read"
    assert [row[0] for row in found["rows"]] == [str(n) for n in range(SAMPLE_ROWS)]


def test_of_a_memory_sink_the_newest_epoch_with_rows() -> None:
    sink = MemorySink({1: counted(1), 2: counted(5, 100), 3: counted(0, 0)})
    found = Samples().newest(sink)
    assert found is not None
    assert found["rows"][0] == ["5", "x"]
    assert len(found["rows"]) == SAMPLE_ROWS
    assert Samples().newest(MemorySink()) is None
