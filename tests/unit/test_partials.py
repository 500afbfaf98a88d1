"""Sums at the border of 64 bits: exact inside, an error that says so outside, whatever the path."""

from __future__ import annotations

import polars as pl
import pytest

from anabranch import Session, count, sum_, tumble
from anabranch.errors import RunError
from anabranch.testing.sources import EpochSource

MOST, LEAST = 2**63 - 1, -(2**63)


def sums(*epochs: list[tuple[str, int | None]], **settings: float) -> dict[str, int | None]:
    """The sum per key of (key, value) rows in one window, through a whole run."""
    schema = {"time": pl.Int64, "k": pl.String, "v": pl.Int64}
    frames = [
        pl.DataFrame([(0, k, v) for k, v in rows], schema=schema, orient="row") for rows in epochs
    ]
    session = Session.in_process(2, {"fsync": False, **settings})
    rows = session.stream("rows", EpochSource(frames), ordered="time")
    session.query(
        "sums", rows.group_by(tumble(5), "k").agg(sum_("v").alias("s"), count().alias("n"))
    )
    run = session.start(sinks={"sums": "memory"}, at_end="close")
    assert run.await_termination(60)
    return dict(run.results("sums").select("k", "s").rows())


@pytest.mark.parametrize("settings", [{}, {"combine_reduction": 0.1, "compaction_fan": 2}])
@pytest.mark.parametrize(
    "epochs",
    [
        [[("a", MOST), ("a", 1)]],
        [[("a", MOST), ("a", 1), ("a", None)]],
        [[("a", LEAST), ("a", -1)]],
        [[("a", MOST)], [("a", 1)]],
        [[("a", LEAST)], [("b", 5)], [("a", None), ("a", -1)]],
        [[("a", 2**62)], [("a", 2**62)], [("b", 1)]],
        [[("b", 7), *[("a", 2**60)] * 8]],
    ],
)  # fmt: skip
def test_a_sum_beyond_64_bits_is_an_error(
    epochs: list[list[tuple[str, int | None]]], settings: dict[str, float]
) -> None:
    with pytest.raises(RunError, match=r"SUM\(v\) leaves the range of 64-bit integers"):
        sums(*epochs, **settings)


@pytest.mark.parametrize("settings", [{}, {"combine_reduction": 0.1, "compaction_fan": 2}])
@pytest.mark.parametrize(
    ("epochs", "expected"),
    [
        ([[("a", MOST), ("a", 0)]], {"a": MOST}),
        ([[("a", MOST - 5)], [("a", 5)]], {"a": MOST}),
        ([[("a", LEAST), ("a", None)]], {"a": LEAST}),
        ([[("a", MOST), ("a", LEAST)], [("a", 1)]], {"a": 0}),
        ([[(key, MOST) for key in "abcdef"]], dict.fromkeys("abcdef", MOST)),
        ([[("a", LEAST), ("b", MOST), ("c", None)], [("b", None)]], {"a": LEAST, "b": MOST, "c": None}),
        ([[("a", -(2**62)), ("a", -(2**62)), ("b", 2**62)]], {"a": LEAST, "b": 2**62}),
    ],
)  # fmt: skip
def test_sums_up_to_the_border_are_exact(
    epochs: list[list[tuple[str, int | None]]], expected: dict[str, int], settings: dict[str, float]
) -> None:
    """Also where several groups together would leave the range: each group counts by itself."""
    assert sums(*epochs, **settings) == expected
