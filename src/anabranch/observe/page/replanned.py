"""What is expected of another shape of a join that is asked for on the page, before anything is done."""

from __future__ import annotations

import math

import numpy as np

from anabranch.amount import in_bytes, several
from anabranch.control.shapes import REMADE_BYTES
from anabranch.engine.run import Run
from anabranch.errors import RunError, SettingsError
from anabranch.language.shape import JoinShape, read_shape
from anabranch.observe.story import Story
from anabranch.settings import AUTO, MOVING_STATE, PARALLEL_TRACK

BOTH = "both shapes work until the rows of before are gone"


def replanned(run: Run, story: Story, subquery: str, shape: str, partition: int | None) -> str:
    """The effect of `run.replan`, in sentences; raises RunError if it cannot be."""
    join = run.plan.subqueries[subquery]
    if not join.shaped:
        raise RunError(
            f"'{subquery}' has one shape only: inner joins of three to six inputs on one key have others."
        )
    try:
        wanted = read_shape(shape, join.inputs)
    except SettingsError as error:
        raise RunError(str(error)) from error
    where = "all partitions" if partition is None else f"partition {partition}"
    return " ".join(
        [
            f"'{subquery}' works as {wanted} on {where}, {_now(story, subquery)}.",
            _between(story, subquery, wanted),
            _work(story, join.exchange, partition),
            "Results are the same throughout.",
        ]
    )


def _now(story: Story, subquery: str) -> str:
    newest = story.newest
    adaptation = {} if newest is None else newest.progress["customMetrics"]["adaptation"]
    used = adaptation.get("shapes", {}).get(subquery, {})
    told = (f"as {shape} on {several(count, 'partition')}" for shape, count in used.items())
    return f"so far {', '.join(told)}" if used else "of which nothing has been measured yet"


def _between(story: Story, subquery: str, wanted: JoinShape) -> str:
    """What it keeps besides the rows of its inputs."""
    plan = [] if story.started is None else story.started.plan["subqueries"]
    names: list[str] = next((one["shaped"] for one in plan if one["name"] == subquery), [])
    if not wanted.intermediates:
        return "It then keeps nothing but the rows of its inputs."
    kept = (" and ".join(names[one] for one in some) for some in wanted.intermediates)
    return f"It then also keeps what {', and what '.join(kept)} give with each other."


def _work(story: Story, exchange: str, partition: int | None) -> str:
    """How much state is gone through for it, and for how long."""
    newest = story.newest
    figures = newest.exchanges.get(exchange) if newest is not None else None
    if figures is None:
        return ""
    size, sites = figures.column("size").astype(float), figures.column("sites").astype(int)
    if partition is not None:
        at = int(np.searchsorted(figures.column("starts"), partition, "right")) - 1
        size, sites = size[at : at + 1], sites[at : at + 1]
    most = float(np.bincount(sites, size).max(initial=0.0))
    epochs = several(max(1, math.ceil(most / REMADE_BYTES)), "epoch")
    moved = f"{in_bytes(size.sum())} of state are gone through for it, in {epochs} or so"
    transition = AUTO if story.started is None else story.started.settings.get("transition", AUTO)
    if transition == PARALLEL_TRACK:
        return f"{BOTH[0].upper()}{BOTH[1:]}."
    return (
        f"{moved}."
        if transition == MOVING_STATE
        else f"{moved}; or, where that costs less, {BOTH}."
    )
