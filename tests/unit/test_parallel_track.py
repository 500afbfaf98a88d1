"""Joins that come to another shape on a parallel track: which slots when, which way is taken and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from test_join_shapes import AB, BC, FOUR, expected, shapes_of, started
from test_plan_choice import counted
from test_spilling import THREE, spill_all

from anabranch.adapt.policies.plans import Counted, splits
from anabranch.adapt.policies.ways import (
    ENDLESS,
    UNKNOWN,
    Affected,
    Way,
    choose_way,
)
from anabranch.adapt.protocols.parallel_track import (
    TRACK_STEPS,
    TrackTurn,
    next_tracks,
    remaining_slots,
    validate_tracks,
)
from anabranch.engine.run import Run
from anabranch.errors import RunError
from anabranch.language.shape import flat_shape, read_shape
from anabranch.routing.shaped import Shaped, Track
from anabranch.settings import AUTO, MOVING_STATE, PARALLEL_TRACK
from helpers import plain

ENDLESS_JOIN = (
    "SELECT a.t AS t, a.k AS k, x, y, z FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k AND c.t < "
    "a.t"
)


# -- which way ----------------------------------------------------------------------------------------


def way(asked: str, known: Affected, before: str = "m-way", after: str = AB) -> Way:
    return choose_way(asked, read_shape(before, 3), read_shape(after, 3), known)


MUCH_STATE = Affected(rows=1_000_000, arriving=100, epochs=20)
MUCH_COMES = Affected(rows=100_000, arriving=50_000, epochs=20)


def test_a_track_is_taken_where_much_is_remembered_and_little_comes() -> None:
    assert way(AUTO, MUCH_STATE).protocol == PARALLEL_TRACK
    assert way(AUTO, MUCH_COMES).protocol == MOVING_STATE
    for known in (MUCH_STATE, MUCH_COMES):
        found = way(AUTO, known)
        assert found.track is not None
        assert (found.track < found.moving) == (found.protocol == PARALLEL_TRACK)
        assert found.reason == "it costs less"


def test_a_track_is_taken_though_it_saves_little() -> None:
    """What moving state takes at once, it takes bit by bit."""
    for arriving, protocol in (90, PARALLEL_TRACK), (110, MOVING_STATE):
        assert way(AUTO, Affected(rows=1_000, arriving=arriving, epochs=10)).protocol == protocol


def test_nothing_is_moved_where_the_new_shape_keeps_no_more() -> None:
    found = way(AUTO, MUCH_STATE, AB, "m-way")
    assert (found.protocol, found.moving) == (MOVING_STATE, 0.0)


def test_what_is_asked_for_is_done_and_estimated_all_the_same() -> None:
    assert way(PARALLEL_TRACK, MUCH_COMES).protocol == PARALLEL_TRACK
    moved = way(MOVING_STATE, MUCH_STATE)
    assert (moved.protocol, moved.reason) == (MOVING_STATE, "asked for")
    assert moved.track == way(AUTO, MUCH_STATE).track


@pytest.mark.parametrize("asked", [AUTO, PARALLEL_TRACK])
def test_rows_that_never_go_are_on_no_track(asked: str) -> None:
    found = way(asked, Affected(1_000_000, 1, None, endless=True))
    assert (found.protocol, found.track, found.reason) == (MOVING_STATE, None, ENDLESS)


def test_as_long_as_no_pace_is_known_state_is_moved() -> None:
    assert way(AUTO, Affected(1_000_000, 1, None)).reason == UNKNOWN


def test_what_a_sample_counts_is_part_of_both_costs() -> None:
    """With many combinations to make a track pays, though it would not by the rows alone."""
    known = splits(3)
    few, many = (
        Counted(
            100, np.full(3, 10.0), np.full(len(known), 10.0), np.full(len(known), 5.0),
            np.full(len(known), kept),
        )
        for kept in (0.0, 1e6)
    )  # fmt: skip
    for sample, protocol in ((few, MOVING_STATE), (many, PARALLEL_TRACK)):
        found = way(AUTO, Affected(100, 30, 10, counted=sample))
        assert found.protocol == protocol


def test_a_shape_that_is_never_counted_has_a_way_all_the_same() -> None:
    """Of joins of five inputs not all trees are looked at."""
    bushy = read_shape("((0,1),(2,(3,4)))", 5)
    for seed in range(3):
        known = Affected(1_000, 10, 5, counted=counted(5, seed))
        for before, after in ((bushy, flat_shape(5)), (flat_shape(5), bushy)):
            found = choose_way(AUTO, before, after, known)
            assert np.isfinite([found.moving, found.track]).all()


# -- which slots --------------------------------------------------------------------------------------

WANTED = (Shaped(0, 8, AB),)


def tracks_of(
    *tracks: Track,
    by_track: Any = ((0, 8),),
    flat: Any = (),
    resting: Any = (),
    remaining: Any = (),
) -> TrackTurn:
    return next_tracks((), tracks, WANTED, by_track, flat, resting, remaining, 8, 5)


def test_slots_that_are_wanted_otherwise_go_on_a_track() -> None:
    turn = tracks_of(by_track=[(2, 6)], flat=[(3, 4)], resting=[(5, 6)])
    assert turn.tracks == (Track(2, 3, AB, 4), Track(4, 5, AB, 4))
    assert (turn.shapes, turn.begun) == ((), [(2, 3), (4, 5)])


def test_a_track_ends_where_no_old_row_is_left() -> None:
    turn = tracks_of(Track(0, 8, AB, 2), remaining=[(4, 6)], resting=[(7, 8)])
    assert turn.ended == [(0, 4), (6, 7)]
    assert turn.shapes == (Shaped(0, 4, AB), Shaped(6, 7, AB))
    assert turn.tracks == (Track(4, 6, AB, 2), Track(7, 8, AB, 2))


def test_a_track_is_broken_off_for_flat_slots_and_for_what_comes_at_once() -> None:
    turn = tracks_of(Track(0, 8, AB, 2), by_track=[(0, 6)], flat=[(0, 2)], remaining=[(0, 8)])
    assert turn.broken == [(0, 2), (6, 8)]
    assert turn.tracks == (Track(2, 6, AB, 2),)


def test_old_rows_are_told_by_their_birth() -> None:
    tracks = (Track(0, 4, AB, 3), Track(4, 8, AB, 6))
    remembered = [(3, [(0, 2)]), (4, [(2, 6)]), (7, [(0, 8)])]
    assert remaining_slots(tracks, remembered) == [(0, 2), (4, 6)]


@pytest.mark.parametrize(
    "turn",
    [
        TrackTurn((), (Track(0, 4, AB, 1), Track(3, 6, BC, 1))),
        TrackTurn((), (Track(5, 7, AB, 1),)),
        TrackTurn((), ended=[(0, 2)]),
        TrackTurn((), ended=[(3, 4)], broken=[(3, 4)]),
        TrackTurn((Shaped(3, 4, AB),), (Track(3, 4, AB, 1),)),
    ],
)
def test_tracks_that_must_not_be_are_noticed(turn: TrackTurn) -> None:
    with pytest.raises(RunError):
        validate_tracks(turn, flat=[(6, 8)], remaining=[(0, 2)])


# -- a run --------------------------------------------------------------------------------------------


def on_track(run: Run, shape: str = AB) -> None:
    (join,) = run.plan.subqueries
    run.replan(join, shape, transition=PARALLEL_TRACK)


def tracks_told(run: Run) -> list[int]:
    """The epochs in which something was on a track."""
    told = [line["customMetrics"]["adaptation"]["tracks"] for line in run.recent_progress]
    return [epoch for epoch, tracks in enumerate(told) if tracks]


def test_a_track_gives_what_there_is_and_tells_its_steps(tmp_path: Path) -> None:
    texts: list[str] = []
    steps = {1: on_track, 4: lambda run: texts.append(" ".join(run.explain().split()))}
    run = started(THREE, tmp_path, steps)
    assert plain(run.results("q")) == expected(THREE)
    (line,) = [line for line in run.history() if line["kind"] == "replan"]
    assert (line["protocol"], line["protocolReason"]) == ("parallel track", "asked for")
    assert {*line["steps"]} == {*TRACK_STEPS}
    first, last = line["steps"]["both work"], line["steps"]["old shape dropped"]
    assert line["steps"]["old rows gone"] == last - 1
    assert last - first >= 3  # lateness and bounds are more than three epochs
    assert tracks_told(run) == [*range(first, last)]
    assert shapes_of(run)[last - 1 : last + 1] == [{"(0,1,2)": 8}, {AB: 8}]
    assert line["movingCost"] > 0
    assert f"of these, 8 partitions since epoch {first} on a parallel track to {AB}" in texts[0]
    assert (
        f"last changed to {AB} in place of (0,1,2) on 8 partitions, on a parallel track" in texts[0]
    )
    assert "(asked for: moving state" in texts[0]


@pytest.mark.parametrize("shapes", [("m-way", AB), (AB, BC), (AB, "m-way")])
def test_from_any_shape_to_any_other(tmp_path: Path, shapes: tuple[str, str]) -> None:
    """With segments merged as soon as there are two: those with old rows stay by themselves."""
    steps = {2: lambda run: on_track(run, shapes[1])}
    settings = {"join_shape": shapes[0], "compaction_fan": 2}
    run = started(THREE, tmp_path, steps, settings)
    assert plain(run.results("q")) == expected(THREE)
    assert tracks_told(run)
    assert shapes_of(run)[-1] == {str(read_shape(shapes[1], 3)): 8}


def test_what_both_shapes_keep_is_kept_once(tmp_path: Path) -> None:
    """Of the combinations of 0 and 1 the new shape sees those without an old row."""
    shapes = "(((0,1),2),3)", "((0,1),(2,3))"
    steps = {2: lambda run: on_track(run, shapes[1])}
    run = started(FOUR, tmp_path, steps, {"join_shape": shapes[0]})
    assert plain(run.results("q")) == expected(FOUR)
    assert tracks_told(run)


def test_nothing_is_made_again_when_a_track_has_ended(tmp_path: Path) -> None:
    files: set[str] = set()

    def look(run: Run) -> None:
        files.update(ref.file for ref in run._checkpoint.manifest.subqueries["q@2"].shelf)

    run = started(THREE, tmp_path, {0: look, 1: on_track, **dict.fromkeys(range(2, 9), look)})
    assert {*shapes_of(run)[-1]} == {AB}
    assert any("mid01" in file for file in files)
    assert not any("again" in file for file in files)


def test_a_track_is_broken_off_for_another_shape_and_for_state_that_goes_aside(
    tmp_path: Path,
) -> None:
    steps = {
        1: on_track,
        3: lambda run: run.replan("q@2", BC, transition=MOVING_STATE),
        4: lambda run: on_track(run, AB),
        6: spill_all,
    }
    run = started(THREE, tmp_path, steps)
    assert plain(run.results("q")) == expected(THREE)
    assert tracks_told(run) == [1, 2, 4, 5]
    assert shapes_of(run)[3:5] == [{BC: 8}, {BC: 8}]


@pytest.mark.parametrize("sites", [2, 3])
def test_a_run_goes_on_with_its_tracks_on_other_sites(tmp_path: Path, sites: int) -> None:
    steps = {1: on_track, 3: lambda run: run.stop()}
    first = started(THREE, tmp_path, steps, at_end="keep")
    assert tracks_told(first)
    second = started(THREE, tmp_path, {}, sites=sites)
    assert tracks_told(second)
    rows = pl.concat([run.results("q") for run in (first, second)])
    assert plain(rows) == expected(THREE)
    assert {*shapes_of(second)[-1]} == {AB}


@pytest.mark.parametrize("transition", [MOVING_STATE, PARALLEL_TRACK])
def test_a_checkpoint_comes_to_fixed_shapes_in_the_way_of_the_setting(
    tmp_path: Path, transition: str
) -> None:
    first = started(THREE, tmp_path, {3: lambda run: run.stop()}, at_end="keep")
    second = started(THREE, tmp_path, {}, {"join_shape": BC, "transition": transition})
    assert bool(tracks_told(second)) == (transition == PARALLEL_TRACK)
    rows = pl.concat([run.results("q") for run in (first, second)])
    assert plain(rows) == expected(THREE)


def test_what_cannot_be_done_on_a_track_is_refused(tmp_path: Path) -> None:
    def refused(run: Run) -> None:
        with pytest.raises(RunError, match=r"kept for ever.*'moving-state'"):
            on_track(run)
        with pytest.raises(RunError, match="expected one of auto, moving-state, parallel-track"):
            run.replan("q@2", AB, transition="somehow")
        run.replan("q@2", AB)

    run = started(ENDLESS_JOIN, tmp_path, {2: refused}, {"transition": AUTO})
    (line,) = [line for line in run.history() if line["kind"] == "replan"]
    assert (line["protocol"], line["protocolReason"]) == ("moving state", ENDLESS)
    assert line["trackCost"] is None
    assert plain(run.results("q")) == expected(ENDLESS_JOIN)


def test_a_change_by_hand_goes_by_what_was_counted(tmp_path: Path) -> None:
    """Or else by what the shape keeps that is there."""
    known = len(splits(3))
    counted = Counted(9, np.ones(3), np.ones(known), np.ones(known), np.full(known, 1e6))

    def ask(run: Run) -> None:
        run._governor.planning.counted = lambda *_: counted  # type: ignore[method-assign]
        run.replan("q@2", AB)

    run = started(THREE, tmp_path, {3: ask}, {"transition": AUTO, "plans": "fixed"})
    (line,) = [line for line in run.history() if line["kind"] == "replan"]
    assert line["protocol"] == "parallel track", "very many combinations would have to be made"
    assert line["movingCost"] > 1e6
    assert plain(run.results("q")) == expected(THREE)
