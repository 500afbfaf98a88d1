"""Opening the files of users: as bytes for Arrow, and texts as UTF-8 however they are packed and encoded.

What a text is packed in (gzip, zstd, bzip2) is told by its first bytes, not by its name. A text that is not
plain UTF-8 as it lies there is unpacked and decoded in memory, and parsed from there.
"""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from anabranch.sources.form import FileForm

PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
"""The first bytes of compressed files, and what Arrow calls the compression."""
PACKED_ENDINGS = (".gz", ".zst", ".zstd", ".bz2")
BLOCK = 1 << 24
BOM = codecs.BOM_UTF8
Text: TypeAlias = str | pa.Buffer
"""A text in UTF-8: the path of its file, or the text itself."""


def open_bytes(path: str) -> pa.OSFile:
    """A file to read for Arrow, which takes names that are no UTF-8 as bytes only."""
    return pa.OSFile(os.fsencode(path))


def open_source(text: Text) -> pa.NativeFile:
    return open_bytes(text) if isinstance(text, str) else pa.BufferReader(text)


def open_stream(text: Text) -> io.BufferedIOBase:
    """A text for Python to read."""
    return open(text, "rb") if isinstance(text, str) else io.BytesIO(text.to_pybytes())


def blocks(text: Text) -> Iterator[bytes]:
    """The bytes of a text, some at a time."""
    with open_source(text) as source:
        while block := source.read(BLOCK):
            yield block


class TextPart(NamedTuple):
    """A part of a text file: some whole lines of it, and the bytes before all lines, which have the names."""

    head: int
    begin: int
    end: int

    def __str__(self) -> str:
        return f"bytes {self.begin} to {self.end}"


def is_plain(start: bytes, form: FileForm) -> bool:
    """Whether a text that begins so lies in its file as it is read."""
    return (
        not start.startswith(tuple(PACKED)) and form.encoding == "utf-8"
        and form.comment is None and form.escape is None
    )  # fmt: skip


def open_text(path: str, form: FileForm, span: TextPart | None = None) -> Text:
    """A text file as UTF-8, or a part of it: its path if that will do, else what it has, in memory."""
    with open_bytes(path) as file:
        if span is not None:
            stretch = file.read_at(span.end - span.begin, span.begin)
            if len(stretch) < span.end - span.begin:
                raise ValueError("it is shorter than it was; was it cut off?")
            return pa.py_buffer(file.read_at(span.head, 0) + stretch)
        start = file.read(8)
        packed = next((name for mark, name in PACKED.items() if start.startswith(mark)), None)
        if packed is None and form.encoding == "utf-8" and form.comment is None:
            return path
        file.seek(0)
        text = file.read() if packed is None else pa.CompressedInputStream(file, packed).read()
    if form.encoding != "utf-8":
        text = codecs.decode(text, form.encoding).encode()
    if form.comment is not None:
        text = _without_comments(text, form.comment.encode(), form)
    return pa.py_buffer(text)


def _without_comments(text: bytes, mark: bytes, form: FileForm) -> bytes:
    """The text without the lines that begin with a mark and lie in no quotes; quotes in them mean nothing."""
    characters = np.frombuffer(text, np.uint8)
    starts = np.concatenate([[0], np.flatnonzero(characters == ord("\n")) + 1])
    quotes = np.flatnonzero(characters == ord(form.quote)) if form.quote else np.zeros(0, np.int64)
    if form.escape is not None:
        quotes = quotes[characters[np.maximum(quotes - 1, 0)] != ord(form.escape)]
    ends = np.append(starts[1:], len(text))
    marked = np.flatnonzero(_begin_with(characters, starts, mark))
    before = np.searchsorted(quotes, starts[marked])
    within = np.searchsorted(quotes, ends[marked]) - before
    kept: list[bytes] = []
    position = passed_over = 0
    for line, count, own in zip(marked, before.tolist(), within.tolist(), strict=True):
        if (count - passed_over) % 2 == 0:
            kept.append(text[position : starts[line]])
            position = int(ends[line])
            passed_over += own
    return b"".join([*kept, text[position:]])


def _begin_with(
    characters: np.ndarray[Any, Any], starts: np.ndarray[Any, Any], mark: bytes
) -> np.ndarray[Any, Any]:
    padded = np.concatenate([characters, np.zeros(len(mark), np.uint8)])
    found: np.ndarray[Any, Any] = np.logical_and.reduce(
        [padded[starts + n] == byte for n, byte in enumerate(mark)]
    )
    return found
