"""What the system tells of large folders as it happens (inotify): which names came and went.

Only an aid: to list a folder of a hundred thousand files takes long, to be told of ten takes nothing. Where
there is no such service, and on file systems that other machines may change, folders are listed.
"""

from __future__ import annotations

import ctypes
import os
import struct

_CREATED, _DELETED, _MOVED_FROM, _MOVED_TO = 0x100, 0x200, 0x40, 0x80
_ONLY_FOLDERS = 0x01000000
_LOST = 0x4000 | 0x8000 | 0x2000
"""The queue was full, or a watch has ended: its folder is gone or no longer mounted."""
_EVENT = struct.Struct("iIII")
LOCAL = {
    "ext4": 0xEF53, "xfs": 0x58465342, "btrfs": 0x9123683E, "tmpfs": 0x01021994, "zfs": 0x2FC12FC1,
    "f2fs": 0xF2F52010,
}  # fmt: skip
"""File systems that only this machine changes, by the numbers they have in Linux."""


class Notices:
    """Watches folders for one reader."""

    def __init__(self) -> None:
        self._system = ctypes.CDLL(None, use_errno=True)
        self._queue = -1

    def watch(self, folder: str) -> int | None:
        """The number under which a folder is watched from now on; None if it cannot be."""
        name = os.fsencode(folder)
        begin = getattr(self._system, "inotify_init1", None)
        if begin is None or not self._is_local(name):
            return None
        if self._queue < 0:
            # Only for those that need it: a user may have few queues
            self._queue = int(begin(os.O_NONBLOCK | os.O_CLOEXEC))
        if self._queue < 0:
            return None
        mask = _CREATED | _DELETED | _MOVED_FROM | _MOVED_TO | _ONLY_FOLDERS
        number = int(self._system.inotify_add_watch(self._queue, name, mask))
        return number if number >= 0 else None

    def _is_local(self, folder: bytes) -> bool:
        about = ctypes.create_string_buffer(512)
        if self._system.statfs(folder, about) != 0:
            return False
        kind = ctypes.c_long.from_buffer(about).value & 0xFFFFFFFF
        return kind in LOCAL.values()

    def read(self) -> dict[int, set[str]] | None:
        """The names that came or went since the last time, by the folder's number; None if some are lost."""
        names: dict[int, set[str]] = {}
        while self._queue >= 0:
            try:
                data = os.read(self._queue, 1 << 16)
            except BlockingIOError:
                break
            at = 0
            while at < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size
                if mask & _LOST:
                    return None
                name = data[at : at + length].rstrip(b"\0")
                names.setdefault(number, set()).add(os.fsdecode(name))
                at += length
        return names

    def close(self) -> None:
        if self._queue >= 0:
            os.close(self._queue)
            self._queue = -1
