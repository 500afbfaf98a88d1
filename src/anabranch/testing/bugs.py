"""The bugs that `planted.py` plants: one wrong function each, at a real place of the product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from anabranch.control.balancing import Balancing
from anabranch.control.governor import Governor
from anabranch.control.pins import Pins
from anabranch.control.waiting import Waiting
from anabranch.engine import commit, outbox, sharing, site, split, transport
from anabranch.engine.commit import Checkpoint
from anabranch.engine.loop import Loop
from anabranch.engine.orders import Orders
from anabranch.engine.transport import Twin
from anabranch.operators.base import END_OF_TIME
from anabranch.routing.frame import Inlet
from anabranch.routing.grid import Grid
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import ranges_where
from anabranch.sinks.dead_letter import Letters
from anabranch.sinks.driver import DriverWriter
from anabranch.state.ledger import Ledger
from anabranch.state.line import read_line
from anabranch.state.shelf import Shelf, without
from anabranch.testing.bug import Bug, Wrong, nothing
from anabranch.testing.state_bugs import STATE_BUGS


def _drained(right: Wrong) -> Wrong:
    def forgetful(loop: Loop, *arguments: Any) -> Orders:
        orders: Orders = right(loop, *arguments)
        manifest, shelves = loop.checkpoint.manifest, {}
        for name, shelf in orders.shelves.items():
            exchange = loop.plan.subqueries[name].exchange
            before, after = manifest.exchanges[exchange].map(), orders.maps[exchange]
            slots = np.arange(before.slots)
            moved = ranges_where(before.site_of(slots) != after.site_of(slots))
            last = f"/{manifest.epoch:012d}-"
            cut = (without(ref, moved) if last in ref.file else ref for ref in shelf)
            shelves[name] = Shelf(ref for ref in cut if ref is not None)
        return replace(orders, shelves=shelves)

    return forgetful


def _of_last_epoch(
    right: Wrong, known_by: Callable[[PartitionMap, PartitionMap], PartitionMap]
) -> Wrong:
    """Sites that work with a map made of the last epoch's and this one's."""
    seen: dict[tuple[str, int], Any] = {}

    def stale(orders: Orders, level: int, number: int, parcels: Any) -> Any:
        before = seen.get((orders.standing.root, orders.epoch - 1), orders.maps)
        seen[orders.standing.root, orders.epoch] = orders.maps
        maps = {
            exchange: known_by(before[exchange], after) for exchange, after in orders.maps.items()
        }
        return right(replace(orders, maps=maps), level, number, parcels)

    return stale


class _Greedy(PartitionMap):
    """A map by which a site still has what it had by the map before."""

    before: PartitionMap

    def owned_by(self, site: int) -> list[tuple[int, int]]:
        own = np.zeros(self.slots, dtype=bool)
        for first, end in [*super().owned_by(site), *self.before.owned_by(site)]:
            own[first:end] = True
        return ranges_where(own)


def _greedy(before: PartitionMap, after: PartitionMap) -> PartitionMap:
    both = _Greedy(after.sites, after.starts, after.slots, after.cells)
    object.__setattr__(both, "before", before)
    return both


def _published_early(right: Wrong) -> Wrong:
    def hasty(self: Checkpoint, orders: Orders, report: Any) -> None:
        right(self, orders, report)
        for query, writer in self._outlets._writers.items():
            parts = report.result_parts(query)
            if parts:
                writer.publish(parts, orders.epoch, orders.attempt)

    return hasty


def _published_twice(right: Wrong) -> Wrong:
    def twice(self: DriverWriter, *published: Any) -> None:
        right(self, *published)
        right(self, *published)

    return twice


def _one_too_far(right: Wrong) -> Wrong:
    def fast(*arguments: Any) -> dict[str, int | None]:
        return {
            name: time if time is None or time >= END_OF_TIME else time + 1
            for name, time in right(*arguments).items()
        }

    return fast


def _without_rows_let_go(right: Wrong) -> Wrong:
    def forgetful(*arguments: Any) -> Waiting:
        waiting: Waiting = right(*arguments)
        return replace(waiting, held=())

    return forgetful


def _as_if_never_held(right: Wrong) -> Wrong:
    def uniform(orders: Orders, exchange: str, *arguments: Any) -> Iterator[Any]:
        for flow in right(orders, exchange, *arguments):
            now = orders.reach[exchange].watermark
            yield flow if flow.cuts or flow.newest else replace(flow, before=now)

    return uniform


def _kept_a_little(right: Wrong) -> Wrong:
    def lenient(*arguments: Any) -> int | None:
        earliest = right(*arguments)
        return None if earliest is None else earliest - 1

    return lenient


def _one_letter_less(right: Wrong) -> Wrong:
    def careless(letters: Letters, kind: str, rows: pl.DataFrame, part: str) -> None:
        right(letters, kind, rows[1:] if kind == "late" else rows, part)

    return careless


def _one_place_more(right: Wrong) -> Wrong:
    def doubling(self: Grid, rows: int, side: int, start: int = 0) -> Any:
        which, cells = right(self, rows, side, start)
        return np.append(which, which[:1]), np.append(cells, cells[:1])

    return doubling


def _first_reader_left_out(right: Wrong) -> Wrong:
    def forgetful(orders: Orders, inlet: Inlet) -> Any:
        return right(orders, inlet)[1:]

    return forgetful


def _one_epoch_older(right: Wrong) -> Wrong:
    def older(self: Ledger) -> Any:
        newest = right(self)
        line = read_line(self._place)
        return line[-2].manifest if len(line) > 1 else newest

    return older


def _offset_of_before(right: Wrong) -> Wrong:
    def forgetful(before: Any, *arguments: Any) -> Any:
        records = right(before, *arguments)
        for name, record in records.items():
            record.offset = before[name].offset
        return records

    return forgetful


def _last_row_less(right: Wrong) -> Wrong:
    def short(*arguments: Any) -> Any:
        frame = right(*arguments)
        return replace(frame, rows=frame.rows[: max(1, frame.rows.height - 1)])

    return short


BUGS = (
    *STATE_BUGS,
    Bug("move-without-drain", "the new site of a partition lacks what the last epoch wrote",
        ((Loop, "_orders"),), _drained),
    Bug("map-without-its-state", "rows go by the new map, state is looked for by the old one",
        ((transport, "run_site"),), lambda right: _of_last_epoch(right, lambda old, new: old)),
    Bug("two-owners", "the site that a partition has left goes on with its state there",
        ((transport, "run_site"),), lambda right: _of_last_epoch(right, _greedy)),
    Bug("pin-not-kept", "another number of sites moves what is pinned",
        ((Pins, "keep"),), lambda right: lambda self, maps, alive: dict(maps)),
    Bug("lost-site-not-left", "partitions stay on a site that is gone",
        ((Balancing, "evacuate"),), nothing(())),
    Bug("publish-before-commit", "results are to be seen as soon as the tasks are done",
        ((Checkpoint, "_check_shared"),), _published_early),
    Bug("sink-publishes-twice", "a sink hands every epoch over twice",
        ((DriverWriter, "publish"),), _published_twice),
    Bug("watermark-one-too-far", "the watermark is one unit ahead",
        ((site, "advance_watermarks"), (commit, "advance_watermarks")), _one_too_far),
    Bug("waiting-rows-lost", "rows that waited are not taken in again",
        ((Governor, "holding"),), _without_rows_let_go),
    Bug("waiting-rows-late", "slots that waited go on from the watermark of the others",
        ((site, "_flowing"),), _as_if_never_held),
    Bug("late-row-kept", "a row that is late by one unit counts",
        ((split, "earliest_on_time"),), _kept_a_little),
    Bug("dead-letter-dropped", "the first of some late rows is not kept aside",
        ((Letters, "keep_rows"),), _one_letter_less),
    Bug("grid-cell-doubled", "a row of a join without equal keys is in one cell twice",
        ((Grid, "places"),), _one_place_more),
    Bug("shared-copy-forgotten", "a reader takes nothing of the rows that were sent once for several",
        ((sharing, "readers_of"),), _first_reader_left_out),
    Bug("restored-too-old", "a run goes on from the last manifest but one",
        ((Ledger, "latest"),), _one_epoch_older),
    Bug("offset-not-saved", "the manifest has the offsets of the epoch before",
        ((commit, "stream_records"),), _offset_of_before),
    Bug("prepared-for-another", "splits that were prepared are taken, whatever was decided since",
        ((Twin, "has_prepared"),), lambda right: lambda self, orders: self._prepared is not None),
    Bug("sub-aggregate-lost", "senders lose the last group that they sub-aggregate",
        ((outbox.Outbox, "_fewer"),), _last_row_less),
)  # fmt: skip
