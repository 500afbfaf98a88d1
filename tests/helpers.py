"""A small stage for tests of whole runs: an input folder, one query, a sink, a checkpoint, an oracle.

Files are taken one an epoch, in the order they are numbered, so a test knows what each epoch holds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import settings

from anabranch import Query, Session, col, count, sum_
from anabranch.adapt.collector import Standing
from anabranch.engine.run import Run
from anabranch.errors import AnabranchError
from anabranch.routing.partition_map import PartitionMap
from anabranch.sinks.files import FileSink
from anabranch.state.line import read_line
from anabranch.state.manifest import Manifest
from anabranch.state.place import place

FORMATS = ("parquet", "arrow", "csv", "json")
SUFFIX = {"parquet": "parquet", "arrow": "arrow", "csv": "csv", "json": "jsonl"}
WRITERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "parquet": lambda rows, path: rows.write_parquet(path),
    "arrow": lambda rows, path: rows.write_ipc(path),
    "csv": lambda rows, path: rows.write_csv(path),
    "json": lambda rows, path: rows.write_ndjson(path),
}
READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    "parquet": pl.read_parquet,
    "arrow": pl.read_ipc,
    "csv": pl.read_csv,
    "json": pl.read_ndjson,
}
SCHEMA = pl.Schema({"time": pl.Int64(), "k": pl.String(), "v": pl.Int64()})
SUMS = "SELECT time // 10 AS tb, k, COUNT(*) AS n, SUM(v) AS total FROM rows GROUP BY ALL"

Rows = list[tuple[Any, ...]]


def examples(number: int, part: int = 5) -> settings:
    """So many examples in `make test-all`, a fifth of them, or another part, in `make test`."""
    whole = settings.get_current_profile_name() == "random"
    return settings(max_examples=number if whole else max(1, number // part))


def in_soak(values: Iterable[Any]) -> list[Any]:
    """Parameters of a test that only `make test-all` has: more of the same."""
    return [pytest.param(value, marks=pytest.mark.soak) for value in values]


def sample(number: int, rows: int = 40) -> pl.DataFrame:
    """The rows of file `number`: ten seconds each, five keys, one of them NULL now and then."""
    at = range(number * rows, (number + 1) * rows)
    return pl.DataFrame(
        {
            "time": [n * 10 // rows for n in at],
            "k": [None if n % 11 == 0 else f"key-{n % 4}" for n in at],
            "v": [n * n % 97 for n in at],
        },
        schema=SCHEMA,
    )


def plain(frame: pl.DataFrame) -> Rows:
    """The rows of a frame in an order that does not depend on how they came."""
    return sorted(frame.rows(), key=repr)


def oracle(sql: str, **tables: pl.DataFrame) -> Rows:
    """What DuckDB makes of these tables."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table.to_arrow())
        return sorted(connection.execute(sql).fetchall(), key=repr)


def visible_epochs(folder: Path) -> list[int]:
    """The epochs a reader of a result folder sees."""
    return sorted(int(path.name.split("=")[1]) for path in folder.glob("epoch=*"))


def read_results(folder: Path, format: str = "parquet") -> pl.DataFrame:
    """All that a reader of a result folder sees; an empty frame if there is nothing."""
    parts = [READERS[format](part) for part in sorted(folder.glob(f"epoch=*/*.{SUFFIX[format]}"))]
    return pl.concat(parts) if parts else pl.DataFrame()


def manifests(checkpoint: Path) -> list[Manifest]:
    """All manifests of a checkpoint that has come to an epoch, oldest first."""
    found = read_line(place(str(checkpoint)))
    entries = [one.manifest for one in found if isinstance(one.manifest, Manifest)]
    assert len(entries) == len(found), [one.manifest for one in found]
    return [entry for entry in entries if entry.epoch >= 0 and entry.serial >= entries[-1].oldest]


def orphans(checkpoint: Path) -> set[str]:
    """Segment files that no manifest names."""
    named = {file for manifest in manifests(checkpoint) for file in manifest.files()}
    there = (checkpoint / "state").rglob("*.arrow")
    return {str(path.relative_to(checkpoint)) for path in there} - named


def missing(checkpoint: Path) -> set[str]:
    """Segment files that a manifest names and that do not exist."""
    named = {file for manifest in manifests(checkpoint) for file in manifest.files()}
    return {file for file in named if not (checkpoint / file).exists()}


