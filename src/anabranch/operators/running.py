"""Values that go on from row to row of a group for ever: what has run up to a row stands beside it.

Of a group that goes on, the last row of earlier epochs is there with what had run up to it; the new rows go
on from that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from anabranch.errors import RunError
from anabranch.language.over import NamedRowCall
from anabranch.operators.around import Lineup, borders

GROUP = "__group"
MOST = 9.2e18
"""A sum beyond this may not fit into 64 bits."""


@dataclass(frozen=True)
class Underway:
    """Rows in a line, of which some are old; a value for each row, and what had run up to the old ones."""

    line: Lineup
    old: np.ndarray
    number: np.ndarray
    """The number of each row in its group, from 0 on."""
    ids: np.ndarray
    last_old: np.ndarray
    """For each row the last old one of its group, -1 if there is none."""

    def scanned(
        self, values: pl.Series, stored: pl.Series, scan: Callable[[pl.Expr], pl.Expr]
    ) -> pl.Series:
        """What a scan of each group gives that begins with what had run up to its last old row."""
        seed = self.last_old == np.arange(self.line.height)
        begun = pl.select(
            pl.when(pl.Series(seed)).then(stored).when(pl.Series(~self.old)).then(values)
        ).to_series()
        frame = pl.DataFrame({GROUP: self.ids, "value": begun})
        found = frame.select(scan(pl.col("value")).over(GROUP)).to_series()
        filled = pl.DataFrame({GROUP: self.ids, "value": found})
        found = filled.select(pl.col("value").forward_fill().over(GROUP)).to_series()
        return self._kept(found, stored)

    def _kept(self, found: pl.Series, stored: pl.Series) -> pl.Series:
        """The new values, and of old rows what they had."""
        old = pl.Series(self.old)
        return pl.select(pl.when(old).then(stored).otherwise(found)).to_series()

    def carried(self, values: pl.Series, stored: pl.Series, at: np.ndarray) -> pl.Series:
        """The values at these new rows; where there is none (-1), what the last old row had."""
        there = pl.Series(np.maximum(at, 0).astype(np.uint32))
        before = pl.Series(np.maximum(self.last_old, 0).astype(np.uint32))
        found = pl.select(
            pl.when(pl.Series(at >= 0)).then(values.gather(there))
            .when(pl.Series(self.last_old >= 0)).then(stored.gather(before))
        ).to_series()  # fmt: skip
        return self._kept(found, stored)


def columns_of(number: int, named: NamedRowCall) -> list[str]:
    """The columns in which a row carries what has run up to it."""
    own = f"__r{number}"
    return [own, f"{own}n"] if named.call.function == "avg" else [own]


def run_up(
    run: Underway, number: int, named: NamedRowCall, value: str | None, second: str | None
) -> list[pl.Series]:
    """Those columns, of all rows."""
    rows, call = run.line.rows, named.call
    names = columns_of(number, named)
    stored = [rows[name] for name in names]
    if call.function == "rank":
        # Stored, as rows of its place may be gone when one that waited for others is answered
        opened = np.zeros(rows.height, dtype=np.int64)
        opened[run.line.peers] = run.number[run.line.peers] + 1
        found = [run.scanned(pl.Series(opened), stored[0], pl.Expr.cum_max)]
    elif call.function == "dense_rank":
        opens = np.zeros(rows.height, dtype=np.int64)
        opens[run.line.peers] = 1
        found = [run.scanned(pl.Series(opens), stored[0], pl.Expr.cum_sum)]
    elif call.aggregate is not None:
        found = _aggregate(run, call.function, value, stored)
    elif call.function == "latest":
        assert value is not None
        assert second is not None
        holds = rows[second].fill_null(False).to_numpy() & ~run.old
        place = np.where(holds, np.arange(rows.height), -1)
        first = run.line.first()
        at = np.maximum.accumulate(place)
        found = [run.carried(rows[value], stored[0], np.where(at >= first, at, -1))]
    else:
        assert value
        found = [run.carried(rows[value], stored[0], _place(run, call.function, call.number))]
    return [values.alias(name) for values, name in zip(found, names, strict=True)]


def run_value(line: Lineup, at: np.ndarray, number: int, named: NamedRowCall) -> pl.Series:
    """What has run up to the last row of the frame of each of these rows."""
    first, last = at, at
    if named.call.function not in ("latest", "rank", "dense_rank"):
        low, high = borders(line, named.call.frame, at)
        first, last = low, high - 1
    inside = pl.Series(last >= first)
    places = pl.Series(np.maximum(last, 0).astype(np.uint32))
    found = [line.rows[name].gather(places) for name in columns_of(number, named)]
    value = found[0] if len(found) == 1 else found[0].cast(pl.Float64) / found[1]
    if named.call.function == "count":
        return pl.select(pl.when(inside).then(value).otherwise(0)).to_series()
    return pl.select(pl.when(inside).then(value)).to_series()


def begun(line: Lineup) -> Underway:
    """Rows of groups that all begin here."""
    lengths = np.diff(np.append(line.starts, line.height))
    return Underway(
        line, np.zeros(line.height, dtype=bool), np.arange(line.height) - line.first(),
        np.repeat(np.arange(len(line.starts)), lengths), np.full(line.height, -1),
    )  # fmt: skip


def _place(run: Underway, function: str, nth: int) -> np.ndarray:
    """For each row the new row that is the first, or the n-th, of its group so far; -1 if it is none."""
    nth = 1 if function == "first_value" else nth
    height = run.line.height
    here = np.flatnonzero(~run.old & (run.number == nth - 1))
    by_group = np.full(int(run.ids.max()) + 1 if height else 0, -1)
    by_group[run.ids[here]] = here
    return np.where(run.number >= nth - 1, by_group[run.ids], -1)


def _aggregate(
    run: Underway, function: str, value: str | None, stored: list[pl.Series]
) -> list[pl.Series]:
    rows = run.line.rows
    values = pl.Series(np.ones(rows.height, dtype=np.int64)) if value is None else rows[value]
    counts = values.is_not_null().cast(pl.Int64)
    if function == "count":
        return [run.scanned(counts, stored[0], pl.Expr.cum_sum)]
    if function in ("min", "max"):
        scans: Mapping[str, Callable[[pl.Expr], pl.Expr]] = {
            "min": pl.Expr.cum_min, "max": pl.Expr.cum_max,
        }  # fmt: skip
        physical = run.scanned(values.to_physical(), stored[0].to_physical(), scans[function])
        return [physical.cast(values.dtype)]
    whole = values.dtype.is_integer()
    numbers = values.cast(pl.Int64 if whole else pl.Float64)
    found = [run.scanned(numbers, stored[0], pl.Expr.cum_sum)]
    if whole:
        _check_range(run, numbers, stored[0])
    if function == "avg":
        found.append(run.scanned(counts, stored[1], pl.Expr.cum_sum))
    return found


def _check_range(run: Underway, numbers: pl.Series, stored: pl.Series) -> None:
    sums = run.scanned(numbers.cast(pl.Float64), stored.cast(pl.Float64), pl.Expr.cum_sum)
    most = sums.abs().max()
    if isinstance(most, float) and most > MOST:
        raise RunError(
            "SUM … OVER from UNBOUNDED PRECEDING on leaves what 64 bits can hold: cast the value to double."
        )
