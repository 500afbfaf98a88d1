"""Nodes over groups of rows: aggregates of their windows, and histories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import polars as pl

from anabranch.errors import LanguageError, shorten
from anabranch.language.aggregate import NamedAggregate, result_type
from anabranch.language.aggregate_call import IN_ORDER
from anabranch.language.expression import TYPES, Column, Named, columns_of, type_of
from anabranch.language.node import Node, require_distinct
from anabranch.language.order import Near, Ordered
from anabranch.language.over import MOST_ROWS
from anabranch.language.updates import Updates, refuse_updates
from anabranch.language.window import (
    END,
    START,
    CountWindow,
    Everything,
    Hop,
    SessionGap,
    Tumble,
    Window,
)
from anabranch.language.windowed import ends_follow, window_kind

EMITS = ("final", "update", "once")
"""When a group is told: when its window has closed, whenever it changes, or when its first row is there."""


@dataclass(frozen=True, eq=False)
class Aggregate(Node):
    """Aggregates over the windows of each group; emitted when closed, on every change, or at first sight."""

    input: Node
    keys: tuple[Named, ...]
    window: Window
    aggregates: tuple[NamedAggregate, ...]
    emit: str = "final"
    sequence: str | None = None
    """The column that tells which row of a window is first, if its times are all the same."""
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        if str(self.emit) not in EMITS:
            raise LanguageError(f"emit is '{self.emit}'; expected one of {', '.join(EMITS)}.")
        if isinstance(self.window, (Hop, SessionGap, CountWindow)) and self.emit != "final":
            reason = (
                f"is not available for {self.window} windows: "
                "their results are known only when they close."
            )
            emit = self.emit
            raise LanguageError(f"emit='{emit}' {reason}").or_in_sql(
                f"EMIT {emit.upper()} {reason}"
            )
        if self.emit == "once":
            self._require_known_at_once()
        refuse_updates("An aggregate", self.input.updates)
        if isinstance(self.window, Everything) and self.emit == "final":
            if self.input.ordered is None:
                raise LanguageError(
                    "This aggregate has no window, for its input has no ordered attribute any more: a full "
                    "join loses it, and so does a select without it."
                )
            stamps = self.input.ordered.timestamps
            self._refuse_computed(self.input.ordered)
            raise LanguageError(
                "This aggregate has no window, so it would never be final and its state would grow "
                "for ever: group by a window of the ordered attribute ("
                f"{'tumble of 1 minute' if stamps else 'time // 60, tumble'}, hop, session, rows). "
                "If only a sink reads it, emit='update' with the setting allow_unbounded_state=True gives "
                "groups again whenever they change (in a SQL file CREATE QUERY name EMIT UPDATE AS … and "
                "SET allow_unbounded_state = true)."
            )
        for named in self.aggregates:
            if named.call.function in IN_ORDER and self.input.ordered is None:
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
            derived = frozenset({END} & self._window_types().keys()) | self._ends()
            object.__setattr__(self, "updates", Updates(frozenset(keys), derived=derived))

    def _require_known_at_once(self) -> None:
        """A group that is told with its first row has no aggregates yet, but values of that row."""
        single = isinstance(self.window, Tumble) and self.window.size == 1
        for named in self.aggregates:
            if named.call.function != "first" or not single:
                reason = (
                    f"tells a group as soon as its first row is there, when {named.call} is not known yet. "
                    "Leave it out; FIRST(x) may stand beside keys with the ordered attribute itself."
                )
                raise LanguageError(f"emit='once' {reason}").or_in_sql(f"EMIT ONCE {reason}")

    def _ends(self) -> set[str]:
        """The keys that are ends of windows whose starts are keys, too: rows were put in them before."""
        columns = {k.name: k.expression.name for k in self.keys if isinstance(k.expression, Column)}
        timed = self.input.ordered is not None and self.input.ordered.column == START
        started = START in columns.values() or (timed and bool(self._window_types()))
        known = started and ends_follow(self.input)
        return {name for name, column in columns.items() if known and column == END}

    def _refuse_computed(self, time: Ordered) -> None:
        """Tells which functions of the time are windows, where a key is another one."""
        for key in self.keys:
            if time.timestamps and time.column in columns_of(key.expression):
                raise LanguageError(
                    f"GROUP BY {key.expression}: this is computed of the ordered attribute '{time.column}', "
                    "but is no window of it. These are: DATE_TRUNC('hour', ts), TIME_BUCKET('1 hour', ts), "
                    "CAST(ts AS DATE), FLOOR(EPOCH(ts) / 3600), TUMBLE(ts, '1 hour'), of the attribute as it "
                    "is."
                )

    def _window_types(self) -> dict[str, pl.DataType]:
        if isinstance(self.window, Everything):
            return {}
        kind = window_kind(self.input, self._time())
        if isinstance(self.window, Tumble) and self.window.index:
            if self.window.kind:
                return {self.window.index: TYPES[self.window.kind]}
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
            case Tumble(size, str(index), kind):
                order = time.then(index, ("//", size))
                order = replace(order, timestamps=time.timestamps and kind is None)
                return replace(order, near=tuple(self._near(time))) if size == 1 else order
            case Tumble(size):
                return _to_the_end(time.then(START, ("//", size), ("*", size)), size)
            case Hop(size, slide):
                steps = (("+", -size), ("//", slide), ("+", 1), ("*", slide))
                return _to_the_end(time.then(START, *steps), size)
            case SessionGap():
                return time.then(END, ("+", 1))
        return time.then(END)

    def _near(self, time: Ordered) -> Iterator[Near]:
        """The keys that follow the time as the window does, as window_end beside window_start."""
        known = {near.column: near for near in time.near}
        for key in self.keys:
            if isinstance(key.expression, Column) and key.expression.name in known:
                yield replace(known[key.expression.name], column=key.name)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        keys = ", ".join(map(str, self.keys))
        sequence = f" IN ORDER OF {self.sequence}" if self.sequence else ""
        return (
            f"GROUP BY {self.window}{', ' if keys else ''}{keys} "
            f"AGG {', '.join(map(str, self.aggregates))}{sequence} EMIT {self.emit}"
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
        if self.rows > MOST_ROWS:
            raise LanguageError(
                f"A history of {shorten(str(self.rows), 40)} rows: expected at most {MOST_ROWS:,}, the "
                "current one included. So many of every group would be kept; a stretch of time is RANGE … "
                "PRECEDING."
            )
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


def _to_the_end(start: Ordered, size: int) -> Ordered:
    """The order by the beginning of windows; their ends tell it as well."""
    if start.unit is None:
        return start
    length = size * start.unit
    return replace(start, near=(Near(END, start.unit, length, length),))


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
