"""Whatever the senders do, the transparent merger gives one result, to the last bit; the other does not.

A stream has many equal times, out of order within its lateness. An interleaving of it cuts the rows into
epochs, the epochs into pieces and gives these to some number of senders, at random. One is run at one
site, four others at six, with one of the queries in turn. All seeds are fixed; a failure names them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest

from anabranch import Query, Session, avg, col, count, count_window, first, last, sum_, tumble, var
from anabranch.engine import transport
from anabranch.language.node import Stream
from anabranch.language.order import Ordered
from anabranch.sources.base import EpochLimits, Offer, ReadContext, Reader
from anabranch.testing.oracle import Oracle, assert_same_rows
from anabranch.testing.sources import EpochReader, EpochSource, FramePiece
from helpers import in_soak

STREAMS, INTERLEAVINGS, BATCHES = 50, 4, 10
"""Two hundred interleavings at six sites; so many streams to a test."""
LATENESS = 6
SITES = (1, 6)
QUERIES = ("windows", "past", "later", "flows")
IN_ORDER = QUERIES[:3]
"""Queries that depend on the order of rows."""
FLOATS = (sum_("f").alias("sum"), avg("f").alias("avg"), var("f").alias("var"),
          first("f").alias("first"), last("f").alias("last"))  # fmt: skip


class CutSource(EpochSource):
    """An `EpochSource` whose frames come in pieces of any size."""

    def __init__(self, frames: Sequence[pl.DataFrame], seed: int) -> None:
        super().__init__(frames)
        self.seed = seed

    def open(self, context: ReadContext) -> Reader:
        return CutReader(self.frames, int(context.offset or 0), self.seed)


class CutReader(EpochReader):
    def __init__(self, frames: Sequence[pl.DataFrame], taken: int, seed: int) -> None:
        super().__init__(frames, taken)
        self.random = np.random.default_rng(seed)

    def poll(self, limits: EpochLimits, ordinal: int) -> Offer | None:
        offer = super().poll(limits, ordinal)
        if offer is None:
            return None
        rows = self.frames[self.taken]
        pieces = tuple(
            FramePiece(part, ordinal + number, f"piece {number}")
            for number, part in enumerate(cut(rows, self.random, most=6))
        )
        return Offer(pieces, offer.offset, ordinal + len(pieces), offer.backlog)


def cut(rows: pl.DataFrame, random: np.random.Generator, most: int) -> list[pl.DataFrame]:
    """The rows in up to so many parts; some may be empty."""
    edges = sorted(random.integers(0, rows.height + 1, random.integers(0, most)).tolist())
    return [rows[start:end] for start, end in pairwise([0, *edges, rows.height])]


def make_rows(seed: int, rows: int = 48) -> pl.DataFrame:
    """A dozen times or so, of several rows each; floats whose sums depend on the order."""
    random = np.random.default_rng(seed)
    times = np.arange(rows) // random.integers(3, 7)
    times -= random.integers(0, LATENESS + 1, rows)
    size = 10.0 ** random.integers(-3, 4, rows)
    return pl.DataFrame(
        {
            "time": times,
            "k": random.integers(0, random.integers(2, 9), rows),
            "f": pl.Series(random.random(rows) * size).set(
                pl.Series(random.random(rows) < 0.1), None
            ),
            "v": random.integers(0, 1000, rows),
        }
    )


def ask(stream: Query) -> dict[str, Query]:
    """Order-sensitive queries, on both levels, and first and last of plain windows."""
    flows = stream.group_by((col("time") // 3).alias("tb"), "k").agg(
        first("f").alias("first"), last("v").alias("last"), count().alias("n")
    )
    return {
        "windows": stream.group_by(count_window(4, 3), "k").agg(*FLOATS),
        "past": stream.history("k", rows=5).agg(*FLOATS),
        "flows": flows,
        # Of rows in an order of their own, which the merger below must not disturb
        "later": stream.history("k", rows=2)
        .agg(sum_("f").alias("g"))
        .history((col("v") % 3).alias("w"), rows=4)
        .agg(sum_("g").alias("total"), last("g").alias("latest")),
    }


def run(
    rows: pl.DataFrame, sites: int, seed: int, names: Sequence[str], merge: str = "transparent"
) -> dict[str, pl.DataFrame]:
    """What these queries give for one interleaving of the rows."""
    random = np.random.default_rng([seed, sites])
    values: dict[str, Any] = {
        "fsync": False, "merge": merge, "partitions_per_site": 3,
        "split_tasks": int(random.integers(1, 5)), "compaction_fan": 2, "compaction_floor_rows": 1,
    }  # fmt: skip
    session = Session.in_process(sites, values)
    source = CutSource(cut(rows, random, most=3), seed)
    asked = ask(session.stream("rows", source, ordered="time", lateness=LATENESS))
    for name in names:
        session.query(name, asked[name])
    started = session.start(sinks=dict.fromkeys(names, "memory"), at_end="close")
    assert started.await_termination(60)
    assert started.last_progress
    assert started.last_progress["sources"][0]["customMetrics"]["lateRowsTotal"] == 0
    return {name: started.results(name) for name in names}


def to_the_bit(rows: pl.DataFrame) -> list[tuple[object, ...]]:
    """The rows in a fixed order, floats as the bytes they are."""
    plain = (
        tuple(struct.pack("<d", value) if isinstance(value, float) else value for value in row)
        for row in rows.rows()
    )
    return sorted(plain, key=repr)


def expected(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """What DuckDB gives for the rows as they are, uncut."""
    stream = Query(Stream("rows", rows.schema, Ordered("time", timestamps=False)))
    oracle = Oracle({name: ask(stream)[name]}, {"rows": [rows]}, {"rows": LATENESS})
    return oracle.expected(name)


@pytest.fixture(autouse=True)
def parcels_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Spark has it: nobody knows which sender is heard first."""
    whole, random = transport.run_site, np.random.default_rng(0)

    def shuffled(orders: Any, level: int, site: int, parcels: Sequence[bytes]) -> Any:
        order = random.permutation(len(parcels))
        return whole(orders, level, site, [parcels[at] for at in order])

    monkeypatch.setattr(transport, "run_site", shuffled)


