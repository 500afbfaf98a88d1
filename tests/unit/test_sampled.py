"""What a sample counts of other shapes, against what all rows of its keys do when they are put together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anabranch.adapt.policies.plans import splits
from anabranch.engine import replanning
from anabranch.operators.sampled import Sampled, sample
from anabranch.session import Session
from anabranch.state.group import SiteState
from anabranch.testing.sources import EpochSource

EPOCHS, KEYS = 5, 30
"""Every key has one row of each input in an epoch: so few that none is left out of a sample."""
ON = "{0}.k = a.k AND {0}.t BETWEEN a.t - 12 AND a.t + 8"


Row = tuple[int, int]
"""Time and value."""


def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], dict[int, Sampled]]:
    """The rows of each input by epoch and key, and what the sample of each epoch was."""
    random = np.random.default_rng(5)
    rows = {
        name: [
            pl.DataFrame(
                {
                    "t": np.sort(random.integers(4 * epoch, 4 * epoch + 4, KEYS)),
                    "k": random.permutation(KEYS),
                    "v": random.integers(0, 100, KEYS),
                }
            )
            for epoch in range(EPOCHS)
        ]
        for name in "abc"
    }
    found: dict[int, Sampled] = {}

    def noted(join: Any, arrived: Any, state: SiteState, *given: Any) -> Sampled | None:
        one = sample(join, arrived, state, *given)
        if one is not None:
            found[state.epoch] = one
        return one

    monkeypatch.setattr(replanning, "sample", noted)
    # Never less than so much effort, and no other shapes: what is remembered is of the inputs alone
    settings = {"policy": "none", "fsync": False, "replan_effort": 1e9, "partitions_per_site": 2}
    session = Session.in_process(1, settings)
    for name, epochs in rows.items():
        session.stream(name, EpochSource(epochs), ordered="t", lateness=1_000)
    session.query(
        "q",
        f"SELECT a.t AS t, b.v AS v, c.v AS w FROM a JOIN b ON {ON.format('b')} "
        f"JOIN c ON {ON.format('c')} AND b.v > c.v AND 2 > 1",
    )
    session.start(sinks={"q": "memory"}, checkpoint=folder, at_end="close").await_termination(60)
    return rows, found


def combinations(
    rows: dict[str, list[pl.DataFrame]], inputs: Sequence[int], upto: int
) -> tuple[int, int]:
    """Those of before an epoch and those with a row of it, key by key."""
    old = new = 0
    for key in range(KEYS):
        own = [
            [
                (epoch, row)
                for epoch in range(upto + 1)
                for row in rows["abc"[number]][epoch]
                .filter(pl.col("k") == key)
                .select("t", "v")
                .rows()
            ]
            for number in inputs
        ]
        for chosen in itertools.product(*own):
            by = dict(zip(inputs, (row for _, row in chosen), strict=True))
            if suits(by):
                fresh = any(epoch == upto for epoch, _ in chosen)
                old, new = old + (not fresh), new + fresh
    return old, new


def suits(by: dict[int, Row]) -> bool:
    """The bounds and conditions among the inputs that are there; between b and c they follow from a's."""
    a, b, c = (by.get(number) for number in range(3))
    for one in (b, c):
        if a and one and not -12 <= one[0] - a[0] <= 8:
            return False
    return not (b and c and (b[1] <= c[1] or not -20 <= b[0] - c[0] <= 20))


def test_a_sample_counts_what_every_way_to_join_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, found = run(tmp_path, monkeypatch)
    assert len(found) >= 2
    for epoch, one in found.items():
        assert len(one.locators) == KEYS
        for place, split in enumerate(splits(3)):
            inputs = sorted(itertools.chain(*split))
            old, new = combinations(rows, inputs, epoch)
            assert one.made[:, place].sum() == new
            assert one.looked[:, place].sum() >= new
            if len(inputs) < 3:
                assert one.kept[:, place].sum() == old
