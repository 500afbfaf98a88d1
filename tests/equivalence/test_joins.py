"""Random joins, run the hard way, must give what DuckDB gives, epoch by epoch.

As in `test_aggregates.py`: every example is a case (`anabranch.testing.joins`) and a trial with other
partition maps each epoch, stops, crashes and restarts on other numbers of sites, on the in-process twin.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_aggregates import Drawn, run

from anabranch import call, col, count, sum_
from anabranch.language.builder import Query
from anabranch.language.expression import Expression
from anabranch.language.join import JOINS
from anabranch.language.node import Stream
from anabranch.language.order import Ordered
from anabranch.operators import base, meeting
from anabranch.state import stretch
from anabranch.testing.cases import (
    CLOCKS,
    KEYS,
    NUMBERS,
    SCHEMA,
    VALUES,
    WIDE,
    Case,
    Shape,
    make_frames,
    streams,
)
from anabranch.testing.chooser import Clock
from anabranch.testing.joins import SHAPES, JoinMaker, draw_join_case
from anabranch.testing.queries import QueryMaker
from anabranch.testing.trial import Leg, Outcome, Trial, check, draw_trial
from helpers import examples, in_soak

SITES = (1, 2, 4, 7)


@st.composite
def cases(
    draw: Any, kinds: tuple[str, ...] = JOINS, shapes: tuple[str, ...] = SHAPES
) -> tuple[Case, Trial]:
    """One or two streams, joins of these kinds and shapes over them."""
    chooser = Drawn(draw)
    case = draw_join_case(chooser, kinds, shapes)
    return case, draw_trial(chooser, case.epochs, SITES)


@st.composite
def few_rows(draw: Any) -> tuple[Case, Trial]:
    """Up to a dozen rows of either stream, each drawn by itself, so that a failure shrinks well."""
    chooser = Drawn(draw)
    names = ("i", "t", "b", "r", "v", "f", "u")
    row = st.fixed_dictionaries(
        {"time": st.integers(-3, 12), **{name: st.sampled_from(VALUES[name][:4]) for name in names}}
    )
    epochs = st.lists(st.lists(row, max_size=4), min_size=1, max_size=4)
    frames = {
        name: [pl.DataFrame(rows, schema=SCHEMA) for rows in draw(epochs)]
        for name in (["one", "two"] if chooser.flag(0.7) else ["one"])
    }
    maker = JoinMaker(chooser, NUMBERS, QueryMaker(chooser, KEYS, set(WIDE), NUMBERS))
    queries = maker.query_set(streams(list(frames), NUMBERS))
    case = Case(frames, {name: chooser.choice([20, 0, 2]) for name in frames}, queries)
    return case, draw_trial(chooser, case.epochs, SITES)


@given(cases())
@examples(70)
def test_random_joins(drawn: tuple[Case, Trial]) -> None:
    run(*drawn)


@given(few_rows())
@examples(110)
def test_few_rows(drawn: tuple[Case, Trial]) -> None:
    run(*drawn)


@pytest.mark.parametrize("kind", JOINS)
def test_one_kind(kind: str) -> None:
    @given(cases((kind,), ("rows",)))
    @examples(32)
    def examine(drawn: tuple[Case, Trial]) -> None:
        run(*drawn)

    examine()


@pytest.mark.parametrize(
    "shape",
    ["windows", "history", "chain", "three", "tower", "above", "theta", "last rows"],
)
def test_one_shape(shape: str) -> None:
    @given(cases(shapes=(shape,)))
    @examples(30 if shape in ("theta", "last rows") else 16)
    def examine(drawn: tuple[Case, Trial]) -> None:
        run(*drawn)

    examine()


# -- known cases ------------------------------------------------------------------------------------

BUSY = {"compaction_fan": 2, "compaction_floor_rows": 1, "partitions_per_site": 4}


def busy(rows: int = 90, epochs: int = 8, lateness: int = 9) -> tuple[list[Query], dict[str, Any]]:
    """Two streams with many equal keys and times, and input for them."""
    frames = {
        name: make_frames(Shape(rows, epochs, 0.5, 12, True, keys=9, begin=-9, seed=seed), NUMBERS)
        for seed, name in enumerate(("one", "two"), start=5)
    }
    inputs = [q.select("time", "i", "t", "v", "r") for q in streams(list(frames), NUMBERS)]
    return inputs, {"frames": frames, "lateness": dict.fromkeys(frames, lateness)}


MOMENT = dt.datetime(2026, 1, 31, 12)


def near(right: str = "right") -> Expression:
    return col(f"time_{right}").between(col("time") - 4, col("time") + 12)


def of_every_kind(one: Query, two: Query, where: Expression) -> dict[str, Query]:
    queries = {kind: one.join(two, on="i", how=kind, where=where) for kind in JOINS}
    twice = one.join(two, on="i", where=near())
    third = call("abs", col("time_c") - col("time_right")) <= 3
    return {**queries, "three": twice.join(one, on="i", where=third, suffix="c")}


@pytest.mark.parametrize("sites", [2, *in_soak([7])])
def test_every_kind(sites: int) -> None:
    """And: compaction, moves and late rows do happen, rows meet and miss each other."""
    (one, two), data = busy(epochs=16, lateness=4)
    extra = near() & (col("v") <= col("v_right"))
    case = Case(queries=of_every_kind(one, two, extra), **data)
    outcome = check(case, Trial((Leg(sites),), BUSY, moves=sites))
    assert max(outcome.tiers()) >= 1, "no segments were merged"
    assert sum(stream.late for stream in outcome.manifests[-1].streams.values()) > 0
    assert outcome.moved > 20
    rows = {name: sink.rows() for name, sink in outcome.sinks.items()}
    assert all(frame.height > 10 for frame in rows.values())
    assert rows["left"]["time_right"].null_count() > 5
    assert rows["full"]["time"].null_count() > 5


@pytest.mark.parametrize("step", ["before-commit", "after-commit", "stop"])
def test_restarts_on_another_number_of_sites(step: str) -> None:
    (one, two), data = busy(60, 6)
    case = Case(queries=of_every_kind(one, two, near()), **data)
    legs = (Leg(2, step, 1), Leg(7, step, 3), Leg(1, step, 6), Leg(4))
    check(case, Trial(legs, BUSY, moves=2))


def test_keys_that_share_a_locator(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one bit of hash left, nearly all keys collide; the answers must not know."""
    whole = base.locator
    monkeypatch.setattr(base, "locator", lambda at, hashes: whole(at, hashes & np.uint64(1)))
    (one, two), data = busy(50, 5)
    queries = of_every_kind(one, two, near() & (col("v") != col("v_right")))
    queries["keys"] = one.join(two, on=["r", "t"], how="full", where=near())
    check(Case(queries=queries, **data), Trial((Leg(2),), BUSY, moves=3))


