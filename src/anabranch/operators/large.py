"""Large expressions, computed piece by piece.

Polars takes time that grows with the square of an expression's depth, and a thousand terms are a second.
Pieces of a large expression become columns of their own, which the rest then reads; each is dropped after
its last use. Values and the order of operations stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import polars as pl

from anabranch.language.expression import Call, Column, Expression, Named, parts_of, to_polars

LARGE = 64
"""Parts of an expression up to which it is computed at once."""
PIECE = 24
"""Parts of a piece, unless one call has more."""
BRANCHES = 8
"""Branches of a CASE, which Polars nests, in a piece."""
SPENT = 8
"""Pieces that have been read for the last time which may wait to be dropped."""
COMPARED = 3
"""Arguments of GREATEST and LEAST in a piece: each one more doubles what Polars computes."""


def in_pieces(rows: pl.DataFrame, named: Sequence[Named]) -> tuple[pl.DataFrame, list[Named]]:
    """The rows with columns for the pieces, and what is left to compute of them."""
    pieces = _Pieces(rows)
    rest = [Named(part.name, pieces.reduced(part.expression)) for part in named]
    return pieces.rows, rest


class _Pieces:
    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows
        self.uses: Counter[str] = Counter()
        self.made = 0
        self.spent: list[str] = []

    def reduced(self, whole: Expression) -> Expression:
        """An expression of few parts over the rows and the pieces made for it."""
        if not isinstance(whole, Call) or whole.weight <= LARGE:
            return whole
        parts = parts_of(whole)
        used = Counter(
            id(inner) for part in parts if isinstance(part, Call) for inner in part.arguments
        )
        changed: dict[int, Expression] = {}
        for part in parts:
            changed[id(part)] = part
            if not isinstance(part, Call):
                continue
            arguments = [changed[id(inner)] for inner in part.arguments]
            call = self._split(part.function, arguments)
            if part is not whole and (used[id(part)] > 1 or call.weight > PIECE):
                changed[id(part)] = self._piece(call, used[id(part)])
            else:
                changed[id(part)] = call
        return changed[id(whole)]

    def _split(self, function: str, arguments: list[Expression]) -> Call:
        """A call that Polars would nest once per argument, as several calls."""
        if function == "case" and len(arguments) > 2 * BRANCHES + 1:
            *branches, rest = arguments
            for begin in reversed(range(2 * BRANCHES, len(branches), 2 * BRANCHES)):
                rest = self._piece(Call("case", (*branches[begin : begin + 2 * BRANCHES], rest)), 1)
            return Call("case", (*branches[: 2 * BRANCHES], rest))
        if function in ("greatest", "least") and len(arguments) > COMPARED + 1:
            first, others = arguments[0], arguments[1:]
            while len(others) > COMPARED:
                first = self._piece(Call(function, (first, *others[:COMPARED])), 1)
                others = others[COMPARED:]
            return Call(function, (first, *others))
        return Call(function, tuple(arguments))

    def _piece(self, call: Call, uses: int) -> Column:
        """A column with the values of a call that so many others read."""
        name = f"__piece{self.made}"
        self.made += 1
        self.rows = with_values(self.rows, [to_polars(call, self.rows.schema).alias(name)])
        self.uses[name] = uses
        self._drop_spent(call)
        return Column(name)

    def _drop_spent(self, call: Call) -> None:
        """Drops pieces that nothing after this call reads, some at a time."""
        for name in _read(call):
            if name in self.uses:
                self.uses[name] -= 1
                if self.uses[name] == 0:
                    self.spent.append(name)
        if len(self.spent) >= SPENT:
            self.rows = self.rows.drop(self.spent)
            self.spent = []


def _read(call: Call) -> Iterator[str]:
    """The columns in a call, once for each time that they are read."""
    waiting: list[Expression] = [call]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Column):
            yield part.name
        elif isinstance(part, Call):
            waiting += part.arguments


def with_values(rows: pl.DataFrame, wanted: Sequence[pl.Expr]) -> pl.DataFrame:
    """The rows with these columns, constants as long as the rows."""
    try:
        # with_columns, unlike select, gives a constant the height of the frame
        return rows.with_columns(wanted)
    except (pl.exceptions.ShapeError, pl.exceptions.InvalidOperationError):
        # Where every row takes the same constant of a CASE, Polars gives one value, which it does not
        # take for a constant. What else is wrong is so again
        return rows.with_columns(_as_long(rows, one) for one in wanted)


def _as_long(rows: pl.DataFrame, value: pl.Expr) -> pl.Series:
    """A value for each of the rows, where Polars may give one for all."""
    found = rows.select(value).to_series()
    return found if len(found) == rows.height else found.new_from_index(0, rows.height)
