from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import SourceError
from anabranch.sources.generate import (
    BIDS_PER_AUCTION,
    BLOCK_ROWS,
    DRIFT_PARTS,
    DRIFT_SECONDS,
    KINDS,
    SKEWS,
    Generator,
)

I64, I32, I16, F64 = pl.Int64(), pl.Int32(), pl.Int16(), pl.Float64()
SCHEMAS: dict[str, Mapping[str, pl.DataType]] = {
    "packets": {"time": I64, "srcIP": I64, "destIP": I64, "srcPort": I32, "destPort": I32}
    | {"len": I64, "flags": I16},
    "calls": {"time": I64, "caller": I64, "callee": I64, "start": I64, "duration": I64}
    | {"district": I16, "x": F64, "y": F64},
    "auctions": {"time": I64, "auction": I64, "seller": I64, "category": I16}
    | {"reserve": F64, "expires": I64},
    "bids": {"time": I64, "auction": I64, "bidder": I64, "price": F64},
}
KEY = {"packets": "srcIP", "calls": "caller", "auctions": "seller", "bids": "auction"}
every_kind = pytest.mark.parametrize("kind", KINDS)


def shares(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Each value's share of the rows, the most frequent first."""
    count = frame.group_by(column).len().sort(["len", column], descending=[True, False])
    return count.select(column, share=pl.col("len") / frame.height)


def top(frame: pl.DataFrame, column: str, n: int) -> set[int]:
    return set(shares(frame, column)[column].head(n))


@settings(max_examples=60)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    skew=st.sampled_from(SKEWS),
    disorder=st.sampled_from([0, 7]),
    rows_per_second=st.integers(1, 3_000),
    start=st.one_of(st.integers(0, 3 * BLOCK_ROWS), st.integers(0, 2**38 - 10**6)),
    parts=st.lists(st.integers(0, BLOCK_ROWS + 100), min_size=2, max_size=4),
)
def test_any_cut_of_the_stream_gives_the_same_rows(
    kind: str, skew: str, disorder: int, rows_per_second: int, start: int, parts: list[int]
) -> None:
    generator = Generator(
        kind, skew=skew, disorder=disorder, rows_per_second=rows_per_second, keys=500
    )
    frames, at = [], start
    for part in parts:
        frames.append(generator.rows(at, part))
        at += part
    assert generator.rows(start, sum(parts)).equals(pl.concat(frames))


GOLDEN_FIRST: dict[str, list[tuple[Any, ...]]] = {
    "packets": [
        (0, 167855022, 3232235621, 43920, 110, 936, 16),
        (0, 167862696, 3232235647, 48355, 8080, 40, 17),
    ],
    "calls": [
        (0, 600016955, 600023753, -3, 3, 47, 63.7607421875, 37.873046875),
        (0, 600014628, 600071991, -5, 5, 19, 73.271484375, 12.9580078125),
    ],
    "auctions": [(0, 0, 66691, 1, 595.0, 517), (0, 1, 45888, 10, 99.25, 619)],
    "bids": [(0, 1005, 77358, 1343.25), (0, 2923, 28955, 887.75)],
}
GOLDEN_LATER: dict[str, list[tuple[Any, ...]]] = {
    "packets": [
        (47, 167791970, 3232235660, 46312, 53, 359, 24),
        (49, 167835761, 3232235660, 36551, 53, 290, 4),
    ],
    "calls": [
        (46, 600092717, 600045049, -147, 193, 17, 56.52734375, 13.611328125),
        (48, 600049004, 600066790, 45, 3, 9, 77.626953125, 3.435546875),
    ],
    "auctions": [(48, 480000001, 25402, 4, 8585.5, 278), (48, 490000000, 42354, 18, 491.0, 636)],
    "bids": [(46, 150000000, 16526, 5628.25), (48, 360000000, 70078, 22555.25)],
}


@every_kind
def test_the_rows_are_those_of_every_earlier_version(kind: str) -> None:
    assert Generator(kind).rows(0, 2).rows() == GOLDEN_FIRST[kind]
    later = Generator(kind, seed=7, rows_per_second=2, skew="drift", disorder=3)
    assert later.rows(97, 2).rows() == GOLDEN_LATER[kind]


@every_kind
def test_the_seed_changes_the_keys(kind: str) -> None:
    key = KEY[kind] if kind != "bids" else "bidder"
    one, other = (Generator(kind, seed=seed).rows(0, 1_000)[key] for seed in (1, 2))
    assert (one == other).mean() < 0.01  # type: ignore[operator]


@every_kind
def test_schema(kind: str) -> None:
    generator = Generator(kind)
    assert generator.schema() == pl.Schema(SCHEMAS[kind])
    assert generator.rows(5, 10).schema == generator.schema()
    assert generator.rows(5, 0).schema == generator.schema()
    assert list(generator.schema()) == list(SCHEMAS[kind])


