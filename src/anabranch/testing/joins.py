"""Random joins over streams with the columns of `cases.SCHEMA`: every kind, key and bound of time.

The inputs are rows of streams, results of windows and histories, or another join; over the result there
may be an aggregate. What is drawn has enough equal keys and near times for rows to meet, and to miss.

>>> draw_join_case(SeededChooser(7)).describe() == draw_join_case(SeededChooser(7)).describe()
True
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from anabranch.language.aggregate import count
from anabranch.language.builder import On, Query
from anabranch.language.expression import Expression, Literal, call, col, columns_of
from anabranch.language.graph import Join
from anabranch.language.join import JOINS
from anabranch.testing.cases import CLOCKS, KEYS, WIDE, Case, Shape, draw_shape, make_frames, streams
from anabranch.testing.chooser import Chooser, Clock, SeededChooser
from anabranch.testing.queries import QueryMaker

SHAPES = ("rows", "rows", "windows", "history", "chain", "three", "above")
PAYLOAD = ("v", "f", "u", "t", "i")


Pairs = list[tuple[Expression, Expression]]


def _key_pairs() -> tuple[Pairs, Pairs]:
    """Keys of different types, widths and forms with values in common; those that go well with others."""
    i, n, v, u, f, r, t = (col(name) for name in ("i", "n", "v", "u", "f", "r", "t"))
    alike = [(col(name), col(name)) for name in KEYS]
    first = [
        (i, i), (i, i), (i, i), *alike, (i + 1, i), (v // 4, i), (v % 3, i), (i, v % 5),
        (col("big"), col("big")), (n, i), (u, v), (i, u), (u.cast("uint64"), v),
        (i.cast("int32"), n), (i, f), (f, n), (r, f), (i, r), (f.cast("float32"), f),
        (r, r * 1.0), (-r, r), (t, call("substring", t, 1, 1)), (call("coalesce", i, 0), i),
        (call("year", col("d")), i + 1969),
    ]  # fmt: skip
    return first, [*alike, (col("b"), v > 0), (v % 2, u % 2), (r, r * 1.0)]


@dataclass
class JoinMaker:
    """Draws joins; one maker for all queries of a case."""

    chooser: Chooser
    clock: Clock
    maker: QueryMaker

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
        return self._bound(left, right, self._on(left, right), kind, suffix, bounded)

    def _bound(
        self, left: Query, right: Query, on: Sequence[On], kind: str, suffix: str, bounded: bool
    ) -> Query:
        pairs = left.join(right, on=on, suffix=suffix)
        self._follow(pairs)
        where = self._bounds(left, right, pairs, bounded)
        if self.chooser.flag(0.2 if bounded else 0.4):
            extra = self._extra(pairs)
            where = extra if where is None else where & extra
        return left.join(right, on=on, how=kind, where=where, suffix=suffix)

    def _on(self, left: Query, right: Query) -> list[On]:
        """Keys, and now and then times too."""
        known = [set(self.maker.usable(side)) for side in (left, right)]
        first, more = (
            [
                (one, other)
                for one, other in pairs
                if set(columns_of(one)) <= known[0] and set(columns_of(other)) <= known[1]
            ]
            for pairs in _key_pairs()
        )
        on: list[On] = []
        for options in (first, *[more] * self.chooser.choice([0, 0, 0, 1, 2])):
            if options:
                pair = self.chooser.choice(options)
                on.append((pair[1], pair[0]) if self._fits(pair, known) else pair)
        one, other = self._time(left), self._time(right)
        if one and other and (not on or self.chooser.flag(0.15)):
            on.append(self._equal_times(col(one), col(other), left))
        return on

    def _fits(self, pair: tuple[Expression, Expression], known: list[set[str]]) -> bool:
        """Whether to exchange the sides of a pair, where both have what is needed for that."""
        turned = set(columns_of(pair[1])) <= known[0] and set(columns_of(pair[0])) <= known[1]
        return turned and self.chooser.flag(0.3)

    def _time(self, query: Query) -> str | None:
        return query.node.ordered.column if query.node.ordered else None

    def _equal_times(self, one: Expression, other: Expression, left: Query) -> On:
        if str(one) == str(other) and self._whole(left, str(one)) and self.chooser.flag():
            size = self.chooser.choice([2, 3, 10])
            return one // size, other // size
        return one, other + self._span(left, str(one), self.chooser.choice([0, 1, -1, 4]))

    def _whole(self, query: Query, column: str) -> bool:
        return query.node.schema[column].is_integer()

    def _span(self, query: Query, column: str, size: int) -> Expression:
        if self._whole(query, column):
            return Literal(size)
        return Literal(dt.timedelta(microseconds=size * self.clock.factor))

    def _bounds(
        self, left: Query, right: Query, pairs: Query, bounded: bool
    ) -> Expression | None:
        """How far apart the times may be: on both sides, on one, or anyhow; never far if `bounded`."""
        if left.node.ordered is None or right.node.ordered is None:
            return None
        join = pairs.node
        assert isinstance(join, Join)
        # After a join below, any of its times may be what the bounds are about
        near = [near.column for near in left.node.ordered.near]
        own = self.chooser.choice([left.node.ordered.column, *near])
        theirs = join.names[1][right.node.ordered.column]
        kinds = [pairs.node.schema[own], pairs.node.schema[theirs]]
        if kinds[0].is_integer() != kinds[1].is_integer():
            return None
        a, b = col(own), col(theirs)
        few = [] if bounded else [0, 1]
        sizes = [self.chooser.choice([5, 12, 30, *few]) for _ in range(2)]
        x, y = (self._span(pairs, own, size) for size in sizes)
        ways = ["between", "between", "strict", "difference", "mirrored"]
        if kinds[0].is_integer():
            ways += ["abs", "divided"]
        if not bounded:
            ways += ["shifted", "equal", "none", "one", "other"]
            ways += ["empty"] if self.chooser.flag(0.3) else []
        match self.chooser.choice(ways):
            case "between":
                return b.between(a - x, a + y)
            case "shifted":
                return b.between(a + x, a + x + y)
            case "strict":
                return (b > a - x) & (a + y > b)
            case "difference":
                return (b - a <= x) & (a - b <= y)
            case "equal":
                return b == a + self._span(pairs, own, sizes[0] % 4)
            case "mirrored":
                return (a + y >= b) & (a - x <= b)
            case "abs":
                size = call("abs", a - b)
                return size <= x if self.chooser.flag() else Literal(sizes[1] + 1) > size
            case "divided":
                number = self.chooser.choice([2, 3, 10])
                return a // number == (b + sizes[0] % 4) // number
            case "one":
                return b >= a - x
            case "other":
                return b < a
            case "empty":
                return b.between(a + x, a - self._span(pairs, own, 1))
        return None

    def _extra(self, pairs: Query) -> Expression:
        """A condition on the columns of both sides, or of one."""
        usable = self.maker.usable(pairs)
        join = pairs.node
        assert isinstance(join, Join)
        alike = [
            (own, shown)
            for own, shown in join.names[1].items()
            if shown in usable and own in usable and own != shown
        ]
        options = [self.maker.predicate(pairs)]
        for own, shown in alike:
            one, other, kind = col(own), col(shown), usable[own]
            options.append(one.is_distinct_from(other))
            if kind.is_numeric() and not kind.is_decimal():
                options += [one <= other, one != other]
            if kind == pl.Int64:
                options += [(one + other) % 3 == 1, (one < other) | (other == 0)]
            if kind == pl.String:
                options += [one < other, call("concat", one, other) != "aa"]
        return self.chooser.choice(options)

    def _follow(self, pairs: Query) -> None:
        """What is known of a column is true of it under its new name."""
        join = pairs.node
        assert isinstance(join, Join)
        for own, shown in join.names[1].items():
            for known in (self.maker.inexact, self.maker.wide):
                if own in known:
                    known.add(shown)

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


def draw_join_case(
    chooser: Chooser, kinds: Sequence[str] = JOINS, shapes: Sequence[str] = SHAPES
) -> Case:
    """A random join, or joins, over one or two random streams."""
    clock = chooser.choice(CLOCKS)
    epochs = chooser.integer(1, 6)
    names = ["one", "two"] if chooser.flag(0.7) else ["one"]
    first = _draw_shape(chooser, epochs)
    drawn = [first]
    if len(names) > 1:
        # About the same times, or few rows of the two would meet
        begin = first.begin + chooser.choice([0, 0, 4, -15])
        second = replace(_draw_shape(chooser, epochs), begin=begin)
        drawn.append(replace(second, step=chooser.choice([first.step, 1.0])))
    frames = {n: make_frames(shape, clock) for n, shape in zip(names, drawn, strict=True)}
    if len(names) > 1 and chooser.flag(0.2):
        # One stream may end before the other
        frames["two"] = frames["two"][: chooser.integer(1, epochs)]
    lateness = {name: chooser.choice([20, 5, 5, 0]) for name in names}
    made = JoinMaker(chooser, clock, QueryMaker(chooser, KEYS, set(WIDE), clock))
    queries = made.shaped(chooser.choice(shapes), streams(names, clock), kinds)
    return Case(frames, lateness, queries, clock)


def _draw_shape(chooser: Chooser, epochs: int) -> Shape:
    """Rows of which many have a key in common with others."""
    shape = draw_shape(chooser, epochs)
    rows = chooser.integer(0, 15) + chooser.choice([20, 35, 0])
    disorder = chooser.choice([2, 0, 9, 30])
    return replace(shape, rows=rows, disorder=disorder, keys=chooser.choice([9, 9, 3]))


__all__ = ["SHAPES", "JoinMaker", "SeededChooser", "draw_join_case"]
