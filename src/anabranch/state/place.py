"""Where durable files live: a local folder, or any file system Arrow can reach, behind a local cache.

Files are written once, whole, and never changed, so a cached copy is always right. Segments are
memory-mapped: from the folder itself, or from the cache after the first use fetched them. What only one
of several may write is put if absent (`put`): that is what fences runs off from one another.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from anabranch.errors import StateError
from anabranch.state.checksum import CHUNK
from anabranch.state.folders import cache_folder, make_file, make_folder, sync

FOLDERS = ("manifests", "sources", "state", "results")
"""Where `writing` is asked to put files."""
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@dataclass(frozen=True)
class Place:
    """A local folder."""

    root: Path
    private: bool = True
    """Whether what is made here is for its owner alone."""

    def __str__(self) -> str:
        return str(self.root)

    @property
    def scratch(self) -> Path:
        """A local folder that belongs to this place."""
        return self.root

    @property
    def lock(self) -> Path:
        """The file to lock: the same however the place is spelt, if this machine can see it."""
        return self.root / "lock"

    @property
    def address(self) -> str:
        """The same text however the place is spelt, as far as this machine can tell."""
        return os.path.realpath(self.root)

    @property
    def folder(self) -> Path | None:
        """The folder it is for this machine; None if it is none."""
        return self.root

    def local(self, name: str) -> Path:
        """A local file with the contents of this one."""
        return self.root / name

    def renew(self, name: str) -> bool:
        """Whether there was a copy of the file, now dropped, that may differ from the file itself."""
        return False

    def read(self, name: str) -> bytes:
        """The contents of a small file, as they are now."""
        return self.local(name).read_bytes()

    def has(self, name: str) -> bool:
        """Whether there is such a file, as far as this machine can see."""
        return (self.root / name).exists()

    @contextlib.contextmanager
    def writing(self, name: str, fsync: bool) -> Iterator[Path]:
        """A path to write to; the file appears under its name, whole, when the block ends."""
        with self._hidden(name, fsync) as temporary:
            yield temporary
            if fsync:
                sync(temporary)
            os.replace(temporary, self.root / name)
            if fsync:
                sync((self.root / name).parent)

    @contextlib.contextmanager
    def _hidden(self, name: str, fsync: bool) -> Iterator[Path]:
        """A file beside the one of this name, gone at the end unless it was renamed."""
        path = self.root / name
        make_folder(path.parent, self.private, fsync)
        # Not told by the process: on two machines that share the folder it may have the same number
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.tmp")
        try:
            make_file(temporary, self.private)
            yield temporary
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def put(self, name: str, data: bytes, fsync: bool) -> bool:
        """Puts a file in place if there is none of this name; False if there is.

        Of all who try, on this machine and on others that share the folder, one succeeds.
        """
        path = self.root / name
        with self._hidden(name, fsync) as temporary:
            temporary.write_bytes(data)
            if fsync:
                sync(temporary)
            try:
                os.link(temporary, path)
            except FileExistsError:
                # Over a network the answer to a link that was made may get lost, and the next try fails
                if os.stat(temporary).st_nlink != 2:
                    return False
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                # A file system without hard links: who comes between these two lines is overwritten
                if path.exists():
                    return False
                os.replace(temporary, path)
            if fsync:
                sync(path.parent)
        return True

    def names(self, folder: str, suffix: str) -> list[str]:
        """The files below a folder, as names from the root, sorted."""
        found = (self.root / folder).rglob(f"*{suffix}")
        visible = (path for path in found if not path.name.startswith("."))
        return sorted(str(path.relative_to(self.root)) for path in visible)

    def unfinished(self) -> list[str]:
        """What is being written, or was when a process died."""
        found = (path for folder in FOLDERS for path in (self.root / folder).rglob(".*.tmp"))
        return [str(path.relative_to(self.root)) for path in found]

    def remove(self, name: str) -> bool:
        """Whether there was such a file to delete."""
        with contextlib.suppress(FileNotFoundError):
            (self.root / name).unlink()
            return True
        return False

    def forget(self, kept: Callable[[], set[str]], before: str) -> None:
        """Drops cached copies that are no longer needed."""


@dataclass(frozen=True)
class RemotePlace(Place):
    """A folder on another file system; `root` is its cache on this machine."""

    uri: str = ""
    system: fs.FileSystem = None
    base: str = ""

    def __str__(self) -> str:
        return self.uri

    @property
    def _folder(self) -> Place | None:
        """The place itself, where this machine sees it as a folder (`file://`)."""
        if isinstance(self.system, fs.LocalFileSystem):
            return Place(Path(self.base), self.private)
        return None

    @property
    def lock(self) -> Path:
        folder = self._folder
        return folder.lock if folder else super().lock

    @property
    def folder(self) -> Path | None:
        folder = self._folder
        return folder.root if folder else None

    @property
    def address(self) -> str:
        folder = self._folder
        return folder.address if folder else self.uri

    def local(self, name: str) -> Path:
        path = self.root / name
        if not path.exists():
            with self._hidden(name, fsync=False) as temporary:
                with self._open(name) as source, open(temporary, "wb") as target:
                    shutil.copyfileobj(source, target, CHUNK)
                os.replace(temporary, path)
        return path

    def renew(self, name: str) -> bool:
        return super().remove(name)

    def read(self, name: str) -> bytes:
        with self._open(name) as source:
            return bytes(source.read())

    def has(self, name: str) -> bool:
        info = self.system.get_file_info(f"{self.base}/{name}")
        return bool(info.type != fs.FileType.NotFound)

    def _open(self, name: str) -> pa.NativeFile:
        return self.system.open_input_stream(f"{self.base}/{name}")

    @contextlib.contextmanager
    def writing(self, name: str, fsync: bool) -> Iterator[Path]:
        with super().writing(name, fsync=False) as path:
            yield path
            folder = self._folder
            if folder:
                with folder.writing(name, fsync) as target:
                    shutil.copyfile(path, target)
            else:
                self._move_in(path, name)

    def _move_in(self, path: Path, name: str) -> None:
        parent = f"{self.base}/{name}".rsplit("/", 1)[0]
        self.system.create_dir(parent, recursive=True)
        # An object store shows an object only when it is whole; elsewhere a rename does that
        hidden = f"{parent}/.{os.path.basename(name)}.{uuid.uuid4().hex[:12]}.tmp"
        with open(path, "rb") as source, self.system.open_output_stream(hidden) as target:
            shutil.copyfileobj(source, target, CHUNK)
        self.system.move(hidden, f"{self.base}/{name}")

    def put(self, name: str, data: bytes, fsync: bool) -> bool:
        """Puts a file in place if there is none; at a `file://` only one of all who try succeeds.

        Elsewhere pyarrow has no conditional put: two that try at the very same time may both succeed, and
        the one that was overwritten notices unless it looked too early.
        """
        folder = self._folder
        if folder:
            return folder.put(name, data, fsync)
        if self.has(name):
            return False
        with self.writing(name, fsync) as path:
            path.write_bytes(data)
        return self.read(name) == data

    def names(self, folder: str, suffix: str) -> list[str]:
        wanted = fs.FileSelector(f"{self.base}/{folder}", recursive=True, allow_not_found=True)
        found = self.system.get_file_info(wanted)
        return sorted(
            info.path.removeprefix(f"{self.base}/")
            for info in found
            if info.is_file and info.path.endswith(suffix) and not info.base_name.startswith(".")
        )

    def unfinished(self) -> list[str]:
        found = super().unfinished()
        for folder in FOLDERS:
            wanted = fs.FileSelector(f"{self.base}/{folder}", recursive=True, allow_not_found=True)
            found += [
                info.path.removeprefix(f"{self.base}/")
                for info in self.system.get_file_info(wanted)
                if info.base_name.startswith(".") and info.base_name.endswith(".tmp")
            ]
        return found

    def remove(self, name: str) -> bool:
        super().remove(name)
        try:
            self.system.delete_file(f"{self.base}/{name}")
        except FileNotFoundError:
            return False
        return True

    def forget(self, kept: Callable[[], set[str]], before: str) -> None:
        needed = kept()
        for name in super().names("state", ".arrow"):
            if name not in needed and os.path.basename(name) < before:
                super().remove(name)


@functools.lru_cache(maxsize=32)
def place(root: str, private: bool = True) -> Place:
    """The place of a folder, or of a URI such as s3://bucket/folder or hdfs://host/folder."""
    try:
        possible = bool(root) and b"\0" not in os.fsencode(root)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise StateError(
            f"The checkpoint is {root!r}; expected a folder, or a URI that pyarrow.fs understands. Was a "
            "variable not set? Leave it out, or give None, for a run that is not to be continued."
        )
    if "://" not in root:
        return Place(Path(root).absolute(), private)
    try:
        system, base = fs.FileSystem.from_uri(root)
    except (pa.ArrowException, OSError) as error:
        raise StateError(
            f"The checkpoint '{root}' cannot be reached: {error}. Expected a folder or a URI that "
            "pyarrow.fs understands (file, s3, gs, hdfs)."
        ) from error
    tag = hashlib.sha256(root.encode()).hexdigest()[:16]
    return RemotePlace(cache_folder() / tag, private, root, system, base.rstrip("/"))
