"""Operators and the steps between them in words; masks in hexadecimal, as partitioning sets have them."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.explain.join_words import join_words, length
from anabranch.language.aggregate import NamedAggregate
from anabranch.language.expression import Column, Named
from anabranch.language.groups import Aggregate, History
from anabranch.language.join import Join
from anabranch.language.node import Node
from anabranch.language.numbered import Numbered
from anabranch.language.ranked import Ranked
from anabranch.language.timeline import Timeline
from anabranch.language.window import (
    CountWindow,
    Everything,
    Hop,
    SessionGap,
    Tumble,
    Window,
)
from anabranch.operators.stateless import MULTIPLYING, Select, Step, Where
from anabranch.partitioning.term import text_of
from anabranch.settings import BEST_EFFORT, TRANSPARENT

TOLD = {"final": "", "update": ", told on every change", "once": ", told at first sight"}
"""When groups are told, where it is not when their window closes."""
LONG = 60
"""Computed columns that take more are shown by their name alone, unless everything is asked for."""


def operator_words(node: Node) -> str:
    """What an operator does: its windows, its groups and its aggregates."""
    if isinstance(node, Aggregate | History):
        found = ", ".join(_aggregate(part) for part in node.aggregates)
        return f"{title_words(node)}: {found or 'the groups themselves'}"
    if isinstance(node, Ranked | Timeline):
        return f"{title_words(node)}: {calls_words(node)}"
    return title_words(node)


def calls_words(node: Ranked | Timeline) -> str:
    """What rows get of the rows around them."""
    return ", ".join(map(str, node.calls)) or "the rows themselves"


def title_words(node: Node) -> str:
    """The operator without its aggregates."""
    match node:
        case Aggregate():
            by = keys_words(node)
            return f"{window_words(node)}{f' by {by}' if by else ''}{TOLD[node.emit]}"
        case History():
            of = f" of each {keys_words(node)}" if node.keys else ""
            return f"every row, with the last {node.rows:,} rows{of}"
        case Ranked():
            of = f" and {keys_words(node)}" if node.keys else ""
            by = ", ".join(map(str, node.order)) or "their content"
            few = "all rows" if node.limit is None else f"rows with {node.limit}"
            time = node.input.ordered
            assert time
            window = _window(Tumble(node.size), time.column, time.timestamps)
            return f"{few} of {window}{of}, by {by}"
        case Timeline():
            of = f" of each {keys_words(node)}" if node.keys else ""
            return f"every row, with those around it{of} in the order of time"
        case Numbered():
            return "rows numbered in the order of both inputs"
        case Join():
            return join_words(node)
    return {"GATHER": "results brought together on one site", "UNION": "rows of all inputs"}.get(
        str(node), str(node)
    )


def merger_words(merger: str) -> str:
    """How an operator that depends on the order of rows gets them."""
    return {
        TRANSPARENT: "transparent merger: rows by time, once the watermark has passed them",
        BEST_EFFORT: "best-effort merger: rows as they come, so results may differ from run to run",
    }[merger]


def keys_words(node: Aggregate | History | Ranked | Timeline) -> str:
    return ", ".join(
        _named(key) if isinstance(node, Aggregate) else text_of(key.expression) for key in node.keys
    )


def window_words(node: Aggregate) -> str:
    """Groups by their window, e.g. windows of 60 (tb)."""
    time = node.input.ordered
    return _window(node.window, time.column if time else "time", bool(time and time.timestamps))


def _window(window: Window, column: str, timestamps: bool) -> str:
    match window:
        case Tumble(1, str(index)):
            return f"each {column}" if index == column else f"each {column} ({index})"
        case Tumble(size, index):
            return f"windows of {length(size, timestamps)}{f' ({index})' if index else ''}"
        case Hop(size, slide):
            return f"windows of {length(size, timestamps)} every {length(slide, timestamps)}"
        case SessionGap(gap):
            return f"sessions until {length(gap, timestamps)} without a row"
        case CountWindow(size, advance):
            return f"windows of {size:,} rows every {advance:,}"
        case Everything():
            return "all rows so far"


def _aggregate(part: NamedAggregate) -> str:
    call = part.call
    inner = ", ".join(map(text_of, call.arguments)) or "*"
    extra = "" if call.parameter is None else f", {call.parameter!s}"
    shown = f"{call.function.upper()}({inner}{extra})"
    # Aggregates without a name of their own are called as they are written
    own = part.name.removesuffix(" OVER") in (str(call), shown)
    return shown if own else f"{shown} AS {part.name}"


def _named(part: Named) -> str:
    shown = text_of(part.expression)
    plain = part.name in (shown, str(part.expression)) or part.name.startswith("key")
    return shown if plain else f"{shown} AS {part.name}"


def step_words(step: Step, verbose: bool = False) -> str:
    """A filter, or the columns that are computed."""
    if isinstance(step, Where):
        return f"where {text_of(step.predicate)}"
    if isinstance(step, MULTIPLYING):
        return str(step)
    shown = (_named(part) for part in step.columns)
    if not verbose:
        names = (part.name for part in step.columns)
        shown = (
            text if len(text) <= LONG else f"… AS {name}"
            for text, name in zip(shown, names, strict=True)
        )
    return f"select {', '.join(shown)}"


def steps_words(steps: Sequence[Step], verbose: bool = False, leaving: bool = False) -> str:
    """The steps of a path. Those that only name columns tell little: the last one, if rows leave."""
    shown = [
        step_words(step, verbose)
        for number, step in enumerate(steps, start=1)
        if verbose or not _only_names(step) or (leaving and number == len(steps))
    ]
    return ", then ".join(shown)


def _only_names(step: Step) -> bool:
    return isinstance(step, Select) and all(
        isinstance(part.expression, Column) and part.expression.name == part.name
        for part in step.columns
    )