def sums(rows: Query) -> Query:
    """The query of most tests; `SUMS` is the same for DuckDB."""
    windows = rows.group_by((col("time") // 10).alias("tb"), "k")
    return windows.agg(count().alias("n"), sum_("v").alias("total"))


@dataclass
class Stage:
    """One stream of files, the query `sums` over it, and where everything lies."""

    root: Path
    format: str = "parquet"
    out_format: str = "parquet"
    spark: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.input, self.out = self.root / "in", self.root / "out"
        self.checkpoint, self.dead = self.root / "checkpoint", self.root / "dead"
        self.input.mkdir(parents=True, exist_ok=True)

    def path(self, number: int) -> Path:
        return self.input / f"{number:04d}.{SUFFIX[self.format]}"

    def write(self, number: int, rows: pl.DataFrame | bytes | str | None = None) -> Path:
        """Puts file `number` in place: these rows or this content, or the sample of that number."""
        path, waiting = self.path(number), self.input / "_being_written"
        if isinstance(rows, (bytes, str)):
            waiting.write_bytes(rows if isinstance(rows, bytes) else rows.encode())
        else:
            WRITERS[self.format](sample(number) if rows is None else rows, waiting)
        # The order of arrival is the order of the numbers, whenever a file was mended
        os.utime(waiting, ns=(number * 10**9, number * 10**9))
        waiting.rename(path)
        return path

    def stream(self, **stream: Any) -> tuple[Session, Query]:
        """A session with the stream `rows` and no query yet."""
        settings = {"fsync": False, "max_files_per_epoch": 1, **self.settings}
        if self.spark is not None:
            session = Session(self.spark, 2, settings)
        else:
            session = Session.in_process(2, settings)
        options = {"path": self.input, "format": self.format, "schema": SCHEMA, **stream}
        return session, session.stream("rows", ordered="time", **options)

    def session(self, **stream: Any) -> Session:
        """A session with the stream and the query."""
        session, rows = self.stream(**stream)
        session.query("sums", sums(rows))
        return session

    def start(
        self, session: Session | None = None, *, sinks: Mapping[str, Any] | None = None,
        at_end: str = "keep", **options: Any,
    ) -> Run:  # fmt: skip
        """Starts the run without waiting for its end."""
        options.setdefault("checkpoint", self.checkpoint)
        return (session or self.session()).start(
            sinks=sinks or {"sums": FileSink(self.out, self.out_format)}, at_end=at_end, **options
        )

    def run(self, session: Session | None = None, **options: Any) -> Run:
        """Starts a run and waits for its end."""
        run = self.start(session, **options)
        assert run.await_termination(300), "the run did not end within five minutes"
        return run

    def refused(
        self, kind: type[AnabranchError], session: Session | None = None, **options: Any
    ) -> str:
        """The message of the error, of this kind, that ends the run or stops it from starting."""
        with pytest.raises(kind) as caught:
            self.run(session, **options)
        return str(caught.value)

    def results(self) -> Rows:
        return plain(read_results(self.out, self.out_format))

    def expected(self, *frames: pl.DataFrame, sql: str = SUMS) -> Rows:
        return oracle(sql, rows=pl.concat(frames))

    def finish(self, session: Session | None = None, **options: Any) -> Run:
        """Runs on from the checkpoint to the end of the stream: all windows close."""
        return self.run(session, at_end="close", **options)

    def manifest(self) -> Manifest:
        """The manifest of the last committed epoch."""
        return manifests(self.checkpoint)[-1]

    def taken(self) -> list[str]:
        """The files the last manifest counts as read."""
        offset = self.manifest().streams["rows"].offset
        older = [
            name
            for log, _ in offset["logs"]
            for name in json.loads((self.checkpoint / log).read_bytes())["files"]
        ]
        return [Path(name).name for name in (*older, *offset["recent"])]

    def check_whole(self, last_epoch: int, files: Sequence[int] | None = None) -> None:
        """The epoch after `last_epoch` left nothing behind: not in the sink, not in the checkpoint."""
        if last_epoch < 0:
            assert manifests(self.checkpoint) == []
        else:
            assert self.manifest().epoch == last_epoch
            numbers = range(last_epoch + 1) if files is None else files
            assert self.taken() == [self.path(number).name for number in numbers]
        assert all(epoch <= last_epoch for epoch in visible_epochs(self.out))
        assert list(self.out.glob("_epoch=*")) == [], "staged results of a failed epoch are left"
        assert missing(self.checkpoint) == set()
        assert orphans(self.checkpoint) == set(), "segments of a failed epoch are left"


def source_metrics(run: Run, index: int = 0) -> dict[str, Any]:
    """What the last report says of a stream."""
    assert run.last_progress
    metrics: dict[str, Any] = run.last_progress["sources"][index]["customMetrics"]
    return metrics


def ranges(values: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as [first, end) ranges."""
    found: list[tuple[int, int]] = []
    for value in sorted(values):
        if found and found[-1][1] == value:
            found[-1] = (found[-1][0], value + 1)
        else:
            found.append((value, value + 1))
    return found


def at_rest(exchange: str, known: PartitionMap, sites: int) -> Standing:
    """How an exchange stands of which nothing is moved, kept or put aside."""
    nothing, never = np.zeros(known.partitions), np.zeros(known.partitions, dtype=bool)
    return Standing(
        maps={exchange: known}, bytes={exchange: nothing}, aside={exchange: nothing},
        spills={exchange: ~never}, closing={exchange: never}, since={exchange: nothing},
        generations={exchange: nothing}, awaited=(),
        fixed={exchange: never}, alive=np.ones(sites, dtype=bool), memory=np.full(sites, np.inf),
        held=np.zeros(sites),
    )  # fmt: skip
