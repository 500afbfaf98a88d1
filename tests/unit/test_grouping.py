"""Groups by sorting: rows of one key together, also where different keys share a locator."""

from __future__ import annotations

import datetime as dt
import itertools
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import count, count_distinct, max_, sum_
from anabranch.operators.functions import partials_for
from anabranch.operators.grouping import Groups, group, reduce
from anabranch.state.segment import LOCATOR
from anabranch.testing.compare import assert_same_rows

KEYS = {"k": pl.String(), "f": pl.Float64(), "i": pl.Int64(), "d": pl.Date()}
rows_of_keys = st.lists(
    st.tuples(
        st.sampled_from([None, "", "a", "b"]), st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5]),
        st.sampled_from([None, 0, 1]), st.sampled_from([None, dt.date(1970, 1, 1)]),
    ),
    min_size=1, max_size=60,
)  # fmt: skip


def as_value(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key whose NaN equals itself and which has no -0.0."""
    plain = (part + 0.0 if isinstance(part, float) else part for part in key)
    return tuple("nan" if part != part else part for part in plain)


def frame_of(keys: Sequence[tuple[Any, ...]], locators: int) -> pl.DataFrame:
    """Rows with these keys whose locator depends on the key, but has only so many values."""
    frame = pl.DataFrame(list(keys), schema=KEYS, orient="row")
    places = [zlib.crc32(repr(as_value(key)).encode()) % locators for key in keys]
    return frame.with_columns(
        pl.Series(LOCATOR, places, dtype=pl.UInt64), pl.Series("v", range(len(keys)))
    )


def check_groups(frame: pl.DataFrame, groups: Groups, keys: Sequence[str]) -> None:
    assert sorted(groups.rows["v"].to_list()) == sorted(frame["v"].to_list())
    locators = groups.rows[LOCATOR].to_numpy()
    assert (locators[1:] >= locators[:-1]).all(), "not in the order of a segment"
    found = [as_value(key) for key in groups.rows.select(keys).rows()]
    edges = [*groups.starts.tolist(), frame.height]
    seen = []
    for start, end in itertools.pairwise(edges):
        assert len(set(found[start:end])) == 1, "two keys in one group"
        seen.append(found[start])
    assert len(seen) == len(set(seen)) == len(set(found)), "a key in two groups"


@pytest.mark.parametrize("locators", [1, 2, 1 << 48])
@given(keys=rows_of_keys)
def test_different_keys_are_never_mixed(locators: int, keys: list[tuple[Any, ...]]) -> None:
    frame = frame_of(keys, locators)
    check_groups(frame, group(frame, list(KEYS)), list(KEYS))


@given(rows_of_keys, st.integers(1, 3))
def test_partials_of_colliding_groups(keys: list[tuple[Any, ...]], locators: int) -> None:
    frame = frame_of(keys, locators)
    partials = partials_for(
        [
            count().alias("n"),
            sum_("v").alias("s"),
            max_("v").alias("m"),
            count_distinct("v").alias("d"),
        ],
        frame.schema,
    )
    names = {partial.argument for partial in partials if partial.argument}
    rows = frame.with_columns(pl.col("v").alias(name) for name in names)
    parts = [
        reduce(group(part, list(KEYS)), list(KEYS), partials, merge=False)
        for part in (rows[: len(rows) // 2], rows[len(rows) // 2 :])
        if part.height
    ]
    merged = reduce(group(pl.concat(parts), list(KEYS)), list(KEYS), partials, merge=True)
    own = [name for partial in partials for name in partial.columns]
    wanted = frame.group_by(*KEYS).agg(
        pl.len().cast(pl.Int64).alias(own[0]), pl.col("v").sum().alias(own[1]),
        pl.col("v").max().alias(own[2]), pl.col("v").len().cast(pl.Int64).alias(own[3]),
    )  # fmt: skip
    counted = merged.with_columns(pl.col(own[3]).list.len().cast(pl.Int64))
    assert_same_rows(counted.select(*KEYS, *own), wanted.select(*KEYS, *own))


def test_one_group_without_keys() -> None:
    frame = pl.DataFrame({LOCATOR: pl.Series([7, 7, 7], dtype=pl.UInt64), "v": [1, 2, 3]})
    assert group(frame, []).starts.tolist() == [0]


def test_lists_of_strings_from_several_chunks() -> None:
    """Gathered from several chunks, empty lists of strings once were an array that Arrow refused."""
    whole = pl.DataFrame(
        {
            LOCATOR: pl.Series([1, 2, 3], dtype=pl.UInt64),
            "i": [1, 2, 3],
            "__p0": pl.Series([["x", "y"], [], []], dtype=pl.List(pl.String)),
        }
    )
    partials = partials_for([count_distinct("t").alias("d")], whole.schema)
    state = pl.from_arrow(whole.to_arrow(compat_level=pl.CompatLevel.newest()))
    assert isinstance(state, pl.DataFrame)
    parts = pl.concat([state.slice(1), state.slice(1)], rechunk=False)
    merged = reduce(group(parts, ["i"]), ["i"], partials, merge=True)
    table = merged.to_arrow(compat_level=pl.CompatLevel.newest())
    assert table["__p0"].to_pylist() == [[], []]
    assert np.array_equal(merged["i"].to_numpy(), [2, 3])
