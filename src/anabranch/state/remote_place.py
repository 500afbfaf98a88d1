"""A place that is not a folder of this machine, behind a cache that is.

What is here never changes once it is written, so a copy in the cache is always right. How files get there and
back is the matter of each kind of store: `state/arrow_place.py`, `state/object_place.py`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from anabranch.state.folders import cache_folder
from anabranch.state.place import Place


@dataclass(frozen=True)
class RemotePlace(Place):
    """Files elsewhere; `root` is their cache on this machine."""

    uri: str = ""

    @abstractmethod
    def _fetch(self, name: str, target: Path) -> None:
        """Writes the contents of a file to a local path."""

    @abstractmethod
    def _send(self, path: Path, name: str, fsync: bool) -> None:
        """Makes a file appear under its name, whole, with the contents of a local one."""

    @abstractmethod
    def _delete(self, name: str) -> bool:
        """Deletes a file; whether there was one, as far as the store tells."""

    def __str__(self) -> str:
        return self.uri

    @property
    def far(self) -> bool:
        return True

    @property
    def folder(self) -> Path | None:
        return None

    @property
    def address(self) -> str:
        return self.uri

    def local(self, name: str) -> Path:
        path = self.root / name
        if not path.exists():
            with self._hidden(name, fsync=False) as temporary:
                self._fetch(name, temporary)
                os.replace(temporary, path)
        return path

    def renew(self, name: str) -> bool:
        return super().remove(name)

    @contextlib.contextmanager
    def writing(self, name: str, fsync: bool) -> Iterator[Path]:
        with super().writing(name, fsync=False) as path:
            yield path
            self._send(path, name, fsync)

    def remove(self, name: str) -> bool:
        super().remove(name)
        return self._delete(name)

    def forget(self, kept: Callable[[], set[str]], before: str) -> None:
        if _forgotten.get(self.root) == before:
            return  # another task of this process has done it
        _forgotten[self.root] = before
        needed = kept()
        for name in Place.names(self, "state", ".arrow"):
            if name not in needed and os.path.basename(name) < before:
                super().remove(name)


_forgotten: dict[Path, str] = {}
"""Up to what copies were last looked through, by their folder."""


def cache_of(address: str) -> Path:
    """The folder on this machine for copies of what is at an address."""
    return cache_folder() / hashlib.sha256(address.encode()).hexdigest()[:16]
