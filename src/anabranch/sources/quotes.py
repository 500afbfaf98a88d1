"""Whether a CSV file ends inside quotes: it was cut off there, and one value has swallowed all the rest."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from anabranch.sources.form import USUAL, FileForm
from anabranch.sources.opening import BOM, Text, blocks

ELSEWHERE, START, DOUBLED = 0, 1, 2
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@functools.cache
def _places(delimiter: str, quote: str) -> Bytes:
    """Where a quote stands, by the byte before it: at a field's start, after another quote, or elsewhere."""
    places = np.zeros(256, np.uint8)
    places[[ord(delimiter), ord("\n"), ord("\r")]] = START
    places[ord(quote)] = DOUBLED
    return places


class Quotes:
    """Whether a text that is read block by block is inside quotes, as the parser sees it.

    A quote opens a field only at its start, and doubled ones within it are text; others mean nothing.
    """

    def __init__(self, form: FileForm = USUAL) -> None:
        self.inside = False
        self._quote = form.quote
        self._places = _places(form.delimiter, form.quote) if form.quote else None
        self._closed = False
        """Whether the last quote has closed a field."""
        self._before: int | None = None
        """The last byte; None at the start."""

    def take(self, block: bytes) -> None:
        """Goes on over the next bytes."""
        if self._before is None:
            block, self._before = block.removeprefix(BOM), ord("\n")
        if self._quote is not None and self._places is not None and self._quote.encode() in block:
            self.inside, self._closed = _after(
                block, self._before, self.inside, self._closed, self._places, ord(self._quote)
            )
        self._before = block[-1] if block else self._before


def ends_in_quotes(text: Text, form: FileForm = USUAL) -> bool:
    """Whether a quoted field is still open where the text ends.

    Where an escape may stand before a quote, this is not known.
    """
    if form.quote is None or form.escape is not None:
        return False
    quotes = Quotes(form)
    for block in blocks(text):
        quotes.take(block)
    return quotes.inside


def _after(
    block: bytes, before: int, inside: bool, closed: bool, kinds: Bytes, quote: int
) -> tuple[bool, bool]:
    """Whether a field is open after a block with quotes, and whether its last quote has closed one."""
    characters = np.frombuffer(block, np.uint8)
    at = np.flatnonzero(characters == quote)
    opening = at[1 if inside else 0 :: 2]
    places = kinds[np.where(opening > 0, characters[opening - 1], before)]
    if opening.size and opening[0] == 0 and places[0] == DOUBLED and not closed:
        places[0] = ELSEWHERE
    if places.all():
        # Every second quote is where one can open a field, or is the second of a pair: they alternate
        inside ^= len(at) % 2 == 1
        return inside, not inside
    places = kinds[np.where(at > 0, characters[at - 1], before)]
    for place in places.tolist():
        if inside:
            inside, closed = False, True
        else:
            inside, closed = place == START or (place == DOUBLED and closed), False
    return inside, closed
