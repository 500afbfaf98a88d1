"""Results that replace earlier ones: what `emit="update"` gives, and what may read it.

An update aggregate gives a group again whenever it changes, so a row stands for its group until the next
one comes. Steps that look at a row alone may follow. Whatever counts, joins or orders rows would take old
values for rows of their own and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from anabranch.errors import LanguageError
from anabranch.language.expression import Column, Expression, Named, columns_of

GONE = "gone"
"""The column that tells, of results whose groups can leave them, the rows that are there no more."""


@dataclass(frozen=True)
class Updates:
    """What is known of rows that replace earlier ones."""

    keys: frozenset[str]
    """The columns that never change for a group."""
    leave: bool = False
    """Whether a group can fail a condition that it has met before."""
    derived: frozenset[str] = frozenset()
    """Those of the keys that follow from the others, as the end of a window does from its start."""
    whole: bool = True
    """Whether the keys still tell every two groups apart: a projection may leave some out."""

    def where(self, predicates: Iterable[Expression]) -> Updates:
        """Behind a filter: what rests on the keys alone holds for a group once and for all."""
        read = {name for predicate in predicates for name in columns_of(predicate)}
        return replace(self, leave=self.leave or not read <= self.keys)

    def select(self, columns: Iterable[Named]) -> Updates:
        """Behind a projection."""
        kept = {
            column.name: column.expression.name
            for column in columns
            if isinstance(column.expression, Column) and column.expression.name in self.keys
        }
        return replace(
            self,
            keys=frozenset(kept),
            derived=frozenset(name for name, key in kept.items() if key in self.derived),
            whole=self.whole and self.keys - self.derived <= {*kept.values()},
        )


def refuse_updates(what: str, updates: Updates | None) -> None:
    """Raises LanguageError if an operator that needs every row for good would read updates."""
    if updates is None:
        return
    message = (
        "{what} reads results of {update}. These come again with every change, so old values would be taken "
        "as rows. Give the aggregate below a window ({windows}) and let it emit its final results; over "
        "update results only filters and computed columns can stand, on their way to a sink."
    )
    python = "emit='update'", "time // 60, tumble, hop, session, rows"
    sql = "EMIT UPDATE", "time/60, TUMBLE, HOP, SESSION, COUNT_WINDOW"
    told, told_in_sql = (
        message.format(what=what, update=update, windows=windows)
        for update, windows in (python, sql)
    )
    raise LanguageError(told).or_in_sql(told_in_sql)


def check_gone(name: str, schema: Mapping[str, object], updates: Updates | None) -> None:
    """Raises LanguageError if results that need the mark cannot tell which group it is about."""
    if updates is None or not updates.leave:
        return
    if GONE in schema:
        raise LanguageError(
            f"Query '{name}': its results get a column '{GONE}' that marks groups which no longer meet "
            "its conditions, but they have one already. Give that one another name."
        )
    if not updates.whole:
        raise LanguageError(
            f"Query '{name}': groups can leave its results, for they can cease to meet its conditions, but "
            "the results lack a column that the groups are told apart by, so nobody could tell which one has "
            "left. Keep all columns of the GROUP BY, of windows the start."
        )
