"""How a query set differs from the one a checkpoint has, and what becomes of each query.

A query is known again by what it does (its signature), not by its name. What asks the same goes on: as the
one whose results went to the same place, else as the one of its name, else as the only one there is. What has
the same name and the same operators with state, but other steps after them, goes on too; the rest is new or
gone. How the state gets from one plan to the other is in `carrying.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from anabranch.errors import StateError
from anabranch.language.node import Node, in_order
from anabranch.language.stateful import Stateful
from anabranch.state.difference import differences
from anabranch.state.manifest import Manifest, QueryRecord

REFUSE, KEEP_SAME = "refuse", "keep-same"
"""What a run may do with a checkpoint of another query set."""


@dataclass(frozen=True)
class Evolution:
    """What becomes of the queries of a checkpoint, and where those of a session come from."""

    serial: int
    """The entry of the ledger that it goes on from."""
    number: int
    """Which change of the query set it is, from 1."""
    same: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    """What a query was called before."""
    adjusted: tuple[str, ...] = ()
    """Changed after the last operator with state: their state goes on."""
    changed: tuple[str, ...] = ()
    """Changed otherwise: they begin anew."""
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    opened: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The streams of each query that begins of which the checkpoint has read nothing yet."""
    backfill: bool = False
    queries: Mapping[str, QueryRecord] = field(default_factory=dict)
    """What the checkpoint is to remember of each query from now on."""

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return bool(self.renamed or self.adjusted or self.changed or self.new or self.gone)

    @property
    def kept(self) -> dict[str, str]:
        """The queries that go on, with the names they had before."""
        return {name: name for name in (*self.same, *self.adjusted)} | dict(self.renamed)

    @property
    def fresh(self) -> tuple[str, ...]:
        """The queries that begin with this change."""
        return (*self.changed, *self.new)

    def anew(self, queries: Collection[str]) -> Evolution:
        """The same, but these queries begin anew although they were to go on."""
        left = tuple(name for name in self.adjusted if name not in queries)
        return replace(self, adjusted=left, changed=tuple(sorted((*self.changed, *queries))))

    def described(self) -> dict[str, Any]:
        """Plain values, for programs."""
        begin = {}
        for name in self.fresh:
            read = self.queries[name].streams if name in self.queries else {}
            replays = {stream: one for stream, one in read.items() if one != stream}
            begin[name] = {
                "from": "beginning" if self.backfill else "now", "replays": replays,
                "opened": list(self.opened.get(name, ())),
            }  # fmt: skip
        return {
            "same": list(self.same), "renamed": dict(self.renamed), "adjusted": list(self.adjusted),
            "changed": list(self.changed), "new": list(self.new), "gone": list(self.gone), "begin": begin,
        }  # fmt: skip

    def lines(self) -> list[str]:
        """What is done, a line for each kind, for people."""
        begin = (
            "from the beginning of what the sources have"
            if self.backfill
            else "with rows from now on"
        )

        def beginning(names: tuple[str, ...]) -> list[str]:
            """With the streams that are read from their beginning all the same."""
            opened = {name: ", ".join(self.opened.get(name, ())) for name in names}
            return [
                f"{name} (all of {opened[name]})" if opened[name] and not self.backfill else name
                for name in names
            ]

        told = {
            "go on": self.same,
            "go on under another name": [f"{new} (was {old})" for new, old in self.renamed.items()],
            "changed, go on with their state": self.adjusted,
            f"changed, begin anew {begin}": beginning(self.changed),
            f"new, begin {begin}": beginning(self.new),
            "gone, their state is dropped and their results stay": self.gone,
        }
        return [f"{kind}: {', '.join(names)}" for kind, names in told.items() if names]


def states_of(node: Node) -> tuple[str, ...]:
    """The signatures of the operators with state in a query."""
    return tuple(sorted({part.signature for part in in_order(node) if isinstance(part, Stateful)}))


