"""Flux's movement protocol (F4): quiesce, extract, transfer, install, restart.

Where all sites read the same state, a move is installed at once. Where state is far away, the new site
fetches it while the old one works on (*fetching*); then the partition is paused, its rows held back before
the exchange, while the new site fetches what was written meanwhile (*paused*); then it is installed and its
rows are let go. In Flux's own order, with `fetch_first` off, a partition is paused for all of that. Where a
site can make only a few moves at a time, with `in_turn`, a move waits until its turn comes (*queued*).

The machine knows no clock, disk or network: who drives it says what happened and does what it is told. The
engine does so between epochs, where nothing is in flight, so that every partition is quiesced there, and
segments never change, so that extracting is naming them; what an epoch was to fetch has all arrived at its
end. The simulator drives every move by itself, in simulated time and in turn.

Until a move is installed the old site has everything. So the engine keeps the machine's state in the
manifest, and after a crash it goes on where it was, or back. `validate` says what always holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from anabranch.adapt.actions import Move
from anabranch.errors import RunError
from anabranch.routing.partition_map import PartitionMap

QUEUED, FETCHING, PAUSED = "queued", "fetching", "paused"


@dataclass(frozen=True)
class Moving:
    """A move under way."""

    move: Move
    phase: str
    since: int
    """When it began, as counted by who drives it: the engine's epoch, the simulator's step."""


@dataclass(frozen=True)
class MoveAccepted:
    """A move is to begin; `far` if the new site has to fetch its state."""

    move: Move
    now: int
    far: bool


@dataclass(frozen=True)
class TurnCame:
    """A move that was queued is to begin; too late if it was abandoned."""

    subject: tuple[str, int]
    now: int


@dataclass(frozen=True)
class StateArrived:
    """The new site of one partition has all that it was to fetch; too late if the move was abandoned."""

    subject: tuple[str, int]


@dataclass(frozen=True)
class EpochCommitted:
    """An epoch is over, and all that was to be fetched in it has arrived, for every move."""

    epoch: int


@dataclass(frozen=True)
class SiteLost:
    """A site is gone; what was on it is read from the store by others."""

    site: int


Event = MoveAccepted | TurnCame | StateArrived | EpochCommitted | SiteLost


@dataclass(frozen=True)
class Queue:
    """Say when the turn of the move has come."""

    move: Move


@dataclass(frozen=True)
class Fetch:
    """Let the new site fetch the state of the partition, as it is from now on."""

    move: Move


@dataclass(frozen=True)
class Pause:
    """Hold back the rows of the partition from now on."""

    move: Move


@dataclass(frozen=True)
class Install:
    """Give the partition to the new site, from now on, with the rows that were held back."""

    move: Move
    since: int


@dataclass(frozen=True)
class Abandon:
    """Leave the partition with the old site, with the rows that were held back."""

    move: Move
    reason: str


Instruction = Queue | Fetch | Pause | Install | Abandon


@dataclass
class MoveProtocol:
    """All moves under way."""

    pausing: bool = True
    """Whether rows can be held back; if not, a move is installed without a pause."""
    moving: dict[tuple[str, int], Moving] = field(default_factory=dict)
    fetch_first: bool = True
    """Whether the new site fetches once before the pause, which makes it short. Flux pauses first."""
    never_paused: Collection[str] = ()
    """Exchanges whose rows cannot be held back in any case."""
    in_turn: bool = False
    """Whether moves from afar begin only when whoever drives them says so."""

    def handle(self, event: Event) -> list[Instruction]:
        """The one place where moves change their phase; `reconcile` can only end them."""
        if isinstance(event, MoveAccepted):
            return self._begin(event)
        if isinstance(event, TurnCame):
            known = self.moving.get(event.subject)
            queued = known is not None and known.phase == QUEUED
            return self._start(replace(known, since=event.now)) if known and queued else []
        if isinstance(event, StateArrived):
            return self._go_on(self.moving[event.subject]) if event.subject in self.moving else []
        if isinstance(event, EpochCommitted):
            return [order for known in list(self.moving.values()) for order in self._go_on(known)]
        return [order for known in list(self.moving.values()) for order in self._lose(known, event)]

    def _begin(self, event: MoveAccepted) -> list[Instruction]:
        self.require_at_rest(event.move.subject)
        if not event.far:
            return [Install(event.move, event.now)]
        known = Moving(event.move, QUEUED, event.now)
        if not self.in_turn:
            return self._start(known)
        self.moving[event.move.subject] = known
        return [Queue(event.move)]

    def _start(self, known: Moving) -> list[Instruction]:
        if self._pauses(known.move) and not self.fetch_first:
            return self._pause(known)
        self.moving[known.move.subject] = replace(known, phase=FETCHING)
        return [Fetch(known.move)]

    def _go_on(self, known: Moving) -> list[Instruction]:
        if known.phase == QUEUED:
            return []
        if known.phase == FETCHING and self._pauses(known.move):
            return self._pause(known)
        del self.moving[known.move.subject]
        return [Install(known.move, known.since)]

    def _pauses(self, move: Move) -> bool:
        return self.pausing and move.exchange not in self.never_paused

    def _pause(self, known: Moving) -> list[Instruction]:
        self.moving[known.move.subject] = replace(known, phase=PAUSED)
        return [Pause(known.move), Fetch(known.move)]

    def _lose(self, known: Moving, event: SiteLost) -> list[Instruction]:
        if event.site == known.move.target:
            del self.moving[known.move.subject]
            return [Abandon(known.move, f"site {event.site} is gone")]
        if event.site == known.move.source:
            del self.moving[known.move.subject]
            return [Install(known.move, known.since)]
        return []

    def resume(self) -> list[Instruction]:
        """What is to be done for the moves that were under way when a run ended."""
        orders: list[Instruction] = []
        for known in self.moving.values():
            if known.phase == QUEUED:
                orders.append(Queue(known.move))
                continue
            orders += [Pause(known.move)] if known.phase == PAUSED else []
            orders.append(Fetch(known.move))
        return orders

    def reconcile(self, maps: Mapping[str, PartitionMap]) -> list[Abandon]:
        """Gives up moves of partitions that others have moved or cut meanwhile."""
        found = []
        for subject, known in list(self.moving.items()):
            now = maps[subject[0]]
            number = now.partition_at(subject[1])
            if now.starts[number] != subject[1] or now.sites[number] != known.move.source:
                del self.moving[subject]
                found.append(Abandon(known.move, "it was moved or cut in another way"))
        return found

    def require_at_rest(self, subject: tuple[str, int]) -> None:
        """Raises RunError if a partition is being moved."""
        if subject in self.moving:
            exchange, start = subject
            raise RunError(
                f"Partition {start} of '{exchange}' is on its way to site "
                f"{self.moving[subject].move.target}: ask again when it is there, after an epoch or two."
            )

    @property
    def paused(self) -> set[tuple[str, int]]:
        """The partitions whose rows have to wait for the end of their move."""
        return {subject for subject, known in self.moving.items() if known.phase == PAUSED}

    def validate(
        self, maps: Mapping[str, PartitionMap], waiting: Collection[tuple[str, int]]
    ) -> None:
        """Raises RunError unless what is moved is where it comes from, and its rows wait if it is paused."""
        for subject, known in self.moving.items():
            now = maps[subject[0]]
            number = now.partition_at(subject[1])
            if now.starts[number] != subject[1]:
                raise RunError(f"Partition {subject} is being moved but was cut away.")
            if now.sites[number] != known.move.source:
                raise RunError(
                    f"Partition {subject} is being moved from site {known.move.source} but is on site "
                    f"{now.sites[number]}."
                )
            if known.phase == PAUSED and subject not in waiting:
                raise RunError(f"Partition {subject} is paused, but its rows do not wait.")
