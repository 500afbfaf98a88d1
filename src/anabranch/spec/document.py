"""A YAML file whose values know their place: every complaint names the file, the line and the key.

Only reading is covered; which keys a file may have is the business of `file.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from anabranch.errors import AnabranchError, SettingsError, suggest

_KINDS: dict[type, str] = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false",
    list: "a list", dict: "a mapping", type(None): "nothing",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A value of the file, with the keys that lead to it."""

    file: str
    keys: tuple[str, ...]
    node: yaml.Node

    def __str__(self) -> str:
        line = self.node.start_mark.line + 1
        return f"{self.file}, line {line}{', ' if self.keys else ''}{'.'.join(self.keys)}"

    def error(self, message: str) -> SettingsError:
        return SettingsError(f"{self}: {message}")

    @property
    def is_text(self) -> bool:
        """Whether the value is neither a list nor a mapping, and would not be read as a number."""
        return isinstance(self.node, yaml.ScalarNode) and isinstance(_construct(self.node), str)

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Gives errors that come from within this place, unless they already have one."""
        try:
            yield
        except AnabranchError as error:
            if str(error).startswith(f"{self.file}, line "):
                raise
            raise type(error)(f"{self}: {error}") from error

    def fields(self, known: Collection[str] | None = None) -> dict[str, Entry]:
        """The entries of a mapping; with `known`, a key that is not among them is an error."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.expected("a mapping (key: value)")
        found: dict[str, Entry] = {}
        for key_node, value_node in self.node.value:
            key = _construct(key_node)
            place = Entry(self.file, (*self.keys, str(key)), key_node)
            if known is not None and key not in known:
                raise place.error(f"there is no key '{key}' here.{suggest(str(key), known)}")
            if not isinstance(key, str):
                raise place.error(f"a name must be a text, not {_kind(key)}: put it in quotes.")
            if key in found:
                raise place.error(f"the key '{key}' appears twice.")
            found[key] = Entry(self.file, (*self.keys, key), value_node)
        return found

    def items(self) -> list[Entry]:
        """The entries of a list; a single value counts as a list of one."""
        if isinstance(self.node, yaml.SequenceNode):
            return [Entry(self.file, self.keys, node) for node in self.node.value]
        if isinstance(self.node, yaml.MappingNode):
            raise self.expected("a list")
        return [self]

    def value(self, *kinds: type) -> Any:
        """The plain value, which must be of one of these types (an integer is a number, too)."""
        value = _construct(self.node)
        if isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds):
            return value
        if float in kinds and type(value) is int:
            return float(value)
        raise self.expected(" or ".join(_KINDS[kind] for kind in kinds))

    def text(self) -> str:
        return str(self.value(str))

    def expected(self, what: str) -> SettingsError:
        value = _construct(self.node)
        shown = "" if value is None or isinstance(value, (dict, list)) else f" ({value!r})"
        return self.error(f"expected {what}, got {_kind(value)}{shown}.")


def read_document(path: Path) -> Entry:
    """The file's top value; a file that is missing, empty or not YAML is an error."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingsError(f"Cannot read '{path}': {reason}.") from error
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SettingsError(f"{path}, line {line}: not YAML: {error.problem}.") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"{path}: not YAML: {error}.") from error
    if node is None:
        raise SettingsError(f"'{path}' is empty: expected streams, queries and sinks.")
    return Entry(str(path), (), node)


def _construct(node: yaml.Node) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    except (yaml.YAMLError, ValueError):
        return node.value
    finally:
        loader.dispose()


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), f"a {type(value).__name__}")
