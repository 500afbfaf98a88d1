"""The shapes of joins: how they are written, how slots come from one to another, what a run says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from test_spilling import INPUTS, THREE, TWO, WITHIN, spill_all

from anabranch import Session
from anabranch.adapt.protocols.replanning import NO_TURN, Turn, next_turn, validate
from anabranch.engine.run import Run
from anabranch.errors import RunError, SettingsError
from anabranch.language.shape import flat_shape, left_deep, read_shape
from anabranch.routing.shaped import Shaped
from anabranch.testing.sources import EpochSource
from helpers import oracle, plain

AB, BC = "((0,1),2)", "(0,(1,2))"
FOUR = (
    THREE.replace("z FROM", "z, w FROM")
    + " JOIN (SELECT t AS s, k, x AS w FROM a) AS d ON a.k = d.k AND d.s BETWEEN a.t - 2 AND a.t + 2"
)


# -- what a shape is --------------------------------------------------------------------------------


def test_a_shape_has_one_text_however_it_is_written() -> None:
    for text in ("((0,1),2)", "( 2, (1,0) )", "(2,(0,1))"):
        assert str(read_shape(text, 3)) == AB
    assert read_shape("m-way", 4) == flat_shape(4)
    assert str(read_shape("left-deep", 4)) == "(((0,1),2),3)"
    assert read_shape("((0,3),(1,2))", 4).intermediates == ((0, 3), (1, 2))
    assert left_deep([3, 1, 0, 2]).intermediates == ((1, 3), (0, 1, 3))
    assert flat_shape(3).flat
    assert not flat_shape(3).intermediates


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("((0,1),3)", "0, 1, 3"),
        ("((0,1),1)", "every input of the join once"),
        ("((0,1),2,3)", "this join has 3 inputs"),
        ("(0,1", "no shape of a join"),
        ("0", "no shape of a join"),
        ("((0,1),(2,))", "no shape of a join"),
        ("(0,1,True)", "no shape of a join"),
        ("__import__('os')", "no shape of a join"),
        ("(0,1,2,3,4,5,6)", "at most 6"),
        ("(" * 5000, "no shape of a join"),
    ],
)
def test_what_is_no_shape_is_refused_with_what_was_expected(text: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        read_shape(text, 3)


# -- how slots come to one --------------------------------------------------------------------------

SIZES, OWNERS = np.full(8, 10.0), np.array([0, 0, 0, 0, 1, 1, 1, 1])


def turn_of(now: tuple[Shaped, ...], wanted: tuple[Shaped, ...], **others: Any) -> Turn:
    asked = {"flat": [], "resting": [], "budget": 1e9, **others}
    flat, resting = asked["flat"], asked["resting"]
    turn = next_turn(now, wanted, flat, resting, SIZES, OWNERS, asked["budget"])
    validate(turn, now, flat, resting)
    return turn


def test_each_site_brings_as_many_slots_to_a_shape_as_fit() -> None:
    wanted = (Shaped(0, 8, AB),)
    turn = turn_of((), wanted, budget=25.0)
    assert turn.shapes == (Shaped(0, 2, AB), Shaped(4, 6, AB))
    assert turn.changing == (Shaped(0, 2, ""), Shaped(4, 6, ""))
    turn = turn_of(turn.shapes, wanted, budget=1.0)
    assert turn.slots == [(2, 3), (6, 7)]
    assert turn_of(turn.shapes, wanted).shapes == wanted
    assert turn_of(wanted, wanted) == Turn(wanted)
    assert turn_of((), ()) == NO_TURN


def test_slots_at_rest_keep_their_shape_and_those_aside_lose_it() -> None:
    now, wanted = (Shaped(0, 8, AB),), (Shaped(0, 8, BC),)
    turn = turn_of(now, wanted, resting=[(0, 3)], flat=[(6, 8)])
    assert turn.shapes == (Shaped(0, 3, AB), Shaped(3, 6, BC))
    assert turn.changing == (Shaped(3, 8, AB),)


@pytest.mark.parametrize(
    "turn",
    [
        Turn((Shaped(0, 5, AB), Shaped(4, 8, BC))),
        Turn((Shaped(0, 8, AB),)),
        Turn((), (Shaped(0, 2, BC),)),
        Turn((Shaped(2, 4, BC), Shaped(6, 8, AB)), (Shaped(6, 8, ""),)),
    ],
)
def test_what_must_not_be_is_noticed(turn: Turn) -> None:
    with pytest.raises(RunError):
        validate(turn, (Shaped(0, 4, BC),), [(6, 8)], [(0, 1)])


# -- a run ------------------------------------------------------------------------------------------


def started(
    query: str, folder: Path, steps: dict[int, Any], settings: dict[str, Any] | None = None,
    sites: int = 2, **options: Any,
) -> Run:  # fmt: skip
    session = Session.in_process(
        sites,
        {
            "allow_unbounded_state": True, "fsync": False, "partitions_per_site": 4, "policy": "none",
            "plans": "fixed", **(settings or {}),
        },
    )  # fmt: skip
    for name, epochs in INPUTS.items():
        session.stream(name, EpochSource(epochs), ordered="t", lateness=20)
    session.query("q", query)
    runs: list[Run] = []

    def on_step(step: str, epoch: int) -> None:
        if step == "begin" and epoch in steps and runs:
            steps[epoch](runs[0])

    run = session.start(
        sinks={"q": "memory"}, checkpoint=folder / "c", on_step=on_step,
        **{"at_end": "close", **options},
    )  # fmt: skip
    runs.append(run)
    assert run.await_termination(60)
    return run


def expected(query: str) -> Any:
    return oracle(query, **{name: pl.concat(epochs) for name, epochs in INPUTS.items()})


def shapes_of(run: Run) -> list[dict[str, int]]:
    return [
        next(iter(line["customMetrics"]["adaptation"]["shapes"].values()), {})
        for line in run.recent_progress
    ]


@pytest.mark.parametrize("query", [THREE, FOUR, THREE + " AND x < z AND y <> z"])
@pytest.mark.parametrize("shape", ["m-way", "left-deep"])
def test_a_shape_for_all_is_a_setting(tmp_path: Path, query: str, shape: str) -> None:
    run = started(query, tmp_path, {}, {"join_shape": shape})
    assert plain(run.results("q")) == expected(query)
    inputs = 4 if query == FOUR else 3
    assert shapes_of(run)[3] == {str(read_shape(shape, inputs)): 8}


def test_a_shape_by_hand_is_seen_and_told(tmp_path: Path) -> None:
    told: list[str] = []
    steps = {
        2: lambda run: run.replan("q@2", AB),
        4: lambda run: run.replan("q@2", BC, run.partition_map("q@2").starts[3]),
        6: lambda run: told.append(run.explain()),
    }
    run = started(THREE, tmp_path, steps)
    assert plain(run.results("q")) == expected(THREE)
    assert shapes_of(run)[1:6:2] == [{"(0,1,2)": 8}, {AB: 8}, {AB: 7, BC: 1}]
    assert f"shape {AB} on 7 partitions, {BC} on 1 partition" in " ".join(told[0].split())
    lines = [line for line in run.history() if line["kind"] == "replan"]
    assert [(line["before"], line["shape"], len(line["partitions"])) for line in lines] == [
        ("(0,1,2)", AB, 8),
        (AB, BC, 1),
    ]
    assert {line["protocol"] for line in lines} == {"moving state"}


def test_what_is_aside_has_no_shape_and_gets_it_back(tmp_path: Path) -> None:
    steps = {1: lambda run: run.replan("q@2", AB), 3: spill_all, 5: lambda run: run.clean_up()}
    run = started(THREE, tmp_path, steps)
    assert plain(run.results("q")) == expected(THREE)
    used = shapes_of(run)
    assert (used[2], used[3], used[5], used[6]) == (
        {AB: 8},
        {"(0,1,2)": 8},
        {"(0,1,2)": 8},
        {AB: 8},
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (TWO.replace(" JOIN", " LEFT JOIN") + WITHIN, "is a left join"),
        (TWO, "has 2 inputs"),
        ("SELECT tb, k, COUNT(*) AS n FROM a GROUP BY t/25 AS tb, k", "is no join"),
    ],
)
def test_what_has_one_shape_says_why(tmp_path: Path, query: str, words: str) -> None:
    def refused(run: Run) -> None:
        with pytest.raises(RunError, match=words):
            run.replan("q@1", AB)

    started(query, tmp_path, {2: refused})


def test_a_shape_of_other_inputs_is_refused(tmp_path: Path) -> None:
    def refused(run: Run) -> None:
        with pytest.raises(SettingsError, match="this join has 3 inputs"):
            run.replan("q@2", "((0,1),(2,3))")
        with pytest.raises(RunError, match="no partition that begins at slot 1"):
            run.replan("q@2", AB, 1)

    started(THREE, tmp_path, {2: refused})
    with pytest.raises(SettingsError, match="have 3"):
        started(THREE, tmp_path / "2", {}, {"join_shape": "((0,1),(2,3))"})
    with pytest.raises(SettingsError, match="are not there"):
        started(TWO, tmp_path / "3", {}, {"join_shape": AB})


def test_a_checkpoint_keeps_its_shapes_unless_they_are_fixed(tmp_path: Path) -> None:
    """Each run is stopped after three epochs; what a newer setting does not want is changed, at once."""

    def some(settings: dict[str, Any], steps: dict[int, Any], last: int) -> Run:
        steps = {last: lambda run: run.stop(), **steps}
        return started(THREE, tmp_path, steps, settings, at_end="keep")

    first = some({"join_shape": AB, "plans": "site"}, {}, 2)
    assert shapes_of(first)[-1] == {AB: 8}
    second = some({"join_shape": BC, "plans": "site"}, {}, 4)
    assert shapes_of(second)[0] == {AB: 8}
    third = started(THREE, tmp_path, {}, {"join_shape": BC, "plans": "fixed"})
    assert shapes_of(third)[0] == {BC: 8}
    rows = pl.concat([run.results("q") for run in (first, second, third)])
    assert plain(rows) == expected(THREE)


@pytest.mark.parametrize("shape", ["m-way", AB, BC])
def test_a_cast_that_fails_is_asked_of_results_only(tmp_path: Path, shape: str) -> None:
    """A pair that no third row meets, and a combination that another condition keeps out, end no run."""
    rows = {
        "a": pl.DataFrame({"t": [0, 0, 0], "k": [1, 2, 3], "x": ["5", "five", "six"]}),
        "b": pl.DataFrame({"t": [0, 0, 0], "k": [1, 2, 3], "y": [7, 7, 7]}),
        "c": pl.DataFrame({"t": [0, 0], "k": [1, 3], "z": [9, 0]}),
    }
    settings = {"fsync": False, "partitions_per_site": 4, "policy": "none", "plans": "fixed"}
    session = Session.in_process(2, {**settings, "join_shape": shape})
    for name, frame in rows.items():
        session.stream(name, EpochSource([frame]), ordered="t")
    cast = THREE.replace(" JOIN c", " AND CAST(a.x AS INT) < b.y JOIN c")
    session.query("q", cast + " AND b.y < c.z")
    run = session.start(sinks={"q": "memory"}, checkpoint=tmp_path, at_end="close")
    assert run.await_termination(60)
    assert plain(run.results("q")) == [(0, 1, "5", 7, 9)]
