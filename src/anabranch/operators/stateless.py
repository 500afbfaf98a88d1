"""Filters and projections: what a row meets on its way to a stateful operator or a sink."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import polars as pl

from anabranch.language.expression import (
    Call,
    Expression,
    Literal,
    Named,
    columns_of,
    to_polars,
)
from anabranch.operators.large import LARGE, in_pieces, with_values
from anabranch.operators.looked_up import LookedUp
from anabranch.operators.told import Stamp
from anabranch.operators.unfolding import IntoWindows, Unnested


@dataclass(frozen=True)
class Where:
    """Keeps the rows for which the predicate is true."""

    predicate: Expression

    def __str__(self) -> str:
        return f"where {self.predicate}"


@dataclass(frozen=True)
class Select:
    """Replaces the columns by computed ones."""

    columns: tuple[Named, ...]

    def __str__(self) -> str:
        return f"select {', '.join(map(str, self.columns))}"


class _Compiled(NamedTuple):
    expression: Expression
    """Kept here, so that nothing else can have its number."""
    columns: tuple[str, ...]
    by_kinds: dict[tuple[pl.DataType | None, ...], pl.Expr]


MOST_COMPILED = 4096
_COMPILED: dict[int, _Compiled] = {}
"""What this process has compiled, by the number of the expression: workers keep theirs for a whole run."""

Step: TypeAlias = Where | Select | IntoWindows | Unnested | LookedUp | Stamp
MULTIPLYING = (IntoWindows, Unnested, LookedUp, Stamp)
"""Steps that are called: they may make several rows of one, or none, or need to know of the epoch."""


def branch(predicates: Sequence[Expression], index: int) -> Where:
    """The rows of output `index` of a case filter; NULL counts as not true."""
    settled = [Call("coalesce", (predicate, Literal(False))) for predicate in predicates]
    wanted: Expression = settled[index] if index < len(settled) else Literal(True)
    for earlier in settled[:index]:
        wanted = wanted & ~earlier
    return Where(wanted)


def apply(steps: Iterable[Step], rows: pl.DataFrame) -> pl.DataFrame:
    """The rows after these steps; the engine's own columns (`__…`) pass through."""
    for step in steps:
        if isinstance(step, Where):
            rows = rows.filter(is_true(step.predicate, rows))
        elif isinstance(step, MULTIPLYING):
            rows = step(rows)
        else:
            own = [name for name in rows.columns if name.startswith("__")]
            rows = compute(rows, step.columns, own)
    return rows


def compute(rows: pl.DataFrame, columns: Iterable[Named], keep: Sequence[str] = ()) -> pl.DataFrame:
    """Named expressions over the rows, constants as long as the rows."""
    named = list(columns)
    if any(isinstance(part.expression, Call) and part.expression.weight > LARGE for part in named):
        rows, named = in_pieces(rows, named)
    computed = with_values(
        rows, [_compiled(part.expression, rows.schema).alias(part.name) for part in named]
    )
    return computed.select(*(part.name for part in named), *keep)


def _compiled(expression: Expression, schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """The Polars expression, made once for as long as expression and types are the same."""
    known = _COMPILED.get(id(expression))
    if known is None:
        if len(_COMPILED) >= MOST_COMPILED:
            _COMPILED.clear()
        columns = tuple(dict.fromkeys(columns_of(expression)))
        known = _COMPILED[id(expression)] = _Compiled(expression, columns, {})
    kinds = tuple(schema.get(name) for name in known.columns)
    if kinds not in known.by_kinds:
        known.by_kinds[kinds] = to_polars(expression, schema)
    return known.by_kinds[kinds]


def is_true(predicate: Expression, rows: pl.DataFrame) -> pl.Series:
    """For each of the rows, whether the predicate is true, also where it reads no column; never NULL."""
    truth = compute(rows, [Named("__holds", predicate)]).to_series()
    return truth.cast(pl.Boolean).fill_null(False)


def needed(steps: Sequence[Step], columns: Iterable[str]) -> set[str]:
    """The input columns that these columns after the steps depend on."""
    wanted = set(columns)
    for step in reversed(steps):
        if isinstance(step, Where):
            wanted |= set(columns_of(step.predicate))
        elif isinstance(step, MULTIPLYING):
            wanted = step.wanted(wanted)
        else:
            # All columns of a select are computed, also those that nothing wants
            wanted = {name for column in step.columns for name in columns_of(column.expression)}
    return wanted
