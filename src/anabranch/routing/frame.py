"""Frames: rows on their way between tasks, Arrow in between, and the parcel that carries them.

One parcel goes from every split to every site, so that a site knows it has heard from all of them.
It starts with a header (what the split reports: rows, newest time, faults) and holds any number of
frames, each addressed to an input of a subquery.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import polars as pl
import pyarrow as pa

NEWEST, OLDEST = pl.CompatLevel.newest(), pl.CompatLevel.oldest()
_SPARE = 1.25
"""How many times what its rows take a table may have before texts are copied."""
_LENGTH = struct.Struct("<I")
LARGE = 1 << 18
"""Bytes of rows from which on a file costs less than the way through a shuffle."""
_WIDTHS = ((pl.Int8, 8), (pl.Int16, 16), (pl.Int32, 32))


@dataclass(frozen=True)
class Frame:
    """Rows of which some 64-bit integer columns are kept in fewer bytes.

    What is sent and gathered costs by the byte, so the columns are widened as late as possible.
    """

    rows: pl.DataFrame
    narrowed: frozenset[str] = frozenset()

    def wide(self) -> pl.DataFrame:
        """The rows with every column in its own type."""
        return widen(self.rows, self.narrowed)


def widen(rows: pl.DataFrame, narrowed: Collection[str]) -> pl.DataFrame:
    return rows.with_columns(pl.col(*narrowed).cast(pl.Int64)) if narrowed else rows


def narrow(rows: pl.DataFrame) -> Frame:
    """The rows with 64-bit integers in the fewest bytes that hold them."""
    names = [name for name, kind in rows.schema.items() if kind == pl.Int64]
    if not names or rows.height == 0:
        return Frame(rows)
    low = rows.select(pl.col(names).min()).row(0)
    high = rows.select(pl.col(names).max()).row(0)
    casts: dict[str, pl.Expr] = {}
    for name, least, most in zip(names, low, high, strict=True):
        for width, bits in _WIDTHS:
            if least is not None and -(1 << (bits - 1)) <= least and most < 1 << (bits - 1):
                casts[name] = pl.col(name).cast(width, wrap_numerical=True)
                break
    return Frame(rows.with_columns(casts.values()), frozenset(casts))


def concat(frames: Sequence[Frame]) -> Frame:
    """The rows of all frames, each column as wide as its widest part, in one chunk."""
    if len(frames) == 1:
        return frames[0]
    rows = pl.concat((frame.rows for frame in frames), how="vertical_relaxed", rechunk=True)
    return Frame(rows, frozenset().union(*(frame.narrowed for frame in frames)))


def alike(frames: Sequence[Frame]) -> list[Frame]:
    """The rows of all frames, in one for each set of columns there is."""
    kinds: dict[tuple[str, ...], list[Frame]] = {}
    for frame in frames:
        kinds.setdefault(tuple(frame.rows.columns), []).append(frame)
    return [concat(some) for some in kinds.values()]


Inlet: TypeAlias = tuple[str, int]
"""Where frames arrive: a subquery, and the number of its input."""


class FrameHeader(msgspec.Struct, array_like=True):
    """Where a frame goes, how long it is, and which columns were narrowed from 64 bits."""

    inlet: Inlet
    size: int
    narrowed: list[str]


class ParcelHeader(msgspec.Struct, array_like=True):
    frames: list[FrameHeader]
    report: Any
    file: str = ""
    """Where the frames are, if they do not follow."""


@dataclass(frozen=True)
class Parcel:
    """What one split sends to one site: its frames as bytes, in memory or in a file."""

    headers: tuple[FrameHeader, ...] = ()
    bodies: tuple[pa.Buffer, ...] = ()
    file: str = ""


def packed(box: list[tuple[Inlet, Frame]], folder: str = "") -> Parcel:
    """The frames of one parcel; each is let go of as soon as it is packed.

    With a folder, which sender and receiver have in common, much is left in a file there: it need not take
    the way of the parcel then.
    """
    much = sum(frame.rows.estimated_size() for _, frame in box) >= LARGE
    if folder and much:
        return _left(box, f"{folder}/{uuid.uuid4().hex}")
    headers, bodies = [], []
    while box:
        inlet, frame = box.pop(0)
        body = to_ipc(frame.rows)
        headers.append(FrameHeader(inlet, body.size, sorted(frame.narrowed)))
        bodies.append(body)
    return Parcel(tuple(headers), tuple(bodies))


def _left(box: list[tuple[Inlet, Frame]], path: str) -> Parcel:
    """The frames in a file of this path."""
    headers = []
    with pa.OSFile(path, "wb") as file:
        while box:
            inlet, frame = box.pop(0)
            table, start = to_table(frame.rows), file.tell()
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table)
            file.write(b"\0" * (-file.tell() % 64))
            headers.append(FrameHeader(inlet, file.tell() - start, sorted(frame.narrowed)))
    return Parcel(tuple(headers), file=path)


def pack(report: Any, parcel: Parcel) -> bytes:
    """A parcel with the word of its sender, as it travels."""
    known = ParcelHeader(list(parcel.headers), report, parcel.file)
    header = msgspec.msgpack.encode(known)
    padding = -(_LENGTH.size + len(header)) % 64
    return b"".join([_LENGTH.pack(len(header)), header, b"\0" * padding, *parcel.bodies])


def unpack(parcel: bytes) -> tuple[Any, Iterator[tuple[Inlet, Frame, int]]]:
    """The report of a parcel, and its frames with their bytes; they share the memory of parcel or file."""
    (length,) = _LENGTH.unpack_from(parcel)
    header = msgspec.msgpack.decode(parcel[_LENGTH.size : _LENGTH.size + length], type=ParcelHeader)
    if header.file:
        # One of our own, which nobody cuts short: it can be mapped
        return header.report, _frames(pa.memory_map(header.file).read_buffer(), header, 0)
    start = _LENGTH.size + length
    return header.report, _frames(pa.py_buffer(parcel), header, start + -start % 64)


def _frames(
    buffer: pa.Buffer, header: ParcelHeader, start: int
) -> Iterator[tuple[Inlet, Frame, int]]:
    for frame in header.frames:
        table = pa.ipc.open_stream(buffer.slice(start, frame.size)).read_all()
        start += frame.size
        rows = pl.from_arrow(table)
        assert isinstance(rows, pl.DataFrame)
        yield frame.inlet, Frame(rows, frozenset(frame.narrowed)), frame.size


def to_table(rows: pl.DataFrame, in_order: bool = False) -> pa.Table:
    """The rows as an Arrow table that has no more than them.

    Texts are views into buffers, which rows that were cut out or gathered share with all the others: written
    as they are, each part would carry the texts of the whole. Nor do they lie there in the order of the rows,
    unless that is asked for.
    """
    table = rows.to_arrow(compat_level=NEWEST)
    texts = [name for name, kind in rows.schema.items() if _has_views(kind)]
    if not texts or (not in_order and table.nbytes <= _SPARE * rows.estimated_size()):
        return table
    # Gathered first: a slice of lists still has what all of them had
    apart = rows.select(texts)[pl.arange(rows.height, eager=True)]
    copied = pl.from_arrow(apart.to_arrow(compat_level=OLDEST))
    assert isinstance(copied, pl.DataFrame)
    return rows.with_columns(copied.get_columns()).to_arrow(compat_level=NEWEST)


def _has_views(kind: pl.DataType) -> bool:
    if isinstance(kind, pl.List | pl.Array):
        return _has_views(kind.inner)  # type: ignore[arg-type]
    if isinstance(kind, pl.Struct):
        return any(_has_views(field.dtype) for field in kind.fields)  # type: ignore[arg-type]
    return kind in (pl.String, pl.Binary)


def to_ipc(frame: pl.DataFrame) -> pa.Buffer:
    """The frame as an Arrow IPC stream, in a buffer of exactly its size."""
    table = to_table(frame)
    counter = pa.MockOutputStream()
    with pa.ipc.new_stream(counter, table.schema) as writer:
        writer.write_table(table)
    # Padded to 64 bytes, so that the next frame in a parcel is aligned too
    buffer = pa.allocate_buffer(counter.size() + -counter.size() % 64)
    with pa.ipc.new_stream(pa.FixedSizeBufferWriter(buffer), table.schema) as writer:
        writer.write_table(table)
    return buffer
