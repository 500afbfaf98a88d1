"""What rows of different generations owe each other: combinations of a join with rows of more than one (S4).

Few slots are looked at at a time, a piece, with all their generations at once. Where a single slot has more
than fits, because of a hot key, blocks of rows take the place of slots, in all choices of one of each input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from anabranch.operators.base import gathered
from anabranch.operators.lookup import meet
from anabranch.operators.meeting import Meeting
from anabranch.operators.runs import CHUNK
from anabranch.state.group import SiteState

if TYPE_CHECKING:
    from anabranch.operators.join import SymmetricJoin

_GENERATION = "__generation"


def owed_by(join: SymmetricJoin, piece: SiteState, cuts: Sequence[int]) -> Iterator[pl.DataFrame]:
    """The results of a join that were not given while generations of its state were put aside."""
    yield from gathered(_owed_by(join, piece, cuts), CHUNK)


def _owed_by(join: SymmetricJoin, piece: SiteState, cuts: Sequence[int]) -> Iterator[pl.DataFrame]:
    nothing = replace(piece, refs=[])
    choices = _choices(join, piece, cuts, []) if piece.oversized else [_all(join, piece, cuts)]
    for rows in choices:
        meeting = meet(join.sides(rows), nothing, None, join.node.bounds)
        if meeting is not None:
            yield from join.joined(meeting, _of_several_generations(meeting))
            piece.compared += meeting.pairs


def _all(join: SymmetricJoin, piece: SiteState, cuts: Sequence[int]) -> list[pl.DataFrame | None]:
    """All rows of each input."""
    found = [list(_numbered(piece.frames(inlet.table), cuts)) for inlet in join.inlets]
    return [
        join.in_order(pl.concat([frame.select(some[0].columns) for frame in some]))
        if some
        else None
        for some in found
    ]


def _choices(
    join: SymmetricJoin, piece: SiteState, cuts: Sequence[int], taken: list[pl.DataFrame]
) -> Iterator[list[pl.DataFrame]]:
    """A block of each input, in all ways that are of more than one generation."""
    if len(taken) == len(join.inlets):
        if len({block[_GENERATION][0] for block in taken}) > 1:
            yield taken
        return
    for block in _numbered(piece.blocks(join.inlets[len(taken)].table), cuts):
        yield from _choices(join, piece, cuts, [*taken, block])


def _numbered(
    frames: Iterator[tuple[int, pl.DataFrame]], cuts: Sequence[int]
) -> Iterator[pl.DataFrame]:
    """Rows with the number of their generation: each ends with the epoch of a cut."""
    for born, frame in frames:
        number = int(np.searchsorted(cuts, born))
        yield frame.with_columns(pl.lit(number, pl.Int32).alias(_GENERATION))


def _of_several_generations(meeting: Meeting) -> Iterator[list[np.ndarray]]:
    """The combinations whose rows are not all of one generation: those of one have been given."""
    numbers = [rows[_GENERATION].to_numpy() for rows in meeting.rows]
    for chosen in meeting.combinations():
        first, *others = (of[places] for of, places in zip(numbers, chosen, strict=True))
        apart = np.zeros(len(first), dtype=bool)
        for other in others:
            apart |= other != first
        yield [places[apart] for places in chosen]
