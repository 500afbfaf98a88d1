"""People, auctions and bids as the Nexmark benchmark has them: for its queries, in tests and to try them out.

Of 50 events one is a person, three are auctions and 46 are bids, ten milliseconds apart. The same number of
events and the same seed give the same rows everywhere.

>>> rows = nexmark(100)
>>> {name: frame.height for name, frame in rows.items()}
{'person': 2, 'auction': 6, 'bid': 92}
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import polars as pl

ROUND = 50
"""Events after which their kinds repeat: one person, three auctions, and bids."""
_PEOPLE, _AUCTIONS = 1, 3
_START = dt.datetime(2026, 1, 1)
_STEP = 10_000
"""Microseconds between two events."""
_SIDE_INPUT = 10_000
"""Rows of the table beside the streams."""
_CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
)
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple", "channel-1", "channel-2", "channel-3")


def nexmark(events: int, seed: int = 1) -> dict[str, pl.DataFrame]:
    """The rows of so many events by kind, each in the order of their times."""
    number = np.arange(events)
    place, turn = number % ROUND, number // ROUND
    time = pl.Series("date_time", number * _STEP).cast(pl.Duration("us")) + _START
    people = np.flatnonzero(place < _PEOPLE)
    auctions = np.flatnonzero((place >= _PEOPLE) & (place < _PEOPLE + _AUCTIONS))
    bids = np.flatnonzero(place >= _PEOPLE + _AUCTIONS)
    draw = np.random.Generator(np.random.PCG64(seed))
    known_people = np.maximum(turn, 1)
    known_auctions = np.maximum(turn * _AUCTIONS, 1)

    def chosen(values: tuple[str, ...], rows: np.ndarray) -> pl.Series:
        return pl.Series(values)[draw.integers(0, len(values), len(rows))]

    def known(counts: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Ids of what has come before: mostly of the last hundred, half of these of the newest."""
        most = counts[rows]
        behind = np.minimum(
            draw.integers(0, 100, len(rows)) * draw.integers(0, 2, len(rows)), most - 1
        )
        newest: np.ndarray = 1000 + most - 1 - behind
        return newest

    person = pl.DataFrame(
        {
            "id": 1000 + turn[people],
            "name": "name-" + pl.Series(draw.integers(0, 50, len(people))).cast(pl.String),
            "city": chosen(_CITIES, people),
            "state": chosen(_STATES, people),
            "date_time": time[people],
        }
    )
    auction = pl.DataFrame(
        {
            "id": 1000 + turn[auctions] * _AUCTIONS + place[auctions] - _PEOPLE,
            "item_name": "item-" + pl.Series(draw.integers(0, 500, len(auctions))).cast(pl.String),
            "initial_bid": draw.integers(1, 1000, len(auctions)),
            "reserve": draw.integers(1000, 5000, len(auctions)),
            "seller": known(known_people, auctions),
            "category": draw.integers(10, 15, len(auctions)),
            "date_time": time[auctions],
        }
    )
    channel = chosen(_CHANNELS, bids)
    page = pl.Series(draw.integers(0, 1000, len(bids))).cast(pl.String)
    bid = pl.DataFrame(
        {
            "auction": known(known_auctions, bids),
            "bidder": known(known_people, bids),
            "price": draw.integers(1, 10_000_000, len(bids)),
            "channel": channel,
            "url": "https://www.nexmark.com/"
            + channel.str.to_lowercase()
            + "/item.htm?query=1&channel_id="
            + page,
            "extra": chosen(("abc", "cccc", "", "xyzc", "cat and cow"), bids),
            "date_time": time[bids],
        }
    )
    return {"person": person, "auction": auction, "bid": bid}


def side_input() -> pl.DataFrame:
    """The table that bids are joined with in q13."""
    key = pl.Series("key", np.arange(_SIDE_INPUT))
    return pl.DataFrame({"key": key, "value": "side-" + key.cast(pl.String)})


def write_nexmark(folder: str | Path, events: int, seed: int = 1, parts: int = 4) -> None:
    """The rows as Parquet files, a folder for each kind, in so many files that follow each other.

    The folder `side_input` has the table of q13.
    """
    (Path(folder) / "side_input").mkdir(parents=True, exist_ok=True)
    side_input().write_parquet(Path(folder) / "side_input" / "000.parquet")
    for name, frame in nexmark(events, seed).items():
        place = Path(folder) / name
        place.mkdir(parents=True, exist_ok=True)
        for part in range(parts):
            begin, end = frame.height * part // parts, frame.height * (part + 1) // parts
            frame[begin:end].write_parquet(place / f"{part:03}.parquet")


if __name__ == "__main__":
    import sys

    write_nexmark(sys.argv[1], int(sys.argv[2]))