@pytest.mark.parametrize(
    ("clock", "collide"),
    [
        pytest.param(CLOCKS[at], collide, marks=[pytest.mark.soak] * soak, id=f"{at} {collide}")
        for at, collide, soak in ((0, True, 0), (-1, False, 1), (0, False, 1), (-1, True, 1))
    ],
)
def test_many_rows_of_a_key_within_narrow_bounds(
    clock: Clock, collide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of two keys, many of each kept for late ones; few of them are near in time."""
    if collide:
        whole = base.locator
        monkeypatch.setattr(base, "locator", lambda at, hashes: whole(at, hashes & np.uint64(1)))
    monkeypatch.setattr(stretch, "BLOCK", 7)
    monkeypatch.setattr(meeting, "ROWS", 5)
    frames = {
        name: make_frames(Shape(400, 6, 0.5, 60, False, keys=2, begin=-9, seed=seed), clock)
        for seed, name in enumerate(("one", "two"), start=5)
    }
    one, two = (q.select("time", "i", "v") for q in streams(list(frames), clock))

    def later(name: str, other: str, low: int, high: int) -> Expression:
        spans = [dt.timedelta(microseconds=n) if clock.unit else n for n in (low, high)]
        return col(name).between(col(other) + spans[0], col(other) + spans[1])

    conditions = {
        "both": later("time_right", "time", -2, 2), "after": later("time_right", "time", 3, 5)
    }  # fmt: skip
    queries = {}
    for name, near in conditions.items():
        for kind in JOINS:
            queries[f"{name}_{kind}"] = one.join(two, on="i", how=kind, where=near)
            extra = near & (col("v") < col("v_right"))
            queries[f"{name}_{kind}_less"] = one.join(two, on="i", how=kind, where=extra)
    third = later("time_c", "time_right", -1, 1)
    three = one.join(two, on="i", where=conditions["after"])
    queries["three"] = three.join(one, on="i", where=third, suffix="c")
    case = Case(frames, {"one": 40, "two": 40}, queries, clock)
    check(case, Trial((Leg(2, "stop", 3), Leg(4)), BUSY, moves=3))


def test_few_combinations_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "CHUNK", 3)
    (one, two), data = busy(50, 5)
    check(Case(queries=of_every_kind(one, two, near()), **data), Trial((Leg(2),), BUSY))


@pytest.mark.parametrize(
    ("left", "right", "values"),
    [
        (pl.Datetime("ms"), pl.Datetime("us"), [None, MOMENT, MOMENT.replace(microsecond=5000)]),
        (pl.Datetime("ns"), pl.Datetime("ms"), [None, MOMENT, MOMENT.replace(microsecond=5000)]),
        (pl.Datetime("us", "Europe/Berlin"), pl.Datetime("us", "UTC"), [None, MOMENT]),
        (pl.Decimal(12, 2), pl.Decimal(12, 4), [None, Decimal("1.25"), Decimal("-3")]),
        (pl.Null(), pl.Int64(), [None]),
        (pl.Time(), pl.Time(), [None, dt.time(1), dt.time(2, 3, 4, 5)]),
        (pl.UInt64(), pl.Int64(), [None, 7, 2**62]),
        (pl.Float32(), pl.Int8(), [None, 0, -1, 127]),
    ],
    ids=str,
)
def test_keys_of_types_that_differ(left: Any, right: Any, values: list[Any]) -> None:
    schemas = [pl.Schema({"time": pl.Int64(), "k": kind}) for kind in (left, right)]
    one, two = (
        Query(Stream(name, schema, Ordered("time", False)))
        for name, schema in zip(("one", "two"), schemas, strict=True)
    )
    frames = {
        name: [
            pl.DataFrame({"time": range(at, at + 4), "k": (values * 8)[at : at + 4]}, schema)
            for at in (0, 4)
        ]
        for name, schema in zip(("one", "two"), schemas, strict=True)
    }
    queries = {kind: one.join(two, on="k", how=kind, where=near()) for kind in JOINS}
    outcome = check(Case(frames, {"one": 0, "two": 0}, queries), Trial((Leg(4),), moves=1))
    assert (outcome.sinks["inner"].rows().height > 0) == (len(values) > 1)


@pytest.mark.parametrize("where", ["open", "one side"])
def test_without_bounds(where: str) -> None:
    """Nothing is ever forgotten; who has met nothing is known when the streams end."""
    (one, two), data = busy(40, 5)
    condition = col("time_right") >= col("time") - 3 if where == "one side" else col("v") >= 0
    queries = {kind: one.join(two, on="i", how=kind, where=condition) for kind in JOINS}
    for close in (True, False):
        legs = (Leg(2, "stop", 2), Leg(4))
        check(Case(queries=queries, **data), Trial(legs, BUSY, moves=1, close=close))


def test_rows_that_are_alike() -> None:
    """Each of them is a row of its own, in what meets and in what does not."""
    (one, two), data = busy(40, 4)
    doubled = {name: [pl.concat([f, f, f[:3]]) for f in fs] for name, fs in data["frames"].items()}
    frames = {name: [*fs, *fs[-1:]] for name, fs in doubled.items()}
    slim = [side.select("time", "i") for side in (one, two)]
    queries = of_every_kind(slim[0], slim[1], near())
    check(Case(frames, {"one": 30, "two": 30}, queries), Trial((Leg(2),), BUSY, moves=5))


def test_heavy_flows_of_neighbouring_windows() -> None:
    """The join of the papers, and all other kinds of it."""
    (one, _), data = busy(150, 8)
    flows = one.group_by((col("time") // 5).alias("tb"), "i").agg(count().alias("n"))
    pairs = {kind: flows.join(flows, on=["i", ("tb", col("tb") + 1)], how=kind) for kind in JOINS}
    above = pairs["left"].group_by((col("tb") // 3).alias("tb3")).agg(sum_("n").alias("n"))
    queries = {"flows": flows, **pairs, "above": above}
    frames = {"one": data["frames"]["one"]}
    outcome = check(Case(frames, {"one": 9}, queries), Trial((Leg(4),), BUSY, moves=9))
    assert all(sink.rows().height > 3 for sink in outcome.sinks.values())


def kept(outcome: Outcome, table: str) -> list[int]:
    """How many rows the manifests of all epochs have of a table."""
    records = [manifest.subqueries.values() for manifest in outcome.manifests]
    return [sum(s.rows for r in rs for s in r.shelf if s.table == table) for rs in records]


@pytest.mark.parametrize("kind", JOINS)
def test_what_can_meet_nothing_any_more_is_forgotten(kind: str) -> None:
    """Rows in order, one of each stream at a time: only those of the last few moments are kept."""
    one, two = (q.select("time", "i") for q in streams(["one", "two"], NUMBERS))
    moments = [pl.DataFrame([{"time": t, "i": t % 2}], schema=SCHEMA) for t in range(45)]
    frames = {"one": moments, "two": moments}
    joined = one.join(two, on="i", how=kind, where=near())
    case = Case(frames, {"one": 0, "two": 0}, {"joined": joined})
    values = {"compaction_fan": 8, "partitions_per_site": 1}
    outcome = check(case, Trial((Leg(1),), values, close=False))
    for table in ("in0", "in1", "met0", "met1"):
        assert max(kept(outcome, table)) <= 26, table
