"""The query graph: frozen nodes, each with the schema and the ordered attribute of its output.

Building a node checks it (columns, types, windows) and runs nothing. A query may read another one:
its node is simply part of the graph, and work that two queries write alike is done once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.aggregate import NamedAggregate, result_type
from anabranch.language.alike import refuse_unlike
from anabranch.language.expression import Call, Column, Expression, Literal, Named, type_of
from anabranch.language.join import JOINS, Join
from anabranch.language.node import (
    Near,
    Node,
    Ordered,
    Steps,
    Stream,
    require_boolean,
    require_distinct,
)
from anabranch.language.updates import Updates, refuse_updates
from anabranch.language.window import (
    END,
    LONGEST,
    START,
    CountWindow,
    Everything,
    Hop,
    SessionGap,
    Tumble,
    Window,
)


@dataclass(frozen=True, eq=False)
class Filter(Node):
    """The rows for which a predicate is true (not false, not NULL)."""

    input: Node
    predicate: Expression
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        require_boolean(self.predicate, self.input.schema, "WHERE")
        object.__setattr__(self, "schema", self.input.schema)
        object.__setattr__(self, "ordered", self.input.ordered)
        if self.input.updates:
            object.__setattr__(self, "updates", self.input.updates.where([self.predicate]))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        return f"WHERE {self.predicate}"


@dataclass(frozen=True, eq=False)
class Branch(Node):
    """One output of a case filter: rows whose first true predicate is number `index`.

    With `index` equal to the number of predicates: the rows for which none is true.
    """

    input: Node
    predicates: tuple[Expression, ...]
    index: int
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        for predicate in self.predicates:
            require_boolean(predicate, self.input.schema, "case filter")
        object.__setattr__(self, "schema", self.input.schema)
        object.__setattr__(self, "ordered", self.input.ordered)
        if self.input.updates:
            object.__setattr__(self, "updates", self.input.updates.where(self.predicates))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        return f"CASE {self.index} OF {'; '.join(map(str, self.predicates))}"


@dataclass(frozen=True, eq=False)
class Project(Node):
    """Computed columns in place of the input's."""

    input: Node
    columns: tuple[Named, ...]
    by: str | None = None
    """The column that tells the time from here on, if another one could too."""
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        require_distinct([column.name for column in self.columns], "SELECT")
        types = {
            column.name: type_of(column.expression, self.input.schema, f"SELECT {column}")
            for column in self.columns
        }
        object.__setattr__(self, "schema", pl.Schema(types))
        object.__setattr__(self, "ordered", self._trace())
        if self.input.updates:
            object.__setattr__(self, "updates", self.input.updates.select(self.columns))

    def _trace(self) -> Ordered | None:
        """The ordered attribute survives as itself, in 64 bits, or scaled down as `time // 60`."""
        time = self.input.ordered
        if time is None:
            return None
        told = [known for known in told_by(time) if self.by in (None, known.column)]
        for ordered in told:
            for column in self.columns:
                if tumble_size(_widened(column.expression, ordered), ordered) == 1:
                    return replace(ordered.then(column.name), near=tuple(self._near(ordered)))
        for ordered in told:
            for column in self.columns:
                size = tumble_size(column.expression, ordered)
                if size is not None and size <= LONGEST:
                    return ordered.then(column.name, ("//", size))
        return None

    def _near(self, ordered: Ordered) -> Iterator[Near]:
        known = {near.column: near for near in ordered.near}
        for column in self.columns:
            if isinstance(column.expression, Column) and column.expression.name in known:
                yield replace(known[column.expression.name], column=column.name)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        by = "" if self.by is None else f" ORDERED BY {self.by}"
        return f"SELECT {', '.join(map(str, self.columns))}{by}"


