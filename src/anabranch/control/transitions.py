"""What is under way: each kind of action has a protocol that says what to do next, and here it is done.

Most actions are applied at once. Moves of state that is far away take some epochs, in which a partition's
state is fetched and its rows wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from anabranch.adapt.actions import Action, Move
from anabranch.adapt.protocols.moving import (
    Abandon,
    EpochCommitted,
    Fetch,
    Install,
    Instruction,
    MoveAccepted,
    MoveProtocol,
    Pause,
    SiteLost,
    StateArrived,
    TurnCame,
)
from anabranch.control.decisions import DecisionHistory
from anabranch.routing.partition_map import PartitionMap

Subject: TypeAlias = tuple[str, int]
"""A partition, told by its exchange and first slot."""


@dataclass(frozen=True)
class Apply:
    """Do what takes no time: the instruction for all actions without a protocol of their own."""

    action: Action


Order: TypeAlias = Instruction | Apply


class Transitions:
    """The protocols of a run, and what they have told to do: which partitions wait, what is fetched."""

    def __init__(self, moves: MoveProtocol, far: bool, history: DecisionHistory) -> None:
        self.moves, self._far, self._history = moves, far, history
        self._protocols: dict[type[Action], Callable[[Action, int], list[Order]]] = {
            Move: self._move
        }
        self.paused: set[Subject] = set()
        """The partitions whose rows wait for the end of their move."""
        self._fetching: dict[Subject, Move] = {}
        self.obey(moves.resume())

    @property
    def fetching(self) -> list[Move]:
        """The moves whose new sites fetch state in the next epoch."""
        return list(self._fetching.values())

    def begin(self, actions: Iterable[Action], now: int) -> list[Order]:
        """Sets accepted actions going."""
        return [
            order
            for action in actions
            for order in self._protocols.get(type(action), _at_once)(action, now)
        ]

    def _move(self, action: Action, now: int) -> list[Order]:
        assert isinstance(action, Move)
        return [*self.moves.handle(MoveAccepted(action, now, self._far))]

    def committed(self, epoch: int) -> list[Order]:
        """An epoch is over, and what was to be fetched in it has arrived."""
        self._fetching.clear()
        return [*self.moves.handle(EpochCommitted(epoch))]

    def lost(self, site: int) -> list[Order]:
        """A site is gone."""
        return [*self.moves.handle(SiteLost(site))]

    def turn_came(self, subject: Subject, now: int) -> list[Order]:
        """A move that was queued is to begin."""
        return [*self.moves.handle(TurnCame(subject, now))]

    def arrived(self, subjects: Iterable[Subject]) -> list[Order]:
        """The new sites of these partitions have their state."""
        return [order for one in subjects for order in self.moves.handle(StateArrived(one))]

    def reconcile(self, maps: Mapping[str, PartitionMap]) -> None:
        """Gives up moves of partitions that others have moved or cut meanwhile."""
        self.obey(self.moves.reconcile(maps))

    def obey(self, orders: Iterable[Order]) -> list[Action]:
        """Does what the protocols say; returns what the maps are to be changed by."""
        done: list[Action] = []
        for order in orders:
            match order:
                case Fetch(move):
                    self._fetching[move.subject] = move
                case Pause(move):
                    self.paused.add(move.subject)
                case Install(move):
                    self._end(move)
                    done.append(move)
                case Abandon(move, reason):
                    self._end(move)
                    self._history.give_up(move, reason)
                case Apply(action):
                    done.append(action)
        return done

    def _end(self, move: Move) -> None:
        self.paused.discard(move.subject)
        self._fetching.pop(move.subject, None)


def _at_once(action: Action, now: int) -> list[Order]:
    return [Apply(action)]
