"""Random conditions of joins: keys of all types, bounds of time of all forms, predicates on both sides."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import polars as pl

from anabranch.language.builder import On, Query
from anabranch.language.expression import Expression, Literal, call, col, columns_of
from anabranch.language.join import Join
from anabranch.testing.cases import KEYS
from anabranch.testing.chooser import Chooser, Clock
from anabranch.testing.queries import QueryMaker

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
class ConditionMaker:
    """Draws what must hold of rows that meet; `pairs` is the plain join of the two, for its columns."""

    chooser: Chooser
    clock: Clock
    maker: QueryMaker

    def on(self, left: Query, right: Query) -> list[On]:
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

    def bounds(self, left: Query, right: Query, pairs: Query, bounded: bool) -> Expression | None:
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

    def extra(self, pairs: Query) -> Expression:
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

    def follow(self, pairs: Query) -> None:
        """What is known of a column is true of it under its new name."""
        join = pairs.node
        assert isinstance(join, Join)
        for own, shown in join.names[1].items():
            for known in (self.maker.inexact, self.maker.wide):
                if own in known:
                    known.add(shown)