@dataclass(frozen=True, eq=False)
class Union(Node):
    """The rows of several inputs with the same columns."""

    parts: tuple[Node, ...]
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        first = self.parts[0]
        refuse_unlike([part.schema for part in self.parts], sql=False)
        for part in self.parts:
            refuse_updates("A union", part.updates)
        object.__setattr__(self, "schema", first.schema)
        object.__setattr__(self, "ordered", self._merge())

    def _merge(self) -> Ordered | None:
        clocks: dict[Steps, None] = {}
        first = self.parts[0].ordered
        for part in self.parts:
            if part.ordered is None or first is None or part.ordered.column != first.column:
                return None
            clocks.update(dict.fromkeys(part.ordered.clocks))
        return first and Ordered(first.column, first.timestamps, tuple(clocks))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def __str__(self) -> str:
        return "UNION"


@dataclass(frozen=True, eq=False)
class Aggregate(Node):
    """Aggregates over the windows of each group; emitted when closed, or on every change."""

    input: Node
    keys: tuple[Named, ...]
    window: Window
    aggregates: tuple[NamedAggregate, ...]
    emit: str = "final"
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        if str(self.emit) not in ("final", "update"):
            raise LanguageError(f"emit is '{self.emit}'; expected 'final' or 'update'.")
        if isinstance(self.window, (Hop, SessionGap, CountWindow)) and self.emit == "update":
            raise LanguageError(
                f"emit='update' is not available for {self.window} windows: "
                "their results are known only when they close."
            )
        refuse_updates("An aggregate", self.input.updates)
        if isinstance(self.window, Everything) and self.emit == "final":
            if self.input.ordered is None:
                raise LanguageError(
                    "This aggregate has no window, for its input has no ordered attribute any more: a full "
                    "join loses it, and so does a select without it."
                )
            stamps = self.input.ordered.timestamps
            raise LanguageError(
                "This aggregate has no window, so it would never be final and its state would grow "
                "for ever: group by a window of the ordered attribute ("
                f"{'tumble of 1 minute' if stamps else 'time // 60, tumble'}, hop, session, rows). "
                "If only a sink reads it, emit='update' with the setting allow_unbounded_state=True gives "
                "groups again whenever they change (in a SQL file CREATE QUERY name EMIT UPDATE AS … and "
                "SET allow_unbounded_state = true)."
            )
        for named in self.aggregates:
            if named.call.function in ("first", "last") and self.input.ordered is None:
                raise LanguageError(
                    f"{named}: the input has no ordered attribute any more, so nothing is first or "
                    f"last. Keep it in the select. Columns: {', '.join(self.input.schema)}."
                )
        types = self._window_types() | _group_types(self.keys, self.aggregates, self.input.schema)
        require_distinct(
            [
                *self._window_types(),
                *(k.name for k in self.keys),
                *(a.name for a in self.aggregates),
            ],
            "GROUP BY",
        )
        object.__setattr__(self, "schema", pl.Schema(types))
        object.__setattr__(self, "ordered", self._order())
        if self.emit == "update":
            keys = {*self._window_types(), *(key.name for key in self.keys)}
            object.__setattr__(self, "updates", Updates(frozenset(keys)))

    def _window_types(self) -> dict[str, pl.DataType]:
        if isinstance(self.window, Everything):
            return {}
        time = self._time()
        own = self.input.schema[time.column]
        zone = own.time_zone if isinstance(own, pl.Datetime) else None
        kind: pl.DataType = pl.Datetime("us", zone) if time.timestamps else pl.Int64()
        if isinstance(self.window, Tumble) and self.window.index:
            return {self.window.index: pl.Int64() if self.window.size > 1 else kind}
        return {START: kind, END: kind}

    def _time(self) -> Ordered:
        if self.input.ordered is None:
            raise LanguageError(
                f"{self.window}: the input has no ordered attribute any more. "
                f"Keep it in the select. Columns: {', '.join(self.input.schema)}."
            )
        return self.input.ordered

    def _order(self) -> Ordered | None:
        if isinstance(self.window, Everything) or self.emit == "update":
            return None
        time = self._time()
        match self.window:
            case Tumble(size, str(index)):
                return time.then(index, ("//", size))
            case Tumble(size):
                return time.then(START, ("//", size), ("*", size))
            case Hop(size, slide):
                return time.then(START, ("+", -size), ("//", slide), ("+", 1), ("*", slide))
            case SessionGap():
                return time.then(END, ("+", 1))
        return time.then(END)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        keys = ", ".join(map(str, self.keys))
        return (
            f"GROUP BY {self.window}{', ' if keys else ''}{keys} "
            f"AGG {', '.join(map(str, self.aggregates))} EMIT {self.emit}"
        )


