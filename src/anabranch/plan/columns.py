"""Which columns every subquery and stream must yield: what those above it read, and no more."""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.language.expression import columns_of
from anabranch.language.graph import Aggregate, History
from anabranch.language.window import CountWindow
from anabranch.operators.functions import ordered_by_time, partials_for
from anabranch.operators.partials import SEQ
from anabranch.operators.stateless import needed
from anabranch.plan.draft import Draft
from anabranch.plan.subquery import Path, Stateful, Subquery, steps_of


def columns_read(draft: Draft) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """What each subquery reads of its input, and what is read of each stream or subquery.

    The arrival number counts as a column: it is read by what depends on the order of rows.
    """
    read: dict[str, set[str]] = {}
    wanted: dict[str, set[str]] = {}
    for output in draft.outputs:
        _want(wanted, output.paths, set(output.schema))
    for subquery in reversed(list(draft.subqueries.values())):
        reads = _reads(subquery, wanted)
        read[subquery.name] = reads
        _want(wanted, subquery.paths, reads)
    return read, wanted


def _want(wanted: dict[str, set[str]], paths: tuple[Path, ...], columns: set[str]) -> None:
    for path in paths:
        found = needed(path.steps, columns - {SEQ}) | (columns & {SEQ})
        wanted.setdefault(path.origin, set()).update(found)


def _reads(subquery: Subquery, wanted: Mapping[str, set[str]]) -> set[str]:
    if isinstance(subquery.node, Stateful):
        return reads_of(subquery.node) | ({SEQ} if needs_order(subquery.node) else set())
    above = wanted.get(subquery.name, set())
    steps = steps_of(subquery.node)
    return needed(steps, above - {SEQ}) | (above & {SEQ})


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
    return found


def needs_order(node: Aggregate | History) -> bool:
    """Whether the operator depends on the order of rows beyond their time."""
    if isinstance(node, History) or isinstance(node.window, CountWindow):
        return True
    return ordered_by_time(partials_for(node.aggregates))
