"""Where durable files live: what a place can do, and the place that is a local folder.

Files are written once, whole, and never changed. Segments are memory-mapped: from the folder itself, or from
a copy on this machine (`state/remote_place.py`). What only one of several may write is put if absent
(`put`): that is what fences runs off from one another.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import StateError
from anabranch.state.folders import flush, make_file, make_folder, rename_once, sync
from anabranch.state.uris import is_object

FOLDERS = ("manifests", "sources", "state", "results", "events")
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
    def far(self) -> bool:
        """Whether a machine has to fetch what is here before it can use it."""
        return False

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
                flush(temporary)
            os.replace(temporary, self.root / name)
            if fsync:
                flush((self.root / name).parent)

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
                if not self._rename_once(temporary, path):
                    return False
            if fsync:
                sync(path.parent)
        return True

    def _rename_once(self, temporary: Path, path: Path) -> bool:
        """What a hard link does, in a file system without any (exFAT, some over a network)."""
        try:
            rename_once(temporary, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in (errno.EINVAL, *_NO_LINKS):
                raise
            # To look first and write then would let two runs commit the same epoch
            raise StateError(
                f"The file system of '{self.root}' has neither hard links nor renames that replace nothing, "
                "so two runs could commit the same epoch. Choose another folder for the checkpoint."
            ) from error
        return True

    def names(self, folder: str, suffix: str) -> list[str]:
        """The files below a folder, as names from the root, sorted."""
        # The ledger is listed several times in an epoch: texts, not paths
        inside = len(os.path.join(self.root, ""))
        return sorted(
            os.path.join(below, name)[inside:]
            for below, folders, files in os.walk(self.root / folder)
            for name in (
                *folders,
                *files,
            )  # a folder in the place of a file is told when it is read
            if name.endswith(suffix) and not name.startswith(".")
        )

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

    def remove_all(self, names: Sequence[str]) -> int:
        """Deletes files; how many there were, as far as the place tells."""
        return sum(self.remove(name) for name in names)

    def forget(self, kept: Callable[[], set[str]], before: str) -> None:
        """Drops cached copies that are no longer needed."""


def place(root: str, private: bool = True) -> Place:
    """The place of a folder, or of a URI such as s3://bucket/folder or hdfs://host/folder."""
    try:
        possible = bool(root) and b"\0" not in os.fsencode(root)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise StateError(
            f"The checkpoint is {root!r}; expected a folder, or a URI such as s3://bucket/folder. Was a "
            "variable not set? Leave it out, or give None, for a run that is not to be continued."
        )
    # Not by a relative name, which means another folder once the process has gone elsewhere
    return place_at(root if "://" in root else str(Path(root).absolute()), private)


@functools.lru_cache(maxsize=32)
def place_at(root: str, private: bool) -> Place:
    if "://" not in root:
        return Place(Path(root), private)
    # What is far builds on what is here, and needs libraries that a folder does without
    if not is_object(root):
        from anabranch.state.arrow_place import arrow_place

        return arrow_place(root, private)
    try:
        from anabranch.state.object_place import object_place
    except ImportError as error:
        raise StateError(
            f"'{root}' needs a package that is not there ({error}): "
            "pip install 'anabranch[s3]', on the driver and on every executor."
        ) from error
    return object_place(root, private)
