"""Folders and files of one's own: who may read them, and that they survive the machine."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar
from pathlib import Path

from anabranch.errors import StateError

HERE, UNLESS_THERE, EXCHANGE = -100, 1, 2
"""What Linux calls a path that is given whole, a rename that replaces nothing, and an exchange of two."""
AT_ONCE = 4
"""Flushes of a task that are under way at the same time: each is waiting, not work."""
OPENED = 32
"""Files that are open to be flushed; who writes another one waits. Systems allow 1,024, for everything."""


def make_folder(path: Path, private: bool, fsync: bool = False) -> None:
    """Makes a folder and those above it that are missing; a stricter umask counts."""
    if path.is_dir():
        return
    mode = 0o700 if private else 0o777
    try:
        path.mkdir(mode, exist_ok=True)
    except FileNotFoundError:
        make_folder(path.parent, private, fsync)
        path.mkdir(mode, exist_ok=True)
    if fsync:
        # Now: if the task fails, whoever finds the folder takes it for one that is on the disk
        sync(path.parent)


def make_file(path: Path, private: bool) -> None:
    """Makes an empty file to be written by whoever knows its path alone; a stricter umask counts."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600 if private else 0o666))


@contextlib.contextmanager
def explained(checkpoint: object) -> Iterator[None]:
    """Turns what the file system says of a checkpoint into a StateError that names the file."""
    try:
        yield
    except OSError as error:
        where = error.filename or checkpoint
        raise StateError(
            f"The checkpoint '{checkpoint}' cannot be used: {error.strerror or error} ('{where}'). Restore "
            "or mend what is there, or start with another checkpoint folder."
        ) from error


def exchange(one: Path, other: Path) -> None:
    """Gives each of two folders the name of the other, at one moment."""
    _rename(one, other, EXCHANGE)


def rename_once(path: Path, to: Path) -> None:
    """Renames a file unless there is one of that name: FileExistsError then."""
    _rename(path, to, UNLESS_THERE)


def _rename(path: Path, to: Path, how: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if libc.renameat2(HERE, os.fsencode(path), HERE, os.fsencode(to), how) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))


def sync(path: Path) -> None:
    """Flushes a file or folder to the disk."""
    try:
        _sync_opened(os.open(path, os.O_RDONLY))
    except OSError as error:
        error.filename = str(path)
        raise


def _sync_opened(handle: int) -> None:
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_written(handle: int, folder: Path) -> None:
    """Flushes a file that has another name by now: what can be told is where it lies."""
    try:
        _sync_opened(handle)
    except OSError as error:
        error.filename = str(folder)
        raise


class _Beside:
    """Flushes of a task that go on beside its work: files at once, folders when all is in them."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._begun: list[Future[None]] = []
        self.folders: set[Path] = set()

    def begin(self, path: Path) -> None:
        if len(self._begun) >= OPENED:
            wait([self._begun[-OPENED]])
        # Opened now: by the time it is flushed it may have another name
        handle = os.open(path, os.O_RDONLY)
        self._begun.append(self._pool.submit(_sync_written, handle, path.parent))

    def end(self) -> None:
        """Waits until all of it is on the disk; StateError if something is not."""
        try:
            for begun in [*self._begun, *(self._pool.submit(sync, one) for one in self.folders)]:
                begun.result()
        except OSError as error:
            raise StateError(
                f"Cannot flush what is in '{error.filename}' to the disk: {error.strerror or error}. The "
                "epoch is not counted; free space or mend the folder and start again."
            ) from error


_BESIDE: ContextVar[_Beside | None] = ContextVar("beside", default=None)


@contextlib.contextmanager
def flushed_beside() -> Iterator[None]:
    """What is to be flushed in this block is flushed beside it; at its end all of it is on the disk."""
    with ThreadPoolExecutor(AT_ONCE, "anabranch-flush") as pool:
        beside = _Beside(pool)
        before = _BESIDE.set(beside)
        try:
            yield
        finally:
            _BESIDE.reset(before)
        beside.end()


def flush(path: Path) -> None:
    """Flushes a file or folder to the disk: now, or by the end of `flushed_beside`."""
    beside = _BESIDE.get()
    if beside is None:
        sync(path)
    elif path.is_dir():
        beside.folders.add(path)
    else:
        beside.begin(path)


def cache_folder() -> Path:
    """The folder of this user's cached copies, which nobody else can write to or look into."""
    above = Path(tempfile.gettempdir())
    path = above / f"anabranch-cache-{os.getuid()}"
    try:
        make_folder(path, private=True)
    except OSError as error:
        raise StateError(
            f"The folder for copies of a checkpoint at a URI, '{path}', cannot be made: "
            f"{error.strerror}. Remove what is there, or set TMPDIR to a folder of your own."
        ) from error
    entry, parent = os.lstat(path), os.stat(above)
    reason = None
    if not stat.S_ISDIR(entry.st_mode):
        reason = "it is not a folder"
    elif entry.st_uid != os.getuid():
        reason = f"it belongs to the user with the number {entry.st_uid}"
    elif entry.st_mode & 0o077:
        reason = f"others have access to it (mode {stat.S_IMODE(entry.st_mode):03o})"
    elif parent.st_mode & 0o002 and not parent.st_mode & stat.S_ISVTX:
        reason = f"anybody can replace it in '{above}'"
    if reason:
        raise StateError(
            f"The folder for copies of a checkpoint at a URI, '{path}', cannot be trusted: {reason}. "
            "Expected a folder that only this user can enter (mode 700): remove it, or set TMPDIR to a "
            "folder of your own."
        )
    return path
