"""The input of the demonstration: packets of a generator, and three streams in files, one an epoch.

Each minute is one phase. From the second on half of the packets come from one address; in the fourth every
lookup has a name of its own; in the last two lookups become few and logins many.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

MINUTE, MINUTES = 60, 6
FEW = 4
"""The minute from which on lookups are few."""
EPOCHS = 36
SECONDS = MINUTE * MINUTES // EPOCHS
"""Seconds of traffic that an epoch takes in."""
DISORDER_SECONDS = 3
ADDRESSES = 4_000
VALUES = {"lookups": "length", "logins": "tries", "alerts": "level"}
STREAMS = tuple(VALUES)
PACKETS_PER_ROW = 5
"""For so many packets there is a row of the stream of the three that is the fast one."""
SLOWER = 20
"""How many times as many rows that has as the others."""
FLOOD = 3
"""How many times as many lookups there are when each has a name of its own."""
HOSTS, NAMES = 60, 200


def packets(rows_per_second: int, seed: int) -> dict[str, Any]:
    """The options of the packets' generator."""
    return {
        "generator": "packets", "skew": "surge", "surge_from": MINUTE, "keys": ADDRESSES, "seed": seed,
        "disorder": DISORDER_SECONDS, "rows_per_second": rows_per_second,
    }  # fmt: skip


def rows_of(stream: str, epoch: int, packets: int) -> int:
    """How many rows a stream has in an epoch, beside so many packets over all."""
    fast, minute = max(SLOWER, packets // EPOCHS // PACKETS_PER_ROW), epoch * SECONDS // MINUTE
    if stream != ("logins" if minute >= FEW else "lookups"):
        return fast // SLOWER
    return FLOOD * fast if minute == FEW - 1 else fast


def rows_in_files(packets: int) -> int:
    """The rows of all files, beside so many packets."""
    return sum(rows_of(name, epoch, packets) for name in STREAMS for epoch in range(EPOCHS))


def write_files(folder: Path, packets: int, seed: int) -> None:
    """Writes a file of each stream for each epoch, beside so many packets."""
    draw = np.random.default_rng(seed)
    for name in STREAMS:
        (folder / name).mkdir(parents=True)
        for epoch in range(EPOCHS):
            count = rows_of(name, epoch, packets)
            times = draw.integers(epoch * SECONDS, (epoch + 1) * SECONDS, count)
            frame = pl.DataFrame(
                {
                    "time": np.sort(times),
                    "host": draw.integers(0, HOSTS, count),
                    VALUES[name]: draw.integers(0, 100, count),
                }
            )
            if name == "lookups":
                frame = frame.with_columns(_names(epoch, count, draw))
            frame.write_parquet(folder / name / f"{epoch:04d}.parquet")


def _names(epoch: int, count: int, draw: np.random.Generator) -> pl.Series:
    """The names that are looked up in an epoch: some of a few, or new ones."""
    new = epoch * SECONDS // MINUTE == FEW - 1
    numbers = np.arange(count) + epoch * count if new else draw.integers(0, NAMES, count)
    ending = ".a-name-that-nobody-has-looked-up-before.example" if new else ".example"
    return (pl.Series("name", numbers).cast(pl.String) + ending).alias("name")
