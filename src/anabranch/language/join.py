"""The join of two or more inputs, as a node of the query graph."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.bounds import Bounds, Telling, bounds_of, conjuncts
from anabranch.language.expression import (
    Call,
    Column,
    Expression,
    substitute,
    type_of,
)
from anabranch.language.kinds import type_words
from anabranch.language.matching import cast_to_write, comparable, in_one_type, right_names
from anabranch.language.node import Node, require_boolean, require_distinct
from anabranch.language.order import Near, Ordered, Steps
from anabranch.language.updates import refuse_updates

JOINS = ("inner", "left", "right", "full", "semi", "anti")
MOST_ROWS = 1 << 31
"""Rows that a join may go back: more would not be kept anyway, and their numbers can be counted with."""
FILTERING = ("semi", "anti")
"""Joins whose results are rows of the left input alone."""


@dataclass(frozen=True, eq=False)
class Join(Node):
    """The combinations of one row of each input for which all keys are equal and the predicate holds.

    `keys` has as many expressions for each input; without any, every combination is looked at. An outer
    join has the rows of its outer side that meet none too, with NULL beside them; a semi-join has the left
    rows that meet one, an anti-join those that meet none. Only inner joins have more than two inputs.
    Columns that an input before has too are called `<name>_<suffix>`; the predicate is over all columns.
    """

    parts: tuple[Node, ...]
    kind: str
    keys: tuple[tuple[Expression, ...], ...]
    predicate: Expression | None = None
    suffixes: tuple[str, ...] = ("right",)
    rows: int | None = None
    """Not by time: a row meets the last so many rows of the other input, in the order of both."""
    written: Mapping[str, str] = field(default_factory=dict)
    """How a text names columns of the joined rows, where it has other names for them: for messages."""
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        if self.kind not in JOINS:
            raise LanguageError(f"A join is '{self.kind}'; expected one of {', '.join(JOINS)}.")
        for part in self.parts:
            refuse_updates("A join", part.updates)
        self._check_keys()
        object.__setattr__(self, "keys", self._comparable_keys())
        names = [name for known in self.names for name in known.values()]
        require_distinct([name for name in names if not name.startswith("__")], "JOIN")
        if self.predicate is not None:
            require_boolean(self.predicate, self.joined, "JOIN ON")
        schema = self.parts[0].schema if self.kind in FILTERING else self.joined
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "ordered", self._order())

    def _check_keys(self) -> None:
        if self.rows is not None:
            self._check_rows(self.rows)
        if not self.keys[0] and self.predicate is None and self.rows is None:
            raise LanguageError(
                "This join has no condition between its two inputs, so every row would meet every row: "
                "say which columns must be equal."
            )
        if not self.keys[0] and self.kind != "inner":
            raise LanguageError(
                f"A {self.kind} join needs an equality between its two inputs; only an inner join does "
                "without. Say which columns must be equal."
            )

    def _check_rows(self, rows: int) -> None:
        if rows < 1:
            raise LanguageError(f"A join within {rows} rows has no pairs: say 1 or more.")
        if rows > MOST_ROWS:
            raise LanguageError(f"A join within {rows} rows: expected at most {MOST_ROWS}.")
        times = [part.ordered for part in self.parts]
        if len(times) != 2 or self.kind != "inner" or self.keys[0]:
            raise LanguageError(
                "A join within a number of rows is an inner join of two inputs, and its equalities are "
                "part of its predicate."
            )
        if times[0] is None or times[1] is None or times[0].timestamps != times[1].timestamps:
            raise LanguageError(
                "A join within a number of rows needs inputs with ordered attributes that can be compared: "
                "keep them in the select."
            )

    def _comparable_keys(self) -> tuple[tuple[Expression, ...], ...]:
        schemas = [part.schema for part in self.parts]
        found = []
        for group in zip(*self.keys, strict=True):
            kinds = [
                type_of(key, schema, f"JOIN ON {key}, {side} side")
                for key, schema, side in zip(group, schemas, self._sides, strict=True)
            ]
            for key, kind in zip(group[1:], kinds[1:], strict=True):
                if not comparable(kinds[0], kind):
                    raise LanguageError(
                        f"JOIN ON {group[0]} = {key}: the left is {type_words(kinds[0])} and the right is "
                        f"{type_words(kind)}; "
                        f"expected one type. {cast_to_write((group[0], kinds[0]), (key, kind))}"
                    )
            found.append(in_one_type(group, schemas))
        return tuple(zip(*found, strict=True)) if found else self.keys

    @property
    def _sides(self) -> list[str]:
        return ["left", *("right" for _ in self.parts[1:])]

    @functools.cached_property
    def names(self) -> tuple[Mapping[str, str], ...]:
        """For each input what its columns are called in the joined rows."""
        first = {name: name for name in self.parts[0].schema}
        found, taken = [first], list(first)
        for part, suffix in zip(self.parts[1:], self.suffixes, strict=True):
            found.append(right_names(taken, part.schema, suffix))
            taken += found[-1].values()
        return tuple(found)

    @property
    def certain(self) -> Sequence[int]:
        """The inputs whose columns are never NULL for want of a row."""
        few = {"left": (0,), "right": (1,), "full": (), "semi": (0,), "anti": (0,)}
        return few.get(self.kind, range(len(self.parts)))

    @functools.cached_property
    def joined(self) -> pl.Schema:
        """The columns of all inputs side by side."""
        return pl.Schema(
            {
                names[own]: kind
                for part, names in zip(self.parts, self.names, strict=True)
                for own, kind in part.schema.items()
            }
        )

    def time_names(self) -> list[str]:
        """What the ordered attributes of the inputs are called, as far as they have any."""
        pairs = zip(self.parts, self.names, strict=True)
        shown = [names[part.ordered.column] for part, names in pairs if part.ordered]
        return [self.written.get(name, name) for name in shown]

    # -- time -------------------------------------------------------------------------------------

    @property
    def bounds(self) -> Bounds:
        """How far apart in stream time the rows of two inputs can be that meet."""
        return self._timing[0]

    @property
    def residual(self) -> list[Expression]:
        """What must hold of joined rows beyond equal keys and the bounds."""
        return self._timing[1]

    @functools.cached_property
    def _timing(self) -> tuple[Bounds, list[Expression]]:
        if self.rows is not None:
            return ((None, None), (None, None)), conjuncts(self.predicate)
        columns: dict[str, Telling] = {}
        for number, (part, names) in enumerate(zip(self.parts, self.names, strict=True)):
            time = part.ordered
            if time is None or time.unit is None:
                continue
            columns[names[time.column]] = Telling(number, time.unit)
            for near in time.near:
                columns[names[near.column]] = Telling(number, near.unit, -near.high, -near.low)
        conditions = [*conjuncts(self.predicate), *self.equalities]
        bounds, rest = bounds_of(len(self.parts), conditions, columns)
        equal = set(map(id, self.equalities))
        return bounds, [condition for condition in rest if id(condition) not in equal]

    @functools.cached_property
    def equalities(self) -> list[Expression]:
        """The equal keys as conditions over all columns."""
        return [
            Call("=", (self._renamed(0, group[0]), self._renamed(number, key)))
            for group in zip(*self.keys, strict=True)
            for number, key in enumerate(group[1:], start=1)
        ]

    def _renamed(self, number: int, key: Expression) -> Expression:
        return substitute(key, {own: Column(new) for own, new in self.names[number].items()})

    @property
    def bounded(self) -> bool:
        """Whether every row has a time after which it can meet no new one."""
        if self.rows is not None:
            return True
        if any(part.ordered is None for part in self.parts):
            return False
        pairs = (row[j] for i, row in enumerate(self.bounds) for j in range(len(row)) if i != j)
        return all(most is not None for most in pairs)

    def _order(self) -> Ordered | None:
        """The time of an input whose rows in results still to come are known to be late enough.

        Such a row meets a new one, whose time is bounded by its watermark, and so is the time of what it
        can meet. With NULL in the place of an input, its time tells nothing.
        """
        for number in self.certain:
            clocks = self._clocks(number)
            time = self.parts[number].ordered
            if clocks is not None and time is not None:
                near = tuple(self._near(number)) if self.kind == "inner" else ()
                return Ordered(self.names[number][time.column], time.timestamps, clocks, near)
        return None

    def _clocks(self, number: int) -> tuple[Steps, ...] | None:
        time = self.parts[number].ordered
        if time is None or time.unit is None:
            return None
        clocks = list(time.clocks)
        for other, part in enumerate(self.parts):
            if other == number:
                continue
            most = self.bounds[number][other]
            if part.ordered is None or part.ordered.unit is None or most is None:
                return None
            steps = _shifted(part.ordered.unit, most, time.unit)
            clocks += [(*clock, *steps) for clock in part.ordered.clocks]
        return tuple(dict.fromkeys(clocks))

    def _near(self, number: int) -> Iterator[Near]:
        """The columns of all inputs that follow the time of one of them."""
        for other, part in enumerate(self.parts):
            time, names = part.ordered, self.names[other]
            after, before = self.bounds[number][other], self.bounds[other][number]
            if other == number:
                after = before = 0
            if time is None or time.unit is None or after is None or before is None:
                continue
            if other != number:
                yield Near(names[time.column], time.unit, -before, after)
            for near in time.near:
                yield Near(names[near.column], near.unit, near.low - before, near.high + after)

    # ---------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def __str__(self) -> str:
        groups = (" = ".join(map(str, group)) for group in zip(*self.keys, strict=True))
        pairs = " AND ".join(groups) or "TRUE"
        rest = "" if self.predicate is None else f" WHERE {self.predicate}"
        within = "" if self.rows is None else f" WITHIN {self.rows} ROWS"
        return f"{self.kind.upper()} JOIN{within} ON {pairs}{rest} AS {', '.join(self.suffixes)}"


def _shifted(unit: int, most: int, own: int) -> Steps:
    """From the watermark of an input to the least number, in units of one's own, that can meet it."""
    if unit == own:
        shift = (own - 1 - most) // own
        return (("+", shift),) if shift else ()
    return (("*", unit), ("+", own - 1 - most), ("//", own))
