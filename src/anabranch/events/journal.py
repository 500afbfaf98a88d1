"""The journal of a run: its events in files beside the checkpoint, for whoever looks later or from elsewhere.

A file is a few frames: the events of about a second, packed. The newest file grows by being written anew, so
a reader never sees half a frame; when it is full the next one begins, and the oldest go. Nothing of a run
depends on it: where it cannot be written, the run goes on without. Reading: `events/history.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec
import pyarrow as pa

from anabranch.events.event import AnyEvent, RunEvent
from anabranch.state.place import Place

FOLDER, SUFFIX = "events", ".events"
MAGIC = b"ANABRANCH-EVENTS-1\n"
FILE_BYTES = 1024 * 1024
"""A file that has become this long is full."""
HEADER = struct.Struct("<II")
"""Before each frame: its length packed and unpacked."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[AnyEvent])


class Journal:
    """Writes the events of one run; at most so many bytes of all runs of the checkpoint stay."""

    def __init__(self, place: Place, run: str, began: float, most_bytes: int) -> None:
        self._place = place
        self._stem = f"{FOLDER}/{int(began * 1000):013d}-{run[:8]}"
        self._number = 0
        self._text = MAGIC
        self._most_files = max(2, most_bytes // FILE_BYTES)

    def write(self, events: Sequence[RunEvent]) -> None:
        """Adds some events; they are there for others when it returns."""
        if not events:
            return
        self._text += frame(events)
        with self._place.writing(f"{self._stem}-{self._number:06d}{SUFFIX}", fsync=False) as path:
            path.write_bytes(self._text)
        if len(self._text) >= FILE_BYTES or self._number == 0:
            self._clear()
        if len(self._text) >= FILE_BYTES:
            self._number, self._text = self._number + 1, MAGIC

    def _clear(self) -> None:
        names = self._place.names(FOLDER, SUFFIX)
        for name in names[: -self._most_files]:
            self._place.remove(name)


def frame(events: Sequence[RunEvent]) -> bytes:
    """Events as they stand in a file."""
    plain = _encoder.encode(list(events))
    packed: bytes = pa.compress(plain, codec="zstd", asbytes=True)
    return HEADER.pack(len(packed), len(plain)) + packed


def unframe(data: bytes, start: int) -> tuple[list[AnyEvent], int]:
    """The events of the whole frames from a place in a file on, and where they end."""
    found: list[AnyEvent] = []
    while start + HEADER.size <= len(data):
        packed, plain = HEADER.unpack_from(data, start)
        end = start + HEADER.size + packed
        if end > len(data):
            break
        body = data[start + HEADER.size : end]
        found += _decoder.decode(pa.decompress(body, plain, codec="zstd", asbytes=True))
        start = end
    return found, start
