"""Random shapes of joins, and joins of three to five inputs that can have them.

>>> str(draw_join_shape(random.Random(4), 4))
'((0,2),(1,3))'
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from anabranch.language.builder import Query
from anabranch.language.expression import col
from anabranch.language.shape import JoinShape, joined
from anabranch.settings import MOVING_STATE, PARALLEL_TRACK
from anabranch.testing.cases import CLOCKS, KEYS, WIDE, Case, Shape, make_frames, streams
from anabranch.testing.chooser import Chooser
from anabranch.testing.disturbances import Disturbance, Meddling
from anabranch.testing.join_conditions import ConditionMaker
from anabranch.testing.queries import QueryMaker


def draw_join_shape(draw: random.Random, inputs: int) -> JoinShape:
    """Any shape of a join of so many inputs: parts are put together until one is left."""
    parts: list[int | JoinShape] = list(range(inputs))
    while len(parts) > 1:
        some = draw.sample(range(len(parts)), draw.randint(2, min(len(parts), 3)))
        # Now and then all that is left at once: the flat shape is one of them
        some = list(range(len(parts))) if draw.random() < 0.15 else some
        one = joined([parts[at] for at in some])
        parts = [part for at, part in enumerate(parts) if at not in some] + [one]
    (whole,) = parts
    assert isinstance(whole, JoinShape)
    return whole


def draw_several_case(chooser: Chooser) -> Case:
    """An inner join of three to five inputs on one key whose rows meet, within bounds or without."""
    clock = chooser.choice(CLOCKS)
    epochs, count = chooser.integer(2, 9), chooser.choice([3, 4, 3, 5])
    names = ["one", "two", "three"][: chooser.integer(1, 3)]
    shapes = [
        Shape(
            rows=chooser.integer(20, 150) // count, epochs=epochs, step=chooser.choice([1.0, 0.3, 3.0]),
            disorder=chooser.choice([0, 4, 25]), nulls=chooser.flag(0.3), keys=chooser.choice([3, 5]),
            begin=0, seed=chooser.integer(0, 2**31),
        )
        for _ in names
    ]  # fmt: skip
    frames = {n: make_frames(shape, clock) for n, shape in zip(names, shapes, strict=True)}
    made = QueryMaker(chooser, KEYS, set(WIDE), clock)
    sources = [query.select("time", "i", "v") for query in streams(names, clock)]
    query = sources[0]
    for at in range(1, count):
        query = _joined(chooser, ConditionMaker(chooser, clock, made), query, sources, at)
    lateness = {name: chooser.choice([20, 20, 5, 0]) for name in names}
    queries = {"joined": query}
    if query.node.ordered is not None and chooser.flag(0.3):
        queries["above"] = made.final(query, in_order=False)[0]
    return Case(frames, lateness, queries, clock)


def _joined(
    chooser: Chooser, conditions: ConditionMaker, query: Query, sources: Sequence[Query], at: int
) -> Query:
    """The query with one more input, near in time to one of those before; at times with a condition."""
    suffixes, other = "abcdef", sources[at % len(sources)]
    pairs = query.join(other, on="i", suffix=suffixes[at])
    conditions.follow(pairs)
    where = conditions.bounds(query, other, pairs, bounded=chooser.flag(0.7))
    if chooser.flag(0.3):
        values = (
            col(f"v_{suffixes[at]}"),
            col(chooser.choice(["v", *map("v_{}".format, "bcdef"[: at - 1])])),
        )
        more = chooser.choice([values[0] < values[1], values[0] != values[1]])
        where = more if where is None else where & more
    return query.join(other, on="i", suffix=suffixes[at], where=where)


def replan(it: Meddling) -> bool:
    """A join of several inputs gets another shape, on all its partitions or on some."""
    joins = it.run._governor.holdings.shapes.inputs
    if not joins:
        return False
    name = it.draw.choice(list(joins))
    shape = str(draw_join_shape(it.draw, joins[name]))
    known = it.run.partition_map(name)
    starts = known.starts[: known.partition_at(known.slots - known.cells - 1) + 1]
    endless = it.run._governor.holdings.shapes.endless(name)
    ways = [None, MOVING_STATE, *(() if endless else (PARALLEL_TRACK,) * 3)]
    way = it.draw.choice(ways)
    if it.draw.random() < 0.3:
        it.run.replan(name, shape, transition=way)
    else:
        for start in it.draw.sample(starts, it.draw.randint(1, len(starts))):
            it.run.replan(name, shape, start, transition=way)
    return True


REPLANNING: tuple[Disturbance, ...] = (replan,) * 3
