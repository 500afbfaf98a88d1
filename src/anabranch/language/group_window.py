"""Which of the keys of GROUP BY is the window, and over which rows: the one place that knows all spellings.

A window of its own (`tumble("1 minute")`), the ordered attribute or `time // n`, a column that follows it
(`window_start`, `date_trunc('day', ts)`, see `nearness.py`), or what numbers days or hours of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.expression import (
    Call,
    Column,
    Expression,
    Literal,
    Named,
    columns_of,
    type_of,
)
from anabranch.language.nearness import near_of, numbered_by, written_unit
from anabranch.language.node import Node
from anabranch.language.order import Ordered, told_by, tumble_size
from anabranch.language.stateless import Filter, Project, retimed
from anabranch.language.window import END, START, Everything, Tumble, Window
from anabranch.language.window_key import WindowKey, covering_of
from anabranch.language.windowed import Windowed

_BUCKET = "#window"
"""What a computed key is called below its aggregate: no column of a user is."""


@dataclass(frozen=True)
class Grouping:
    """What is grouped, and how."""

    node: Node
    """The rows, ordered by the window's time."""
    keys: tuple[Named, ...]
    """The keys beside the window."""
    window: Window
    shown: tuple[Named, ...] | None = None
    """What is shown of the window beside the keys, if not its columns as they are."""
    sequence: str | None = None
    """The column that orders the rows of a window whose times are all the same."""


def grouping_of(
    node: Node, keys: Sequence[Named | WindowKey], arguments: Iterable[Expression]
) -> Grouping:
    """The rows, keys and window of an aggregate with these arguments."""
    unfolded = _unfolded(node, keys, arguments)
    if unfolded is not None:
        return unfolded
    original = node.ordered
    node = _timed(node, keys)
    shifted = next((key for key in keys if isinstance(key, WindowKey) and key.offset), None)
    if shifted is not None:
        days = node.ordered is not None and node.schema[node.ordered.column] == pl.Date
        node = Windowed(node, covering_of(shifted, node.ordered, days))
        borders = [Named(name, Column(name)) for name in (START, END)]
        others = [key for key in keys if key is not shifted]
        return grouping_of(node, [*borders, *others], arguments)
    plain: list[Named] = []
    window: Window | None = None
    ordered = node.ordered
    for key in keys:
        found: Window | None = None
        if isinstance(key, WindowKey):
            days = ordered is not None and node.schema[ordered.column] == pl.Date
            found = key.resolve(ordered, days)
        else:
            type_of(key.expression, node.schema, f"GROUP BY {key}")
            found = _window_of(key, ordered, node, window is None)
            if found is None:
                plain.append(key)
        if found and window:
            raise LanguageError(f"GROUP BY has two windows, {window} and {found}: keep one.")
        window = window or found
    if window is None:
        bucketed = _bucketed(node, plain, arguments)
        if bucketed is not None:
            return bucketed
    moved = (
        original is not None and node.ordered is not None and node.ordered.column != original.column
    )
    sequence = (
        original.column if original and moved and window == Tumble(1, _index(window)) else None
    )
    return Grouping(node, tuple(plain), window or Everything(), None, sequence)


def _index(window: Window | None) -> str | None:
    return window.index if isinstance(window, Tumble) else None


def _window_of(key: Named, ordered: Ordered | None, node: Node, first: bool) -> Window | None:
    if ordered is None:
        return None
    size = tumble_size(key.expression, ordered)
    if size and size > 1 and ordered.timestamps:
        raise LanguageError(
            f"'{key.expression}' would count microseconds, for the ordered attribute is "
            'a timestamp: group by a window such as tumble("1 minute").'
        )
    if size:
        return Tumble(size, key.name)
    numbered = numbered_by(key.expression, ordered, node.schema) if first else None
    if numbered is None:
        return None
    kind = {pl.Date: "date", pl.Float64: "float64"}.get(numbered[1].base_type())
    return Tumble(numbered[0], key.name, kind)


def _timed(node: Node, keys: Sequence[Named | WindowKey]) -> Node:
    """The rows, ordered by the column that the window is about: several may tell the time."""
    if node.ordered is None:
        return node
    windows = [key for key in keys if isinstance(key, WindowKey)]
    if windows:
        return retimed(node, windows[0].column or node.ordered.column) or node
    expressions = [key.expression for key in keys if isinstance(key, Named)]
    for ordered in told_by(node.ordered):
        if any(tumble_size(key, ordered) for key in expressions):
            return retimed(node, ordered.column) or node
    return node


def _bucketed(
    node: Node, keys: Sequence[Named], arguments: Iterable[Expression]
) -> Grouping | None:
    """The rows with a computed key as a column that tells the time, if there is such a key.

    A text of the time that tells its day is no time itself: beside it the day is the window, out of sight.
    """
    arguments = list(arguments)
    for time in told_by(node.ordered) if node.ordered else ():
        for key in keys:
            if near_of(key.name, key.expression, time, node.schema) is not None:
                others = tuple(other for other in keys if other is not key)
                rows = _with_bucket(node, key.expression, time, others, arguments)
                return Grouping(rows, others, Tumble(1, key.name), None, time.column)
        for key in keys:
            unit = written_unit(key.expression, time)
            if unit is not None:
                bucket = Call("date_trunc", (Literal(unit), Column(time.column)))
                if near_of(_BUCKET, bucket, time, node.schema) is not None:
                    rows = _with_bucket(node, bucket, time, keys, arguments)
                    return Grouping(rows, tuple(keys), Tumble(1, _BUCKET), (), time.column)
    return None


def _with_bucket(
    node: Node,
    bucket: Expression,
    time: Ordered,
    keys: Iterable[Named],
    arguments: Iterable[Expression],
) -> Node:
    """The rows with one more column, ordered by it; what nothing reads need not be read at all."""
    parts = (*(key.expression for key in keys), *arguments)
    read = {time.column, *(name for part in parts for name in columns_of(part))}
    kept = [Named(name, Column(name)) for name in node.schema if name in read]
    timed = retimed(Project(node, (*kept, Named(_BUCKET, bucket))), _BUCKET)
    assert timed is not None
    return timed


def _unfolded(
    node: Node, keys: Sequence[Named | WindowKey], arguments: Iterable[Expression]
) -> Grouping | None:
    """Rows of FROM TUMBLE(…) or HOP grouped by their windows, as windows of GROUP BY over the rows below.

    Nothing but the keys may read the borders.
    """
    filters: list[Filter] = []
    below = node
    while isinstance(below, Filter):
        filters.append(below)
        below = below.input
    if not isinstance(below, Windowed) or below.covering.window is None:
        return None
    plain = [key for key in keys if isinstance(key, Named) and not _is_border(key)]
    borders = [key for key in keys if isinstance(key, Named) and _is_border(key)]
    read = (*(key.expression for key in plain), *arguments, *(one.predicate for one in filters))
    reads = any(name in (START, END) for part in read for name in columns_of(part))
    taken = {START, END} & {key.name for key in plain}
    if not borders or reads or taken or len(plain) + len(borders) < len(keys):
        return None
    own = {START, END} >= {key.name for key in borders}
    own &= all(str(key.expression) == key.name for key in borders)
    rows = below.input
    for one in reversed(filters):
        rows = replace(one, input=rows)
    return Grouping(rows, tuple(plain), below.covering.window, None if own else tuple(borders))


def _is_border(key: Named) -> bool:
    return isinstance(key.expression, Column) and key.expression.name in (START, END)
