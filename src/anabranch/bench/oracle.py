"""Whether results are right: row for row against DuckDB on the same files, and against each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.bench.duck import connect
from anabranch.errors import RunError

COLUMNS = ", ".join(
    f"{name}::BIGINT AS {name}" for name in ("tb", "srcIP", "destIP", "cnt", "bytes")
)


@dataclass(frozen=True)
class Check:
    """The windows a run gave out, and how they compare."""

    windows: tuple[int, ...]
    complete: bool
    """Every window that ends within the data is there."""
    rows: int
    missing: int
    unexpected: int

    @property
    def equal(self) -> bool:
        return self.complete and self.rows > 0 and not self.missing and not self.unexpected


def aggregate_text(data: str, window: int) -> str:
    """The windowed aggregate over a folder of files, for DuckDB."""
    return (
        f"SELECT time // {window} AS tb, srcIP, destIP, count(*) AS cnt, sum(len) AS bytes "
        f"FROM read_parquet({_quoted(f'{data}/*.parquet')}) GROUP BY ALL"
    )


class BenchOracle:
    """DuckDB's result of the windowed aggregate over a folder of files."""

    def __init__(self, data: str, window: int) -> None:
        self._duck = connect()
        files = _quoted(f"{data}/*.parquet")
        self._duck.execute(f"CREATE TABLE expected AS {aggregate_text(data, window)}")
        newest = self._one(f"SELECT max(time) FROM read_parquet({files})")
        self.closed = tuple(range(int(newest) // window))

    def check(self, results: Path) -> Check:
        """A run's results against DuckDB's, over the windows the run gave out."""
        found = self._load("found", results)
        windows = self._windows("found")
        chosen = f"(SELECT {COLUMNS} FROM expected WHERE tb IN (SELECT tb FROM found))"
        return Check(windows, windows == self.closed, found, *self._differences(chosen, "found"))

    def compare(self, one: Path, other: Path) -> Check:
        """Two runs' results against each other, over the windows both gave out."""
        self._load("found", one)
        self._load("other", other)
        windows = tuple(sorted({*self._windows("found")} & {*self._windows("other")}))
        if not windows:
            return Check((), False, 0, 0, 0)
        common = f"WHERE tb IN ({', '.join(map(str, windows))})"
        first, second = f"(FROM found {common})", f"(FROM other {common})"
        rows = int(self._one(f"SELECT count(*) FROM {first}"))
        return Check(windows, len(windows) >= 2, rows, *self._differences(second, first))

    def _load(self, name: str, results: Path) -> int:
        files = _quoted(f"{results}/**/*.parquet")
        if not any(results.glob("**/*.parquet")):
            raise RunError(f"The run left no results in '{results}'.")
        self._duck.execute(
            f"CREATE OR REPLACE TEMP TABLE {name} AS "
            f"SELECT {COLUMNS} FROM read_parquet({files}, hive_partitioning = false)"
        )
        return int(self._one(f"SELECT count(*) FROM {name}"))

    def _windows(self, name: str) -> tuple[int, ...]:
        rows = self._duck.execute(f"SELECT DISTINCT tb FROM {name} ORDER BY tb").fetchall()
        return tuple(int(row[0]) for row in rows)

    def _differences(self, wanted: str, found: str) -> tuple[int, int]:
        """How many wanted rows are missing and how many are unexpected, counting repetitions."""
        row = self._duck.execute(
            f"""SELECT coalesce(sum(surplus) FILTER (surplus > 0), 0),
                   coalesce(-sum(surplus) FILTER (surplus < 0), 0)
            FROM (
                SELECT sum(one) AS surplus
                FROM (SELECT *, 1 AS one FROM {wanted} UNION ALL SELECT *, -1 FROM {found})
                GROUP BY tb, srcIP, destIP, cnt, bytes
                HAVING sum(one) <> 0
            )"""
        ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    def _one(self, query: str) -> Any:
        row = self._duck.execute(query).fetchone()
        assert row is not None
        return row[0]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
