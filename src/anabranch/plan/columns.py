"""Which columns every subquery and stream must yield: what those above it read, and no more."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from anabranch.language.expression import columns_of
from anabranch.language.groups import Aggregate, History
from anabranch.language.join import Join
from anabranch.language.numbered import PLACE, SEEN, Numbered
from anabranch.language.ranked import Ranked
from anabranch.language.timeline import Timeline
from anabranch.language.updates import GONE
from anabranch.operators.changes import MARK
from anabranch.operators.functions import ordered_by_time, partials_for
from anabranch.operators.partials import SEQ
from anabranch.operators.stateless import needed
from anabranch.plan.draft import Draft
from anabranch.plan.subquery import Path, Subquery, needs_merger, steps_of

PASSING = {SEQ, MARK}
"""Columns of the engine's own, which stateless steps leave as they are."""


def columns_read(
    draft: Draft, kept: Mapping[str, Collection[str]] | None = None
) -> tuple[dict[str, list[set[str]]], dict[str, set[str]]]:
    """What each subquery reads of each input, and what is read of each stream or subquery.

    The arrival number counts as a column: it is read by what depends on the order of rows. Columns that state
    is `kept` for, by the signatures of what keeps it, count as read.
    """
    read: dict[str, list[set[str]]] = {}
    wanted: dict[str, set[str]] = {}
    for output in draft.outputs:
        marks = {MARK} if output.marked else set()
        _want(wanted, output.paths, set(output.schema) - ({GONE} if marks else set()) | marks)
    for subquery in reversed(list(draft.subqueries.values())):
        wanted.setdefault(subquery.name, set()).update(
            (kept or {}).get(subquery.node.signature, ())
        )
        reads = _reads(subquery, wanted[subquery.name])
        read[subquery.name] = reads
        for number, columns in enumerate(reads):
            paths = tuple(path for path in subquery.paths if path.input == number)
            _want(wanted, paths, columns)
    return read, wanted


def _want(wanted: dict[str, set[str]], paths: tuple[Path, ...], columns: set[str]) -> None:
    for path in paths:
        found = needed(path.steps, columns - PASSING) | (columns & PASSING)
        wanted.setdefault(path.origin, set()).update(found)


def _reads(subquery: Subquery, above: set[str]) -> list[set[str]]:
    """What a subquery reads of each input, if this is wanted of it."""
    if isinstance(subquery.node, Join):
        return _joined(subquery.node, above)
    if isinstance(subquery.node, Numbered):
        times = [{part.ordered.column, SEQ} for part in subquery.node.inputs if part.ordered]
        return [times[0] | (above & {*subquery.node.input.schema}), times[1]]
    if isinstance(subquery.node, (Ranked, Timeline)):
        # Rows in the same place are told apart by all that they have
        arrival = {SEQ} if isinstance(subquery.node, Timeline) else set()
        return [set(subquery.node.input.schema) | arrival]
    if isinstance(subquery.node, (Aggregate, History)):
        return [reads_of(subquery.node) | ({SEQ} if needs_order(subquery.node) else set())]
    return [needed(steps_of(subquery.node), above - PASSING) | (above & PASSING)]


def _joined(node: Join, above: set[str]) -> list[set[str]]:
    """The columns of all inputs that are wanted, compared, or tell the time."""
    wanted = above.union(*(columns_of(condition) for condition in node.residual))
    reads = []
    for part, names, keys in zip(node.parts, node.names, node.keys, strict=True):
        found = {own for own, shown in names.items() if shown in wanted}
        found |= {name for key in keys for name in columns_of(key)}
        time = {part.ordered.column} if part.ordered else set()
        reads.append(found | ({PLACE, SEEN} if node.rows is not None else time))
    return reads


def reads_of(node: Aggregate | History) -> set[str]:
    """The columns a stateful operator reads."""
    found = {name for key in node.keys for name in columns_of(key.expression)}
    for aggregate in node.aggregates:
        for argument in aggregate.call.arguments:
            found |= set(columns_of(argument))
    if node.input.ordered:
        found.add(node.input.ordered.column)
    if isinstance(node, History):
        found |= set(node.input.schema)
    elif node.sequence is not None:
        found.add(node.sequence)
    return found


def needs_order(node: Aggregate | History) -> bool:
    """Whether the operator depends on the order of rows beyond their time."""
    return needs_merger(node) or ordered_by_time(partials_for(node.aggregates, node.input.schema))
