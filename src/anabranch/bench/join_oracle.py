"""The join that both sides run, and whether its results are right: DuckDB joins the same files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from anabranch.bench.duck import connect
from anabranch.errors import RunError


def join_text(streams: tuple[str, ...], bound: int | None) -> str:
    """The first stream joined with each other one on `k`, at most `bound` seconds apart, if any.

    >>> print(join_text(("a", "b"), 60))
    SELECT a.k, a.time AS a_time, a.v AS a_v, b.time AS b_time, b.v AS b_v
    FROM a
    JOIN b ON a.k = b.k AND b.time BETWEEN a.time - 60 AND a.time + 60
    """
    first, *others = streams
    columns = ", ".join(f"{name}.time AS {name}_time, {name}.v AS {name}_v" for name in streams)
    lines = [f"SELECT {first}.k, {columns}", f"FROM {first}"]
    for name in others:
        near = f" AND {name}.time BETWEEN {first}.time - {bound} AND {first}.time + {bound}"
        lines.append(f"JOIN {name} ON {first}.k = {name}.k{'' if bound is None else near}")
    return "\n".join(lines)


@dataclass(frozen=True)
class Digest:
    """What tells results from others, in whatever order: how many rows, and the sum of their hashes."""

    rows: int
    checksum: int


def join_of_files(data: str, streams: tuple[str, ...], bound: int | None) -> str:
    """The join over folders of files, for DuckDB."""
    views = ", ".join(
        f"{name} AS (FROM read_parquet({_quoted(f'{data}/{name}/*.parquet')}))" for name in streams
    )
    return f"WITH {views} {join_text(streams, bound)}"


def digest_of_join(data: str, streams: tuple[str, ...], bound: int | None) -> Digest:
    """DuckDB's result of the join over folders of files."""
    return _digest(join_of_files(data, streams, bound), streams)


def digest_of_results(results: Path, streams: tuple[str, ...]) -> Digest:
    """What a run has left."""
    if not any(results.glob("**/*.parquet")):
        raise RunError(f"The run left no results in '{results}'.")
    files = _quoted(f"{results}/**/*.parquet")
    return _digest(f"FROM read_parquet({files}, hive_partitioning = false)", streams)


def _digest(query: str, streams: tuple[str, ...]) -> Digest:
    names = ["k", *(f"{name}_{column}" for name in streams for column in ("time", "v"))]
    columns = ", ".join(f"{name}::BIGINT" for name in names)
    with connect() as duck:
        found = duck.execute(
            f"SELECT count(*), coalesce(sum(hash({columns})::HUGEINT), 0) FROM ({query})"
        ).fetchone()
    assert found is not None
    return Digest(int(found[0]), int(found[1]))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
