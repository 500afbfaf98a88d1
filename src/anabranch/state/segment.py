"""Segments: immutable, sorted Arrow IPC files with state rows of many partitions.

Every row has a `__locator` (slot, then key hash; the sort order) and a `__due` (the watermark at
which it has done its work). Rows of a join with the same locator lie in the order of their time. A file
holds one record batch per segment; a `SegmentRef` names one of them and the slots of it that still
count: moving a partition or merging a slice away changes only the reference, never the file.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa

from anabranch.errors import StateError
from anabranch.routing.frame import to_table
from anabranch.routing.locator import row_ranges
from anabranch.routing.ranges import expand
from anabranch.routing.sorting import changes, sort_locators
from anabranch.state.checksum import Damaged, FileVersion, Summing, check_file, note_written
from anabranch.state.mapping import fetch, map_quietly
from anabranch.state.place import Place
from anabranch.state.stretch import Stretches, order_within, runs

LOCATOR, DUE = "__locator", "__due"
NEVER = (1 << 63) - 1
"""The due time of rows that no watermark takes away."""

STEPS = 64
"""In how many steps a segment tells at most where its rows are."""
SLICES = 8
"""Slices of a segment that are read one by one: more of them are copied into one frame, which costs less."""
SMALL, MOST_KEPT, KEPT_OPEN = 512 * 1024, 4 * 1024 * 1024, 512
"""Bytes of a segment that stays mapped when an epoch has ended, those of its file, and how many do, in each
process: to open one takes longer than to look something up in it. Their files may be gone by then, so they
are not to be large."""
Ranges = list[tuple[int, int]]


class SegmentRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One segment as the manifest names it."""

    file: str
    batch: int
    table: str
    tier: int
    rows: int
    bytes: int
    min_due: int
    max_due: int
    live: tuple[tuple[int, int], ...]
    """The ranges of slots that still count."""
    along: tuple[int, ...]
    """Its rows in so many equal steps along these slots."""
    born: tuple[int, int]
    """The first and the last epoch in which rows of it came."""
    checksum: int
    """Of the whole file."""
    packed: bool = False
    """Whether it is compressed, to be put aside: to look into it, all of it has to be unpacked."""


class Part(NamedTuple):
    """What becomes one segment: sorted rows, at least one, and the slots that they stand for."""

    tier: int
    rows: pl.DataFrame
    live: Ranges


def write_segments(
    place: Place, file: str, table: str, parts: Sequence[Part], born: tuple[int, int], fsync: bool,
    packed: bool = False,
) -> list[SegmentRef]:  # fmt: skip
    """Writes the segments of one file; the references are not durable yet."""
    try:
        tables = [_to_table(part.rows).combine_chunks() for part in parts]
        total = write_arrow(place, file, tables[0].schema, tables, fsync, packed)
    except OSError as error:
        raise StateError(
            f"Cannot write the state segment '{place}/{file}': {error.strerror or error}. "
            "The epoch is not counted; free space or mend the folder and start again."
        ) from error
    return [
        SegmentRef(
            file=file, batch=number, table=table, tier=part.tier, rows=part.rows.height,
            bytes=arrow.nbytes, min_due=_int(part.rows[DUE].min()), max_due=_int(part.rows[DUE].max()),
            live=tuple(part.live), along=_steps(part.rows[LOCATOR].to_numpy(), part.live), born=born,
            checksum=total, packed=packed,
        )
        for number, (part, arrow) in enumerate(zip(parts, tables, strict=True))
    ]  # fmt: skip


def _to_table(rows: pl.DataFrame) -> pa.Table:
    # Who reads a slot of what is large reads the texts of that slot alone, if they lie together
    return to_table(rows, in_order=rows.estimated_size() > SMALL)


