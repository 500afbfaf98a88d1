"""What can be done between two epochs: proposed by a policy, judged by the arbiter, done by a protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anabranch.routing.partition_map import PartitionMap


@dataclass(frozen=True)
class Action:
    """Something to do with one partition, told by its exchange and the first slot of its range."""

    exchange: str
    partition: int
    cause: str

    @property
    def subject(self) -> tuple[str, int]:
        return self.exchange, self.partition


@dataclass(frozen=True)
class Move(Action):
    """A partition to another site."""

    source: int
    target: int
    bytes: int = 0


@dataclass(frozen=True)
class Split(Action):
    """A partition into two, at a slot within its range; both stay where it is."""

    at: int


@dataclass(frozen=True)
class Merge(Action):
    """A partition with the one after it on the same site."""

    other: int
    """The first slot of the one after it."""


@dataclass(frozen=True)
class Condense(Action):
    """Sub-aggregate the rows of a slot before they are sent: it has a hot key."""

    slot: int


@dataclass(frozen=True)
class Scatter(Action):
    """Let the rows of a join's hot slot meet in a small grid of cells, one on each of these sites."""

    slot: int
    sites: tuple[int, ...]


def words(action: Action) -> str:
    """The action as a person would say it.

    >>> words(Move("flows", 640, "load", source=2, target=5))
    'move flows/640 from site 2 to 5'
    """
    name = f"{action.exchange}/{action.partition}"
    if isinstance(action, Move):
        return f"move {name} from site {action.source} to {action.target}"
    if isinstance(action, Split):
        return f"split {name} at {action.at}"
    if isinstance(action, Condense):
        return f"sub-aggregate slot {action.slot} of {action.exchange} before it is sent"
    if isinstance(action, Scatter):
        sites = ", ".join(map(str, action.sites))
        return f"scatter slot {action.slot} of {action.exchange} over cells on sites {sites}"
    assert isinstance(action, Merge)
    return f"merge {name} with {action.exchange}/{action.other}"


def applied(maps: Mapping[str, PartitionMap], actions: Sequence[Action]) -> dict[str, PartitionMap]:
    """The maps after these actions."""
    after = dict(maps)
    targets: dict[str, dict[int, int]] = {}
    for action in actions:
        if isinstance(action, Move):
            targets.setdefault(action.exchange, {})[action.partition] = action.target
    for exchange, moved in targets.items():
        after[exchange] = after[exchange].moved(moved)
    for action in actions:
        if isinstance(action, Split):
            after[action.exchange] = after[action.exchange].split(action.at)
        elif isinstance(action, Merge):
            known = after[action.exchange]
            one, other = (
                known.sites[known.partition_at(at)] for at in (action.partition, action.other)
            )
            if one == other:
                after[action.exchange] = known.merged(action.other)
    return after
