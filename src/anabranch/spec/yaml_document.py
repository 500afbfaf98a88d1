"""A YAML file whose values know their place: every complaint names the file, the line and the key.

Only reading is covered; which keys a file may have is the business of `options.py` and `yaml_file.py`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from anabranch.errors import SettingsError
from anabranch.spec.misplaced import elsewhere_in_yaml
from anabranch.spec.place import PartPlace, kind_of, read_text


@dataclass(frozen=True)
class Entry(PartPlace):
    """A value of the file, with the keys that lead to it."""

    file: str
    keys: tuple[str, ...]
    node: yaml.Node

    def __str__(self) -> str:
        line = self.node.start_mark.line + 1
        return f"{self.file}, line {line}{', ' if self.keys else ''}{'.'.join(self.keys)}"

    @property
    def is_text(self) -> bool:
        """Whether the value is neither a list nor a mapping, and would not be read as a number."""
        return isinstance(self.node, yaml.ScalarNode) and isinstance(_construct(self.node), str)

    def fields(self, known: Collection[str] | None = None, shape: str = "") -> dict[str, Entry]:
        """The entries of a mapping; with `known`, a key that is not among them is an error.

        `shape` shows what such a mapping looks like to those who wrote something else.
        """
        if not isinstance(self.node, yaml.MappingNode):
            raise self.expected(f"a mapping such as {shape}" if shape else "a mapping (key: value)")
        found: dict[str, Entry] = {}
        for key_node, value_node in self.node.value:
            key = _construct(key_node)
            place = Entry(self.file, (*self.keys, str(key)), key_node)
            if known is not None and key not in known:
                raise place.error(
                    f"there is no key '{key}' here.{elsewhere_in_yaml(str(key), known)}"
                )
            if not isinstance(key, str):
                raise place.error(f"a name must be a text, not {kind_of(key)}: put it in quotes.")
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

    def plain(self) -> Any:
        return _construct(self.node)


def read_document(path: Path) -> Entry:
    """The file's top value; a file that is missing, empty or not YAML is an error."""
    text = read_text(path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SettingsError(f"{path}, line {line}: not YAML: {error.problem}.") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"{path}: not YAML: {error}.") from error
    except RecursionError as error:
        raise _too_deep(path) from error
    except (ValueError, AttributeError, TypeError) as error:
        # Its scanner trusts that escapes and tags are whole
        raise SettingsError(f"{path}: not YAML: {error}.") from error
    if node is None:
        raise SettingsError(f"'{path}' is empty: expected streams, queries and sinks.")
    _refuse_deep(path, node)
    return Entry(str(path), (), node)


MOST_NESTED = 50
"""Lists and mappings within each other: no key of a specification lies deeper than ten."""


def _refuse_deep(path: Path, top: yaml.Node) -> None:
    level, seen = [top], {id(top)}
    for _ in range(MOST_NESTED):
        below = [inner for node in level for inner in _below(node) if id(inner) not in seen]
        seen.update(map(id, below))
        if not below:
            return
        level = below
    raise _too_deep(path)


def _below(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _too_deep(path: Path) -> SettingsError:
    return SettingsError(
        f"'{path}' is nested too deeply: expected at most {MOST_NESTED} lists and mappings within each "
        "other."
    )


def _construct(node: yaml.Node) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    except (yaml.YAMLError, ValueError, TypeError, OverflowError):
        return node.value
    finally:
        loader.dispose()
