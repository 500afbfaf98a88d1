"""Groups by sorting: rows ordered by locator, equal keys side by side.

Sorting 64-bit locators is several times faster than hashing tuples of keys, and the result is already
in the order of a segment. Locators collide now and then (48 bits of hash), so the real keys are always
compared; only rows of a collision pay for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from anabranch.operators.partials import Partial
from anabranch.routing.frame import widen
from anabranch.state.segment import LOCATOR, sort_by_locator

GROUP = "__group"
OPEN = "open"
"""The state table of groups whose windows are open."""
MAX_EXPANDED = 4_000_000
"""Rows made at a time where rows are repeated: of panes for their windows, of histories for each row."""


@dataclass(frozen=True)
class Groups:
    """Rows in group order; `starts[g]` is the first row of group g."""

    rows: pl.DataFrame
    starts: np.ndarray
    narrow_keys: tuple[str, ...] = ()
    """Keys not widened yet: only the first row of each group will be asked for them."""

    @property
    def count(self) -> int:
        return len(self.starts)

    def ids(self) -> np.ndarray:
        """The group of each row, ascending."""
        lengths = np.diff(np.append(self.starts, self.rows.height))
        return np.repeat(np.arange(self.count, dtype=np.uint32), lengths)


def group(rows: pl.DataFrame, keys: Sequence[str], narrowed: Collection[str] = ()) -> Groups:
    """The rows grouped by keys; their locator must be a function of the keys."""
    ordered = sort_by_locator(rows)
    edge = _changes(ordered, [LOCATOR])
    differs = _changes(ordered, keys)
    if np.any(differs & ~edge):
        ordered = _part_collisions(ordered, keys, edge, differs)
        differs = _changes(ordered, keys)
    narrow_keys = tuple(key for key in keys if key in narrowed)
    values = [name for name in narrowed if name not in narrow_keys]
    return Groups(widen(ordered, values), np.flatnonzero(edge | differs), narrow_keys)


def _changes(rows: pl.DataFrame, keys: Sequence[str]) -> np.ndarray:
    """Whether each row differs from the one before it; NULL equals NULL."""
    changed = np.zeros(rows.height, dtype=bool)
    changed[:1] = True
    for key in keys:
        column = rows[key]
        if column.null_count() == 0 and column.dtype.is_integer():
            values = column.to_numpy()
            changed[1:] |= values[1:] != values[:-1]
        else:
            changed[1:] |= column[1:].ne_missing(column[:-1]).to_numpy()
    return changed


def _part_collisions(
    rows: pl.DataFrame, keys: Sequence[str], edge: np.ndarray, differs: np.ndarray
) -> pl.DataFrame:
    """The rows with equal keys side by side also where different keys share a locator."""
    run = np.cumsum(edge) - 1
    mixed = np.zeros(run[-1] + 1, dtype=bool)
    mixed[run[differs & ~edge]] = True
    where = np.flatnonzero(mixed[run])
    part = rows[where].with_row_index("__at")
    number = part.group_by([LOCATOR, *keys], maintain_order=True).agg(pl.col("__at"))
    numbers = np.empty(len(where), dtype=np.int64)
    for index, at in enumerate(number["__at"]):
        numbers[at.to_numpy()] = index
    order = np.arange(rows.height)
    order[where] = where[np.lexsort((numbers, run[where]))]
    return rows[order]


def reduce(
    groups: Groups, keys: Sequence[str], partials: Sequence[Partial], merge: bool
) -> pl.DataFrame:
    """One row per group in locator order: locator, keys, and the partial aggregates."""
    names = [name for partial in partials for name in partial.columns]
    if merge and groups.count == groups.rows.height:
        return widen(groups.rows.select(LOCATOR, *keys, *names), groups.narrow_keys)
    expressions: list[pl.Expr] = []
    columns: list[pl.Series] = []
    for partial in partials:
        direct = partial.shortcut(groups.rows, groups.starts, merge)
        if direct is not None:
            columns.append(direct.alias(partial.name))
        elif partial.columnar:
            columns += partial.compute(groups.rows, groups.ids(), groups.starts, merge)
        else:
            expressions += partial.merge(groups.rows) if merge else partial.update(groups.rows)
    if expressions:
        ids = pl.Series(GROUP, groups.ids()).set_sorted()
        reduced = groups.rows.with_columns(ids).group_by(GROUP, maintain_order=True)
        columns += reduced.agg(expressions).drop(GROUP).get_columns()
    heads = groups.rows.select(LOCATOR, *keys)[pl.Series(groups.starts.astype(np.uint32))]
    heads = widen(heads, groups.narrow_keys)
    return heads.with_columns(columns).select(LOCATOR, *keys, *names)


def cuts(length: np.ndarray) -> list[int]:
    """Where to cut stretches of these lengths so that few rows are repeated at a time."""
    ends = np.cumsum(length)
    found = [0]
    while found[-1] < len(length):
        before = ends[found[-1] - 1] if found[-1] else 0
        upto = int(np.searchsorted(ends, before + MAX_EXPANDED, side="right"))
        found.append(max(found[-1] + 1, upto))
    return found
