"""Random input with random queries: what a property test or a chaos run is made of.

A `Chooser` makes every decision, so that a seed (`SeededChooser`) or a property-testing library gives a
case and gives it again. The rows have keys of many types with NULLs, values whose float sums are exact,
and times in and out of order. The queries are in `queries.py`, how a case is run is in `trial.py`.

>>> draw_case(SeededChooser(7)).describe() == draw_case(SeededChooser(7)).describe()
True
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from anabranch.language.builder import Query
from anabranch.language.node import Stream
from anabranch.language.order import Ordered
from anabranch.settings import CLOSED_WINDOWS, EVERYTHING
from anabranch.testing.among import draw_among, draw_best, draw_line
from anabranch.testing.chooser import Chooser, Clock, SeededChooser
from anabranch.testing.lookups import NAME as LOOKUP
from anabranch.testing.lookups import draw_lookup
from anabranch.testing.queries import QueryMaker
from anabranch.testing.widening import draw_widened

SCHEMA: dict[str, pl.DataType] = {
    "time": pl.Int64(), "i": pl.Int64(), "t": pl.String(), "b": pl.Boolean(), "d": pl.Date(),
    "r": pl.Float64(), "n": pl.Int8(), "x": pl.Binary(), "c": pl.Decimal(12, 2),
    "m": pl.Datetime("ms"), "v": pl.Int64(), "f": pl.Float64(), "u": pl.UInt16(), "big": pl.Int64(),
}  # fmt: skip
KEYS = ("i", "t", "b", "d", "r", "n", "x", "c", "m")
WIDE = ("big", "r")

VALUES: dict[str, list[Any]] = {
    "i": [None, 0, 1, -1, 2, 7, -3],
    "t": [None, "", "a", "b", "A", "abc", "it's", "ü", "a string that does not fit in a view"],
    "b": [None, True, False],
    "d": [None, dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    "r": [None, 0.0, -0.0, float("nan"), 1.5, -2.25],
    "n": [None, 0, 1, -128, 127],
    "x": [None, b"", b"\0", b"a", b"\xff\0bytes beyond the view"],
    "c": [None, Decimal("0.00"), Decimal("1.25"), Decimal("-3.50")],
    "m": [None, dt.datetime(1970, 1, 1), dt.datetime(2030, 1, 1, 12, 30, 1, 5000)],
    "v": [None, *range(-20, 21)],
    "f": [None, *(quarter / 4 for quarter in range(-40, 41))],
    "u": [None, 0, 1, 2, 4, 16, 41, 65535],
    "big": [None, 2**40, -(2**40), 2**40 + 1, -(2**31) - 1, 2**31, 255],
}

NUMBERS = Clock(pl.Int64())
CLOCKS = (
    *[NUMBERS] * 5,
    Clock(pl.Int32()),
    Clock(pl.Datetime("us"), "microseconds"),
    Clock(pl.Datetime("ms"), "milliseconds", 1000),
    Clock(pl.Datetime("us", "Europe/Berlin"), "microseconds"),
)


@dataclass(frozen=True)
class Shape:
    """How the rows of a stream are spread over time, keys and epochs."""

    rows: int
    epochs: int
    step: float
    """Time between neighbouring rows."""
    disorder: int
    """How far a row may lie behind its place."""
    nulls: bool
    keys: int
    """How many of the possible values each key column has."""
    begin: int
    seed: int


def draw_shape(chooser: Chooser, epochs: int) -> Shape:
    """A shape with few rows or some more."""
    return Shape(
        rows=chooser.integer(0, 24) * chooser.choice([1, 1, 3, 6]),
        epochs=epochs,
        step=chooser.choice([1.0, 0.2, 3.0]),
        disorder=chooser.choice([0, 2, 9, 40]),
        nulls=chooser.flag(),
        keys=chooser.choice([2, 3, 9]),
        begin=chooser.choice([0, 1000, -30, -1_000_007]),
        seed=chooser.integer(0, 2**31),
    )


def make_frames(shape: Shape, clock: Clock) -> list[pl.DataFrame]:
    """The rows of one stream, cut into epochs at random; some epochs are empty."""
    rng = np.random.default_rng(shape.seed)
    times = shape.begin + np.floor(np.arange(shape.rows) * shape.step).astype(np.int64)
    times -= rng.integers(0, shape.disorder + 1, shape.rows)
    if shape.rows > 8 and rng.random() < 0.2:
        times[shape.rows // 2 :] += 5_000
    columns = {"time": pl.Series(times, dtype=pl.Int64)}
    for name, options in VALUES.items():
        known = options[0 if shape.nulls else 1 :]
        if name in KEYS:
            known = [known[at] for at in rng.permutation(len(known))[: shape.keys].tolist()]
        picked = rng.integers(0, len(known), shape.rows).tolist()
        columns[name] = pl.Series([known[at] for at in picked], dtype=SCHEMA[name])
    frame = pl.DataFrame(columns).with_columns(pl.col("time").cast(clock.kind))
    cuts = sorted(rng.integers(0, shape.rows + 1, shape.epochs - 1).tolist())
    return [frame[start:end] for start, end in pairwise([0, *cuts, shape.rows])]


@dataclass(frozen=True)
class Case:
    """Input and a query set."""

    frames: Mapping[str, Sequence[pl.DataFrame]]
    lateness: Mapping[str, int]
    queries: Mapping[str, Query]
    clock: Clock = NUMBERS
    lanes: Mapping[str, int] = field(default_factory=dict)
    """How many lanes a stream has, if it has any."""
    late: frozenset[str] = frozenset()
    """The streams whose late rows are left out of closed windows only."""
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """What streams are joined with that is no stream."""

    @property
    def epochs(self) -> int:
        return max(len(frames) for frames in self.frames.values())

    def late_rule(self, stream: str) -> str:
        """What late rows of a stream are left out of."""
        return CLOSED_WINDOWS if stream in self.late else EVERYTHING

    def suited(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Settings without a combination that is refused."""
        sent_before = self.late and settings.get("strategy") == "operator"
        return {**settings, **({"strategy": "query"} if sent_before else {})}

    def with_frames(self, stream: str, frames: Sequence[pl.DataFrame]) -> Case:
        """The same queries with other input of one stream."""
        return replace(self, frames={**self.frames, stream: frames})

    def describe(self) -> str:
        """The case in text; the rows too, if they are few."""
        lines = [f"{name}: {query.node.described()}" for name, query in self.queries.items()]
        for name, frames in self.frames.items():
            heights = [frame.height for frame in frames]
            told = f"lateness {self.lateness[name]}, {self.lanes.get(name, 0)} lanes"
            told += ", late rows out of closed windows" if name in self.late else ""
            lines.append(f"stream {name}: rows per epoch {heights}, {told}")
            if sum(heights) <= 30:
                lines += [f"  epoch {at}: {row}" for at, f in enumerate(frames) for row in f.rows()]
        return "\n".join(lines)


