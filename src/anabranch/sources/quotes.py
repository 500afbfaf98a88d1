"""Whether a CSV file ends inside quotes: it was cut off there, and one value has swallowed all the rest."""

from __future__ import annotations

import numpy as np

BLOCK = 1 << 24
QUOTE = ord('"')
BOM = b"\xef\xbb\xbf"
ELSEWHERE, START, DOUBLED = 0, 1, 2
PLACES = np.zeros(256, np.uint8)
"""Where a quote stands, by the byte before it: at the start of a field, after another quote, or elsewhere."""
PLACES[[ord(","), ord("\n"), ord("\r")]] = START
PLACES[QUOTE] = DOUBLED


def ends_in_quotes(path: str) -> bool:
    """Whether a quoted field is still open where the file ends, as the parser sees it.

    A quote opens a field only at its start, and doubled ones within it are text; others mean nothing.
    """
    inside = closed = False
    before = ord("\n")
    with open(path, "rb") as file:
        block = file.read(BLOCK).removeprefix(BOM)
        while block:
            if b'"' in block:
                inside, closed = _after(block, before, inside, closed)
            before = block[-1]
            block = file.read(BLOCK)
    return inside


def _after(block: bytes, before: int, inside: bool, closed: bool) -> tuple[bool, bool]:
    """Whether a field is open after a block with quotes, and whether its last quote has closed one."""
    characters = np.frombuffer(block, np.uint8)
    at = np.flatnonzero(characters == QUOTE)
    opening = at[1 if inside else 0 :: 2]
    places = PLACES[np.where(opening > 0, characters[opening - 1], before)]
    if opening.size and opening[0] == 0 and places[0] == DOUBLED and not closed:
        places[0] = ELSEWHERE
    if places.all():
        # Every second quote is where one can open a field, or is the second of a pair: they alternate
        inside ^= len(at) % 2 == 1
        return inside, not inside
    places = PLACES[np.where(at > 0, characters[at - 1], before)]
    for place in places.tolist():
        if inside:
            inside, closed = False, True
        else:
            inside, closed = place == START or (place == DOUBLED and closed), False
    return inside, closed
