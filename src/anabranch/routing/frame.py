"""Frames: Arrow tables as bytes between a split and a site, and the parcel that carries them.

One parcel goes from every split to every site, so that a site knows it has heard from all of them.
It starts with a header (what the split reports: rows, newest time, faults) and holds any number of
frames, each addressed to an input of a subquery.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa

_NEWEST = pl.CompatLevel.newest()
_LENGTH = struct.Struct("<I")
_WIDTHS = ((pl.Int8, 8), (pl.Int16, 16), (pl.Int32, 32))


class FrameHeader(msgspec.Struct, array_like=True):
    """Where a frame goes, how long it is, and which columns were narrowed from 64 bits."""

    subquery: str
    size: int
    narrowed: list[str]


class ParcelHeader(msgspec.Struct, array_like=True):
    frames: list[FrameHeader]
    report: Any


@dataclass
class Parcel:
    """What one split sends to one site."""

    report: Any
    frames: list[tuple[str, pl.DataFrame]] = field(default_factory=list)
    narrowed: dict[str, list[str]] = field(default_factory=dict)
    """For frames that were narrowed before: their narrowed columns."""

    def pack(self) -> bytes:
        headers, bodies = [], []
        for subquery, frame in self.frames:
            if subquery in self.narrowed:
                names = self.narrowed[subquery]
            else:
                frame, names = narrow(frame)
            body = to_ipc(frame)
            headers.append(FrameHeader(subquery, body.size, names))
            bodies.append(body)
        header = msgspec.msgpack.encode(ParcelHeader(headers, self.report))
        padding = -(_LENGTH.size + len(header)) % 64
        return b"".join([_LENGTH.pack(len(header)), header, b"\0" * padding, *bodies])


def unpack(parcel: bytes) -> tuple[Any, Iterator[tuple[str, pl.DataFrame]]]:
    """The report of a parcel and its frames; the frames share the parcel's memory."""
    (length,) = _LENGTH.unpack_from(parcel)
    header = msgspec.msgpack.decode(parcel[_LENGTH.size : _LENGTH.size + length], type=ParcelHeader)
    return header.report, _frames(parcel, header, length)


def _frames(parcel: bytes, header: ParcelHeader, length: int) -> Iterator[tuple[str, pl.DataFrame]]:
    start = _LENGTH.size + length
    start += -start % 64
    buffer = pa.py_buffer(parcel)
    for frame in header.frames:
        table = pa.ipc.open_stream(buffer.slice(start, frame.size)).read_all()
        start += frame.size
        data = pl.from_arrow(table)
        assert isinstance(data, pl.DataFrame)
        yield frame.subquery, data.with_columns(pl.col(frame.narrowed).cast(pl.Int64))


def to_ipc(frame: pl.DataFrame) -> pa.Buffer:
    """The frame as an Arrow IPC stream, in a buffer of exactly its size."""
    table = frame.to_arrow(compat_level=_NEWEST)
    counter = pa.MockOutputStream()
    with pa.ipc.new_stream(counter, table.schema) as writer:
        writer.write_table(table)
    # Padded to 64 bytes, so that the next frame in a parcel is aligned too
    buffer = pa.allocate_buffer(counter.size() + -counter.size() % 64)
    with pa.ipc.new_stream(pa.FixedSizeBufferWriter(buffer), table.schema) as writer:
        writer.write_table(table)
    return buffer


def narrow(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """64-bit integers in the fewest bytes that hold them: the exchange costs by the byte."""
    names = [name for name, kind in frame.schema.items() if kind == pl.Int64]
    if not names or frame.height == 0:
        return frame, []
    low = frame.select(pl.col(names).min()).row(0)
    high = frame.select(pl.col(names).max()).row(0)
    casts, narrowed = [], []
    for name, least, most in zip(names, low, high, strict=True):
        for width, bits in _WIDTHS:
            if least is not None and -(1 << (bits - 1)) <= least and most < 1 << (bits - 1):
                casts.append(pl.col(name).cast(width))
                narrowed.append(name)
                break
    return frame.with_columns(casts), narrowed
