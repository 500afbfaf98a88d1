"""Where text files can be cut, so that several tasks read one: at ends of lines that lie in no quotes.

JSON has one object a line, so any end of a line will do, and only the bytes around it are read. Of a CSV
file all bytes before a cut are looked at, for quotes; that takes a fraction of what parsing them takes.
"""

from __future__ import annotations

import pyarrow as pa

from anabranch.sources.form import FileForm
from anabranch.sources.opening import BLOCK, BOM, TextPart, is_plain, open_bytes
from anabranch.sources.quotes import Quotes

MIN_PIECE_BYTES = 8 << 20
"""Text files are not cut into smaller pieces than this; twice that is parsed at a time anyway."""
MAX_CUT_BYTES = 1 << 32
"""Rows are numbered by where their piece begins, in 32 bits: larger files are read whole."""
MOST_AT_ONCE = 1 << 28
"""Bytes of a file that grows which are taken at a time."""
LINE = 1 << 16
"""Bytes that are read at a time to find the end of a line."""


def cut_text(
    path: str, format: str, form: FileForm, taken: int, size: int, pieces: int
) -> list[TextPart]:
    """The parts of a text file behind what was taken of it; none if it can only be read whole."""
    wanted = max(1, min(pieces, (size - taken) // MIN_PIECE_BYTES))
    if size - taken >= MAX_CUT_BYTES:
        return []
    with open_bytes(path) as file:
        walk = _walk(file, format, form)
        if walk is None:
            return []
        head = walk.at
        walk.begin_at(max(head, taken))
        begins = [walk.at]
        for number in range(1, wanted):
            walk.go_to(taken + (size - taken) * number // wanted)
            walk.pass_line()
            begins.append(walk.at)
    ends = [*begins[1:], size]
    return [
        TextPart(head, begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end
    ]


def whole_lines(path: str, format: str, form: FileForm, taken: int, size: int) -> int | None:
    """Where the last whole line ends of those that came since so much was taken; None if none has come.

    Of much that has come, a part. Raises ValueError for a text that does not grow line by line.
    """
    size = min(size, taken + MOST_AT_ONCE)
    with open_bytes(path) as file:
        walk = _walk(file, format, form)
        if walk is None:
            raise ValueError(
                "texts that are compressed, in another encoding, with comments or escapes, and arrays of "
                "JSON cannot be followed"
            )
        begin = max(taken, walk.at)
        # Nearly always a line ends near the end; else all of them are looked at
        for start in (max(begin, size - LINE), begin):
            walk.begin_at(begin)
            walk.go_to(start)
            last = None
            while walk.at < size and walk.pass_line() and walk.at <= size:
                last = walk.at
            if last is not None:
                return last
    return None


def _walk(file: pa.NativeFile, format: str, form: FileForm) -> _Walk | None:
    """A way through a text, behind the names of its columns; None if it does not lie there line by line."""
    start = file.read(64)
    if not is_plain(start, form) or start.removeprefix(BOM).lstrip().startswith(b"["):
        return None
    walk = _Walk(file, form if format == "csv" else None)
    if format == "csv" and form.header:
        walk.pass_names()
    return walk


class _Walk:
    """A way through a text that knows at every place whether it lies in quotes."""

    def __init__(self, file: pa.NativeFile, quoted: FileForm | None) -> None:
        self.at = 0
        self._file = file
        self._quoted = quoted
        self._quotes = Quotes(quoted) if quoted is not None else None

    def begin_at(self, place: int) -> None:
        """Goes to where a line is known to begin."""
        if self._quoted is not None and self.at != place:
            self._quotes = Quotes(self._quoted)
        self.at = place

    def go_to(self, place: int) -> None:
        if self._quotes is None:
            self.at = max(self.at, place)
        while self.at < place and (block := self._next(min(BLOCK, place - self.at))):
            self._pass(block)

    def pass_line(self) -> bool:
        """Goes to where the next line begins, or to the end; whether this line has an end."""
        while block := self._next(LINE):
            line, end, _ = block.partition(b"\n")
            self._pass(line + end)
            if end and not (self._quotes and self._quotes.inside):
                return True
        return False

    def pass_names(self) -> None:
        """Goes behind the names of the columns, and the empty lines before them."""
        begin = self.at
        while self.pass_line():
            if self._file.read_at(self.at - begin, begin).strip(BOM + b"\r\n"):
                break
            begin = self.at

    def _next(self, most: int) -> bytes:
        block: bytes = self._file.read_at(most, self.at)
        return block

    def _pass(self, block: bytes) -> None:
        if self._quotes is not None:
            self._quotes.take(block)
        self.at += len(block)
