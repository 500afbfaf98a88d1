"""Joins one on top of the other on the same key become one join of all their inputs (S2).

One operator has no state for what lies between, and can begin with whichever input meets the fewest
rows. Only where nobody else wants the results of the lower join.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.language.bounds import all_of
from anabranch.language.expression import Column, Expression, substitute
from anabranch.language.join import Join
from anabranch.plan.draft import Aims, Draft
from anabranch.plan.subquery import Path, Subquery


def merge_joins(draft: Draft, aims: Aims) -> Draft:
    """The draft with chains of inner joins on one key as single operators."""
    for name in list(draft.subqueries):
        upper = draft.subqueries[name]
        lower = _lower(draft, upper)
        if lower is None or not isinstance(upper.node, Join) or not isinstance(lower.node, Join):
            continue
        if lower.node.signature in aims.kept:
            continue  # another query wanted its results once, so it has state of its own
        node = _merged(lower.node, upper.node)
        if node is not None:
            first = len(lower.node.parts) - 1
            paths = [replace(path, input=path.input + first) for path in upper.paths if path.input]
            whole = replace(upper, node=node, paths=(*lower.paths, *paths))
            kept = {key: part for key, part in draft.subqueries.items() if key != lower.name}
            draft = replace(draft, subqueries={**kept, name: whole})
    return draft


def _lower(draft: Draft, upper: Subquery) -> Subquery | None:
    """The subquery whose results, as they are, are the first input of a join and nothing else."""
    if not isinstance(upper.node, Join):
        return None
    origins = [path for path in upper.paths if path.input == 0]
    if len(origins) != 1 or origins[0].steps or origins[0].origin not in draft.subqueries:
        return None
    readers: list[Path] = [path for part in draft.subqueries.values() for path in part.paths]
    readers += [path for output in draft.outputs for path in output.paths]
    lone = sum(path.origin == origins[0].origin for path in readers) == 1
    return draft.subqueries[origins[0].origin] if lone else None


def _merged(lower: Join, upper: Join) -> Join | None:
    """Both joins as one; None if they are not on the same key."""
    if lower.kind != "inner" or upper.kind != "inner" or not lower.keys[0]:
        return None
    if len(lower.keys[0]) != len(upper.keys[0]):
        return None
    keys: list[Expression] = []
    left = list(zip(*upper.keys, strict=True))
    for place in range(len(lower.keys[0])):
        known = _shown(lower, place)
        found = next((pair for pair in left if str(pair[0]) in known), None)
        if found is None:
            return None
        # Each equality stands for one key: were it taken twice, another would be lost
        left = [pair for pair in left if pair is not found]
        keys.append(found[1])
    conditions = [part for part in (lower.predicate, upper.predicate) if part is not None]
    return Join(
        (*lower.parts, *upper.parts[1:]),
        "inner",
        (*lower.keys, tuple(keys)),
        all_of(conditions),
        (*lower.suffixes, *upper.suffixes),
        written=upper.written,
    )


def _shown(lower: Join, place: int) -> set[str]:
    """What one key of a join is called in its results: once for each input."""
    return {
        str(substitute(keys[place], {own: Column(shown) for own, shown in names.items()}))
        for keys, names in zip(lower.keys, lower.names, strict=True)
    }
