"""How a query set differs from the one a checkpoint has, and what becomes of each query.

A query is known again by what it does (its signature), not by its name. What is written alike goes on; what
has the same name and the same operators with state, but other steps after them, goes on too; the rest is
new or gone. How the state gets from one plan to the other is in `carrying.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from anabranch.errors import StateError
from anabranch.language.groups import Aggregate, History
from anabranch.language.join import Join
from anabranch.language.node import Node, in_order
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
            begin[name] = {"from": "beginning" if self.backfill else "now", "replays": replays}
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
        told = {
            "go on": self.same,
            "go on under another name": [f"{new} (was {old})" for new, old in self.renamed.items()],
            "changed, go on with their state": self.adjusted,
            f"changed, begin anew {begin}": self.changed,
            f"new, begin {begin}": self.new,
            "gone, their state is dropped and their results stay": self.gone,
        }
        return [f"{kind}: {', '.join(names)}" for kind, names in told.items() if names]


def states_of(node: Node) -> tuple[str, ...]:
    """The signatures of the operators with state in a query."""
    kinds = (Aggregate, History, Join)
    return tuple(sorted({part.signature for part in in_order(node) if isinstance(part, kinds)}))


def compare(stored: Manifest, nodes: Mapping[str, Node]) -> Evolution:
    """What becomes of each query if a checkpoint goes on with these."""
    before = dict(stored.queries)
    same = [name for name in nodes if name in before and _alike(nodes[name], before[name])]
    left = {name: record for name, record in before.items() if name not in same}
    renamed: dict[str, str] = {}
    for name in (name for name in nodes if name not in same):
        fitting = [old for old, record in left.items() if _alike(nodes[name], record)]
        if fitting:
            # Another one may still be called so
            renamed[name] = min(fitting, key=lambda old: (old in nodes, old))
            del left[renamed[name]]
    others = [name for name in nodes if name not in same and name not in renamed]
    adjusted = [name for name in others if name in left and _keeps(nodes[name], left[name])]
    changed = [name for name in others if name in left and name not in adjusted]
    return Evolution(
        stored.serial, stored.changes + 1, tuple(sorted(same)), renamed, tuple(sorted(adjusted)),
        tuple(sorted(changed)), tuple(sorted(name for name in others if name not in left)),
        tuple(sorted(left.keys() - {*adjusted, *changed})),
    )  # fmt: skip


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
    return StateError(
        f"{what} belongs to another query set: {'. '.join(found)}. With changed='keep-same' "
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
