"""Tables of every kind for tests: how a sink is made, and how its rows are read back by somebody else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
from deltalake import DeltaTable

from anabranch import Session
from anabranch.sinks import DeltaSink
from anabranch.testing.sources import EpochSource

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Kind:
    """A kind of table under a folder of a test."""

    sink: Callable[..., Any]
    read: Callable[[Path, str], pl.DataFrame]
    """As Polars, or the server itself, reads it."""
    duck: Callable[[Path, str], Rows]
    """As DuckDB reads it."""


def _duck_delta(root: Path, name: str) -> Rows:
    with duckdb.connect() as base:
        base.register("found", DeltaTable(root / name).to_pyarrow_dataset())
        return sorted(base.execute("SELECT * FROM found").fetchall(), key=repr)


KINDS: dict[str, Kind] = {
    "delta": Kind(
        lambda root, name, **options: DeltaSink(root / name, **options),
        lambda root, name: pl.read_delta(str(root / name)),
        _duck_delta,
    ),
}


def run(
    frames: list[pl.DataFrame], queries: dict[str, tuple[str, str | None]], sinks: dict[str, Any],
    checkpoint: Path | None = None, at_end: str = "close", sites: int = 3,
) -> None:  # fmt: skip
    """Runs queries over frames, one an epoch, to the end."""
    session = Session.in_process(sites, {"allow_unbounded_state": True, "fsync": False})
    session.stream("t", EpochSource(frames), ordered="time")
    for name, (text, emit) in queries.items():
        session.query(name, text, emit)
    session.start(sinks=sinks, checkpoint=checkpoint, at_end=at_end).await_termination()


def rows_of(frame: pl.DataFrame, *columns: str) -> Rows:
    return sorted(frame.select(columns or frame.columns).rows(), key=repr)
