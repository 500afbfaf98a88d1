"""What the programs read: clicks and impressions of advertisements, and devices that signal."""

from __future__ import annotations

import datetime as dt
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

START = dt.datetime(2026, 3, 1, 22, 0, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Inputs:
    """The folders, and DataFrames over them."""

    spark: Any
    folder: Path

    @property
    def devices(self) -> Any:
        schema = "time timestamp, device string, kind string, signal double, count int"
        return self.spark.readStream.schema(schema).parquet(str(self.folder / "devices"))

    @property
    def readings(self) -> Any:
        schema = "time timestamp, device string, count int"
        return self.spark.readStream.schema(schema).parquet(str(self.folder / "readings"))

    @property
    def impressions(self) -> Any:
        schema = "impressionTime timestamp, impressionAdId long, site string"
        return self.spark.readStream.schema(schema).parquet(str(self.folder / "impressions"))

    @property
    def clicks(self) -> Any:
        schema = "clickTime timestamp, clickAdId long, cost int"
        return self.spark.readStream.schema(schema).parquet(str(self.folder / "clicks"))


def write_inputs(folder: Path, seed: int = 11) -> None:
    """Three files of each stream, rows somewhat out of order, NULLs among the values."""
    drawn = random.Random(seed)
    for name in ("devices", "impressions", "clicks"):
        (folder / name).mkdir(parents=True)
    for number in range(3):
        later = [
            START + dt.timedelta(seconds=120 * number + drawn.randrange(130)) for _ in range(150)
        ]
        pl.DataFrame(
            {
                "time": pl.Series(later, dtype=pl.Datetime("us", "UTC")),
                "device": [drawn.choice("abcde") for _ in later],
                "kind": [drawn.choice(["phone", "fridge", None]) for _ in later],
                "signal": [drawn.choice([None, drawn.randrange(400) / 8]) for _ in later],
                "count": pl.Series([drawn.randrange(-3, 9) for _ in later], dtype=pl.Int32),
            }
        ).write_parquet(folder / "devices" / f"{number}.parquet")
        pl.DataFrame(
            {
                "impressionTime": pl.Series(later, dtype=pl.Datetime("us", "UTC")),
                "impressionAdId": [drawn.randrange(40) for _ in later],
                "site": [drawn.choice(["news", "mail", None]) for _ in later],
            }
        ).write_parquet(folder / "impressions" / f"{number}.parquet")
        pl.DataFrame(
            {
                "clickTime": pl.Series(
                    [time + dt.timedelta(seconds=drawn.randrange(60)) for time in later[:70]],
                    dtype=pl.Datetime("us", "UTC"),
                ),
                "clickAdId": [drawn.randrange(40) for _ in range(70)],
                "cost": pl.Series([drawn.randrange(9) for _ in range(70)], dtype=pl.Int32),
            }
        ).write_parquet(folder / "clicks" / f"{number}.parquet")


LATE_FILES = (
    [(3, "a"), (41, "b"), (70, "a")],
    # The newest time is 70 and the delay 20: 12 is late, and the window that ends at 60 still open
    [(12, "a"), (55, "b"), (130, "b")],
    # At 110 the windows that end at 60 and at 100 have closed, that of 120 has not
    [(30, "a"), (65, "a"), (101, "b"), (200, "a")],
    [(59, "b"), (100, "c"), (185, "a"), (260, "c")],
    [(236, "b"), (340, "a")],
)
"""Seconds and devices of the files of `readings`: late rows of windows that are open, and that are not."""


def write_readings(folder: Path, number: int) -> None:
    """One of the files, newer than those before it."""
    rows = LATE_FILES[number]
    (folder / "readings").mkdir(exist_ok=True)
    written = folder / "readings" / f"{number}.parquet"
    hidden = written.with_name(f"_{number}")
    pl.DataFrame(
        {
            "time": pl.Series(
                [START + dt.timedelta(seconds=second) for second, _ in rows],
                dtype=pl.Datetime("us", "UTC"),
            ),
            "device": [device for _, device in rows],
            "count": pl.Series([2**place for place in range(len(rows))], dtype=pl.Int32),
        }
    ).write_parquet(hidden)
    os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
    hidden.rename(written)
