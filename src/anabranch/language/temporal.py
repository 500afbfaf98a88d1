"""Temporal joins: each row beside the newest row of a versioned input with the same key, as of its own time.

Both inputs become one, in the order of time, versions first; each row then carries on the last version of its
key. So it is a timeline (`timeline.py`) with one row kept of each key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.alike import common_type
from anabranch.language.expression import Call, Column, Expression, Literal, Named, type_of
from anabranch.language.kinds import type_words
from anabranch.language.matching import cast_to_write, comparable
from anabranch.language.node import Node
from anabranch.language.over import CARRIED, NamedRowCall, RowCall
from anabranch.language.stateless import Filter, Project, Union
from anabranch.language.timeline import Timeline

SIDE, FOUND = "side of the join", "version found"


def as_of(
    rows: Node, versions: Node, pairs: Sequence[tuple[Expression, Expression]],
    names: Mapping[str, str], kind: str,
) -> Node:  # fmt: skip
    """Rows joined with the newest version of the same key whose time is not after theirs.

    `names` says what the columns of the versions are called beside those of the rows.
    """
    if kind not in ("inner", "left"):
        raise LanguageError(f"A temporal join is INNER or LEFT, not {kind.upper()}.")
    if rows.ordered is None or versions.ordered is None:
        raise LanguageError(
            "A temporal join needs the ordered attributes of both inputs: keep them in the select."
        )
    time, told = rows.ordered.column, versions.ordered.column
    kinds = rows.schema[time], versions.schema[told]
    if kinds[0] != kinds[1] and all(one.is_integer() for one in kinds):
        rows, versions = _in_64_bits(rows, time), _in_64_bits(versions, told)
    elif kinds[0] != kinds[1]:
        raise LanguageError(
            f"A temporal join compares '{time}', which is {type_words(kinds[0])}, with '{told}', which is "
            f"{type_words(kinds[1])}: expected one type. Cast one of them in a sub-query."
        )
    pairs = [_alike(*pair, rows.schema, versions.schema) for pair in pairs]
    keys = [f"key {number} of the join" for number in range(len(pairs))]
    left = Project(
        rows,
        (
            *(Named(name, Column(name)) for name in rows.schema),
            *(Named(names[own], _null(kind)) for own, kind in versions.schema.items()),
            *(Named(key, ours) for key, (ours, _) in zip(keys, pairs, strict=True)),
            Named(SIDE, Literal(1)),
        ),
    )
    # A NULL key is equal to none
    known: Node = versions
    for _, theirs in pairs:
        known = Filter(known, theirs.is_not_null())
    right = Project(
        known,
        (
            *(
                Named(name, Column(told) if name == time else _null(kind))
                for name, kind in rows.schema.items()
            ),
            *(Named(names[own], Column(own)) for own in versions.schema),
            *(Named(key, theirs) for key, (_, theirs) in zip(keys, pairs, strict=True)),
            Named(SIDE, Literal(0)),
        ),
    )
    is_version = Column(SIDE) == 0
    asked = {names[own]: Column(names[own]) for own in versions.schema}
    calls = [
        NamedRowCall(f"{name} as of", RowCall(CARRIED, (column, is_version)))
        for name, column in asked.items()
    ]
    calls.append(NamedRowCall(FOUND, RowCall(CARRIED, (is_version, is_version))))
    by = tuple(Named(key, Column(key)) for key in keys)
    line = Timeline(Union((left, right)), by, tuple(calls), first=Column(SIDE))
    wanted = Column(SIDE) == 1
    if kind == "inner":
        wanted = wanted & Column(FOUND).is_not_null()
    columns = [Named(name, Column(name)) for name in rows.schema]
    columns += [Named(name, Column(f"{name} as of")) for name in asked]
    return Project(Filter(line, wanted), tuple(columns))


def _in_64_bits(node: Node, time: str) -> Node:
    """The same rows with the widest of whole numbers for their time."""
    columns = (Named(name, Column(name)) for name in node.schema)
    wide = Named(time, Column(time).cast("int64"))
    return Project(node, tuple(wide if one.name == time else one for one in columns))


def _alike(
    ours: Expression, theirs: Expression, left: pl.Schema, right: pl.Schema
) -> tuple[Expression, Expression]:
    """Two keys that may be equal, both in the type that holds either: they become one column."""
    where = f"JOIN ON {ours} = {theirs}"
    kinds = type_of(ours, left, where), type_of(theirs, right, where)
    if kinds[0] == kinds[1]:
        return ours, theirs
    name = common_type(*kinds)
    # Of a mixture of signs the signed type is common, which has no room for the largest of 64 bits
    lossy = name == "int64" and pl.UInt64() in kinds
    if not comparable(*kinds) or name is None or lossy:
        raise LanguageError(
            f"{where}: the left is {type_words(kinds[0])} and the right is "
            f"{type_words(kinds[1])}; expected one type. "
            f"{cast_to_write((ours, kinds[0]), (theirs, kinds[1]))}"
        )
    return Call("cast", (ours, Literal(name))), Call("cast", (theirs, Literal(name)))


def _null(kind: pl.DataType) -> Expression:
    """NULL of a type."""
    if isinstance(kind, pl.Datetime) and (kind.time_zone or kind.time_unit != "us"):
        raise LanguageError(
            f"A temporal join cannot carry columns of {type_words(kind)}: cast them to timestamp in a "
            "sub-query."
        )
    return Call("cast", (Literal(None), Literal(type_words(kind))))
