"""A case: one query, with those it reads, over the streams of its world."""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch.testing.fuzz.among import around, best
from anabranch.testing.fuzz.draw import Draw
from anabranch.testing.fuzz.grouped import grouped
from anabranch.testing.fuzz.joined import joined, within_rows
from anabranch.testing.fuzz.plain import history, plain, union
from anabranch.testing.fuzz.relation import CaseMaker, Relation, Time
from anabranch.testing.fuzz.widened import widened
from anabranch.testing.fuzz.world import World


@dataclass(frozen=True)
class FuzzCase:
    """A query in both dialects."""

    seed: int
    views: tuple[tuple[str, str], ...]
    """The queries it reads: names and texts."""
    ours: str
    duck: str
    update: tuple[str, ...] = ()
    """The columns that tell a group, for one that is told on update: its last row counts."""

    @property
    def name(self) -> str:
        return f"q{self.seed}"

    @property
    def names(self) -> list[str]:
        """The queries to register, in this order."""
        return [*(name for name, _ in self.views), self.name]


AMONG = 0.15
"""How many cases ask for rows among others."""
WIDENED = 0.15
"""How many of the rest read rows in windows, elements of lists or rows of tables."""


def draw_case(seed: int, world: World) -> FuzzCase:
    """The case of a seed, the same each time."""
    draw = Draw(f"case {seed}")
    others = Draw(f"among {seed}")
    streams = [
        Relation(one.name, one.name, one.columns, Time("t", one.stamps), arrival=True)
        for one in world.inputs
    ]
    maker = CaseMaker(draw, streams, seed, world.stamps)
    relation = _statement(maker, draw.pick((1, 1, 2, 2, 3)))
    if others.chance(AMONG):
        # By a draw of their own, so that every other case stays what it was
        maker = CaseMaker(others, streams, seed, world.stamps)
        form = others.pick((best, around))
        relation = form(maker, others.pick(streams))
    elif others.chance(WIDENED):
        relation = _above(CaseMaker(others, streams, seed, world.stamps))
    listed = ", ".join(f'"{column.name}"' for column in relation.columns)
    duck = f"SELECT {listed} FROM ({relation.duck})"
    views = tuple((view.name, view.text) for view in relation.views if view.beside)
    update = relation.keys if draw.chance(0.3) else ()
    return FuzzCase(seed, views, relation.text, duck, update)


def _statement(maker: CaseMaker, depth: int) -> Relation:
    """A SELECT over streams or, at greater depth, over other SELECTs."""
    draw = maker.draw
    match draw.randrange(10):
        case 0 | 1:
            return plain(maker, _source(maker, depth))
        case 2 | 3 | 4:
            return grouped(maker, _timed(maker, depth))
        case 5 | 6 | 7:
            count = 3 if draw.chance(0.2) else 2
            return joined(maker, _alike(maker, depth, count, meeting=True))
        case 8:
            return union(maker, _alike(maker, depth, draw.randint(2, 3)))
    source = _narrowed(maker) if draw.chance(0.4) else draw.pick(maker.streams)
    if draw.chance(0.4):
        return within_rows(maker, source, draw.pick(maker.streams))
    return history(maker, source)


def _above(maker: CaseMaker) -> Relation:
    """Rows of a stream that are widened, or a SELECT over these."""
    relation = widened(maker, maker.streams)
    match maker.draw.randrange(6):
        case 0 | 1:
            return grouped(maker, relation)
        case 2:
            return plain(maker, relation)
        case 3:
            return joined(maker, [relation, maker.draw.pick(maker.streams)])
    return relation


def _source(maker: CaseMaker, depth: int) -> Relation:
    """Something to read: a stream, a sub-query, a query of its own."""
    draw = maker.draw
    if depth <= 1:
        return draw.pick(maker.streams)
    relation = _statement(maker, depth - 1)
    if draw.chance(0.3):
        return relation
    return replace(relation.known_as(maker.view(), beside=draw.chance(0.7)), keys=())


def _timed(maker: CaseMaker, depth: int) -> Relation:
    """Something to read that still has a time."""
    for _ in range(3):
        relation = _source(maker, depth)
        if relation.time is not None:
            return relation
    return _narrowed(maker) if maker.draw.chance(0.5) else maker.draw.pick(maker.streams)


def _narrowed(maker: CaseMaker) -> Relation:
    """A stream after a SELECT that keeps its time and the order of its rows."""
    return plain(maker, maker.draw.pick(maker.streams), keep_time=True)


def _alike(maker: CaseMaker, depth: int, count: int, meeting: bool = False) -> list[Relation]:
    """Several relations whose times are told alike; of two that meet, one may have larger units."""
    first = _timed(maker, depth)
    found = [first]
    while len(found) < count:
        other = _timed(maker, max(1, depth - 1))
        assert first.time
        assert other.time
        apart = (other.time.unit, other.time.stamps) != (first.time.unit, first.time.stamps)
        if count == 2 and meeting and not first.time.stamps and not other.time.stamps:
            units = sorted((first.time.unit, other.time.unit))
            apart = units[1] % units[0] > 0
        if apart:
            other = first if first.time.unit > 1 else maker.draw.pick(maker.streams)
        found.append(other)
    return found
