"""Synthetic streams: endless, seeded, and readable from any row on.

Covers the rows themselves: packets and call records as in the papers' examples, auctions and bids
as in NEXMark. It does not cover how a running query reads them (ranges, rates, offsets).

Every value is integer arithmetic, or float arithmetic that IEEE 754 fixes to the last bit, over raw
Philox words. NumPy promises those words for all versions; it promises neither its distributions nor
the last bits of `log` and `power`, which differ between processors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anabranch.errors import SourceError, suggest

Ints: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
Columns: TypeAlias = dict[str, NDArray[Any]]

SKEWS = ("uniform", "zipf", "drift", "surge")
BLOCK_ROWS = 16_384  # the temporaries of one block stay in the second-level cache
DRIFT_SECONDS = 10
DRIFT_PARTS = 4
AUCTION_ID_STRIDE = 10_000_000
BIDS_PER_AUCTION = 16  # NEXMark has 46 bids to 3 auctions

_LIMITS = {
    "seed": (0, 2**64 - 1),
    "rows_per_second": (1, AUCTION_ID_STRIDE),  # auctions are numbered within their second
    "keys": (1, 2**24),  # all of 10.0.0.0/8
    "disorder": (0, 86_400),
    "surge_from": (0, 2**38),
}
_LAST_SECOND = 2**38  # up to here no product below leaves 64 bits


@dataclass(frozen=True)
class Generator:
    """An endless stream of one kind; equal generators give equal rows everywhere.

    `keys` is the number of source addresses, callers, sellers, or auctions open to bids, and `skew`
    is how rows fall on them. With "drift" the Zipf ranks are dealt into DRIFT_PARTS parts; every
    DRIFT_SECONDS of event time the next part moves on to keys that were cold, so that after
    DRIFT_PARTS * DRIFT_SECONDS seconds the whole hot set is another one. With "surge" rows are uniform
    before the second `surge_from`; from then on half of them have one key.

    >>> Generator("packets", rows_per_second=2).rows(3, 4)["time"].to_list()
    [1, 2, 2, 3]
    """

    kind: str
    seed: int = 0
    rows_per_second: int = 50_000
    skew: str = "uniform"
    exponent: float = 1.1
    keys: int = 100_000
    disorder: int = 0
    surge_from: int = 0

    def __post_init__(self) -> None:
        for name, known in (("kind", tuple(KINDS)), ("skew", SKEWS)):
            word = getattr(self, name)
            if not isinstance(word, str) or word not in known:
                raise SourceError(f"Unknown generator {name} {word!r}.{suggest(str(word), known)}")
        for name, (least, most) in _LIMITS.items():
            value = getattr(self, name)
            if not isinstance(value, int) or not least <= value <= most:
                raise SourceError(
                    f"Generator {name} is {value!r}: give a whole number from {least} to {most}."
                )
        exponent = cast(Any, self.exponent)
        number = isinstance(exponent, (int, float)) and not isinstance(exponent, bool)
        if not number or not 0 < exponent < math.inf:
            raise SourceError(
                f"Generator exponent is {self.exponent!r}: give a number above 0, such as 1.1."
            )

    def schema(self) -> pl.Schema:
        """The names and types of the columns that `rows` gives."""
        return self.rows(0, 0).schema

    def rows(self, start: int, count: int) -> pl.DataFrame:
        """Rows start .. start+count-1 of the stream, whatever was read before."""
        end = _LAST_SECOND * self.rows_per_second
        if start < 0 or count < 0 or start + count > end:
            raise SourceError(
                f"A generator has no {count} rows from row {start} on: start and count must be 0 "
                f"or more, and their sum at most {end}."
            )
        columns: Columns = {
            name: np.empty(count, _TYPES.get(name, np.int64)) for name in self._block(0, 0)
        }
        for low in range(0, count, BLOCK_ROWS):
            high = min(low + BLOCK_ROWS, count)
            for name, values in self._block(start + low, high - low).items():
                columns[name][low:high] = values
        return pl.DataFrame(columns)

    def _block(self, start: int, count: int) -> Columns:
        # Row i owns counter i and so four words, whichever row is read first: word 0 for the key,
        # 1 and 2 for what the kind likes, 3 for the disorder.
        key = np.array([self.seed, int.from_bytes(self.kind.encode(), "little")], dtype=np.uint64)
        counter = np.array([start, 0, 0, 0], dtype=np.uint64)
        words = np.random.Philox(key=key, counter=counter).random_raw(4 * count)
        draws = words.reshape(count, 4).T
        row = np.arange(start, start + count, dtype=np.int64)
        time = row // self.rows_per_second
        if self.disorder:
            time = np.maximum(time - _below(draws[3], 32, self.disorder + 1), 0)
        keys = self._keys(draws[0], time)
        return {"time": time} | KINDS[self.kind](self, row, time, keys, draws)

    def _keys(self, word: Words, time: Ints) -> Ints:
        if self.skew == "uniform":
            return _below(word, 32, self.keys)
        if self.skew == "surge":
            surging = (time >= self.surge_from) & ((word >> np.uint64(63)) == 1)
            return np.where(surging, 0, _below(word, 32, self.keys))
        unit = (word >> 11) * 2.0**-53
        rank = np.searchsorted(_zipf(self.keys, self.exponent), unit, side="right")
        if self.skew == "drift":
            rank = _drift(rank, time, self.keys)
        return rank * _stride(self.keys) % self.keys


def _packets(generator: Generator, row: Ints, time: Ints, keys: Ints, draws: Words) -> Columns:
    address = keys + 0x0A000000
    # The source's own hash says whom it talks to and from where, so that flows have many packets.
    own = _mix(address.view(np.uint64) ^ np.uint64(generator.seed * 0x9E3779B97F4A7C15 % 2**64))
    word = draws[1]
    peer = word & 3
    host = (own >> (peer * 8 + 32)) & 255
    attacker = (own & 0xFFFF) < round(0.02 * 2**16)
    return {
        "srcIP": address,
        "destIP": host + 0xC0A80000,
        "srcPort": 32_768 + ((own >> 16) & 0x3FFF) + peer * 2 + ((word >> 2) & 1),
        "destPort": _SERVICES[host & 7],
        # Clipping makes a fifth of the packets bare acknowledgements and a fifth full frames.
        "len": np.clip(_below(word >> 16, 16, 2434) - 447, 40, 1500),
        "flags": _FLAGS[((word >> 3) & 7) + attacker * np.uint64(8)],
    }


def _calls(generator: Generator, row: Ints, time: Ints, keys: Ints, draws: Words) -> Columns:
    others = max(generator.keys - 1, 1)  # nobody calls himself
    callee = (keys + 1 + _below(draws[1], 32, others)) % generator.keys
    # Lomax of shape 1: half the calls end within 21 seconds, one in 700 is cut off after 4 hours.
    unit = ((draws[1] >> 32) + 1) * 2.0**-32
    duration = np.minimum(20.0 / unit - 19.0, 14_400.0).astype(np.int64)
    usual = (_mix(keys.view(np.uint64)) % 50).view(np.int64)
    away = (draws[2] & 7) == 0
    district = np.where(away, _below(draws[2] >> 8, 16, 50), usual)
    return {
        "caller": keys + 600_000_000,
        "callee": callee + 600_000_000,
        "start": time - duration,  # below 0 for a call that began before the stream
        "duration": duration,
        "district": district,
        # Districts are squares of 8 km, ten to a row; steps of 1/1024 km keep float sums exact.
        "x": district % 10 * 8 + _below(draws[2] >> 32, 16, 8192) / 1024,
        "y": district // 10 * 8 + _below(draws[2] >> 48, 16, 8192) / 1024,
    }


def _auctions(generator: Generator, row: Ints, time: Ints, keys: Ints, draws: Words) -> Columns:
    second, place = np.divmod(row, generator.rows_per_second)
    word = draws[1]
    return {
        "auction": second * AUCTION_ID_STRIDE + place,
        "seller": keys,
        "category": _below(word >> 32, 16, 20),
        "reserve": (_below(word, 16, 200) * _below(word >> 16, 16, 200) + 4) * 0.25,
        "expires": time + 60 + _below(word >> 48, 16, 600),
    }


def _bids(generator: Generator, row: Ints, time: Ints, keys: Ints, draws: Words) -> Columns:
    # An auction's id is its second and its place in that second, so bids that keep to the first few
    # places meet auctions that exist under every auctions stream at least 1/BIDS_PER_AUCTION as
    # dense as this one. A hot key is a place among the open auctions: the auction that holds it is
    # hot until a later one takes the place.
    places = max(generator.rows_per_second // BIDS_PER_AUCTION, 1)
    opened = (time + 1) * places
    serial = opened - 1 - (opened - 1 - keys) % generator.keys
    serial = np.where(serial < 0, keys % opened, serial)  # fewer than `keys` have opened yet
    second, place = np.divmod(serial, places)
    word = draws[1]
    return {
        "auction": second * AUCTION_ID_STRIDE + place,
        "bidder": _below(word >> 32, 32, generator.keys),
        "price": (_below(word, 16, 400) * _below(word >> 16, 16, 400) + 1) * 0.25,
    }


def _below(word: Words, bits: int, limit: int) -> Ints:
    """Numbers 0 .. limit-1 from the low `bits` (at most 32) of each word."""
    low = word & np.uint64(2**bits - 1)
    return ((low * np.uint64(limit)) >> np.uint64(bits)).view(np.int64)


def _mix(word: Words) -> Words:
    """The hash of each word, by splitmix64's finaliser."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@lru_cache(maxsize=8)
