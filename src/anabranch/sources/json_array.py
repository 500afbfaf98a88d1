"""JSON as one object a line, from a file that is one array of objects.

Nothing is parsed: commas between the objects become ends of lines, and ends of lines within them spaces. So
every number and text is read from what the file says, as in a file of lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.sources.opening import BOM, Text, open_source

Flags = np.ndarray[Any, np.dtype[np.bool_]]


def in_lines(text: Text) -> Text:
    """An array of objects as one object a line; all else is left as it is."""
    with open_source(text) as source:
        start = source.read(64).removeprefix(BOM).lstrip()
        if not start.startswith(b"["):
            return text
        source.seek(0)
        characters = np.frombuffer(source.read().removeprefix(BOM), np.uint8).copy()
    plain = ~_in_strings(characters)
    opened = plain & np.isin(characters, (ord("["), ord("{")))
    closed = plain & np.isin(characters, (ord("]"), ord("}")))
    depth = np.cumsum(opened, dtype=np.int32) - np.cumsum(closed, dtype=np.int32)
    if depth[-1] != 0:
        raise ValueError("the array of objects that it begins with does not end")
    characters[plain & np.isin(characters, (ord("\n"), ord("\r")))] = ord(" ")
    characters[plain & (depth == 1) & (characters == ord(","))] = ord("\n")
    # The brackets of the array itself
    outermost = (opened & (depth == 1)) | (closed & (depth == 0))
    characters[outermost] = ord(" ")
    return pa.py_buffer(characters.tobytes())


def _in_strings(characters: np.ndarray[Any, np.dtype[np.uint8]]) -> Flags:
    """Which characters are within quotes, the closing ones left out."""
    places = np.arange(len(characters))
    # A quote behind an odd number of backslashes is text
    others = np.maximum.accumulate(np.where(characters == ord("\\"), -1, places))
    before = np.concatenate([[-1], others[:-1]])
    escaped = (places - 1 - before) % 2 == 1
    quotes = (characters == ord('"')) & ~escaped
    inside: Flags = np.cumsum(quotes, dtype=np.int32) % 2 == 1
    return inside
