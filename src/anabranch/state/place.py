"""Where durable files live: a local folder, or any file system Arrow can reach, behind a local cache.

Files are written once, whole, and never changed, so a cached copy is always right. Segments are
memory-mapped: from the folder itself, or from the cache after the first use fetched them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from anabranch.errors import StateError

FOLDERS = ("manifests", "sources", "state")
"""Where `writing` is asked to put files."""


@dataclass(frozen=True)
class Place:
    """A local folder."""

    root: Path

    def __str__(self) -> str:
        return str(self.root)

    @property
    def scratch(self) -> Path:
        """A local folder that belongs to this place."""
        return self.root

    def local(self, name: str) -> Path:
        """A local file with the contents of this one."""
        return self.root / name

    def read(self, name: str) -> bytes:
        """The contents of a small file, as they are now."""
        return self.local(name).read_bytes()

    @contextlib.contextmanager
    def writing(self, name: str, fsync: bool) -> Iterator[Path]:
        """A path to write to; the file appears under its name, whole, when the block ends."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            yield temporary
            if fsync:
                sync(temporary)
            os.replace(temporary, path)
            if fsync:
                sync(path.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise

    def names(self, folder: str, suffix: str) -> list[str]:
        """The files below a folder, as names from the root, sorted."""
        found = (self.root / folder).rglob(f"*{suffix}")
        visible = (path for path in found if not path.name.startswith("."))
        return sorted(str(path.relative_to(self.root)) for path in visible)

    def clean(self) -> None:
        """Deletes what was being written when a process died."""
        for folder in FOLDERS:
            for path in (self.root / folder).rglob(".*.tmp"):
                path.unlink(missing_ok=True)

    def remove(self, name: str) -> bool:
        """Whether there was such a file to delete."""
        with contextlib.suppress(FileNotFoundError):
            (self.root / name).unlink()
            return True
        return False

    def forget(self, kept: set[str], before: str) -> None:
        """Drops cached copies that are no longer needed."""


@dataclass(frozen=True)
class RemotePlace(Place):
    """A folder on another file system; `root` is its cache on this machine."""

    uri: str
    system: fs.FileSystem
    base: str

    def __str__(self) -> str:
        return self.uri

    def local(self, name: str) -> Path:
        path = self.root / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
            with self._open(name) as source, open(temporary, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            os.replace(temporary, path)
        return path

    def read(self, name: str) -> bytes:
        with self._open(name) as source:
            return bytes(source.read())

    def _open(self, name: str) -> pa.NativeFile:
        return self.system.open_input_stream(f"{self.base}/{name}")

    @contextlib.contextmanager
    def writing(self, name: str, fsync: bool) -> Iterator[Path]:
        with super().writing(name, fsync=False) as path:
            yield path
            parent = f"{self.base}/{name}".rsplit("/", 1)[0]
            self.system.create_dir(parent, recursive=True)
            # An object store shows an object only when it is whole; elsewhere a rename does that
            hidden = f"{parent}/.{os.path.basename(name)}.{os.getpid()}.tmp"
            with open(path, "rb") as source, self.system.open_output_stream(hidden) as target:
                shutil.copyfileobj(source, target, 1 << 20)
            self.system.move(hidden, f"{self.base}/{name}")

    def names(self, folder: str, suffix: str) -> list[str]:
        wanted = fs.FileSelector(f"{self.base}/{folder}", recursive=True, allow_not_found=True)
        found = self.system.get_file_info(wanted)
        return sorted(
            info.path.removeprefix(f"{self.base}/")
            for info in found
            if info.is_file and info.path.endswith(suffix) and not info.base_name.startswith(".")
        )

    def clean(self) -> None:
        super().clean()
        for folder in FOLDERS:
            wanted = fs.FileSelector(f"{self.base}/{folder}", recursive=True, allow_not_found=True)
            for info in self.system.get_file_info(wanted):
                if info.base_name.startswith(".") and info.base_name.endswith(".tmp"):
                    self.system.delete_file(info.path)

    def remove(self, name: str) -> bool:
        super().remove(name)
        try:
            self.system.delete_file(f"{self.base}/{name}")
        except FileNotFoundError:
            return False
        return True

    def forget(self, kept: set[str], before: str) -> None:
        for name in super().names("state", ".arrow"):
            if name not in kept and os.path.basename(name) < before:
                super().remove(name)


@functools.lru_cache(maxsize=32)
def place(root: str) -> Place:
    """The place of a folder, or of a URI such as s3://bucket/folder or hdfs://host/folder."""
    if "://" not in root:
        return Place(Path(root).absolute())
    try:
        system, base = fs.FileSystem.from_uri(root)
    except (pa.ArrowException, OSError) as error:
        raise StateError(
            f"The checkpoint '{root}' cannot be reached: {error}. Expected a folder or a URI that "
            "pyarrow.fs understands (file, s3, gs, hdfs)."
        ) from error
    tag = hashlib.sha256(root.encode()).hexdigest()[:16]
    cache = Path(tempfile.gettempdir()) / f"anabranch-cache-{os.getuid()}" / tag
    return RemotePlace(cache, root, system, base.rstrip("/"))


def sync(path: Path) -> None:
    """Flushes a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
