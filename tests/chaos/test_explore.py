"""Every order of events, explored: nothing breaks, what is meant to happen does, planted bugs are found."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator

import pytest
from typer.testing import CliRunner

from anabranch.cli import app
from anabranch.testing.explore import suite
from anabranch.testing.explore.bugs import BUGS
from anabranch.testing.explore.explorer import Broken, Happening, explore
from anabranch.testing.explore.suite import LOOKED_FOR, MODELS, explore_all, hunt

pytestmark = pytest.mark.chaos

SHALLOW = {
    "two drivers": 42, "crashes": 26, "three drivers": 20, "a reader": 24, "far moves": 3, "near moves": 4,
    "state aside": 6, "rows that wait for state": 6,
    "joins that change their shape": 4,
}  # fmt: skip
"""Steps that take a second or two."""


class Counter:
    """Adds one or two; must not come to its limit."""

    name, what, depth = "counter", "A number that grows.", 20
    invariants, goals = ("it stays below its limit",), ("it is seven",)

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def start(self) -> Hashable:
        return 0

    def steps(self, state: int) -> Iterator[Happening]:
        for more in (1, 2):
            if state + more <= 9:
                yield Happening(f"add {more}", state + more, ("it is seven",) * (state + more == 7))

    def check(self, state: int) -> None:
        if state >= self.limit:
            raise Broken(f"it is {state}")


def test_every_state_is_looked_at_once_and_the_end_is_noticed() -> None:
    explored = explore(Counter(limit=100))
    assert (explored.states, explored.depth, explored.complete) == (10, 5, True)
    assert explored.reached == {"it is seven": 4}
    assert explored.good


def test_a_failure_is_told_with_the_fewest_steps() -> None:
    explored = explore(Counter(limit=6))
    assert explored.failure is not None
    assert explored.failure.trace == ("add 2", "add 2", "add 2")
    assert explored.failure.text().endswith("Then: it is 6")


def test_a_goal_that_is_not_reached_is_a_failure() -> None:
    explored = explore(Counter(limit=100), depth=3)
    assert (explored.missed, explored.complete, explored.good) == (["it is seven"], False, False)


@pytest.mark.parametrize("name", MODELS)
def test_no_invariant_breaks_near_the_start(name: str) -> None:
    explored = explore(MODELS[name](), SHALLOW[name])
    assert explored.failure is None, explored.failure.text()
    assert explored.states > 500
    assert len(explored.reached) >= 3


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: suite.Bug) -> None:
    finding = hunt(bug)
    assert finding.failure is not None, f"{finding.states} states, and none shows that {bug.what}"
    assert len(finding.failure.trace) >= 1


def test_bugs_are_looked_for_in_all_parts() -> None:
    assert len(BUGS) >= 3
    assert {bug.name for bug in BUGS} == {*LOOKED_FOR}
    assert {"two drivers", "far moves", "state aside"} <= {*LOOKED_FOR.values()}


def test_the_command_tells_states_depth_and_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "MODELS", {"two drivers": MODELS["two drivers"]})
    result = CliRunner().invoke(app, ["chaos", "--exhaustive", "--depth", "45", "--json"])
    told = json.loads(result.stdout)
    assert result.exit_code == 0, result.stdout
    assert told["states"] > 1_000
    assert told["depth"] == 45
    assert told["seconds"] > 0
    (model,) = told["models"]
    assert model["missed"] == []
    assert all(one["caught"] for one in told["planted"])
    assert len(told["planted"]) >= 3


def test_the_command_fails_with_the_shortest_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "MODELS", {"counter": lambda: Counter(limit=6)})
    result = CliRunner().invoke(app, ["chaos", "--exhaustive"])
    assert result.exit_code == 1
    assert "  3. add 2\nThen: it is 6" in result.stdout


def test_a_depth_alone_is_refused() -> None:
    result = CliRunner().invoke(app, ["chaos", "--depth", "3"])
    assert result.exit_code == 1


@pytest.mark.soak
def test_everything_is_explored_to_its_depth() -> None:
    exploration = explore_all()
    assert exploration.good, exploration.text()
