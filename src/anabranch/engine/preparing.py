"""Splits of the next epoch, prepared while the sites of this one still work.

What they will be told is foretold: what the splits of this epoch were told, with the times that these
have met and the pieces that come next. When the next epoch begins, its orders are made as always, from the
manifest; what was prepared is taken only if, to a split, they are the same orders. So nothing that is decided
in between (another map, rows that wait, sub-aggregation, a file that came first) can be missed: it makes them
differ, and the splits are run as if nothing had been prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from anabranch.engine.orders import Orders, StreamOrders
from anabranch.engine.reading import lanes_of, spread, tasks_of
from anabranch.engine.report import SplitReport
from anabranch.engine.watermarks import advance_watermarks, lane_times, newest_times
from anabranch.routing.grid import Resettling
from anabranch.routing.lane_times import NOBODY
from anabranch.routing.reach import Reach
from anabranch.sinks.staging import Staging
from anabranch.sources.base import Offer

Ahead: TypeAlias = Callable[[Sequence[SplitReport]], Orders | None]
"""Asked once the splits of an epoch have reported: what those of the next one will be told, if known."""


@dataclass(frozen=True)
class Attempt:
    """One try of an epoch: what it is called, and what depends on when it was made."""

    name: str
    streams: Mapping[str, StreamOrders]
    results: Mapping[str, Staging]
    now: int
    """Its time, in microseconds since 1970."""


def as_splits_see(orders: Orders) -> Orders:
    """The orders without what only sites are told: splits get them so, and do the same if they are equal."""
    return replace(
        orders,
        shelves={},
        idle=NOBODY,
        cleaning_all=False,
        resettling=Resettling(),
        turns={},
        sampling=(),
        released={},
        cleaned={},
        fetch={},
        memory=(),
        faults=None,
        reach={name: Reach(None, reach.behind) for name, reach in orders.reach.items()},
    )


def foretold(
    orders: Orders, splits: Sequence[SplitReport], offers: Mapping[str, Offer], tasks: int,
    attempt: Attempt,
) -> Orders:  # fmt: skip
    """What the splits after an epoch with these orders will be told, if nothing else changes."""
    pieces = [(name, piece) for name, offer in offers.items() for piece in offer.pieces]
    streams = orders.plan.streams
    lanes = lanes_of(streams, orders.lanes, orders.maps, pieces)
    times = {name: dict(known) for name, known in lane_times(orders.lane_times, splits).items()}
    for name, offer in offers.items():
        if offer.lanes is not None:
            times[name] = {**dict.fromkeys(offer.lanes), **times.get(name, {})}
    return replace(
        orders,
        epoch=orders.epoch + 1,
        attempt=attempt.name,
        newest=newest_times(orders.newest, splits),
        lane_times=times,
        watermarks=advance_watermarks(orders, list(splits)),
        streams=attempt.streams,
        results=attempt.results,
        now=attempt.now,
        pieces=spread(pieces, tasks, tasks_of(streams, orders.maps, lanes)),
        lanes=lanes,
        held=(),
    )
