"""What every stateful operator can do, and the clock it is given.

On the split side `intake` turns rows into what the operator needs of them, with a locator, and
`combine` may shrink them. On the site side `advance` takes the epoch's rows to results and new state.
`tables` says what it remembers. None has a side effect: an epoch can be done again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import polars as pl

from anabranch.language.expression import Named
from anabranch.language.groups import Aggregate, History
from anabranch.language.order import Ordered
from anabranch.operators.partials import SEQ, TIME, Partial
from anabranch.operators.stateless import compute
from anabranch.routing.frame import Frame
from anabranch.routing.hashing import BLOCK_ROWS, hash_columns
from anabranch.routing.locator import locator, slot_of
from anabranch.state.group import SiteState
from anabranch.state.segment import LOCATOR
from anabranch.state.table import StateTable

NO_KEY = "__row"
"""A column that stands for the keys where there are none."""
END_OF_TIME = 1 << 62
"""The watermark of an input that has ended."""


@dataclass(frozen=True)
class Moment:
    """The watermark of an operator's input before and after an epoch; None before the first row."""

    before: int | None
    after: int | None


@dataclass(frozen=True)
class Spread:
    """How rows are spread over slots: by the hash of these terms, or of the keys if None."""

    slots: int
    terms: Sequence[pl.Series] | None = None
    placed: np.ndarray | int | None = None
    """The slot of each row, or of all of them, where it is known beforehand."""
    anywhere: bool = False
    """Whether rows that meet nothing, for want of a key, may go to any slot."""


class Operator(Protocol):
    """A stateful operator of a subquery."""

    combines: bool
    """Whether rows can be sub-aggregated; some operators need every single one."""

    span: int
    """State rows whose due times lie within one span may share a segment."""

    def intake(self, rows: pl.DataFrame, spread: Spread, input: int = 0) -> pl.DataFrame:
        """The rows of one input as the operator wants them, with their locators."""

    def combine(self, frame: Frame) -> pl.DataFrame:
        """Fewer rows of the same meaning, before they are sent; asked for only if `combines`."""

    def is_combined(self, frame: Frame) -> bool:
        """Whether rows have been through `combine`."""

    def advance(
        self, frames: Sequence[Frame | None], state: SiteState, moment: Moment
    ) -> Iterable[pl.DataFrame]:
        """The results of this epoch, with locators; what must be remembered goes to the state.

        `frames` has what came to each input. Results may come in several frames, of bounded size.
        """

    @property
    def spills(self) -> bool:
        """Whether rows can be worked on without those put aside, and what is missing be given later."""

    def owed(self, state: SiteState, cuts: Sequence[int]) -> Iterable[pl.DataFrame]:
        """The results that rows of different generations give with each other; asked only if it `spills`.

        A generation ends with each of these epochs, the last one with the state.
        """

    @property
    def tables(self) -> tuple[StateTable, ...]:
        """What it remembers."""


class InOneGeneration:
    """The way of operators whose results would be wrong without what is put aside: rows have to wait."""

    spills = False

    def owed(self, state: SiteState, cuts: Sequence[int]) -> Iterable[pl.DataFrame]:
        raise NotImplementedError


class RowByRow:
    """The way of operators that need every single row: nothing is sub-aggregated before it is sent."""

    combines = False

    def combine(self, frame: Frame) -> pl.DataFrame:
        raise NotImplementedError

    def is_combined(self, frame: Frame) -> bool:
        return False


class OneInput:
    """The way of operators with one input: an epoch's results are one frame."""

    def advance(
        self, frames: Sequence[Frame | None], state: SiteState, moment: Moment
    ) -> Iterator[pl.DataFrame]:
        yield self.step(frames[0], state, moment)

    def step(self, frame: Frame | None, state: SiteState, moment: Moment) -> pl.DataFrame:
        """The results of this epoch, with locators."""
        raise NotImplementedError


