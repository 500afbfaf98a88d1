"""What must hold of joined rows beyond keys and time: conditions that cannot end a run before those that can.

A strict cast ends the run at a value that does not fit. So that this depends on the rows alone and not on
the shape of a join, such conditions are asked of whole combinations, and of those that all others let pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from anabranch.language.bounds import all_of
from anabranch.language.expression import Call, Expression, columns_of
from anabranch.language.tree import parts_of
from anabranch.operators.stateless import is_true

_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "negate", "abs"})
_SURE = _ARITHMETIC | {
    "=", "<>", "<", "<=", ">", ">=", "&", "|", "^", "not", "is_null", "is_not_null", "is_distinct", "in",
    "case", "coalesce", "greatest", "least", "like", "try_cast", "lower", "upper", "length", "starts_with",
    "ends_with", "contains", "year", "month", "day", "hour", "minute", "second", "epoch_us", "ip_prefix",
}  # fmt: skip
"""Functions that have a value, or NULL, for whatever they are given."""


def can_raise(condition: Expression, schema: Mapping[str, pl.DataType]) -> bool:
    """Whether a condition may end the run at some row; numbers with a point can leave their range."""
    called = {part.function for part in parts_of(condition) if isinstance(part, Call)}
    exact = any(isinstance(schema.get(name), pl.Decimal) for name in columns_of(condition))
    return not called <= (_SURE - _ARITHMETIC if exact else _SURE)


class Residual:
    """Conditions on joined rows."""

    def __init__(self, conditions: Sequence[Expression], schema: Mapping[str, pl.DataType]) -> None:
        self.read = {name for condition in conditions for name in columns_of(condition)}
        steps = ([], []) if not conditions else _parted(conditions, schema)
        self._steps = [step for step in map(all_of, steps) if step is not None]

    def __bool__(self) -> bool:
        return bool(self._steps)

    def holds(self, rows: pl.DataFrame) -> np.ndarray:
        """For each of the rows, whether all conditions are true."""
        held = np.ones(rows.height, dtype=bool)
        for step in self._steps:
            some = rows if held.all() else rows.filter(pl.Series(held))
            if some.height:
                held[held] = is_true(step, some).to_numpy()
        return held


def _parted(
    conditions: Sequence[Expression], schema: Mapping[str, pl.DataType]
) -> tuple[list[Expression], list[Expression]]:
    risky = [one for one in conditions if can_raise(one, schema)]
    return [one for one in conditions if not can_raise(one, schema)], risky
