"""DuckDB, which benchmarks compare their results with; it need not be installed for anything else."""

from __future__ import annotations

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
