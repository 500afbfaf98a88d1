"""Flux's movement protocol (F4) between epochs: quiesce, extract, transfer, install, restart.

Between two epochs nothing is in flight, so every partition is quiesced there, and segments never change, so
extracting is naming them. Where all sites read the same folder, that is the whole move: it is installed at
once. Where state is far away, the new site fetches the segments while the old one works on (*fetching*);
then the partition is paused for an epoch, its rows held back before the exchange, while the new site fetches
what that last epoch wrote (*paused*); then it is installed and its rows are let go.

The machine knows no clock, disk or network. Its state is in the manifest: after a crash it goes on where it
was, or back, for until a move is installed the old site has everything. `validate` says what always holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from anabranch.adapt.actions import Move
from anabranch.errors import RunError
from anabranch.routing.partition_map import PartitionMap

FETCHING, PAUSED = PHASES = ("fetching", "paused")


@dataclass(frozen=True)
class Moving:
    """A move under way."""

    move: Move
    phase: str
    since: int
    """The epoch after which it began."""


@dataclass(frozen=True)
class MoveAccepted:
    """A move was decided after an epoch; `far` if the new site has to fetch its state."""

    move: Move
    epoch: int
    far: bool


@dataclass(frozen=True)
class EpochCommitted:
    """An epoch is over, and all that was to be fetched in it has been."""

    epoch: int


@dataclass(frozen=True)
class SiteLost:
    """A site is gone; what was on it is read from the store by others."""

    site: int


Event = MoveAccepted | EpochCommitted | SiteLost


@dataclass(frozen=True)
class Fetch:
    """Let the new site fetch the segments of the partition in the next epoch."""

    move: Move


@dataclass(frozen=True)
class Pause:
    """Hold back the rows of the partition from the next epoch on."""

    move: Move


@dataclass(frozen=True)
class Install:
    """Give the partition to the new site, from the next epoch on, with the rows that were held back."""

    move: Move
    since: int


@dataclass(frozen=True)
class Abandon:
    """Leave the partition with the old site, with the rows that were held back."""

    move: Move
    reason: str


Instruction = Fetch | Pause | Install | Abandon


@dataclass
class MoveProtocol:
    """All moves under way."""

    pausing: bool = True
    """Whether rows can be held back; if not, a move is installed without a pause."""
    moving: dict[tuple[str, int], Moving] = field(default_factory=dict)

    def handle(self, event: Event) -> list[Instruction]:
        """The one place where moves change their phase."""
        if isinstance(event, MoveAccepted):
            return self._begin(event)
        if isinstance(event, EpochCommitted):
            return [order for known in list(self.moving.values()) for order in self._go_on(known)]
        return [order for known in list(self.moving.values()) for order in self._lose(known, event)]

    def _begin(self, event: MoveAccepted) -> list[Instruction]:
        if event.move.subject in self.moving:
            raise RunError(f"Partition {event.move.subject} is being moved already.")
        if not event.far:
            return [Install(event.move, event.epoch)]
        self.moving[event.move.subject] = Moving(event.move, FETCHING, event.epoch)
        return [Fetch(event.move)]

    def _go_on(self, known: Moving) -> list[Instruction]:
        if known.phase == FETCHING and self.pausing:
            self.moving[known.move.subject] = replace(known, phase=PAUSED)
            return [Pause(known.move), Fetch(known.move)]
        del self.moving[known.move.subject]
        return [Install(known.move, known.since)]

    def _lose(self, known: Moving, event: SiteLost) -> list[Instruction]:
        if event.site == known.move.target:
            del self.moving[known.move.subject]
            return [Abandon(known.move, f"site {event.site} is gone")]
        if event.site == known.move.source:
            del self.moving[known.move.subject]
            return [Install(known.move, known.since)]
        return []

    def resume(self) -> list[Instruction]:
        """What a run that starts with moves under way has to do: what was fetched may be lost."""
        found: list[Instruction] = []
        for known in self.moving.values():
            found += [Pause(known.move)] if known.phase == PAUSED else []
            found.append(Fetch(known.move))
        return found

    def validate(self, maps: Mapping[str, PartitionMap], paused: Iterable[tuple[str, int]]) -> None:
        """Raises RunError unless every partition has one owner and only what is paused waits."""
        waiting = set(paused)
        for subject, known in self.moving.items():
            home = maps[subject[0]]
            number = home.partition_at(subject[1])
            if home.starts[number] != subject[1]:
                raise RunError(f"Partition {subject} is being moved but was cut away.")
            if home.sites[number] != known.move.source:
                raise RunError(
                    f"Partition {subject} is being moved from site {known.move.source} but is on site "
                    f"{home.sites[number]}."
                )
            if (known.phase == PAUSED) != (subject in waiting):
                raise RunError(f"Partition {subject} is {known.phase}, but its rows are not.")