AMONG = 2
"""One in so many cases has a query for rows among others beside its own."""
LOOKED_UP = 4
"""One in so many cases has a query that joins a stream with a table."""
WIDENED = 5
"""One in so many cases has a query over rows in windows, elements of lists, or rows as of a time."""
LATE = 3
"""One in so many streams leaves late rows out of closed windows only."""


def draw_case(chooser: Chooser) -> Case:
    """A random query set over one or two random streams."""
    clock = chooser.choice(CLOCKS)
    epochs = chooser.integer(1, 7)
    names = ["one", "two"] if chooser.flag(0.35) else ["one"]
    shapes = {name: draw_shape(chooser, epochs) for name in names}
    frames = {name: make_frames(shape, clock) for name, shape in shapes.items()}
    lanes = {name: (0, 0, 0, 2, 3)[shape.seed % 5] for name, shape in shapes.items()}
    if len(names) > 1 and chooser.flag(0.3):
        # One stream may end before the other
        frames["two"] = frames["two"][: chooser.integer(1, epochs)]
    lateness = {name: chooser.choice([0, 1, 5, 20]) for name in names}
    late = frozenset(name for name, shape in shapes.items() if shape.seed % LATE == 1)
    inputs = streams(names, clock, late)
    queries = QueryMaker(chooser, KEYS, set(WIDE), clock).query_set(inputs)
    seed = shapes[names[0]].seed
    if seed % AMONG == 1:
        # By a chooser of its own, so that every other decision stays what it was
        own = SeededChooser(seed)
        queries |= {"among": draw_among(own, inputs[0], KEYS, clock)}
    tables: dict[str, pl.DataFrame] = {}
    if seed % LOOKED_UP == 2:
        rows, looked_up = draw_lookup(SeededChooser(seed), inputs[0], VALUES, KEYS, clock)
        tables, queries = {LOOKUP: rows}, {**queries, "looked_up": looked_up}
    if seed % WIDENED == 3:
        queries |= {"widened": draw_widened(SeededChooser(seed), inputs, KEYS, clock)}
    return Case(frames, lateness, queries, clock, lanes, late, tables)


def draw_lined_case(chooser: Chooser) -> Case:
    """Rows among others alone, of keys that come again and again: what is kept of them is merged."""
    clock = chooser.choice(CLOCKS)
    shape = replace(draw_shape(chooser, 7), rows=chooser.integer(80, 140), step=1.0, keys=2)
    inputs = streams(["one"], clock)
    queries = {f"line{n}": draw_line(chooser, inputs[0], KEYS) for n in range(3)}
    queries["best"] = draw_best(chooser, inputs[0], KEYS, clock)
    return Case({"one": make_frames(shape, clock)}, {"one": 5}, queries, clock)


def streams(names: Sequence[str], clock: Clock, late: Container[str] = ()) -> list[Query]:
    """Streams with the columns of `SCHEMA`, as queries to build on."""
    schema = pl.Schema({**SCHEMA, "time": clock.kind})
    time = Ordered("time", bool(clock.unit))
    return [Query(Stream(name, schema, time, late_rows=name in late)) for name in names]


__all__ = [
    "Case", "SeededChooser", "Shape", "draw_case", "draw_lined_case", "draw_shape", "make_frames", "streams",
]  # fmt: skip