def _steps(locators: np.ndarray, live: Ranges) -> tuple[int, ...]:
    """How sorted rows are spread along the slots they are in."""
    slots = slots_in(live)
    firsts = slots[np.arange(min(STEPS, len(slots))) * len(slots) // min(STEPS, len(slots))]
    edges = np.searchsorted(locators, firsts[1:].astype(np.uint64) << np.uint64(48))
    return tuple(np.diff(edges, prepend=0, append=len(locators)).tolist())


def along(rows: np.ndarray) -> tuple[int, ...]:
    """The rows of slots in a row, summed up in at most so many steps."""
    count = min(STEPS, len(rows))
    sums = np.add.reduceat(rows, np.arange(count) * len(rows) // count)
    return tuple(np.rint(sums).astype(int).tolist())


def slots_in(ranges: Sequence[tuple[int, int]]) -> np.ndarray:
    """The slots of these ranges, one by one."""
    first, end = np.asarray(ranges, dtype=np.int64).reshape(-1, 2).T
    return expand(first, end - first)


def write_arrow(
    place: Place, file: str, schema: pa.Schema, tables: Sequence[pa.Table], fsync: bool,
    packed: bool = False,
) -> int:  # fmt: skip
    """Writes a file with one batch per table; its checksum."""
    options = pa.ipc.IpcWriteOptions(compression="zstd" if packed else None)
    with place.writing(file, fsync) as path, open(path, "wb", buffering=0) as raw:
        summing = Summing(raw)
        out = pa.PythonFile(summing, mode="w")
        with pa.ipc.new_file(out, schema, options=options) as writer:
            for table in tables:
                for batch in table.to_batches(max_chunksize=None):
                    writer.write_batch(batch)
    if not place.far:
        note_written(place.local(file), summing.checksum)
    return summing.checksum


def open_arrow(place: Place, file: str, expected: int) -> pa.RecordBatchFileReader:
    """A memory-mapped file whose bytes are those that were written; raises Damaged if they are not."""
    return _mapped(_checked(place, file, expected).path)


def _checked(place: Place, file: str, expected: int) -> FileVersion:
    path = place.local(file)
    try:
        return check_file(path, expected)
    except Damaged:
        if not place.renew(file):
            raise
        # It was a copy: perhaps the file itself is whole
        path = place.local(file)
        return check_file(path, expected)


def _mapped(path: str) -> pa.RecordBatchFileReader:
    return pa.ipc.open_file(pa.memory_map(path))


def open_segment(place: Place, ref: SegmentRef, wanted: Ranges | None = None) -> pl.DataFrame:
    """All rows of a segment: mapped, or unpacked if it is packed; `wanted` are slots that are read now."""
    try:
        version = _checked(place, ref.file, ref.checksum)
        if ref.packed:
            return _frame(version, ref.batch)
        if ref.bytes > SMALL or version.size > MOST_KEPT:
            return _large_frame(version, ref.batch, wanted or [])
        return _kept_frame(version, ref.batch)
    except (OSError, pa.ArrowException, Damaged) as error:
        raise StateError(
            f"The state segment '{place}/{ref.file}' named by the checkpoint cannot be read: {error}. "
            "Was the checkpoint folder changed by hand? Restore it or start with a new one."
        ) from error


def _frame(version: FileVersion, batch: int) -> pl.DataFrame:
    frame = pl.from_arrow(_mapped(version.path).get_batch(batch))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _large_frame(version: FileVersion, batch: int, wanted: Ranges) -> pl.DataFrame:
    """A batch of which no more is read than what is wanted, and what is touched later."""
    rows = pa.ipc.open_file(map_quietly(version.path)).get_batch(batch)
    locators = rows.column(LOCATOR)
    fetch(locators, 0, len(rows))
    cut = row_ranges(locators.to_numpy(), wanted)
    for first, end in cut if len(cut) <= SLICES else [(cut[0][0], cut[-1][1])]:
        for column in rows.columns:
            fetch(column, first, end)
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame


_kept_frame = functools.lru_cache(maxsize=KEPT_OPEN)(_frame)


def read_slots(segment: pl.DataFrame, wanted: Ranges) -> list[pl.DataFrame]:
    """The rows of these slots, sorted by locator, as slices of the segment if they are few."""
    locators = segment[LOCATOR].to_numpy()
    cut = row_ranges(locators, wanted)
    if len(cut) > SLICES:
        return [segment[_in_slots(locators, wanted)]]
    return [segment.slice(start, end - start) for start, end in cut]


def probe_slots(
    segment: pl.DataFrame, wanted: Ranges, asked: np.ndarray | Stretches
) -> pl.DataFrame | None:
    """The rows of these slots that have one of the sorted, distinct locators, or are in the stretches."""
    locators = segment[LOCATOR].to_numpy()
    # What is not asked for is not found: slots in many ranges cost no more than those in one
    if isinstance(asked, Stretches):
        near = asked.of(_in_slots(asked.locators, wanted))
        rows = near.places(locators, segment[asked.column].to_numpy())
    else:
        _, start, end = runs(locators, asked[_in_slots(asked, wanted)])
        rows = expand(start, end - start)
    return segment[rows] if len(rows) else None


def found_in_slots(segment: pl.DataFrame, wanted: Ranges, asked: np.ndarray) -> np.ndarray:
    """Which of these sorted locators rows of these slots have."""
    locators = segment[LOCATOR].to_numpy()
    near = _in_slots(asked, wanted)
    found = np.zeros(len(asked), dtype=bool)
    at = np.minimum(np.searchsorted(locators, asked[near]), len(locators) - 1)
    found[near] = locators[at] == asked[near]
    return found


def _in_slots(locators: np.ndarray, wanted: Ranges) -> np.ndarray:
    """The places of the locators, of sorted ones, that are in these slots."""
    first, end = np.asarray(row_ranges(locators, wanted), dtype=np.int64).reshape(-1, 2).T
    return expand(first, end - first)


def sort_by_locator(rows: pl.DataFrame, then: str | None = None) -> pl.DataFrame:
    """The rows in the order of a segment; those with the same locator by a column, or as they were."""
    # In one chunk: of several, Polars 2.1 gathers lists of strings into arrays that Arrow refuses
    rows = rows.rechunk()
    order, locators = sort_locators(rows[LOCATOR].to_numpy())
    if then is not None:
        order_within(order, changes(locators), rows[then].to_numpy())
    others = rows.drop(LOCATOR)[pl.Series(order.astype(np.uint32))]
    return others.with_columns(pl.Series(LOCATOR, locators)).select(rows.columns)


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
