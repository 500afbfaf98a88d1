"""Where text files can be cut, so that several tasks read one: at ends of lines that lie in no quotes.

JSON has one object a line, so any end of a line will do, and only the bytes around it are read. Of a CSV
file all bytes before a cut are looked at, for quotes; that takes a fraction of what parsing them takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from anabranch.sources.form import FileForm
from anabranch.sources.opening import BLOCK, BOM, TextPart, is_plain, open_bytes
from anabranch.sources.quotes import Quotes

MIN_PIECE_BYTES = 8 << 20
"""Text files are not cut into smaller pieces than this; twice that is parsed at a time anyway."""
MAX_CUT_BYTES = 1 << 32
"""Rows are numbered by where their piece begins, in 32 bits: larger files are read whole."""
LINE = 1 << 16
"""Bytes that are read at a time to find the end of a line."""


def cut_text(path: str, format: str, form: FileForm, size: int, pieces: int) -> list[TextPart]:
    """The parts of a text file, about as long as each other; none if it has to be read whole."""
    wanted = min(pieces, size // MIN_PIECE_BYTES)
    if wanted < 2 or size >= MAX_CUT_BYTES:
        return []
    with open_bytes(path) as file:
        start = file.read(64)
        if not is_plain(start, form) or start.removeprefix(BOM).lstrip().startswith(b"["):
            return []
        walk = _Walk(file, Quotes(form) if format == "csv" else None)
        head = walk.pass_names() if format == "csv" and form.header else 0
        begins = [head]
        for number in range(1, wanted):
            walk.go_to(size * number // wanted)
            begins.append(walk.pass_line())
    ends = [*begins[1:], size]
    spans = [
        TextPart(head, begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end
    ]
    return spans if len(spans) > 1 else []


@dataclass
class _Walk:
    """A way through a text that knows at every place whether it lies in quotes."""

    file: pa.NativeFile
    quotes: Quotes | None
    at: int = 0

    def go_to(self, place: int) -> None:
        if self.quotes is None:
            self.at = max(self.at, place)
        while self.at < place and (block := self._next(min(BLOCK, place - self.at))):
            self._pass(block)

    def pass_line(self) -> int:
        """Goes to where the next line begins, and says where that is."""
        while block := self._next(LINE):
            line, end, _ = block.partition(b"\n")
            self._pass(line + end)
            if end and not (self.quotes and self.quotes.inside):
                break
        return self.at

    def pass_names(self) -> int:
        """Goes behind the names of the columns, and the empty lines before them."""
        begin = self.at
        while self.at == begin or not self.file.read_at(self.at - begin, begin).strip(
            BOM + b"\r\n"
        ):
            begin = self.at
            if self.pass_line() == begin:
                break
        return self.at

    def _next(self, most: int) -> bytes:
        block: bytes = self.file.read_at(most, self.at)
        return block

    def _pass(self, block: bytes) -> None:
        if self.quotes is not None:
            self.quotes.take(block)
        self.at += len(block)
