"""Another shape of a join by the page: what is said of it before, what is refused, what was found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from anabranch import Session
from anabranch.engine.run import Run
from anabranch.errors import RunError
from anabranch.events.event import DecisionTaken, EffectMeasured
from anabranch.observe.page.control import Control
from anabranch.observe.page.telling import detail
from anabranch.observe.story import Story
from anabranch.observe.top.rows import VIEWS

SQL = """
SELECT a.time, a.srcIP FROM a, b, c WHERE a.srcIP = b.srcIP AND a.srcIP = c.srcIP
AND b.time - a.time BETWEEN -1 AND 1 AND c.time - a.time BETWEEN -1 AND 1
"""


@pytest.fixture(scope="module")
def shown() -> Iterator[tuple[Run, Story, str]]:
    settings = {
        "max_rows_per_epoch": 300,
        "plans": "fixed",
        "policy": "none",
        "partitions_per_site": 2,
    }
    session = Session.in_process(sites=2, settings=settings)
    for name in "abc":
        session.stream(
            name, generator="packets", rows=9_000_000, ordered="time", rows_per_second=100
        )
    session.query("pairs", SQL)
    story = Story()
    session.listen(story.add)
    run = session.start(sinks={"pairs": "memory"}, trigger=0.2)
    while story.newest is None:
        run.await_termination(0.05)
    yield run, story, next(name for name, one in run.plan.subqueries.items() if one.shaped)
    run.stop()


def test_it_is_tried_on_paper_then_done(shown: tuple[Run, Story, str]) -> None:
    run, story, join = shown
    control = Control(run, story)
    asked = {"subquery": join, "shape": "left-deep", "partition": None}
    tried = control.try_out("replan", asked)
    assert (
        f"'{join}' works as ((0,1),2) on all partitions, so far as (0,1,2) on 4" in tried["effect"]
    )
    assert "also keeps what a and b give with each other. " in tried["effect"]
    assert "of state are gone through for it, in 1 epoch or so; or, where" in tried["effect"]
    assert story.newest is not None
    assert detail(story.newest)["shapes"] == {join: {"(0,1,2)": 4}}
    flat = control.try_out("replan", {**asked, "shape": "(0,1,2)"})
    assert "keeps nothing but the rows of its inputs" in flat["effect"]
    control.do(tried["ticket"])
    while detail(story.newest)["shapes"] != {join: {"((0,1),2)": 4}}:
        assert run.is_active
        run.await_termination(0.05)
    start = run.partition_map(join).starts[1]
    one = control.try_out("replan", {"subquery": join, "shape": "(0,(1,2))", "partition": start})
    assert f"on partition {start}, so far as ((0,1),2) on 4 partitions" in one["effect"]


@pytest.mark.parametrize(
    ("shape", "partition", "told"),
    [
        ("((0,1),(2,3))", None, "this join has 3 inputs"),
        ("__import__('os')", None, "is no shape of a join"),
        ("(" * 150, None, "is no shape of a join"),
        ("x" * 201, None, "Expected a shape"),
        (7, None, "Expected a shape"),
        (None, None, "Expected a shape"),
        ("((0,1),2)", 1, "no partition that begins at slot 1"),
        ("((0,1),2)", "0", "Expected a whole number"),
    ],
)
def test_what_cannot_be_is_refused(
    shown: tuple[Run, Story, str], shape: object, partition: object, told: str
) -> None:
    run, story, join = shown
    asked = {"subquery": join, "shape": shape, "partition": partition}
    with pytest.raises(RunError, match=told):
        Control(run, story).try_out("replan", asked)


def test_only_a_shape_may_be_for_all_partitions(
    shown: tuple[Run, Story, str],
) -> None:
    run, story, join = shown
    with pytest.raises(RunError, match="Expected a whole number for partition"):
        Control(run, story).try_out("pause", {"subquery": join, "partition": None})


def test_what_came_of_it_is_told() -> None:
    story = Story()
    common = {"at": 0.0, "epoch": 3, "number": 1}
    story.add(
        DecisionTaken(
            **common, what="replan", action="run j as ((0,1),2) in place of (0,1,2) on 4 partitions",
            exchange="j", partition=0, source=None, target=None, bytes=0, cause="it should cost 0.60",
            accepted=True, reason="", origin="controller", seconds=0.0, imbalance=1.2,
        )
    )  # fmt: skip
    story.add(EffectMeasured(**common, imbalance=1.1, given_up=None, cost=0.58))
    assert story.decisions[0]["cost"] == 0.58
    assert VIEWS["decisions"](story, None).rows[0][-1] == "cost × 0.58"
