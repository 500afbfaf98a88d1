"""What the programs read: clicks and impressions of advertisements, and devices that signal."""

from __future__ import annotations

import datetime as dt
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
