"""A place on paper: its files are a value, and every operation on them is a step of its own.

Whoever works on such a place asks for one operation after another. So a call of the product that needs
several can be stopped before each, and others can come in between.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import StateError
from anabranch.state.place import Place

Files = Mapping[str, bytes]
"""The names and contents of all files."""
UNFINISHED = ".tmp"


@dataclass(frozen=True)
class Asked:
    """An operation on a place."""

    kind: str
    name: str = ""
    data: bytes = b""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, self.name)))


@dataclass(frozen=True)
class Reply:
    """What came of an operation: a value, or an error by its kind."""

    value: Any = None
    error: type[Exception] | None = None
    words: str = ""

    def get(self) -> Any:
        if self.error is not None:
            raise self.error(self.words)
        return self.value


@dataclass(frozen=True)
class PaperPlace(Place):
    """A place whose operations someone else answers."""

    root: Path = Path("/checkpoint")
    ask: Callable[[Asked], Reply] = lambda asked: Reply()

    def read(self, name: str) -> bytes:
        data: bytes = self.ask(Asked("read", name)).get()
        return data

    def put(self, name: str, data: bytes, fsync: bool) -> bool:
        return bool(self.ask(Asked("put", name, data)).get())

    def names(self, folder: str, suffix: str) -> list[str]:
        return list(self.ask(Asked("list", f"{folder}/*{suffix}")).get())

    def unfinished(self) -> list[str]:
        return list(self.ask(Asked("list", f"*{UNFINISHED}")).get())

    def remove(self, name: str) -> bool:
        return bool(self.ask(Asked("remove", name)).get())

    @contextlib.contextmanager
    def writing(self, name: str, fsync: bool) -> Iterator[Path]:
        self.ask(Asked("begin", name)).get()
        yield self.root / name
        self.ask(Asked("write", name)).get()


def perform(files: Files, asked: Asked) -> tuple[Reply, Files]:
    """What comes of an operation, and the files after it."""
    return _OPERATIONS[asked.kind](files, asked)


def lose_answer(files: Files, asked: Asked) -> tuple[Reply, Files]:
    """A put that is done, but whoever asked for it does not hear that."""
    _, after = perform(files, asked)
    return Reply(error=StateError, words="The store did not answer."), after


def _read(files: Files, asked: Asked) -> tuple[Reply, Files]:
    if asked.name not in files:
        return _missing(asked.name), files
    return Reply(files[asked.name]), files


def put_if_absent(files: Files, asked: Asked) -> tuple[Reply, Files]:
    if asked.name in files:
        return Reply(False), files
    return Reply(True), with_file(files, asked.name, asked.data)


def _list(files: Files, asked: Asked) -> tuple[Reply, Files]:
    folder, _, suffix = asked.name.partition("*")
    wanted = (name for name in files if name.startswith(folder) and name.endswith(suffix))
    return Reply(tuple(sorted(wanted))), files


def _remove(files: Files, asked: Asked) -> tuple[Reply, Files]:
    left = {name: data for name, data in files.items() if name != asked.name}
    return Reply(asked.name in files), left


def _begin(files: Files, asked: Asked) -> tuple[Reply, Files]:
    return Reply(), with_file(files, asked.name + UNFINISHED, b"")


def _write(files: Files, asked: Asked) -> tuple[Reply, Files]:
    hidden = asked.name + UNFINISHED
    if hidden not in files:
        return _missing(hidden), files
    left = {name: data for name, data in files.items() if name != hidden}
    return Reply(), with_file(left, asked.name, b"")


def _missing(name: str) -> Reply:
    return Reply(error=FileNotFoundError, words=f"there is no {name}")


def with_file(files: Files, name: str, data: bytes) -> Files:
    return {**files, name: data}


_OPERATIONS: dict[str, Callable[[Files, Asked], tuple[Reply, Files]]] = {
    "read": _read,
    # Looked up when it is asked for: an error may be planted there
    "put": lambda files, asked: put_if_absent(files, asked),
    "list": _list,
    "remove": _remove,
    "begin": _begin,
    "write": _write,
}


def still(files: Files) -> PaperPlace:
    """A place that has these files and on which nobody else works."""
    return PaperPlace(ask=lambda asked: perform(files, asked)[0])