@pytest.mark.parametrize("batch", [0, 1, *in_soak(range(2, BATCHES))])
def test_transparent_gives_the_same_for_every_interleaving(batch: int) -> None:
    for stream in range(batch, STREAMS, BATCHES):
        rows, name = make_rows(stream), QUERIES[(stream // BATCHES + batch) % len(QUERIES)]
        one = run(rows, 1, stream, [name])[name]
        # Results of another query have no arrival: DuckDB does not know how equal times are told apart
        if name != "later":
            assert_same_rows(one, expected(rows, name), where=f"stream {stream}, {name}")
        for number in range(INTERLEAVINGS):
            six = run(rows, 6, INTERLEAVINGS * stream + number, [name])[name]
            assert to_the_bit(six) == to_the_bit(one), f"stream {stream}, {number}, {name}"


def test_best_effort_does_not() -> None:
    """But rows are neither lost nor doubled, and first and last of plain windows stay exact."""
    apart: dict[str, int] = dict.fromkeys(IN_ORDER, 0)
    wrong: dict[str, int] = dict.fromkeys(IN_ORDER, 0)
    for seed in range(4):
        rows = make_rows(seed)
        one, six = (run(rows, sites, seed, QUERIES, "best-effort") for sites in SITES)
        wanted = {n: to_the_bit(found) for n, found in run(rows, 1, seed, QUERIES).items()}
        for name in IN_ORDER:
            found = [to_the_bit(results[name]) for results in (one, six)]
            apart[name] += found[0] != found[1]
            wrong[name] += found[1] != wanted[name]
            assert len(found[0]) == len(found[1]) == len(wanted[name])
        for results in (one, six):
            assert to_the_bit(results["flows"]) == wanted["flows"]
            assert to_the_bit(results["past"].select(rows.columns)) == to_the_bit(rows)
    assert min(apart.values()) > 0, apart
    assert min(wrong.values()) > 0, wrong


def test_long_histories_sum_up_the_same() -> None:
    """Longer than the blocks in which sums of floats are made."""
    rows = make_rows(7, 1500).with_columns(k=pl.col("k") % 2)
    found = []
    for sites in SITES:
        session = Session.in_process(sites, {"fsync": False, "split_tasks": sites})
        source = CutSource(cut(rows, np.random.default_rng(sites), most=6), sites)
        stream = session.stream("rows", source, ordered="time", lateness=LATENESS)
        session.query("past", stream.history("k", rows=400).agg(*FLOATS))
        session.query("hours", stream.group_by(tumble(40), "k").agg(first("f").alias("first")))
        started = session.start(sinks={"past": "memory", "hours": "memory"}, at_end="close")
        assert started.await_termination(60)
        found.append([to_the_bit(started.results(name)) for name in ("past", "hours")])
    assert found[0] == found[1]
