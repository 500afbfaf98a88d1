"""Joins killed while they come to another shape, on a track and by moving state, and started again."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import Crashing
from test_crash import kill_at_changes, kill_at_random

from anabranch.settings import MOVING_STATE, PARALLEL_TRACK
from anabranch.state.manifest import Manifest
from helpers import manifests

pytestmark = pytest.mark.chaos

FILES = 9
AB, BC = "((0,1),2)", "(0,(1,2))"
TRACKS = {
    "settings": {"replan_effort": 0},
    "replan": [(1, AB, PARALLEL_TRACK), (6, BC, PARALLEL_TRACK)],
}
"""Two tracks, one after the other; each ends three to four epochs after it has begun."""
MIXED = {
    **TRACKS,
    "replan": [
        (1, AB, PARALLEL_TRACK), (3, BC, MOVING_STATE), (4, "m-way", PARALLEL_TRACK), (8, AB, PARALLEL_TRACK),
    ],
}  # fmt: skip
"""A track that is broken off, and others that end."""


def newest(crashing: Crashing) -> Manifest:
    return manifests(crashing.checkpoint)[-1]


def on_track(crashing: Crashing) -> bool:
    return any(record.tracks for record in newest(crashing).subqueries.values())


def shapes(crashing: Crashing) -> set[str]:
    return {one.shape for record in newest(crashing).subqueries.values() for one in record.shapes}


def test_killed_as_a_track_begins_goes_on_and_ends(tmp_path: Path) -> None:
    crashing = Crashing(
        tmp_path, seed=81, files=6, options={**TRACKS, "replan": TRACKS["replan"][:1]}
    )
    with crashing.watched():
        crashing.kill_exactly("before-commit", 2)
        crashing.kill_exactly("after-commit", 3)
        assert on_track(crashing), "no track under way"
        crashing.finish()
    crashing.check()
    assert not on_track(crashing)
    assert shapes(crashing) == {AB}


@pytest.mark.soak
@pytest.mark.parametrize("options", [TRACKS, MIXED], ids=["tracks", "mixed"])
def test_killed_at_every_step_of_every_epoch(tmp_path: Path, options: dict[str, object]) -> None:
    """Each start has another number of sites, and each step of a track is met by a kill."""
    crashing = Crashing(tmp_path, seed=82, files=FILES, options=options)
    under_way = 0
    with crashing.watched():
        for epoch in range(1, crashing.end + 1):
            for step in ("before-tasks", "before-commit", "after-commit"):
                crashing.kill_exactly(step, epoch)
                under_way += on_track(crashing)
        crashing.finish()
    crashing.check()
    assert under_way > 6


@pytest.mark.soak
@pytest.mark.parametrize("seed", [83, 84])
@pytest.mark.parametrize("options", [TRACKS, MIXED], ids=["tracks", "mixed"])
def test_killed_at_random_moments(tmp_path: Path, seed: int, options: dict[str, object]) -> None:
    kill_at_random(Crashing(tmp_path / "moments", seed, FILES, options=options), kills=6)
    kill_at_changes(Crashing(tmp_path / "changes", seed, FILES, options=options), kills=6, most=160)


@pytest.mark.soak
def test_killed_with_hardly_any_memory(tmp_path: Path) -> None:
    """State goes aside and comes back while shapes change: tracks are broken off and begun again."""
    options = {**MIXED, "settings": {"replan_effort": 0, "site_memory_bytes": 40_000}}
    kill_at_random(Crashing(tmp_path, 85, FILES, options=options), kills=6)
