"""What rows get of the rows around them, over whole columns: numbers, shifts, picks, aggregates of frames.

Rows lie group by group, each group in its order. Where a group goes on from earlier epochs, its last rows of
then lie before the new ones and carry what has run up to them (`running.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from anabranch.language.over import NamedRowCall, RowCall, RowFrame
from anabranch.operators.functions import finish
from anabranch.operators.grouping import Groups, cuts, reduce
from anabranch.operators.partials import SEQ, TIME, Partial
from anabranch.routing.ranges import expand
from anabranch.state.segment import LOCATOR

COUNTS = ("count", "count_distinct", "approx_distinct")


@dataclass(frozen=True)
class Lineup:
    """Rows in groups and in order: where groups and places in the order begin, and the time of each row."""

    rows: pl.DataFrame
    starts: np.ndarray
    peers: np.ndarray
    """The first row of each place: rows in the same place have nothing that tells them apart."""

    @property
    def height(self) -> int:
        return self.rows.height

    def first(self) -> np.ndarray:
        """For each row the first one of its group."""
        return np.repeat(self.starts, np.diff(np.append(self.starts, self.height)))

    def end(self) -> np.ndarray:
        """For each row the end of its group."""
        ends = np.append(self.starts[1:], self.height)
        return np.repeat(ends, np.diff(np.append(self.starts, self.height)))

    def peer_first(self) -> np.ndarray:
        return np.repeat(self.peers, np.diff(np.append(self.peers, self.height)))

    def peer_end(self) -> np.ndarray:
        ends = np.append(self.peers[1:], self.height)
        return np.repeat(ends, np.diff(np.append(self.peers, self.height)))


def numbers(line: Lineup, function: str) -> np.ndarray:
    """Row numbers, ranks or dense ranks within groups that begin here, from 1 on."""
    first = line.first()
    found: np.ndarray
    if function == "row_number":
        found = np.arange(line.height) - first + 1
        return found
    if function == "rank":
        found = line.peer_first() - first + 1
        return found
    opens = np.zeros(line.height, dtype=np.int64)
    opens[line.peers] = 1
    count = np.cumsum(opens)
    return count - count[first] + 1 if line.height else count


def shifted(
    line: Lineup, call: RowCall, at: np.ndarray, value: str, default: str | None
) -> pl.Series:
    """LAG or LEAD of the rows at these places."""
    there = at - call.number if call.function == "lag" else at + call.number
    inside = (there >= line.first()[at]) & (there < line.end()[at])
    return _gathered(line.rows, there, inside, at, value, default)


def picked(call: RowCall, line: Lineup, at: np.ndarray, value: str) -> pl.Series:
    """FIRST_VALUE, LAST_VALUE or NTH_VALUE of the frames of the rows at these places."""
    low, high = borders(line, call.frame, at)
    there = {"first_value": low, "last_value": high - 1}.get(call.function, low + call.number - 1)
    return _gathered(line.rows, there, (there >= low) & (there < high), at, value, None)


def _gathered(
    rows: pl.DataFrame, there: np.ndarray, inside: np.ndarray, at: np.ndarray, value: str,
    default: str | None,
) -> pl.Series:  # fmt: skip
    """The values at these places where they are inside, else the default."""
    index = pl.Series(np.where(inside, there, 0).astype(np.uint32))
    found = pl.select(pl.when(pl.Series(inside)).then(rows[value].gather(index))).to_series()
    if default is None:
        return found
    instead = rows[default].gather(pl.Series(at.astype(np.uint32))).cast(found.dtype)
    return pl.select(pl.when(pl.Series(inside)).then(found).otherwise(instead)).to_series()


def borders(line: Lineup, frame: RowFrame, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first row of the frame of each row, and the end of it."""
    low, high = line.first()[at], line.end()[at]
    if not frame.by_time:
        if frame.before is not None:
            low = np.maximum(low, at - frame.before)
        if frame.after is not None:
            high = np.minimum(high, at + frame.after + 1)
        return low, np.maximum(low, high)
    if frame.after is not None:
        assert frame.after == 0
        high = line.peer_end()[at]
    if frame.before is not None:
        time = line.rows[TIME].to_numpy()
        low = _searched(time, low, at, time[at] - frame.before)
    return low, high


def _searched(time: np.ndarray, low: np.ndarray, at: np.ndarray, least: np.ndarray) -> np.ndarray:
    """The first place from `low` to `at` whose time is at least this; times ascend there."""
    begin, end = low.copy(), at.copy()
    while True:
        open_still = begin < end
        if not open_still.any():
            return begin
        middle = (begin + end) // 2
        early = open_still & (time[middle] < least)
        begin = np.where(early, middle + 1, begin)
        end = np.where(open_still & ~early, middle, end)


def aggregated(
    line: Lineup, frame: RowFrame, at: np.ndarray, partials: Sequence[Partial],
    calls: Sequence[NamedRowCall],
) -> pl.DataFrame:  # fmt: skip
    """Aggregates over one frame, of the rows at these places."""
    names = [part.name for part in calls]
    needed = [name for name in (LOCATOR, TIME, SEQ) if name in line.rows]
    needed += [part.argument for part in partials if part.argument]
    rows = line.rows.select(list(dict.fromkeys(needed)))
    if frame.whole:
        values = reduce(Groups(rows, line.starts), [], partials, merge=False)
        ids = np.repeat(np.arange(len(line.starts)), np.diff(np.append(line.starts, line.height)))
        found = finish(values, partials, names).select(names)
        return found[pl.Series(ids[at].astype(np.uint32))]
    low, high = borders(line, frame, at)
    filled = np.flatnonzero(high > low)
    low, length = low[filled], (high - low)[filled]
    parts = [
        _reduced(rows, low[a:b], length[a:b], partials, names)
        for a, b in itertools.pairwise(cuts(length))
    ]
    if len(filled) == len(at) and parts:
        return pl.concat(parts)
    # Over no rows a count is 0 and everything else NULL, as SQL has it
    index = np.full(len(at), -1)
    index[filled] = np.arange(len(filled))
    empty = reduce(Groups(rows.clear(), np.empty(0, dtype=np.int64)), [], partials, merge=False)
    found = pl.concat(parts) if parts else finish(empty, partials, names).select(names)
    where = pl.Series(index).replace(-1, None).cast(pl.UInt32)
    counts = [part.name for part in calls if part.call.function in COUNTS]
    return found.select(pl.all().gather(where)).with_columns(pl.col(counts).fill_null(0))


def _reduced(
    rows: pl.DataFrame, low: np.ndarray, length: np.ndarray, partials: Sequence[Partial],
    names: Sequence[str],
) -> pl.DataFrame:  # fmt: skip
    members = rows[expand(low, length)]
    starts = np.cumsum(length) - length
    values = reduce(Groups(members, starts), [], partials, merge=False)
    return finish(values, partials, names).select(names)
