"""One word for one thing: the glossary defines each once, and classes and modules go by it."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "anabranch"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST = 300
"""Lines of a module."""
TOO_LONG: set[str] = set()
"""Modules still to be cut: what is short again leaves this list."""
SHARED_NAMES = {
    "Exchange": "the simulator has Flux's, with its producers and their buffers",
    "SkewBuffer": "the simulator has Flux's, one for each producer of a model",
}
"""Classes that share a name, and why."""
SHARED_WORDS = {
    "Split": "an action on a partition, which people know by this name from `run.split`",
}
"""Classes called like a word of the glossary that means something else, and why."""
GIVEN_UP = {"home": "an exchange", "steering": "the governor", "adapting": "the governor"}
"""Names that were given up, of modules and classes too, and what is said instead."""


def entries() -> list[tuple[str, str, str]]:
    """The rows of the glossary: word, meaning, where it is in the source."""
    rows = re.findall(
        r"^\| \*\*(.+?)\*\* \| (.+?) \| (.*?) ?\|$",
        (ROOT / "docs" / "glossary.md").read_text(),
        re.M,
    )
    assert len(rows) > 70, "the glossary is not read any more"
    return [(word, meaning, place.strip("`")) for word, meaning, place in rows]


def classes() -> dict[str, list[tuple[str, ast.ClassDef]]]:
    """The classes that other modules can see, by name, with their modules."""
    by_name: dict[str, list[tuple[str, ast.ClassDef]]] = defaultdict(list)
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                by_name[node.name].append((str(path.relative_to(SOURCE)), node))
    return by_name


def members_of(node: ast.ClassDef) -> Iterator[str]:
    """The methods and the fields of a class."""
    for one in node.body:
        if isinstance(one, ast.FunctionDef):
            yield one.name
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            yield one.target.id


def camel(word: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[ -]", word))


def test_a_word_is_defined_once() -> None:
    words = Counter(word for entry, *_ in entries() for word in entry.split(", "))
    assert [word for word, count in words.items() if count > 1] == []
    assert [word for word, meaning, _ in entries() if "(also" in meaning] == []


def test_what_the_glossary_names_is_in_the_source() -> None:
    known = classes()
    for word, _, place in entries():
        if place.endswith(".py"):
            assert (SOURCE / place).exists(), f"{word}: there is no {place}"
        elif place:
            name, _, member = place.partition(".")
            assert name in known, f"{word}: there is no class {name}"
            members = {member for _, node in known[name] for member in members_of(node)}
            assert not member or member in members, f"{word}: {name} has no {member}"


def test_a_class_called_like_a_word_is_what_the_word_means() -> None:
    known = classes()
    meant = {camel(word): place for entry, _, place in entries() for word in entry.split(", ")}
    other = [name for name, place in meant.items() if name in known and place != name]
    assert sorted(other) == sorted(SHARED_WORDS)


def test_no_two_classes_have_one_name() -> None:
    shared = {name: places for name, places in classes().items() if len(places) > 1}
    assert sorted(shared) == sorted(SHARED_NAMES), shared


def test_words_that_were_given_up_are_gone() -> None:
    for path in MODULES:
        names = {path.stem, *map(uncapitalised, identifiers(ast.parse(path.read_text())))}
        for word, instead in GIVEN_UP.items():
            assert word not in names, f"{path}: {word}; say {instead}"


def uncapitalised(name: str) -> str:
    """A name as it would be without being that of a class; constants are labels, and stay."""
    return name if name.isupper() else name.lower()


def identifiers(tree: ast.AST) -> Iterator[str]:
    """The names that a module gives: of variables, parameters, attributes, functions and classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.keyword(arg=str(name)):
                yield name


def test_modules_are_short() -> None:
    lengths = {
        str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in MODULES
    }
    too_long = {name for name, lines in lengths.items() if lines > LONGEST}
    assert too_long - TOO_LONG == set(), (
        f"more than {LONGEST} lines: cut them along what they are about"
    )
    assert TOO_LONG - too_long == set(), "short enough now: take them off the list"


def test_no_module_only_hands_on() -> None:
    for path in MODULES:
        body = ast.parse(path.read_text()).body
        own = [
            node for node in body if not isinstance(node, (ast.Import, ast.ImportFrom, ast.Expr))
        ]
        lists = [
            node
            for node in own
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ]
        if path.name not in ("__init__.py", "__main__.py"):
            assert len(own) > len(lists), f"{path.relative_to(SOURCE)} has nothing of its own"