@every_kind
def test_time_is_the_row_number_over_the_density(kind: str) -> None:
    rows = Generator(kind, rows_per_second=1_000).rows(500, 20_000)
    assert rows["time"].to_list() == [row // 1_000 for row in range(500, 20_500)]


@every_kind
def test_disorder_is_uniform_and_bounded(kind: str) -> None:
    generator = Generator(kind, rows_per_second=1_000, disorder=4)
    back = pl.Series([row // 1_000 for row in range(20_000)]) - generator.rows(0, 20_000)["time"]
    late = shares(back.slice(4_000).to_frame("back"), "back")
    assert sorted(late["back"]) == [0, 1, 2, 3, 4]
    assert late["share"].is_between(0.18, 0.22).all()
    assert generator.rows(0, 4_000)["time"].is_between(0, 3).all()


def test_disorder_leaves_the_other_columns_alone() -> None:
    ordered = Generator("packets", skew="zipf")
    shuffled = replace(ordered, disorder=9)
    assert ordered.rows(0, 1_000).drop("time").equals(shuffled.rows(0, 1_000).drop("time"))


@pytest.mark.parametrize(("keys", "exponent"), [(100_000, 1.1), (1_000, 0.8), (50, 2.0)])
def test_zipf_shares_are_those_of_the_theory(keys: int, exponent: float) -> None:
    count = 400_000
    frame = Generator("packets", skew="zipf", keys=keys, exponent=exponent).rows(0, count)
    total = sum(rank**-exponent for rank in range(1, keys + 1))
    share = shares(frame, "srcIP")["share"]
    for rank in (1, 2, 3, 10):
        theory = rank**-exponent / total
        assert share[rank - 1] == pytest.approx(theory, abs=5 * math.sqrt(theory / count))
    head = sum(rank**-exponent for rank in range(1, 41)) / total
    assert share.head(40).sum() == pytest.approx(head, abs=0.005)


def test_hot_keys_are_no_neighbours() -> None:
    frame = Generator("packets", skew="zipf").rows(0, 200_000)
    hot = sorted(top(frame, "srcIP", 20))
    assert min(b - a for a, b in pairwise(hot)) > 1_000


def test_uniform_has_no_hot_keys_and_uses_all() -> None:
    share = shares(Generator("calls", keys=1_000).rows(0, 400_000), "caller")["share"]
    assert share.len() == 1_000
    assert share.is_between(0.0007, 0.0013).all()


@every_kind
def test_drift_moves_the_hot_set_part_by_part(kind: str) -> None:
    generator = Generator(kind, skew="drift", rows_per_second=10_000, keys=5_000)
    period = DRIFT_SECONDS * generator.rows_per_second
    # Auctions follow each other in a hot place, so for bids the place is what drifts.
    place = pl.col(KEY[kind])
    if kind == "bids":
        each = generator.rows_per_second // BIDS_PER_AUCTION
        place = (place // 10_000_000 * each + place % 10_000_000) % generator.keys
    first = 20  # by then all places among the open auctions are taken
    hot = [
        top(generator.rows((first + n) * period, period).select(place), KEY[kind], 16)
        for n in range(DRIFT_PARTS + 1)
    ]
    for before, after in pairwise(hot):
        assert 10 <= len(before & after) <= 14  # a quarter of 16 moved on, give or take the 16th
    assert not hot[0] & hot[-1]


@pytest.mark.parametrize("keys", [1, 2, 7, 10, 64])
@pytest.mark.parametrize("skew", ["zipf", "drift"])
def test_skewed_ranks_reach_every_key_once(skew: str, keys: int) -> None:
    # With an exponent near 0 ranks are equally frequent, so two ranks on one key would show.
    generator = Generator("packets", skew=skew, keys=keys, exponent=1e-6, rows_per_second=4_000)
    share = shares(generator.rows(500 * 4_000, 10 * 4_000), "srcIP")["share"] * keys
    assert share.len() == keys
    assert share.is_between(0.75, 1.25).all()


@pytest.mark.parametrize("seed", [0, 3])
def test_attackers_or_to_the_pattern_and_nobody_else_does(seed: int) -> None:
    packets = Generator("packets", seed=seed, keys=2_000).rows(0, 200_000)
    sources = packets.group_by("srcIP").agg(
        pl.col("flags").bitwise_or().alias("together"),
        ((pl.col("flags") & ~41) == 0).all().alias("only"),
        ((pl.col("flags") & ~41) == 0).any().alias("some"),
    )
    attack = pl.col("together") == 41
    assert sources.height == 2_000
    assert sources.select(attack.mean()).item() == pytest.approx(0.02, abs=0.01)
    # One odd packet among ordinary ones would make a small group look like an attack.
    assert sources.filter(~attack & pl.col("some")).is_empty()
    assert sources.filter(attack & ~pl.col("only")).is_empty()


def test_no_part_of_an_attack_can_stand_for_all_of_it() -> None:
    packets = Generator("packets", keys=2_000).rows(0, 200_000)
    flow = ["srcIP", "destIP", "srcPort", "destPort"]
    attack = packets.filter((pl.col("flags").bitwise_or() == 41).over("srcIP"))
    assert 0.4 < (attack["flags"] == 41).mean() < 0.6  # type: ignore[operator]
    assert attack.group_by(flow).len()["len"].min() > 1  # type: ignore[operator]


def test_attackers_depend_on_the_seed() -> None:
    def attackers(seed: int) -> set[int]:
        packets = Generator("packets", seed=seed, keys=2_000).rows(0, 100_000)
        return set(packets.filter(pl.col("flags") == 41)["srcIP"])

    assert len(attackers(0) & attackers(1)) < 10 < len(attackers(0))


def test_packets_look_like_packets() -> None:
    packets = Generator("packets").rows(0, 500_000)
    assert packets["srcIP"].is_between(10 << 24, (11 << 24) - 1).all()
    assert 200 <= packets["destIP"].n_unique() <= 500
    assert packets["srcPort"].is_between(1_024, 65_535).all()
    assert (packets["len"].min(), packets["len"].max()) == (40, 1500)
    assert packets.group_by("srcIP").agg(pl.col("destIP").n_unique())["destIP"].max() == 4
    flows = packets.group_by("srcIP", "destIP", "srcPort", "destPort").len()
    assert flows.height < packets.height  # some flows have several packets: jitter can be measured


def test_calls_look_like_calls() -> None:
    calls = Generator("calls", skew="zipf").rows(0, 200_000)
    assert (calls["start"] + calls["duration"] == calls["time"]).all()
    for number in ("caller", "callee"):
        assert calls[number].is_between(100_000_000, 999_999_999).all()
    assert (calls["caller"] != calls["callee"]).all()
    assert set(calls["district"]) == set(range(50))
    assert ((calls["x"] // 8 + calls["y"] // 8 * 10) == calls["district"]).all()
    assert calls["duration"].min() == 1
    assert calls["duration"].median() < 30 < 100 < calls["duration"].mean()  # type: ignore[operator]
    assert calls["duration"].max() == 14_400
    home = calls.group_by("caller").agg(pl.col("district").mode().first(), pl.len())
    assert home.filter(pl.col("len") > 100)["district"].n_unique() > 20


@pytest.mark.parametrize("disorder", [0, 5])
@pytest.mark.parametrize("sparser", [1, BIDS_PER_AUCTION])
@pytest.mark.parametrize("skew", SKEWS)
def test_bids_are_for_recent_auctions_that_exist(skew: str, sparser: int, disorder: int) -> None:
    seconds, density, keys = 30, 3_200, 1_000
    bids = Generator("bids", skew=skew, rows_per_second=density, keys=keys, disorder=disorder)
    auctions = Generator("auctions", rows_per_second=density // sparser, keys=keys)
    known = auctions.rows(0, seconds * auctions.rows_per_second).rename({"time": "opened"})
    joined = bids.rows(0, seconds * density).join(known, on="auction", how="left")
    assert joined["opened"].null_count() == 0
    # 200 auctions a second are open to bids, so a thousand of them span five seconds.
    age = joined["time"] - joined["opened"]
    assert age.is_between(0, 5).all()
    assert set(age) >= {0, 1, 2, 3, 4}


def test_skew_makes_hot_auctions() -> None:
    head = {
        skew: shares(Generator("bids", skew=skew).rows(40 * 50_000, 50_000), "auction")["share"][0]
        for skew in ("uniform", "zipf")
    }
    assert head["uniform"] < 0.001 < 0.1 < head["zipf"]


def test_auctions_have_their_own_ids_and_exact_prices() -> None:
    auctions = Generator("auctions", rows_per_second=999, disorder=3).rows(0, 20_000)
    assert (auctions["auction"].diff().drop_nulls() > 0).all()
    assert (auctions["expires"] > auctions["time"]).all()
    for price in (auctions["reserve"], Generator("bids").rows(0, 20_000)["price"]):
        assert (price > 0).all()
        assert (price * 4 == (price * 4).round()).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "packet"}, "'packet'.*Did you mean 'packets'.*auctions, bids, calls, packets"),
        ({"skew": "zipfian"}, "'zipfian'.*drift, surge, uniform, zipf"),
        ({"rows_per_second": 0}, "rows_per_second is 0: give a whole number from 1"),
        ({"rows_per_second": 2.5}, "rows_per_second is 2.5: give a whole number"),
        ({"keys": 0}, "keys is 0: give a whole number from 1 to 16777216"),
        ({"keys": 2**24 + 1}, "keys is 16777217"),
        ({"disorder": -1}, "disorder is -1: give a whole number from 0"),
        ({"seed": -1}, "seed is -1"),
        ({"exponent": 0.0}, "exponent is 0.0: give a number above 0"),
        ({"exponent": math.nan}, "exponent is nan"),
        ({"exponent": math.inf}, "exponent is inf"),
    ],
)
def test_a_wrong_setting_is_named_with_what_exists(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        Generator(**({"kind": "packets"} | wrong))


@pytest.mark.parametrize(("start", "count"), [(-1, 1), (0, -1), (2**38, 1)])
def test_rows_outside_the_stream_are_refused(start: int, count: int) -> None:
    generator = Generator("auctions", rows_per_second=1)
    with pytest.raises(SourceError, match=f"no {count} rows from row {start} on.*{2**38}"):
        generator.rows(start, count)
    assert generator.rows(2**38 - 1, 1)["auction"].item() == (2**38 - 1) * 10_000_000
