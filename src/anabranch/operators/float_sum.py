"""Sums and means of floats that do not depend on how rows were cut, moved or merged.

Adding floats rounds, so the order of additions shows in the last digits, and a HAVING on them could change
its mind after a move. Here a number is taken apart into whole numbers of 32 bits at fixed places, and these
are added exactly, place by place. A group keeps the three highest places that any of its values has bits
in; what lies below, less than 2^-64 of the largest value, is cut off each value alike. So any order and any
cut give the same sum. (The idea is that of reproducible summation by bins: Demmel and Nguyen, 2013.)
"""

from __future__ import annotations

import numpy as np
import polars as pl

from anabranch.errors import RunError
from anabranch.operators.partials import Partial

PLACE = 32
"""Bits of a place; the other half of a 64-bit number is for adding rows without a carry."""
NOTHING = -1
"""The highest place of a group without values."""
ONES = 34
"""The place whose first bit is 1: the least bit that a float can have, 2^-1074, has a place above 0."""
BLOCK = 1 << 14
"""Rows that are taken apart at a time, so that all steps happen in a core's own cache."""
_LOW = np.uint64((1 << PLACE) - 1)
_MANTISSA = np.uint64((1 << 52) - 1)
_IMPLIED = np.uint64(1 << 52)


def taken_apart(values: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """The highest place of each finite number, and its bits there and at the two places below."""
    split = _split_floats if values.dtype.kind == "f" else _split_integers
    parts = [np.empty(len(values), dtype=np.int64) for _ in range(4)]
    for start in range(0, len(values), BLOCK):
        for part, block in zip(parts, split(values[start : start + BLOCK]), strict=True):
            part[start : start + BLOCK] = block
    return parts[0], parts[1:]


def _split_integers(values: np.ndarray) -> tuple[np.ndarray, ...]:
    whole = values.dtype.type
    low, high = values & whole((1 << PLACE) - 1), values >> whole(PLACE)
    return (
        np.full(len(values), ONES + 1),
        high.astype(np.int64, copy=False),
        low.astype(np.int64, copy=False),
        np.zeros(len(values), dtype=np.int64),
    )


def _split_floats(values: np.ndarray) -> tuple[np.ndarray, ...]:
    bits = values.view(np.uint64)
    exponent = (bits >> np.uint64(52)) & np.uint64(0x7FF)
    mantissa = bits & _MANTISSA
    mantissa = np.where(exponent > 0, mantissa | _IMPLIED, mantissa)
    # Where the first of the 53 bits stands, counted from the first bit of place 0
    first = np.maximum(exponent, np.uint64(1)).astype(np.int64) + (ONES * PLACE - 1023)
    shift = ((first & (PLACE - 1)) + 12).astype(np.uint64)  # to the foot of the lowest place
    edge = np.uint64(PLACE)
    middle = np.where(
        shift <= edge,
        mantissa >> (edge - np.minimum(shift, edge)),
        mantissa << (np.maximum(shift, edge) - edge),
    )
    sign = np.where(values < 0, np.int64(-1), np.int64(1))
    places = (mantissa >> (edge + edge - shift), middle & _LOW, (mantissa << shift) & _LOW)
    return first >> 5, *(place.astype(np.int64) * sign for place in places)


def added(
    top: np.ndarray, places: list[np.ndarray], starts: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The sum of each group of rows, taken apart in the same way."""
    highest = np.maximum.reduceat(top, starts)
    below = np.repeat(highest, np.diff(starts, append=len(top))) - top
    if not below.any():
        return highest, [np.add.reduceat(place, starts) for place in places]
    sums = []
    for number in range(3):
        # A row that is k lower has here what stands k places higher in it
        here = np.where(below == 0, places[number], 0)
        for k in range(1, number + 1):
            here += np.where(below == k, places[number - k], 0)
        sums.append(np.add.reduceat(here, starts))
    return highest, sums


def put_together(top: np.ndarray, places: list[np.ndarray]) -> np.ndarray:
    """The sums as floats."""
    high, middle, low = places
    middle = middle + (low >> PLACE)
    high = high + (middle >> PLACE)
    rest = ((middle.view(np.uint64) & _LOW) << np.uint64(PLACE)) | (low.view(np.uint64) & _LOW)
    negative = high < 0
    high = np.where(negative, -high - (rest != 0), high)
    rest = np.where(negative, ~rest + np.uint64(1), rest)
    size = high.astype(np.float64) * 2.0**64 + rest.astype(np.float64)
    power = ((top - 2 - ONES) * PLACE).astype(np.int32)
    half = power // 2  # the whole of it may be beyond what a float can have
    with np.errstate(over="ignore", under="ignore"):
        size = np.ldexp(np.ldexp(size, half), power - half)
    signed: np.ndarray = np.where(negative, -size, size)
    return signed


class FloatSum(Partial):
    """The sum of floats; of none, NULL. Infinity and NaN, which have no places, are added beside it."""

    columnar = True

    def names(self) -> list[str]:
        return [f"{self.name}_{part}" for part in ("top", "high", "middle", "low", "special")]

    def prepare(self, values: pl.Series) -> pl.Series:
        return values.cast(pl.Float64)

    def compute(
        self, rows: pl.DataFrame, ids: np.ndarray, starts: np.ndarray, merge: bool
    ) -> list[pl.Series]:
        if merge:
            top, *places, special = (rows[name].to_numpy() for name in self.columns[:5])
            self._check(places, starts)
        else:
            assert self.argument
            values = rows[self.argument]
            absent = values.is_null().to_numpy() if values.null_count() else None
            numbers = values.fill_null(0).to_numpy() if absent is not None else values.to_numpy()
            special = np.zeros(len(numbers))
            if numbers.dtype.kind == "f":
                finite = np.isfinite(numbers)
                if not finite.all():
                    special, numbers = (
                        np.where(finite, 0.0, numbers),
                        np.where(finite, numbers, 0.0),
                    )
            top, places = taken_apart(numbers)
            if absent is not None:
                top[absent] = NOTHING
        top, places = added(top, places, starts)
        with np.errstate(invalid="ignore"):
            sums = [top, *places, np.add.reduceat(special, starts)]
        return [pl.Series(name, part) for name, part in zip(self.columns, sums, strict=False)]

    def _check(self, places: list[np.ndarray], starts: np.ndarray) -> None:
        for place in places:
            if len(place) and np.abs(place).max() >= 1 << 40:
                largest = np.abs(np.add.reduceat(place.astype(np.float64), starts)).max()
                if largest >= 1 << 62:
                    raise RunError(
                        f"{self.call} has more rows in one group than it can add exactly."
                    )

    def _sum(self, rows: pl.DataFrame) -> np.ndarray:
        top, *places, special = (rows[name].to_numpy() for name in self.columns[:5])
        return np.where(special == 0, put_together(top, places), special)

    def finish_frame(self, rows: pl.DataFrame) -> pl.Series:
        empty = rows[self.columns[0]] == NOTHING
        sums = pl.Series(self.name, self._sum(rows))
        return sums.set(empty, None) if empty.any() else sums


class Mean(FloatSum):
    """The mean of numbers: whole ones are added as such."""

    def names(self) -> list[str]:
        return [*super().names(), f"{self.name}_n"]

    def prepare(self, values: pl.Series) -> pl.Series:
        if values.dtype == pl.UInt64:
            return values
        return values.cast(pl.Int64 if values.dtype.is_integer() else pl.Float64)

    def compute(
        self, rows: pl.DataFrame, ids: np.ndarray, starts: np.ndarray, merge: bool
    ) -> list[pl.Series]:
        if merge:
            counts = rows[self.columns[-1]].to_numpy()
        else:
            assert self.argument
            counts = rows[self.argument].is_not_null().to_numpy().astype(np.int64)
        number = pl.Series(self.columns[-1], np.add.reduceat(counts, starts))
        return [*super().compute(rows, ids, starts, merge), number]

    def finish_frame(self, rows: pl.DataFrame) -> pl.Series:
        count = rows[self.columns[-1]].to_numpy()
        mean = pl.Series(self.name, self._sum(rows) / np.maximum(count, 1))
        return mean.set(pl.Series(count == 0), None) if not count.all() else mean
