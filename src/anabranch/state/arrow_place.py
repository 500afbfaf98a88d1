"""A place on any file system that Arrow can reach: hdfs, gs, and folders that are given as `file://`."""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from anabranch.errors import StateError
from anabranch.state.checksum import CHUNK
from anabranch.state.place import FOLDERS, Place
from anabranch.state.remote_place import RemotePlace, cache_of


@dataclass(frozen=True)
class ArrowPlace(RemotePlace):
    """A folder on another file system."""

    system: fs.FileSystem = None
    base: str = ""

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

    def read(self, name: str) -> bytes:
        with self._open(name) as source:
            return bytes(source.read())

    def has(self, name: str) -> bool:
        info = self.system.get_file_info(f"{self.base}/{name}")
        return bool(info.type != fs.FileType.NotFound)

    def _open(self, name: str) -> pa.NativeFile:
        return self.system.open_input_stream(f"{self.base}/{name}")

    def _fetch(self, name: str, target: Path) -> None:
        with self._open(name) as source, open(target, "wb") as copy:
            shutil.copyfileobj(source, copy, CHUNK)

    def _send(self, path: Path, name: str, fsync: bool) -> None:
        folder = self._folder
        if folder:
            with folder.writing(name, fsync) as target:
                shutil.copyfile(path, target)
            return
        parent = f"{self.base}/{name}".rsplit("/", 1)[0]
        self.system.create_dir(parent, recursive=True)
        # An object store shows an object only when it is whole; elsewhere a rename does that
        hidden = f"{parent}/.{os.path.basename(name)}.{uuid.uuid4().hex[:12]}.tmp"
        with open(path, "rb") as source, self.system.open_output_stream(hidden) as copy:
            shutil.copyfileobj(source, copy, CHUNK)
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
        return sorted(
            info.path.removeprefix(f"{self.base}/")
            for info in self._listed(folder)
            if info.path.endswith(suffix) and not info.base_name.startswith(".")
        )

    def unfinished(self) -> list[str]:
        return super().unfinished() + [
            info.path.removeprefix(f"{self.base}/")
            for folder in FOLDERS
            for info in self._listed(folder)
            if info.base_name.startswith(".") and info.base_name.endswith(".tmp")
        ]

    def _listed(self, folder: str) -> list[fs.FileInfo]:
        wanted = fs.FileSelector(f"{self.base}/{folder}", recursive=True, allow_not_found=True)
        return [info for info in self.system.get_file_info(wanted) if info.is_file]

    def _delete(self, name: str) -> bool:
        try:
            self.system.delete_file(f"{self.base}/{name}")
        except FileNotFoundError:
            return False
        return True


def arrow_place(uri: str, private: bool) -> ArrowPlace:
    """The place of a URI that pyarrow.fs understands."""
    try:
        system, base = fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, OSError) as error:
        raise StateError(
            f"The checkpoint '{uri}' cannot be reached: {error}. Expected a folder, s3://bucket/folder, or "
            "a URI that pyarrow.fs understands (file, gs, hdfs)."
        ) from error
    return ArrowPlace(cache_of(uri), private, uri, system, base.rstrip("/"))
