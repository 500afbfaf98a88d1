"""Slots of a join on their way to another shape: what lies between inputs and results is made again (P4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from anabranch.adapt.protocols.replanning import NO_TURN
from anabranch.engine.orders import Orders
from anabranch.language.shape import JoinShape, read_shape
from anabranch.operators.join import SymmetricJoin
from anabranch.operators.tree import table_of
from anabranch.plan.subquery import Subquery
from anabranch.routing.ranges import intersect, subtract, union
from anabranch.routing.reach import SlotFlow
from anabranch.routing.shaped import FLAT, Track, by_shape
from anabranch.state.group import Masked, SiteState
from anabranch.state.segment import Ranges, SegmentRef


@dataclass(frozen=True)
class Group:
    """Slots that work in one shape, or on one track."""

    slots: Ranges
    shape: str
    track: Track | None = None
    there: tuple[str, ...] | None = None
    """If they come to the shape with this epoch: those that their state has all tables of."""


def groups_of(orders: Orders, subquery: Subquery, flow: SlotFlow) -> Iterator[Group]:
    """The slots of a flow by their shapes; nearly always all of them in the flat one."""
    turn = orders.turns.get(subquery.name, NO_TURN)
    if turn == NO_TURN:
        yield Group(flow.slots, FLAT)
        return
    former = by_shape(turn.changing, [])
    tracked = [(one.first, one.end) for one in turn.tracks]
    for shape, ranges in by_shape(turn.shapes, flow.slots).items():
        slots = intersect(flow.slots, sorted(ranges))
        for before, some in former.items():
            changed = intersect(slots, sorted(some))
            # Where a track has ended, the new shape has all of its tables
            for there, part in (
                ((before, shape), intersect(changed, sorted(turn.ended))),
                ((before,), subtract(changed, sorted(turn.ended))),
            ):
                if part:
                    yield Group(part, shape, there=there)
        for track in turn.tracks:
            if found := intersect(slots, [(track.first, track.end)]):
                yield Group(found, shape, track)
        settled = subtract(slots, union(turn.slots, tracked))
        if settled:
            yield Group(settled, shape)


def reshape(
    join: SymmetricJoin, piece: SiteState, there: Sequence[str], before: int | None,
    name: Callable[[str], str], fsync: bool,
) -> tuple[list[SegmentRef], list[Masked]]:  # fmt: skip
    """Brings a piece of state to its shape: keeps the tables that match, drops others, makes the missing."""
    needed = _tables(join, piece.shape)
    kept = needed & {table for one in there for table in _tables(join, one)}
    dropped = {table.name for table in join.tables if table.between} - kept
    masked = [
        Masked(ref.file, ref.batch, tuple(slots))
        for ref in piece.refs
        if ref.table in dropped and (slots := piece.wanted(ref))
    ]
    piece.refs = [ref for ref in piece.refs if ref.table not in dropped]
    written: list[SegmentRef] = []
    if piece.shape != FLAT:
        for one in join.tree(piece.shape).joins[:-1]:
            if one.table in needed - kept:
                for number, rows in enumerate(one.all_rows(piece, before)):
                    written += _write(join, piece, one.table, number, rows, name, fsync)
    return written, masked


def _write(
    join: SymmetricJoin, piece: SiteState, table: str, number: int, rows: pl.DataFrame,
    name: Callable[[str], str], fsync: bool,
) -> list[SegmentRef]:  # fmt: skip
    """Rows of an intermediate on the disk, and among the state that is looked into from now on."""
    aside = piece.part(piece.owned)
    aside.append(table, rows)
    written = aside.write(lambda of: name(f"{of}-again-{number}"), join.span, fsync)
    piece.refs = [*piece.refs, *written]
    return written


def _tables(join: SymmetricJoin, shape: str) -> set[str]:
    """The tables of the intermediates of a shape."""
    if shape == FLAT:
        return set()
    known: JoinShape = read_shape(shape, len(join.inlets))
    return {table_of(inputs) for inputs in known.intermediates}