def _zipf(keys: int, exponent: float) -> NDArray[np.float64]:
    """The cumulative share of the ranks 0 .. keys-1 under a bounded Zipf distribution."""
    # Whole-number weights add up exactly, and hide the last bits of `power`.
    weights = np.rint(np.arange(1, keys + 1, dtype=np.float64) ** -exponent * 2.0**36)
    total = np.cumsum(np.maximum(weights, 1).astype(np.int64))
    return np.asarray(total / total[-1], dtype=np.float64)


@lru_cache(maxsize=64)
def _stride(keys: int) -> int:
    """A factor that scatters the ranks over the keys, each rank to a key of its own."""
    stride = max(keys * 618 // 1000, 1)  # by the golden section neighbouring ranks land far apart
    while math.gcd(stride, keys) != 1:
        stride += 1
    return stride


def _drift(rank: Ints, time: Ints, keys: int) -> Ints:
    """The ranks as far as the drift has moved them: at every second a bijection of 0 .. keys-1."""
    part = rank % DRIFT_PARTS
    turns = (time // DRIFT_SECONDS + DRIFT_PARTS - 1 - part) // DRIFT_PARTS
    size = (keys - part + DRIFT_PARTS - 1) // DRIFT_PARTS
    # Steps by the golden section come near an earlier hot set as late as can be.
    return (rank // DRIFT_PARTS + turns * (size * 618 // 1000)) % size * DRIFT_PARTS + part


_SERVICES = np.array([80, 443, 22, 25, 53, 110, 143, 8080], dtype=np.int32)
# Ordinary sources have the first eight, each with a bit outside 41 (FIN|PSH|URG), so that no group
# of their packets passes for an attack. Attackers have the other eight; half of those are only a
# part of 41, so that HAVING BIT_OR(flags) = 41 cannot be told from a part of the group.
_FLAGS = np.array([16, 16, 24, 24, 2, 18, 17, 4, 41, 41, 41, 41, 1, 8, 32, 40], dtype=np.int16)
_TYPES: dict[str, type[np.generic]] = (  # all other columns are Int64
    dict.fromkeys(("srcPort", "destPort"), np.int32)
    | dict.fromkeys(("flags", "district", "category"), np.int16)
    | dict.fromkeys(("x", "y", "reserve", "price"), np.float64)
)
KINDS = {"packets": _packets, "calls": _calls, "auctions": _auctions, "bids": _bids}