def compare(stored: Manifest, nodes: Mapping[str, Node], sinks: Mapping[str, str]) -> Evolution:
    """What becomes of each query if a checkpoint goes on with these, whose results go to these places."""
    before = stored.queries
    pairs = _by_place(nodes, stored, sinks)

    def free(name: str) -> bool:
        return name not in pairs and name in before and name not in pairs.values()

    # Who has kept its name has more right to its state than who asks now what it asked before
    adjusted = {
        name
        for name, node in nodes.items()
        if free(name) and not _alike(node, before[name]) and _keeps(node, before[name])
    }
    pairs |= {name: name for name in adjusted}
    pairs |= {name: name for name in nodes if free(name) and _alike(nodes[name], before[name])}
    for signature in {node.signature for node in nodes.values()}:
        asking = [
            name for name in nodes if name not in pairs and nodes[name].signature == signature
        ]
        # Last those whose names other queries have now
        olds = sorted(before.keys() - {*pairs.values()}, key=lambda old: (old in nodes, old))
        pairs |= _by_text(
            asking, {old: before[old] for old in olds if before[old].signature == signature}
        )
    left = before.keys() - {*pairs.values()}
    others = {*nodes} - {*pairs}
    return Evolution(
        stored.serial,
        stored.changes + 1,
        tuple(sorted(name for name, old in pairs.items() if name == old and name not in adjusted)),
        {name: old for name, old in sorted(pairs.items()) if name != old},
        tuple(sorted(adjusted)),
        tuple(sorted(others & left)),
        tuple(sorted(others - left)),
        tuple(sorted(left - others)),
        {name: tuple(sorted(nodes[name].streams - stored.streams.keys())) for name in others},
    )


def _by_place(
    nodes: Mapping[str, Node], stored: Manifest, sinks: Mapping[str, str]
) -> dict[str, str]:
    """The queries that go on because what they ask went where their results go, whatever they are called."""
    pairs: dict[str, str] = {}
    for name, place in sinks.items():
        rivals = [
            other
            for other, node in nodes.items()
            if sinks.get(other) == place and node.signature == nodes[name].signature
        ]
        olds = [
            old
            for old, record in stored.queries.items()
            if stored.sinks.get(old) == place and _alike(nodes[name], record)
        ]
        if len(rivals) == len(olds) == 1:
            pairs[name] = olds[0]
    return pairs


def _by_text(asking: list[str], fitting: Mapping[str, QueryRecord]) -> dict[str, str]:
    """Which of the queries that ask the same goes on as which of those that did, under another name.

    Neither names nor places tell them apart, so it must not matter: one of each, or equal states.
    """
    asking, olds = sorted(asking), [*fitting]
    states = {(record.since, *record.streams.values()) for record in fitting.values()}
    if asking and olds and (len(asking) > len(olds) or len(states) > 1):
        raise StateError(
            f"Query {', '.join(asking)} could go on as {' or as '.join(olds)}, which asked the same: which "
            "one it is cannot be told. Let each that goes on keep its name or the place of its results, or "
            "add and drop queries that ask the same in starts of their own."
        )
    return dict(zip(asking, olds, strict=False))


def _alike(node: Node, record: QueryRecord) -> bool:
    return node.signature == record.signature


def _keeps(node: Node, record: QueryRecord) -> bool:
    """Whether what a query keeps is part of what it kept before."""
    states = states_of(node)
    return bool(states) and {*states} <= {*record.states} and node.streams <= record.streams.keys()


def refusal(
    stored: Manifest, evolution: Evolution, identity: Mapping[str, str], what: str
) -> StateError:
    """What is said to who has not asked to go on with another query set."""
    found = [
        text
        for text in differences(stored.identity, identity)
        if text.startswith(("query ", "stream "))
    ]
    told = (
        ". ".join(found) or "queries that ask the same have exchanged the places of their results"
    )
    return StateError(
        f"{what} belongs to another query set: {told}. With changed='keep-same' "
        f"(--changed keep-same) it goes on like this: {'; '.join(evolution.lines())}. With backfill=True "
        "(--backfill), queries that begin do so with all that the sources still have. Use another checkpoint "
        "folder, and other result folders, to keep the two query sets apart."
    )


def refuse_changed_streams(stored: Manifest, identity: Mapping[str, str], what: str) -> None:
    """Raises StateError if a stream of the checkpoint is another one now: what was read no longer fits."""
    both = {name for name in identity if name.startswith("stream ")} & stored.identity.keys()
    found = differences(
        {name: stored.identity[name] for name in both}, {name: identity[name] for name in both}
    )
    if found:
        raise StateError(
            f"{what} belongs to another query set: {'. '.join(found)}. Queries can change, the streams of a "
            "checkpoint cannot: register the stream as it is now under another name, or use another "
            "checkpoint folder."
        )