@dataclass(frozen=True, eq=False)
class History(Node):
    """Every row with aggregates over the last `rows` rows of its group, itself included."""

    input: Node
    keys: tuple[Named, ...]
    rows: int
    aggregates: tuple[NamedAggregate, ...]
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise LanguageError(f"A history needs at least 1 row, not {self.rows}.")
        refuse_updates("A history", self.input.updates)
        if self.input.ordered is None:
            raise LanguageError("A history needs the ordered attribute of its input.")
        types = _group_types(self.keys, self.aggregates, self.input.schema)
        names = [aggregate.name for aggregate in self.aggregates]
        require_distinct([*self.input.schema, *names], "history")
        added = {name: types[name] for name in names}
        object.__setattr__(self, "schema", pl.Schema({**self.input.schema, **added}))
        object.__setattr__(self, "ordered", self.input.ordered)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        return (
            f"HISTORY {self.rows} BY {', '.join(map(str, self.keys))} "
            f"AGG {', '.join(map(str, self.aggregates))}"
        )


def told_by(time: Ordered) -> list[Ordered]:
    """The same order by each of the columns that tell it."""
    return [time, *(time.by(near) for near in time.near if near.unit == time.unit)]


def retimed(node: Node, column: str) -> Node | None:
    """The rows of a node ordered by this column; None if it does not tell their time."""
    for ordered in told_by(node.ordered) if node.ordered else ():
        if ordered.column == column:
            same = ordered.column == (node.ordered and node.ordered.column)
            columns = tuple(Named(name, Column(name)) for name in node.schema)
            return node if same else Project(node, columns, column)
    return None


def tumble_size(expression: Expression, ordered: Ordered) -> int | None:
    """n if the expression is `time // n` (1 for the attribute itself), else None."""
    match expression:
        case Column(name) if name == ordered.column:
            return 1
        case Call("//", (Column(name), Literal(int(size)))) if name == ordered.column and size > 0:
            return size
    return None


def _widened(expression: Expression, ordered: Ordered) -> Expression:
    """What is cast to 64 bits, if the time is a number: that changes none."""
    match expression:
        case Call("cast", (inner, Literal("int64" | "bigint" | "long"))) if not ordered.timestamps:
            return inner
    return expression


def depth(node: Node) -> int:
    """The number of steps from the streams to a node."""
    return node.depth


def streams_of(node: Node) -> frozenset[str]:
    """The names of all streams a node's rows come from."""
    return node.streams


def _group_types(
    keys: tuple[Named, ...], aggregates: tuple[NamedAggregate, ...], schema: pl.Schema
) -> dict[str, pl.DataType]:
    types: dict[str, pl.DataType] = {}
    for key in keys:
        types[key.name] = type_of(key.expression, schema, f"GROUP BY {key}")
    for aggregate in aggregates:
        arguments = [type_of(part, schema, str(aggregate)) for part in aggregate.call.arguments]
        types[aggregate.name] = result_type(aggregate.call, arguments[0] if arguments else None)
    return types


__all__ = [
    "JOINS", "Aggregate", "Branch", "Filter", "History", "Join", "Node", "Ordered", "Project", "Stream",
    "Union", "depth", "streams_of", "tumble_size",
]  # fmt: skip
