"""What a query can read and what it gives: rows in both dialects, with their columns and their time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anabranch.testing.fuzz.draw import INTEGERS, Both, Draw, DrawnColumn


@dataclass(frozen=True)
class Time:
    """The ordered attribute of some rows: which column, and how much time one more of it is."""

    column: str
    stamps: bool
    unit: int = 1


@dataclass(frozen=True)
class ReadQuery:
    """A query that another one reads by name: registered before it, or a part of its text by WITH."""

    name: str
    text: str
    beside: bool


@dataclass(frozen=True)
class Relation:
    """Rows to read in FROM."""

    ours: str
    """A SELECT, or the name of a stream or query."""
    duck: str
    """A SELECT or the name of a table."""
    columns: tuple[DrawnColumn, ...]
    time: Time | None
    arrival: bool = False
    """Whether DuckDB's rows have `__n`, the order in which they came."""
    views: tuple[ReadQuery, ...] = ()
    """Queries that this one reads by name."""
    keys: tuple[str, ...] = ()
    """Columns that tell a group of an aggregate, if it can be told on update."""

    def read_as(self, alias: str) -> Both:
        """The relation in FROM."""
        ours, duck = (
            f"({text}) AS {alias}" if " " in text else f"{text} AS {alias}"
            for text in (self.ours, self.duck)
        )
        return Both(ours, duck, "")

    def known_as(self, name: str, beside: bool) -> Relation:
        """The same rows as a query of that name, which other queries read."""
        if not beside:
            return replace(self, ours=name, views=(*self.views, ReadQuery(name, self.ours, False)))
        kept = tuple(view for view in self.views if view.beside)
        return replace(self, ours=name, views=(*kept, ReadQuery(name, self.text, True)))

    @property
    def text(self) -> str:
        """The whole statement, with what WITH names."""
        within = [f"{view.name} AS ({view.text})" for view in self.views if not view.beside]
        return f"WITH {', '.join(within)} {self.ours}" if within else self.ours

    def ties(self, alias: str, keys: Sequence[Both], read: Sequence[Both]) -> str:
        """What tells rows of the same time apart in DuckDB, with these keys: their arrival.

        Within a window of the time, which the time itself is, it is the content of what is read.
        """
        assert self.time is not None
        time = f'{alias}."{self.time.column}"'
        if all(key.duck != time for key in keys):
            return f"{alias}.__n"
        texts = [time, *(part.duck for part in (*keys, *read))]
        names = (column.of(alias).duck for column in self.columns)
        return ", ".join(f"{name} NULLS FIRST" for name in names if any(name in t for t in texts))

    def untimed(self, key: Both) -> Both:
        """The key, which a SELECT may have computed of the time, so that it no longer tells that."""
        assert self.time is not None
        computed = " " in self.duck and not key.duck.endswith(f'."{self.time.column}"')
        if not computed or key.kind not in (*INTEGERS, "stamp", "day"):
            return key
        return Both(f"CAST({key.ours} AS VARCHAR)", f"CAST({key.duck} AS VARCHAR)", "text")

    def seen_as(self, alias: str, qualified: bool = True) -> list[Both]:
        """The columns as an expression over this relation writes them."""
        seen = [column.of(alias) for column in self.columns]
        if qualified:
            return seen
        return [
            replace(both, ours=column.name) for both, column in zip(seen, self.columns, strict=True)
        ]


def select(items: Sequence[Both], read: Both, where: Both | None) -> Both:
    """A SELECT of these items."""
    ours, duck = (
        ", ".join(texts) for texts in zip(*((i.ours, i.duck) for i in items), strict=True)
    )
    ours, duck = f"SELECT {ours} FROM {read.ours}", f"SELECT {duck} FROM {read.duck}"
    if where is not None:
        ours, duck = f"{ours} WHERE {where.ours}", f"{duck} WHERE {where.duck}"
    return Both(ours, duck, "")


@dataclass
class CaseMaker:
    """What is at hand while a case is drawn."""

    draw: Draw
    streams: list[Relation]
    case: int
    stamps: bool
    names: int = 0

    def name(self, prefix: str) -> str:
        """A name that the case has not used yet."""
        self.names += 1
        return f"{prefix}{self.names}"

    def view(self) -> str:
        """A name for a query that others read; cases of one world must not share it."""
        return self.name(f"v{self.case}_")
