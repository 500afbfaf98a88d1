"""Files mapped so that the system reads of them what is touched, and at once what is asked for.

By itself it reads megabytes around what is touched, and Arrow has all of a batch read that is opened. Most of
that may be slots that are packed elsewhere by now, or moved: where memory is short, it drives out what is
needed. Python's own mappings would each keep a file open.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref

import pyarrow as pa

_FAILED = ctypes.c_void_p(-1).value
_system = ctypes.CDLL(None, use_errno=True)
_system.mmap.restype = ctypes.c_void_p
_system.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
_system.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_system.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class _Mapping:
    """What is mapped as long as this lives."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self.size = os.fstat(file.fileno()).st_size
            self.address = _system.mmap(
                None, self.size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0
            )
        if self.address == _FAILED:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        # At the end of the process others may still look into it
        weakref.finalize(self, _system.munmap, self.address, self.size).atexit = False


def map_quietly(path: str) -> pa.Buffer:
    """The contents of a file, of which nothing is read yet."""
    mapping = _Mapping(path)
    advise(mapping.address, mapping.size, mmap.MADV_RANDOM)
    return pa.foreign_buffer(mapping.address, mapping.size, mapping)


def fetch(column: pa.Array, first: int, end: int) -> None:
    """Has these rows of a mapped column read, before they are touched; of texts about so many."""
    rows = len(column)
    for part in column.buffers():
        if part is not None and part.size:
            begin = part.address + part.size * first // rows
            begin -= begin % mmap.PAGESIZE
            length = part.address - begin + -(-part.size * end // rows)
            advise(begin, length, mmap.MADV_WILLNEED)


def advise(address: int, length: int, advice: int) -> None:
    """It is advice: where the system cannot take it, nothing is lost."""
    _system.madvise(address, length, advice)
