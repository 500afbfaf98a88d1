"""Checksums of what the checkpoint keeps: a byte that has changed is found when it is read.

CRC-32, from the standard library: it finds every flipped bit and every burst of 32, and one in four
billion of other damages goes unseen. Binary files are told by a number that whoever names them keeps; JSON
files carry theirs as their last field, so that a person can still read them.
"""

from __future__ import annotations

import functools
import os
import re
import zlib
from pathlib import Path
from typing import IO, Any, NamedTuple

CHUNK = 1 << 20
REMEMBERED = 1 << 17
"""Files whose checksum a process remembers."""
_WIDTH = 4
"""Bytes of a checksum at the end of a file."""
_SEAL = re.compile(rb',\n "checksum": "crc32:([0-9a-f]{8})"\n}\Z')


class Damaged(ValueError):
    """Contents that are not those that were written."""


class Summing:
    """A file to write to that knows the checksum of what it was given."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.checksum = 0

    closed = False

    def write(self, data: Any) -> None:
        self.checksum = zlib.crc32(data, self.checksum)
        rest = memoryview(data)
        while rest.nbytes:
            # The system takes two gigabytes at once at most
            rest = rest[self._file.write(rest) :]

    def flush(self) -> None:
        self._file.flush()


class FileVersion(NamedTuple):
    """A file as it is now: one that is written to gets another time of change, which nobody can set."""

    path: str
    inode: int
    modified: int
    changed: int
    size: int


def _version(path: Path) -> FileVersion:
    entry = os.stat(path)
    return FileVersion(str(path), entry.st_ino, entry.st_mtime_ns, entry.st_ctime_ns, entry.st_size)


_written: dict[FileVersion, int] = {}
"""The checksums of files that this process has written."""


def note_written(path: Path, checksum: int) -> None:
    """Notes what a file has in it that was written just now and has its name already.

    Renaming changes the time of change: noted before it, the file would not be known again.
    """
    if len(_written) >= REMEMBERED:
        _written.clear()
    _written[_version(path)] = checksum


def check_file(path: Path, expected: int) -> FileVersion:
    """Raises Damaged if a file is not what was written.

    Its bytes are looked at once in a process, as long as it stays as it is, and not at all in the one
    that wrote them. They are read, not mapped:
    a disk that has lost a block then gives an error instead of a signal that ends the process.
    """
    version = _version(path)
    found = _written.get(version)
    if found is None:
        found = _checksum_of(version)
    if found != expected:
        raise Damaged(f"its checksum is {found:08x}, but {expected:08x} was written")
    return version


@functools.lru_cache(maxsize=REMEMBERED)
def _checksum_of(version: FileVersion) -> int:
    found = 0
    buffer = memoryview(bytearray(CHUNK))
    with open(version.path, "rb", buffering=0) as file:
        while length := file.readinto(buffer):
            found = zlib.crc32(buffer[:length], found)
    return found


def append_checksum(path: Path) -> None:
    """Ends a file with the checksum of what it has so far."""
    with open(path, "r+b") as file:
        total = zlib.crc32(file.read())
        file.write(total.to_bytes(_WIDTH, "big"))


def without_checksum(data: bytes) -> bytes:
    """The contents of a file that ends with their checksum; Damaged if they are not those."""
    body, expected = data[:-_WIDTH], int.from_bytes(data[-_WIDTH:], "big")
    if zlib.crc32(body) != expected:
        raise Damaged(f"its checksum is {zlib.crc32(body):08x}, but {expected:08x} was written")
    return body


def seal(text: bytes) -> bytes:
    """A JSON object with its checksum as the last field.

    >>> print(seal(b'{"a": 1}').decode())
    {"a": 1,
     "checksum": "crc32:7aa88204"
    }
    """
    body = text.rstrip().removesuffix(b"}").rstrip()
    return body + b',\n "checksum": "crc32:%08x"\n}' % zlib.crc32(body)


def sealed(data: bytes) -> bool:
    """Whether there is a checksum where `seal` puts it."""
    return _SEAL.search(data) is not None


def unseal(data: bytes) -> bytes:
    """The JSON object without its checksum; Damaged if it is not what was sealed.

    >>> unseal(seal(b'{"a": 1}'))
    b'{"a": 1}'
    >>> unseal(seal(b'{"a": 1}').replace(b"1", b"2"))
    Traceback (most recent call last):
    anabranch.state.checksum.Damaged: its checksum is e3a1d3be, but 7aa88204 was written
    """
    seal_found = _SEAL.search(data)
    if seal_found is None:
        raise Damaged("it does not end with a checksum")
    body, expected = data[: seal_found.start()], int(seal_found[1], 16)
    if zlib.crc32(body) != expected:
        raise Damaged(f"its checksum is {zlib.crc32(body):08x}, but {expected:08x} was written")
    return body + b"}"
