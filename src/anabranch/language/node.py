"""What every node of the query graph has: a schema, an ordered attribute, inputs; and the streams below.

The nodes themselves are in `stateless.py`, `groups.py` and `join.py`. Building one checks it (columns, types,
windows) and runs nothing. A query may read another one: its node is simply part of the graph, and work that
two queries write alike is done once.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from dataclasses import dataclass

import polars as pl

from anabranch.errors import LanguageError, shorten
from anabranch.language.expression import Expression, type_of
from anabranch.language.kinds import type_words
from anabranch.language.naming import half_letter
from anabranch.language.order import Ordered
from anabranch.language.updates import Updates


class Node:
    """Something that yields rows; subclasses say what."""

    schema: pl.Schema
    ordered: Ordered | None
    updates: Updates | None = None
    """What is known of its rows if they replace earlier ones."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @functools.cached_property
    def signature(self) -> str:
        """The same for nodes that yield the same rows: a hash of what they do and of their inputs."""
        for node in in_order(self, "signature"):
            inputs = " ".join(part.__dict__["signature"] for part in node.inputs)
            hashed = hashlib.blake2b(f"{node}\0{inputs}".encode(errors="replace"), digest_size=16)
            node.__dict__["signature"] = hashed.hexdigest()
        return str(self.__dict__["signature"])

    @functools.cached_property
    def streams(self) -> frozenset[str]:
        """The names of all streams the rows come from."""
        for node in in_order(self, "streams"):
            own = (node.name,) if isinstance(node, Stream) else ()
            below = (part.__dict__["streams"] for part in node.inputs)
            node.__dict__["streams"] = frozenset(own).union(*below)
        return frozenset(self.__dict__["streams"])

    @functools.cached_property
    def depth(self) -> int:
        """The number of steps from the streams."""
        for node in in_order(self, "depth"):
            node.__dict__["depth"] = 1 + max(
                (part.__dict__["depth"] for part in node.inputs), default=0
            )
        return int(self.__dict__["depth"])

    def described(self) -> str:
        """All steps below and its own, each once and by its number, for people who compare two queries."""
        numbers: dict[str, int] = {}
        told: list[str] = []
        for node in in_order(self):
            if node.signature not in numbers:
                below = ", ".join(str(numbers[part.signature]) for part in node.inputs)
                numbers[node.signature] = len(numbers) + 1
                told.append(f"{len(numbers)}: {node}" + (f" of {below}" if below else ""))
        return f"{shorten('; '.join(told), LONGEST_DESCRIPTION)} [{self.signature}]"


LONGEST_DESCRIPTION = 4_000
"""Characters of a query's description: it stands in every manifest."""


def in_order(node: Node, known: str | None = None) -> list[Node]:
    """A node and all below it, each once, inputs first; without those that know this of themselves already.

    With a stack of our own, and each node once: a graph may be deep, and inputs may be shared.
    """
    found: dict[int, Node] = {}
    waiting = [(node, False)]
    while waiting:
        part, ready = waiting.pop()
        if id(part) in found or (known is not None and known in part.__dict__):
            continue
        if ready:
            found[id(part)] = part
            continue
        waiting.append((part, True))
        waiting += [(below, False) for below in reversed(part.inputs)]
    return list(found.values())


@dataclass(frozen=True, eq=False)
class Stream(Node):
    """The rows of a registered stream."""

    name: str
    schema: pl.Schema
    ordered: Ordered | None
    since: int = 0
    """The change of the query set from which on its rows count; with 0, all do. What began at different times
    never shares an operator."""
    late_rows: bool = False
    """Whether late rows are left out of closed windows only, and not of everything."""

    def __str__(self) -> str:
        late = " WITH LATE ROWS" if self.late_rows else ""
        return f"STREAM {self.name}{f' SINCE {self.since}' if self.since else ''}{late}"


def require_boolean(predicate: Expression, schema: pl.Schema, where: str) -> None:
    kind = type_of(predicate, schema, f"{where} {predicate}")
    if kind not in (pl.Boolean, pl.Null):
        raise LanguageError(
            f"{where} {predicate}: expected a condition, but this is {type_words(kind)}."
        )


def require_distinct(names: list[str], where: str) -> None:
    counts = Counter(names)
    for name, count in counts.items():
        if name.startswith("__"):
            raise LanguageError(f"{where}: '{name}' is not a name for a column: `__` is reserved.")
        if half_letter(name) is not None:
            raise LanguageError(f"{where}: {name!a} is no name for a column: it is no Unicode.")
        if count > 1:
            raise LanguageError(
                f"{where}: two columns are called '{name}'. Give one another name with alias()."
            )