def evaluate(
    node: Aggregate | History, partials: Sequence[Partial], rows: pl.DataFrame, in_order: bool
) -> pl.DataFrame:
    """The keys and the arguments of the aggregates; with `in_order` also time and arrival."""
    arguments: dict[str, pl.Series] = {}
    for partial in partials:
        if partial.argument and partial.argument not in arguments:
            values = compute(rows, [Named("value", partial.call.arguments[0])])["value"]
            arguments[partial.argument] = partial.prepare(values).alias(partial.argument)
    if node.keys:
        frame = compute(rows, node.keys).with_columns(arguments.values())
    else:
        # A frame without columns has no height
        frame = pl.DataFrame([pl.zeros(rows.height, pl.UInt8, eager=True).alias(NO_KEY)])
        frame = frame.with_columns(arguments.values())
    if in_order:
        ordered = node.input.ordered
        assert ordered
        sequence = node.sequence if isinstance(node, Aggregate) else None
        time = time_of(rows, ordered if sequence is None else replace(ordered, column=sequence))
        frame = frame.with_columns(time.alias(TIME), rows[SEQ])
    return frame


def add_locator(
    frame: pl.DataFrame, keys: Sequence[str], spread: Spread, salt: np.ndarray | None = None
) -> pl.DataFrame:
    """The frame with a locator: the slot, then the hash of the keys with the salt."""
    locators = np.empty(frame.height, dtype=np.uint64)
    columns = [frame[key] for key in keys]
    # Block by block, so that all steps from key to locator happen in a core's own cache
    for start in range(0, frame.height, BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, frame.height))
        hashes = hash_columns([column[block] for column in columns], block.stop - start)
        slots = _slots(spread, block, hashes)
        if salt is not None:
            hashes = salted(hashes, salt[block])
        locators[block] = locator(slots, hashes)
    return frame.with_columns(pl.Series(LOCATOR, locators))


def _slots(spread: Spread, block: slice, hashes: np.ndarray) -> np.ndarray:
    """The slots of a block of rows whose keys have these hashes."""
    if isinstance(spread.placed, np.ndarray):
        return spread.placed[block]
    if spread.placed is not None:
        return np.full(len(hashes), spread.placed, dtype=np.uint64)
    if spread.terms is not None:
        hashes = hash_columns([term[block] for term in spread.terms], len(hashes))
    return slot_of(hashes, spread.slots)


def results_of(rows: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """The columns of a node's schema; the locator stays, it tells where further work on them is."""
    return rows.select(
        LOCATOR, *(pl.col(name).cast(kind) for name, kind in schema.items() if name != LOCATOR)
    )


def gathered(parts: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Few frames of at least so many rows instead of many of few."""
    waiting: list[pl.DataFrame] = []
    height = 0
    for part in parts:
        waiting.append(part)
        height += part.height
        if height >= rows:
            yield pl.concat(waiting, rechunk=True)
            waiting, height = [], 0
    if waiting:
        yield pl.concat(waiting, rechunk=True)


def no_results(schema: pl.Schema) -> pl.DataFrame:
    return pl.DataFrame(schema={LOCATOR: pl.UInt64(), **schema})


def salted(hashes: np.ndarray, salt: np.ndarray) -> np.ndarray:
    """Hashes that differ with an integer too, e.g. the number of a window."""
    # A well mixed hash stays so under addition; the odd factor spreads neighbouring salts
    spread: np.ndarray = salt.astype(np.uint64)
    spread *= np.uint64(0x9E3779B97F4A7C15)
    spread += hashes
    return spread


def time_of(rows: pl.DataFrame, ordered: Ordered) -> pl.Series:
    """The ordered attribute as 64-bit integers: microseconds for timestamps."""
    column = rows[ordered.column]
    if ordered.timestamps:
        return column.dt.cast_time_unit("us").to_physical()
    return column.cast(pl.Int64)


def as_time(values: pl.Expr, timestamps: bool) -> pl.Expr:
    """Integers as the type of the ordered attribute."""
    return values.cast(pl.Datetime("us")) if timestamps else values
