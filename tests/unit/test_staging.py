"""Parts on their way out: written whole under their name, whoever else writes the same one."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from anabranch.sinks import staging
from anabranch.sinks.staging import Staging, hidden_epoch
from anabranch.state.manifest import ResultPart


def test_a_part_that_is_written_twice_at_a_time_in_one_process_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a task runs twice: the file on its way has a name that nobody else gives."""
    rows = pl.DataFrame({"n": range(1000)})
    place = Staging(str(tmp_path), f"{hidden_epoch(0, 'a')}/", "parquet", fsync=False)
    inner: list[ResultPart] = []
    write = staging.WRITERS["parquet"]

    def interrupted(rows: pl.DataFrame, path: Path) -> None:
        path.write_bytes(b"half of it")
        if not inner:
            inner.append(ResultPart(name="", rows=0, bytes=0))
            inner[0] = place.write(rows, "0")
            assert path.read_bytes() == b"half of it"
        write(rows, path)

    monkeypatch.setitem(staging.WRITERS, "parquet", interrupted)
    written = place.write(rows, "0")
    assert written == inner[0]
    (path,) = (tmp_path / hidden_epoch(0, "a")).iterdir()
    assert (path.name, path.stat().st_size) == (written.name, written.bytes)
    assert pl.read_parquet(path).equals(rows)
