"""Where something stands in a specification file, and values that know it.

Every complaint about a file begins with its place. How a place is found is the business of the two kinds
of files (`yaml_document.py`, `sql_tokens.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anabranch.errors import AnabranchError, SettingsError

_KINDS: dict[type, str] = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false",
    list: "a list", dict: "a mapping", type(None): "nothing",
}  # fmt: skip


class FilePlace(ABC):
    """A place in a file; as text it begins with `FILE, line N`."""

    file: str

    @abstractmethod
    def __str__(self) -> str: ...

    def error(self, message: str) -> SettingsError:
        return SettingsError(f"{self}: {message}")

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Gives errors that come from within this place, unless they already have one."""
        try:
            yield
        except AnabranchError as error:
            if str(error).startswith(f"{self.file}, line "):
                raise
            raise type(error)(f"{self}: {error}") from error


class PartPlace(FilePlace):
    """A value of the file."""

    @abstractmethod
    def plain(self) -> Any:
        """The value as Python has it."""

    def value(self, *kinds: type) -> Any:
        """The plain value, which must be of one of these types (an integer is a number, too)."""
        value = self.plain()
        if isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds):
            return value
        if float in kinds and type(value) is int:
            return float(value)
        raise self.expected(" or ".join(_KINDS[kind] for kind in kinds))

    def text(self) -> str:
        return str(self.value(str))

    def expected(self, what: str) -> SettingsError:
        value = self.plain()
        shown = "" if value is None or isinstance(value, (dict, list)) else f" ({value!r})"
        return self.error(f"expected {what}, got {kind_of(value)}{shown}.")


def kind_of(value: Any) -> str:
    """What to call a value in messages: `a text`, `a list`."""
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def read_text(path: Path) -> str:
    """The text of a file; one that is missing or is not text is an error."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingsError(f"Cannot read '{path}': {reason}.") from error
