"""Runs cases of one world and says of each whether its rows are DuckDB's."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from anabranch.errors import AnabranchError, PlanningError, RunError
from anabranch.language.builder import Query
from anabranch.session import Session
from anabranch.testing.compare import assert_same_rows
from anabranch.testing.fuzz.case import FuzzCase
from anabranch.testing.fuzz.duck import answer, connect
from anabranch.testing.fuzz.world import TABLE, World

PASSED, REFUSED, FAILED = "passed", "refused", "failed"
PATIENCE = 60.0
"""Seconds after which a run of so few rows is taken to hang."""


@dataclass(frozen=True)
class Judgement:
    """What became of a case; `reason` is what differed, the error, or why it was refused."""

    seed: int
    verdict: str
    reason: str = ""


def judge(world: World, cases: Sequence[FuzzCase]) -> list[Judgement]:
    """The outcomes of cases that are run together; one that spoils the run of all is judged by itself."""
    outcomes: dict[int, Judgement] = {}
    asked: dict[str, Query] = {}
    with _folder() as folder:
        for stream in world.inputs:
            stream.write(folder, 0)
        session = _session(world, folder, 0)
        for case in cases:
            try:
                asked |= _register(session, case)
            except AnabranchError as error:
                outcomes[case.seed] = Judgement(case.seed, REFUSED, str(error))
            except Exception:
                outcomes[case.seed] = Judgement(case.seed, FAILED, traceback.format_exc())
    fitting = [case for case in cases if case.seed not in outcomes]
    if fitting:
        outcomes |= {one.seed: one for one in _together(world, fitting, asked)}
    return [outcomes[case.seed] for case in cases]


def _together(
    world: World, cases: Sequence[FuzzCase], asked: Mapping[str, Query]
) -> list[Judgement]:
    try:
        results = _run(world, cases, asked)
    except Exception as error:
        if len(cases) > 1:
            return [one for case in cases for one in _together(world, [case], asked)]
        if _is_refusal(world, cases[0], error):
            return [Judgement(cases[0].seed, REFUSED, str(error))]
        return [Judgement(cases[0].seed, FAILED, traceback.format_exc())]
    connection = connect(world.tables)
    return [_compared(connection, case, results[case.name]) for case in cases]


def _is_refusal(world: World, case: FuzzCase, error: Exception) -> bool:
    """Whether a query was refused, not stopped halfway: by the plan, or for rows DuckDB refuses too.

    No other error has an excuse: the query was understood, and checkpoints, files and settings are what
    this tester made itself.
    """
    if isinstance(error, PlanningError):
        return True
    if not isinstance(error, RunError) or "could not be computed" in str(error):
        return False
    try:
        answer(connect(world.tables), case.duck)
    except (duckdb.OutOfRangeException, duckdb.ConversionException):
        return True
    except duckdb.Error:
        return False
    return False


def _compared(
    connection: duckdb.DuckDBPyConnection, case: FuzzCase, got: pl.DataFrame
) -> Judgement:
    try:
        expected = answer(connection, case.duck)
    except duckdb.Error as error:
        return Judgement(case.seed, FAILED, f"DuckDB cannot answer: {error}")
    try:
        if case.update:
            # A row replaces the one that its group had before; `gone` says that the group has left
            got = got.group_by(case.update, maintain_order=True).last().select(got.columns)
            got = got.filter(~pl.col("gone")).drop("gone") if "gone" in got.columns else got
        assert_same_rows(_plain(got), _plain(expected))
    except AssertionError as error:
        return Judgement(case.seed, FAILED, str(error))
    return Judgement(case.seed, PASSED)


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows in types that do not depend on who made them: widths of numbers are ours to choose."""
    columns = []
    for name, kind in frame.schema.items():
        column = pl.col(name)
        if kind.is_integer():
            column = column.cast(pl.Int128)
        elif kind.is_float():
            column = column.cast(pl.Float64)
        elif isinstance(kind, pl.Decimal):
            column = column.cast(pl.Decimal(38, 10))
        elif isinstance(kind, pl.Datetime):
            column = column.cast(pl.Datetime("us"))
        columns.append(column)
    return frame.select(columns)


def _run(
    world: World, cases: Sequence[FuzzCase], asked: Mapping[str, Query]
) -> dict[str, pl.DataFrame]:
    """The rows of each case, from one run or more with the same checkpoint."""
    names = [name for case in cases for name in case.names]
    parts: dict[str, list[pl.DataFrame]] = {case.name: [] for case in cases}
    with _folder() as folder:
        for number in range(len(world.runs)):
            for stream in world.inputs:
                stream.write(folder, number)
            session = _session(world, folder, number)
            for name in names:
                # As it was read before: reading texts takes longer than running them
                session.query(name, asked[name])
            last = number == len(world.runs) - 1
            sinks = {case.name: _sink(world, folder, case) for case in cases}
            at_end = "close" if last else "keep"
            run = session.start(sinks=sinks, checkpoint=folder / "checkpoint", at_end=at_end)
            if not run.await_termination(PATIENCE):
                raise RunError(f"The run hangs: it has not ended after {PATIENCE:.0f} s.")
            for case in cases if world.sink == "memory" else ():
                parts[case.name].append(run.results(case.name))
        schemas = {output.query: output.schema for output in run.plan.outputs}
        if world.sink != "memory":
            for case in cases:
                parts[case.name] = _read(folder, world.sink, case, schemas[case.name])
    return {name: pl.concat(frames) for name, frames in parts.items()}


def _sink(world: World, folder: Path, case: FuzzCase) -> Any:
    if world.sink == "memory":
        return "memory"
    return {"path": str(folder / "out" / case.name), "format": world.sink}


def _read(folder: Path, form: str, case: FuzzCase, schema: pl.Schema) -> list[pl.DataFrame]:
    """The rows in a result folder, epoch by epoch."""
    paths = (folder / "out" / case.name).glob(f"epoch=*/*.{form}")
    by_epoch = sorted(paths, key=lambda path: (int(path.parent.name.partition("=")[2]), path.name))
    if form == "parquet":
        frames = [pl.read_parquet(path, hive_partitioning=False) for path in by_epoch]
    else:
        frames = [pl.read_ipc(path) for path in by_epoch]
    return [pl.DataFrame(schema=schema), *frames]


def _session(world: World, folder: Path, number: int) -> Session:
    """A session with the streams of the world, for the run of that number."""
    sites, settings = world.runs[number]
    session = Session.in_process(sites, settings)
    for stream in world.inputs:
        session.stream(stream.name, **stream.options(folder))
    session.table(TABLE, world.table)
    return session


def _register(session: Session, case: FuzzCase) -> dict[str, Query]:
    """The queries of a case, read from their texts."""
    asked = {name: session.query(name, text) for name, text in case.views}
    emit = "update" if case.update else None
    return asked | {case.name: session.query(case.name, case.ours, emit=emit)}


class _folder:
    """A folder in memory where there is such a thing, gone in the end."""

    def __enter__(self) -> Path:
        within = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.path = Path(tempfile.mkdtemp(prefix="anabranch-fuzz-", dir=within))
        return self.path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
