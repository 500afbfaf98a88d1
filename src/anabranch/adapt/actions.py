"""What can be done between two epochs: policies propose it, the arbiter judges, protocols carry it out."""

from __future__ import annotations

from dataclasses import dataclass


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
    assert isinstance(action, Merge)
    return f"merge {name} with {action.exchange}/{action.other}"
