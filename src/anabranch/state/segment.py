"""Segments: immutable, sorted Arrow IPC files with state rows of many partitions.

Every row has a `__locator` (slot, then key hash; the sort order) and a `__due` (the watermark at
which it has done its work). Rows of a join with the same locator lie in the order of their time. A file
holds one record batch per segment; a `SegmentRef` names one of them and the slots of it that still
count: moving a partition or merging a slice away changes only the reference, never the file.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa

from anabranch.errors import StateError
from anabranch.routing.frame import NEWEST
from anabranch.routing.locator import row_ranges
from anabranch.routing.ranges import expand
from anabranch.state.checksum import Damaged, Summing, check_file
from anabranch.state.place import Place
from anabranch.state.stretch import Stretches, runs

LOCATOR, DUE = "__locator", "__due"
NEVER = (1 << 63) - 1
"""The due time of rows that no watermark takes away."""

STEPS = 64
"""In how many steps a segment tells at most where its rows are."""
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


def write_segments(
    place: Place, file: str, table: str, parts: Sequence[tuple[int, pl.DataFrame]], live: Ranges,
    born: tuple[int, int], fsync: bool,
) -> list[SegmentRef]:  # fmt: skip
    """Writes sorted frames as the segments of one file; the references are not durable yet."""
    try:
        tables = [frame.to_arrow(compat_level=NEWEST).combine_chunks() for _, frame in parts]
        total = write_arrow(place, file, tables[0].schema, tables, fsync)
    except OSError as error:
        raise StateError(
            f"Cannot write the state segment '{place}/{file}': {error.strerror or error}. "
            "The epoch is not counted; free space or mend the folder and start again."
        ) from error
    return [
        SegmentRef(
            file=file, batch=number, table=table, tier=tier, rows=frame.height, bytes=arrow.nbytes,
            min_due=_int(frame[DUE].min()), max_due=_int(frame[DUE].max()), live=tuple(live),
            along=_steps(frame[LOCATOR].to_numpy(), live), born=born, checksum=total,
        )
        for number, ((tier, frame), arrow) in enumerate(zip(parts, tables, strict=True))
    ]  # fmt: skip


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
    first, end = np.asarray(ranges).reshape(-1, 2).T
    return expand(first, end - first)


def write_arrow(
    place: Place, file: str, schema: pa.Schema, tables: Sequence[pa.Table], fsync: bool
) -> int:
    """Writes a file with one batch per table; its checksum."""
    with place.writing(file, fsync) as path, open(path, "wb", buffering=0) as raw:
        summing = Summing(raw)
        with pa.ipc.new_file(pa.PythonFile(summing, mode="w"), schema) as writer:
            for table in tables:
                for batch in table.to_batches(max_chunksize=None):
                    writer.write_batch(batch)
    return summing.checksum


def open_arrow(place: Place, file: str, expected: int) -> pa.RecordBatchFileReader:
    """A memory-mapped file whose bytes are those that were written; raises Damaged if they are not."""
    path = place.local(file)
    try:
        check_file(path, expected)
    except Damaged:
        if not place.renew(file):
            raise
        # It was a copy: perhaps the file itself is whole
        path = place.local(file)
        check_file(path, expected)
    return pa.ipc.open_file(pa.memory_map(str(path)))


def read_segment(place: Place, ref: SegmentRef, wanted: Ranges) -> list[pl.DataFrame]:
    """The rows of these slots, as slices of the memory-mapped file, each sorted by locator."""
    frame = _open(place, ref)
    cut = row_ranges(frame[LOCATOR].to_numpy(), wanted)
    return [frame.slice(start, end - start) for start, end in cut]


def _open(place: Place, ref: SegmentRef) -> pl.DataFrame:
    try:
        batch = open_arrow(place, ref.file, ref.checksum).get_batch(ref.batch)
    except (OSError, pa.ArrowException, Damaged) as error:
        raise StateError(
            f"The state segment '{place}/{ref.file}' named by the checkpoint cannot be read: {error}. "
            "Was the checkpoint folder changed by hand? Restore it or start with a new one."
        ) from error
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)
    return frame


def probe_segment(
    place: Place, ref: SegmentRef, wanted: Ranges, asked: np.ndarray | Stretches
) -> pl.DataFrame | None:
    """The rows of these slots that have one of the sorted, distinct locators, or are in the stretches."""
    parts = []
    for frame in read_segment(place, ref, wanted):
        column = frame[LOCATOR].to_numpy()
        if isinstance(asked, Stretches):
            rows = asked.places(column, frame[asked.column].to_numpy())
        else:
            low, high = np.searchsorted(asked, [column[0], column[-1]], side="left")
            _, start, end = runs(column, asked[low : high + 1])
            rows = expand(start, end - start)
        if len(rows):
            parts.append(frame[rows])
    return pl.concat(parts) if parts else None


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
