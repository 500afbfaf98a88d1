"""Bugs that exploring must find: each is a wrong function in the ledger, the protocols or the place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as replace_part
from typing import Any

from msgspec.structs import replace

from anabranch.adapt.protocols import replanning
from anabranch.adapt.protocols.moving import MoveProtocol
from anabranch.adapt.protocols.parallel_track import TrackTurn
from anabranch.control import governor, shapes, spilling
from anabranch.routing.ranges import intersect, union
from anabranch.routing.reach import Hold, Reach, Spilled
from anabranch.routing.shaped import Shapes, Track, Tracks, reshaped
from anabranch.state.ledger import Ledger
from anabranch.testing.bug import Bug, Wrong
from anabranch.testing.explore import paper_place, reshaping
from anabranch.testing.explore.paper_place import Asked, Files, Reply, with_file


def _overwrites(right: Wrong) -> Wrong:
    def careless(files: Files, asked: Asked) -> tuple[Reply, Files]:
        return Reply(True), with_file(files, asked.name, asked.data)

    return careless


def _keeps_one_too_few(right: Wrong) -> Wrong:
    def eager(self: Ledger) -> int:
        if self._last is None:
            return 0
        self.require_lead()
        return sum(
            self._place.remove(file)
            for serial in [n for n in self._dropped if n <= self._last.oldest + 1]
            for file in self._dropped.pop(serial)
        )

    return eager


def _takes_back_always(right: Wrong) -> Wrong:
    def hasty(self: Ledger, serial: int) -> None:
        self._place.remove(f"manifests/{serial:012d}.json")

    return hasty


def _never_lets_go(right: Wrong) -> Wrong:
    def forgetful(
        self: Reach, wanted: Sequence[tuple[int, int]], epoch: int
    ) -> tuple[tuple[Hold, ...], tuple[Hold, ...]]:
        kept, released = right(self, wanted, epoch)
        return tuple(sorted([*kept, *released], key=lambda hold: hold.first)), ()

    return forgetful


def _lets_go_of_one_file(right: Wrong) -> Wrong:
    def careless(*arguments: Any) -> Any:
        found = right(*arguments)
        return type(found)(found.holds, found.released, found.held[:1])

    return careless


def _forgets_earlier_cuts(right: Wrong) -> Wrong:
    def forgetful(*arguments: Any) -> tuple[Spilled, ...]:
        return tuple(replace(one, cuts=one.cuts[-1:]) for one in right(*arguments))

    return forgetful


def _leaves_all_aside(right: Wrong) -> Wrong:
    def careless(before: Sequence[Spilled], wanted: Sequence[tuple[int, int]]) -> Any:
        return tuple(before), right(before, wanted)[1]

    return careless


def _tells_of_all_time(right: Any) -> Any:
    return property(lambda self: [self.watermark, *(hold.watermark for hold in self.behind)])


def _overlooks_the_newest(right: Wrong) -> Wrong:
    def hasty(tracks: Sequence[Track], remembered: Any) -> Any:
        return right([replace(one, cut=one.cut - 1) for one in tracks], remembered)

    return hasty


def _cut_late(right: Wrong) -> Wrong:
    def late(*arguments: Any) -> TrackTurn:
        turn: TrackTurn = right(*arguments)
        epoch = arguments[-1]
        later = [replace(one, cut=epoch) if one.cut == epoch - 1 else one for one in turn.tracks]
        return replace_part(turn, tracks=tuple(later))

    return late


def _broken_counts_as_ended(right: Wrong) -> Wrong:
    def hopeful(now: Shapes, tracks: Tracks, *arguments: Any) -> TrackTurn:
        turn: TrackTurn = right(now, tracks, *arguments)
        shapes = turn.shapes
        for one in tracks:
            shapes = reshaped(shapes, intersect([(one.first, one.end)], turn.broken), one.shape)
        ended = union(turn.ended, turn.broken)
        return replace_part(turn, shapes=shapes, ended=ended, broken=())

    return hopeful


BUGS = (
    Bug("put-overwrites", "an entry is put in place of another's of the same number",
        ((paper_place, "put_if_absent"),), _overwrites),
    Bug("lead-not-looked-at", "a run sweeps and clears without looking whether it still leads",
        ((Ledger, "leads"),), lambda right: lambda self: True),
    Bug("one-kept-too-few", "files are cleared away that the oldest kept entry still names",
        ((Ledger, "clear"),), _keeps_one_too_few),
    Bug("overtaken-entry-removed", "a run takes back its entry although another builds on it",
        ((Ledger, "_take_back"),), _takes_back_always),
    Bug("installed-before-drain", "a move is installed when its state was fetched once, without a pause",
        ((MoveProtocol, "_pauses"),), lambda right: lambda self, move: False),
    Bug("hold-not-released", "slots that have begun to wait do so for ever",
        ((Reach, "renewed"),), _never_lets_go),
    Bug("second-file-forgotten", "of the files with rows that waited only the first is let go",
        ((governor, "next_waiting"),), _lets_go_of_one_file),
    Bug("earlier-cut-forgotten", "what is put aside again forgets that a part of it was aside before",
        ((spilling, "put_aside"),), _forgets_earlier_cuts),
    Bug("together-and-aside", "what has come together is still taken to be aside",
        ((spilling, "brought_together"),), _leaves_all_aside),
    Bug("owed-time-told", "those above are told of a time although results from before it are owed",
        ((Reach, "watermarks"),), _tells_of_all_time),
    Bug("old-rows-overlooked", "a track ends while rows of the last epoch before its cut are there",
        ((shapes, "remaining_slots"), (reshaping, "remaining_slots")), _overlooks_the_newest),
    Bug("cut-late", "rows of the first epoch of a track count as old, which the new shape gives too",
        ((replanning, "next_tracks"),), _cut_late),
    Bug("broken-track-ended", "a track that is broken off counts as one that has ended",
        ((replanning, "next_tracks"),), _broken_counts_as_ended),
)  # fmt: skip
