"""DuckDB, which benchmarks compare their results with; it need not be installed for anything else."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.errors import RunError

if TYPE_CHECKING:
    import duckdb


def connect() -> duckdb.DuckDBPyConnection:
    """A database in memory, or an error that says what to install."""
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise RunError(
            "The benchmark compares all results with DuckDB, which is not installed: "
            "pip install duckdb."
        ) from error
    return duckdb.connect()


def batch_rate(query: str, rows: int, scratch: Path, cores: int, repeats: int) -> int:
    """Rows a second of DuckDB, reading, computing and writing all of it as one batch: the median."""
    rates = []
    with connect() as duck:
        duck.execute(f"SET threads = {cores}")
        for number in range(repeats):
            target = scratch / f"duckdb-{number}.parquet"
            began = time.monotonic()
            duck.execute(f"COPY ({query}) TO '{target}' (FORMAT parquet, COMPRESSION snappy)")
            rates.append(rows / (time.monotonic() - began))
            target.unlink()
    return round(statistics.median(rates))
