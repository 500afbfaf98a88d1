"""Rows among others by seeds: the best of windows, rows before and after, running numbers; DuckDB judges.

With maps that change every epoch, stops, crashes, other numbers of sites after a restart, and with so little
memory that state is put aside.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch.testing.among import draw_among
from anabranch.testing.cases import CLOCKS, KEYS, Case, draw_shape, make_frames, streams
from anabranch.testing.chooser import SeededChooser
from anabranch.testing.trial import check, draw_trial
from helpers import in_soak

EACH = 15
"""Cases of one test."""


def drawn(seed: int) -> tuple[Case, SeededChooser]:
    chooser = SeededChooser(seed)
    clock = chooser.choice(CLOCKS)
    epochs = chooser.integer(1, 7)
    frames = {"one": make_frames(draw_shape(chooser, epochs), clock)}
    (source,) = streams(["one"], clock)
    queries = {name: draw_among(chooser, source, KEYS, clock) for name in ("q", "r")}
    return Case(frames, {"one": chooser.choice([0, 1, 5, 20])}, queries, clock), chooser


@pytest.mark.parametrize("start", [0, EACH, 2 * EACH, *in_soak(range(3 * EACH, 500, EACH))])
def test_results_are_those_of_the_oracle(start: int) -> None:
    for seed in range(start, start + EACH):
        case, chooser = drawn(seed)
        try:
            check(case, draw_trial(chooser, case.epochs, (1, 2, 5)))
        except AssertionError as error:
            raise AssertionError(f"Seed {seed}: {error}\n{case.describe()}") from error


@pytest.mark.parametrize("start", [1000, *in_soak(range(1000 + EACH, 1200, EACH))])
def test_with_little_memory(start: int) -> None:
    spilled = 0
    for seed in range(start, start + EACH):
        case, chooser = drawn(seed)
        trial = draw_trial(chooser, case.epochs, (1, 2, 5))
        settings = {**trial.settings, "site_memory_bytes": chooser.choice([1, 300, 4_000])}
        settings["policy"] = chooser.choice(["none", "hybrid", "lazy-disk"])
        outcome = check(case, replace(trial, settings=settings, close=True, by_epoch=False))
        spilled += any(manifest.spilled for manifest in outcome.manifests)
    assert spilled > 2, "hardly anything was put aside"
