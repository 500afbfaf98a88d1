"""Random joins over streams with the columns of `cases.SCHEMA`: every kind, key and bound of time.

The inputs are rows of streams, results of windows and histories, or another join; over the result there
may be an aggregate. What is drawn has enough equal keys and near times for rows to meet, and to miss.

>>> draw_join_case(SeededChooser(7)).describe() == draw_join_case(SeededChooser(7)).describe()
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anabranch.language.aggregate import count
from anabranch.language.builder import On, Query
from anabranch.language.expression import Expression, call, col
from anabranch.language.join import JOINS
from anabranch.testing.cases import (
    CLOCKS,
    KEYS,
    NUMBERS,
    WIDE,
    Case,
    Shape,
    draw_shape,
    make_frames,
    streams,
)
from anabranch.testing.chooser import Chooser, Clock, SeededChooser
from anabranch.testing.join_conditions import ConditionMaker
from anabranch.testing.queries import QueryMaker

SHAPES = (
    "rows", "rows", "windows", "history", "chain", "three", "tower", "above", "theta",
    "last rows",
)  # fmt: skip
PAYLOAD = ("v", "f", "u", "t", "i")


@dataclass
class JoinMaker:
    """Draws joins; one maker for all queries of a case."""

    chooser: Chooser
    clock: Clock
    maker: QueryMaker

    @property
    def conditions(self) -> ConditionMaker:
        return ConditionMaker(self.chooser, self.clock, self.maker)

    def query_set(self, inputs: Sequence[Query], kinds: Sequence[str] = JOINS) -> dict[str, Query]:
        """One join, or several over each other, of any shape."""
        return self.shaped(self.chooser.choice(SHAPES), inputs, kinds)

    def shaped(
        self, shape: str, inputs: Sequence[Query], kinds: Sequence[str] = JOINS
    ) -> dict[str, Query]:
        """Queries over these inputs; the last one is a join, or an aggregate over one."""
        kind = self.chooser.choice(kinds)
        match shape:
            case "windows":
                return self._windows(inputs, kind)
            case "history":
                past = self.maker.history(self._narrow(inputs[0]))
                sides = [past, self._narrow(inputs[-1])]
                if self.chooser.flag():
                    sides.reverse()
                return {"past": past, "joined": self.join(sides[0], sides[1], kind)}
            case "chain":
                return self._chain(inputs)
            case "tower":
                below = self.join(self._narrow(inputs[0]), self._narrow(inputs[-1]), kind, "b")
                other = self.chooser.choice(kinds)
                return {"tower": self.join(below, self._narrow(inputs[0]), other, "c")}
            case "theta" | "last rows":
                return {"joined": self._keyless(inputs, shape == "last rows")}
            case "three":
                return {"joined": self._three(inputs)}
            case "above":
                joined = self.join(self._narrow(inputs[0]), self._narrow(inputs[-1]), kind)
                if joined.node.ordered is None:
                    return {"joined": joined}
                above = self.maker.final(joined, in_order=False)[0]
                return {"joined": joined, "above": above} if self.chooser.flag() else {"n": above}
        left = self._narrow(inputs[0])
        # The same rows twice, or rows that a filter of their own has thinned out
        right = left if len(inputs) == 1 and self.chooser.flag() else self._narrow(inputs[-1])
        return {"joined": self.maker.stateless(self.join(left, right, kind), [])}

    # -- one join -----------------------------------------------------------------------------------

    def join(
        self, left: Query, right: Query, kind: str, suffix: str = "right", bounded: bool = False
    ) -> Query:
        """The join of two queries on one to three keys, within some bounds of time."""
        return self._bound(left, right, self.conditions.on(left, right), kind, suffix, bounded)

    def _bound(
        self, left: Query, right: Query, on: Sequence[On], kind: str, suffix: str, bounded: bool
    ) -> Query:
        pairs = left.join(right, on=on, suffix=suffix)
        self.conditions.follow(pairs)
        where = self.conditions.bounds(left, right, pairs, bounded)
        if self.chooser.flag(0.2 if bounded else 0.4):
            extra = self.conditions.extra(pairs)
            where = extra if where is None else where & extra
        return left.join(right, on=on, how=kind, where=where, suffix=suffix)

    def _narrow(self, query: Query, keep: Sequence[str] = ()) -> Query:
        """Fewer columns and rows of a stream, as a rule."""
        if self.chooser.flag(0.25):
            query = query.where(self.maker.predicate(query))
        elif self.chooser.flag(0.1):
            query = self.chooser.choice(query.case(self.maker.predicate(query)))
        keep = ("time", *PAYLOAD, *keep)
        names = [n for n in query.node.schema if n in keep or self.chooser.flag(0.3)]
        return query.select(*names)

    # -- joins over others ----------------------------------------------------------------------------

    def _windows(self, inputs: Sequence[Query], kind: str) -> dict[str, Query]:
        """The results of a window beside those of the same one, the next or the one before."""
        window = self.maker.window(inputs[0], ["index", "tumble", "hop"])
        keys = [self.chooser.choice(["i", "t", "b", "n"])]
        if self.chooser.flag(0.3):
            keys.append("d")
        made = []
        for source in (inputs[0], inputs[-1]):
            rows = self._narrow(source, keys)
            counted = [count().alias(self.maker.name()), *self.maker.aggregates(rows, True)]
            made.append(rows.group_by(window, *keys).agg(*counted))
        left, right = made[0], made[0] if self.chooser.flag() else made[1]
        return {"windows": left, "joined": self.join(left, right, kind)}

    def _chain(self, inputs: Sequence[Query]) -> dict[str, Query]:
        """A join with another key over a join, both inner."""
        below = self.join(
            self._narrow(inputs[0]), self._narrow(inputs[-1]), "inner", "b", bounded=True
        )
        right = self._narrow(inputs[0], KEYS)
        on = self.chooser.choice([name for name in below.node.schema if name in KEYS])
        above = self._bound(below, right, [on], "inner", "c", bounded=self.chooser.flag())
        return {"below": below, "joined": above} if self.chooser.flag() else {"joined": above}

    def _three(self, inputs: Sequence[Query]) -> Query:
        """Three inputs on one key."""
        name = self.chooser.choice(["i", "t", "u", "v"])
        sides = [self._narrow(inputs[at]) for at in (0, -1, 0)]
        joined = sides[0]
        for side, suffix in zip(sides[1:], "bc", strict=True):
            bounded = suffix == "b" or self.chooser.flag()
            joined = self._bound(joined, side, [name], "inner", suffix, bounded)
        return joined

    def _keyless(self, inputs: Sequence[Query], counted: bool) -> Query:
        """All pairs within a window of time, or of rows, for which a predicate holds."""
        left, right = self._narrow(inputs[0]), self._narrow(inputs[-1])
        pairs = left.join(right, on="i")
        self.conditions.follow(pairs)
        where = self.conditions.extra(pairs)
        if counted:
            return left.join(right, where=where, rows=self.chooser.choice([3, 1, 8, 100]))
        near = self.conditions.bounds(left, right, pairs, True)
        return left.join(right, where=where if near is None else near & where)


def draw_join_case(
    chooser: Chooser, kinds: Sequence[str] = JOINS, shapes: Sequence[str] = SHAPES
) -> Case:
    """A random join, or joins, over one or two random streams."""
    clock = chooser.choice(CLOCKS)
    epochs = chooser.integer(1, 9)
    names = ["one", "two"] if chooser.flag(0.7) else ["one"]
    first = _draw_shape(chooser, epochs)
    drawn = [first]
    if len(names) > 1:
        # About the same times, or few rows of the two would meet
        begin = first.begin + chooser.choice([0, 0, 4, -15])
        second = replace(_draw_shape(chooser, epochs), begin=begin)
        drawn.append(replace(second, step=chooser.choice([first.step, 1.0])))
    frames = {n: make_frames(shape, clock) for n, shape in zip(names, drawn, strict=True)}
    if len(names) > 1:
        # One stream may end before the other, or come later
        late = chooser.choice([0, 0, 1, 2])
        frames["two"] = [frames["two"][0].clear()] * late + frames["two"]
        frames["two"] = frames["two"][: chooser.integer(1, epochs) if chooser.flag(0.2) else None]
    lateness = {name: chooser.choice([20, 20, 5, 0]) for name in names}
    made = JoinMaker(chooser, clock, QueryMaker(chooser, KEYS, set(WIDE), clock))
    queries = made.shaped(chooser.choice(shapes), streams(names, clock), kinds)
    return Case(frames, lateness, queries, clock)


def draw_meeting_case(chooser: Chooser) -> Case:
    """Inner joins whose rows meet often, and for long: whatever of their state is put aside owes results."""
    epochs = chooser.integer(6, 10)
    shapes = [
        Shape(chooser.integer(30, 70), epochs, 1.0, chooser.choice([0, 4]), False, 3, 0, seed)
        for seed in (chooser.integer(0, 2**31), chooser.integer(0, 2**31))
    ]
    frames = {
        n: make_frames(shape, NUMBERS) for n, shape in zip(("one", "two"), shapes, strict=True)
    }
    one, two = (q.select("time", "i", "v") for q in streams(list(frames), NUMBERS))
    within = chooser.choice([None, 12, 40])

    def apart(first: str, second: str) -> Expression | None:
        return None if within is None else call("abs", col(first) - col(second)) <= within

    joined = one.join(two, on="i", where=apart("time_right", "time"))
    queries = {"met": joined}
    if chooser.flag(0.3):
        queries["met"] = joined.join(one, on="i", suffix="c", where=apart("time_c", "time"))
    if within is not None and chooser.flag(0.3):
        grouped = joined.group_by((col("time") // 10).alias("tb"), "i")
        queries["counted"] = grouped.agg(count().alias("n"))
    return Case(frames, {name: chooser.choice([20, 5]) for name in frames}, queries, NUMBERS)


def _draw_shape(chooser: Chooser, epochs: int) -> Shape:
    """Rows of which many have a key in common with others."""
    shape = draw_shape(chooser, epochs)
    rows = chooser.integer(0, 15) + chooser.choice([20, 35, 0])
    disorder = chooser.choice([2, 0, 9, 30])
    return replace(shape, rows=rows, disorder=disorder, keys=chooser.choice([9, 9, 3]))


__all__ = ["SHAPES", "JoinMaker", "SeededChooser", "draw_join_case", "draw_meeting_case"]
