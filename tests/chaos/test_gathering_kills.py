"""A driver that gathers results is killed again and again, while someone reads: every row is seen once."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest

pytestmark = [pytest.mark.chaos, pytest.mark.soak]

PROGRAM = Path(__file__).with_name("gatherer.py")
FILES, ROWS = 600, 50


def rows_of(folder: Path) -> list[int]:
    """As a plain reader sees them: one listing, and an error if a file is gone since."""
    found: list[int] = []
    for path in folder.glob("epoch=*/*.parquet"):
        found += pl.read_parquet(path, columns=["v"], hive_partitioning=False)["v"].to_list()
    return sorted(found)


@pytest.mark.parametrize("seed", range(3))
def test_killed_again_and_again(tmp_path: Path, seed: int) -> None:
    print("seed", seed)
    draw = random.Random(seed)
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        values = range(number * ROWS, (number + 1) * ROWS)
        frame = pl.DataFrame({"time": [number] * ROWS, "v": values})
        frame.write_parquet(tmp_path / "in" / f"{number:05d}.parquet")
    stop, faults = threading.Event(), []
    out = tmp_path / "out"

    def read() -> None:
        least = 0
        while not stop.is_set():
            with contextlib.suppress(FileNotFoundError):
                found = rows_of(out)
                # Whole epochs, each once, and never fewer than before
                if found != [*range(len(found))] or len(found) < least:
                    faults.append(len(found))
                least = len(found)
            time.sleep(0.01)

    reader = threading.Thread(target=read)
    reader.start()
    kills = 0
    try:
        while True:
            process = subprocess.Popen([sys.executable, str(PROGRAM), str(tmp_path)])
            try:
                code = process.wait(timeout=draw.uniform(1.5, 5.0) if kills < 12 else 300)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
                continue
            assert code == 0
            break
    finally:
        stop.set()
        reader.join()
    assert faults == []
    assert kills >= 2
    assert rows_of(out) == [*range(FILES * ROWS)]
    # Few files of many epochs
    assert len([*out.glob("epoch=*/*")]) < FILES / 4
