"""A world for some cases: streams with their rows, cut into files, and how the run over them goes.

Sites, strategy, epochs, formats and a restart in the middle are drawn; none of it may change a result.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv

from anabranch.language.shape import NAMED
from anabranch.settings import FIXED_PLANS, TRANSITIONS
from anabranch.testing.fuzz.draw import Draw, DrawnColumn
from anabranch.testing.fuzz.values import POLARS, moments, values

GROUP = 10
"""Neighbouring cases have one world and are run together: a run costs more than a query."""

HELD_BACK = 9
"""Bytes by which a file that grows ends before its last line does, until the last run."""

TABLE = "known"
"""The name of the table."""
TABLE_COLUMNS = (
    DrawnColumn("key", "i64"), DrawnColumn("word", "text"), DrawnColumn("rank", "i64"),
    DrawnColumn("share", "f64"),
)  # fmt: skip

_SCHEMA_NAMES = {
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f32": "float32", "f64": "float64", "text": "string",
    "truth": "boolean", "day": "date", "stamp": "timestamp",
}  # fmt: skip
_POOL = (
    DrawnColumn("n", "i64"), DrawnColumn("m", "i32"), DrawnColumn("big", "i64", tame=False),
    DrawnColumn("tiny", "i8", tame=False), DrawnColumn("short", "i16", tame=False),
    DrawnColumn("ub", "u8", tame=False), DrawnColumn("us", "u16", tame=False),
    DrawnColumn("ui", "u32", tame=False), DrawnColumn("ul", "u64", tame=False), DrawnColumn("x", "f64"),
    DrawnColumn("y", "f32"), DrawnColumn("wild", "f64", tame=False), DrawnColumn("s", "text"),
    DrawnColumn("Name", "text"), DrawnColumn("p", "truth"), DrawnColumn("d", "day"),
    DrawnColumn("at", "stamp"), DrawnColumn("price", "d2"), DrawnColumn("rate", "d4"),
)  # fmt: skip
"""The columns that streams draw from, besides the time and a key that all of them have."""


@dataclass(frozen=True)
class DrawnStream:
    """A stream: its columns, its files, and how it is declared."""

    name: str
    columns: tuple[DrawnColumn, ...]
    files: tuple[pl.DataFrame, ...]
    format: str
    lateness: int
    stamps: bool
    there: tuple[int, ...]
    """How many of the files are there when each run starts; all of them for the last."""
    grows: bool = False
    """Whether all that would be in the files comes to one, which is followed."""

    @property
    def rows(self) -> pl.DataFrame:
        return pl.concat(self.files)

    def options(self, folder: Path) -> dict[str, Any]:
        """What the stream is declared with."""
        declared = {column.name: _SCHEMA_NAMES.get(column.kind) for column in self.columns}
        options: dict[str, Any] = {
            "path": str(folder / self.name),
            "format": self.format,
            "ordered": "t",
        }
        if self.lateness:
            options["lateness"] = f"{self.lateness} seconds" if self.stamps else self.lateness
        if None not in declared.values():
            options["schema"] = declared
        if self.grows:
            options["growing"] = "follow"
        return options

    def write(self, folder: Path, run: int) -> None:
        """Writes the files that come before a run, each newer than the ones before."""
        (folder / self.name).mkdir(exist_ok=True)
        if self.grows:
            self._grow(folder / self.name / f"log.{self.format}", run)
            return
        for number in range(self.there[run - 1] if run else 0, self.there[run]):
            path = folder / self.name / f"{number:03}.{self.format}"
            _write(self.files[number], path, self.format)
            os.utime(path, (1_000_000 + number, 1_000_000 + number))

    def _grow(self, path: Path, run: int) -> None:
        """Adds to the one file what comes before a run; but for the last, a part of it in the next."""
        texts = [_text(file, self.format) for file in self.files]
        if self.format == "csv":
            # The names of the columns stand there once
            texts[1:] = [text.partition(b"\n")[2] for text in texts[1:]]
        text = b"".join(texts[: self.there[run]])
        last = run == len(self.there) - 1
        with open(path, "ab") as file:
            file.write(
                text[file.tell() : None if last else max(file.tell(), len(text) - HELD_BACK)]
            )


@dataclass(frozen=True)
class World:
    """Streams, and the runs that read them: one, or more with the same checkpoint."""

    inputs: tuple[DrawnStream, ...]
    runs: tuple[tuple[int, Mapping[str, Any]], ...]
    """The number of sites and the settings of each run."""
    sink: str = "memory"
    """Where results go: "memory", or the format of files in folders."""
    table: pl.DataFrame = field(default_factory=pl.DataFrame)
    """What streams are joined with that does not change."""

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """What DuckDB has as tables."""
        return {**{one.name: one.rows for one in self.inputs}, TABLE: self.table}

    @property
    def stamps(self) -> bool:
        return self.inputs[0].stamps

    def told(self) -> str:
        """The world in words, for a report of a failure."""
        lines = [f"{sites} sites, settings {dict(settings)}" for sites, settings in self.runs]
        lines.append(f"results to {self.sink}")
        lines.append(f"table {TABLE}: {self.table.to_dict(as_series=False)}")
        for stream in self.inputs:
            lines.append(
                f"stream {stream.name} ({stream.format}{', one file' * stream.grows}, lateness "
                f"{stream.lateness}, files there for each run: {stream.there}), rows of each file:"
            )
            lines += [str(file.to_dict(as_series=False)) for file in stream.files]
        return "\n".join(lines)


def draw_world(number: int) -> World:
    """The world of this number, the same each time."""
    draw = Draw(f"world {number}")
    stamps = draw.chance(0.3)
    count = draw.pick((1, 1, 2, 2, 3))
    inputs = tuple(
        _draw_input(draw, name, stamps, count) for name in ("a", "b", "c")[: draw.randint(2, 3)]
    )
    lasting = {
        "strategy": draw.pick(("subquery", "subquery", "subquery", "query", "operator")),
        "central": draw.chance(0.1),
        "partitions_per_site": draw.randint(1, 8),
        "fsync": False,
    }
    runs = tuple(
        (draw.pick((1, 2, 2, 3, 3, 4)), {**lasting, **_passing(draw)}) for _ in range(count)
    )
    sink = draw.pick(("memory",) * 6 + ("parquet", "arrow"))
    # After all else, so that seeds go on giving the streams that they gave
    shaped = tuple((sites, {**settings, **_shapes(draw)}) for sites, settings in runs)
    followed = tuple(
        replace(stream, grows=stream.format in ("csv", "json") and draw.chance(0.4))
        for stream in inputs
    )
    return World(followed, shaped, sink, _draw_table(Draw(f"table {number}")))


def _draw_table(draw: Draw) -> pl.DataFrame:
    """A small table, with some keys twice and some without a value."""
    rows = draw.randint(0, 8)
    return pl.DataFrame([values(draw, column, rows) for column in TABLE_COLUMNS])


def _shapes(draw: Draw) -> dict[str, Any]:
    """The shape of all joins that can have several; if the next run has another, how they come to it."""
    if not draw.chance(0.4):
        return {}
    return {
        "plans": FIXED_PLANS,
        "join_shape": draw.pick(NAMED),
        "transition": draw.pick(TRANSITIONS),
    }


def _passing(draw: Draw) -> dict[str, Any]:
    """Settings that may differ from run to run."""
    settings: dict[str, Any] = {"max_files_per_epoch": draw.randint(1, 4)}
    if draw.chance(0.3):
        settings["split_tasks"] = draw.randint(1, 3)
    if draw.chance(0.3):
        settings["combine_reduction"] = draw.pick((1.0, 1.2, 10.0))
    if draw.chance(0.3):
        settings["compaction_fan"] = 2
        settings["compaction_floor_rows"] = draw.pick((0, 10))
    if draw.chance(0.3):
        settings["policy"] = draw.pick(("none", "load"))
    if draw.chance(0.3):
        settings["overlap"] = False
    return settings


def _draw_input(draw: Draw, name: str, stamps: bool, runs: int) -> DrawnStream:
    form = draw.pick(("parquet", "parquet", "parquet", "arrow", "csv", "json"))
    pool = [column for column in _POOL if fits(column, form)]
    chosen = draw.sample(pool, draw.randint(4, 9))
    columns = (
        DrawnColumn("t", "stamp" if stamps else draw.pick(("i64", "i64", "i64", "i32"))),
        DrawnColumn("k", draw.pick(("i32", "i64", "i16"))),
        *chosen,
    )
    rows = draw.pick((0, 1, 8, 30, 40, 60, 90))
    lateness = draw.pick((0, 0, 3, 10, 40))
    times = moments(draw, stamps, rows, lateness).cast(POLARS[columns[0].kind])
    keys = pl.Series("k", [None if draw.chance(0.05) else draw.randint(0, 5) for _ in range(rows)])
    frame = pl.DataFrame(
        [times, keys.cast(POLARS[columns[1].kind]), *(values(draw, c, rows) for c in chosen)]
    )
    cuts = sorted(draw.randint(0, rows) for _ in range(draw.randint(0, 5)))
    edges = [0, *cuts, rows]
    files = tuple(frame[low:high] for low, high in itertools.pairwise(edges))
    # The first run must have a file to tell the types from
    some = sorted(draw.randint(1, len(files)) for _ in range(runs - 1))
    return DrawnStream(name, columns, files, form, lateness, stamps, (*some, len(files)))


def fits(column: DrawnColumn, form: str) -> bool:
    """Whether files of this format can have such a column."""
    if form == "json":
        return column.kind not in ("day", "d2", "d4", "u64") and column.name != "wild"
    return form != "csv" or column.kind not in ("d2", "d4")


def _write(frame: pl.DataFrame, path: Path, form: str) -> None:
    match form:
        case "parquet":
            frame.write_parquet(path)
        case "arrow":
            frame.write_ipc(path, compat_level=pl.CompatLevel.oldest())
        case _:
            path.write_bytes(_text(frame, form))


def _text(frame: pl.DataFrame, form: str) -> bytes:
    if form == "json":
        return frame.write_ndjson().encode()
    # Quotes tell an empty text from NULL
    options = pa.csv.WriteOptions(quoting_style="all_valid")
    target = pa.BufferOutputStream()
    pa.csv.write_csv(frame.to_arrow(compat_level=pl.CompatLevel.oldest()), target, options)
    text: bytes = target.getvalue().to_pybytes()
    return text
