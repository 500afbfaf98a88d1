"""Partitioning sets that are written: by users, how a stream comes and which sets may be chosen; by
checkpoints, which set was."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from anabranch.errors import AnabranchError, PlanningError, suggest
from anabranch.language.expression import Expression, substitute, type_of
from anabranch.language.node import Stream
from anabranch.partitioning.partitioning_set import Axis, PartitioningSet
from anabranch.partitioning.requirement import attributes_of

_OF_A_STREAM = re.compile(r" = (?=[\w-]+\.)")
"""Between the terms of an axis. Equalities within a term have no streams."""
_OF_A_REPLAY = re.compile(r"\d+\.")
"""What follows the name of a stream in the name of one of its replays, which may be gone."""


def read_set(stream: Stream, terms: Sequence[str | Expression]) -> PartitioningSet:
    """The set of one stream."""
    return PartitioningSet.of({stream.name: _terms(stream, terms)})


def read_sets(
    streams: Mapping[str, Stream], sets: Sequence[Mapping[str, Sequence[str | Expression]]]
) -> list[PartitioningSet]:
    """Sets of several streams each, whose terms belong together one by one."""
    if not sets:
        raise PlanningError("permit() needs at least one set, e.g. permit({'tcp': ['srcIP']}).")
    return [_read_together(streams, some) for some in sets]


def read_chosen(streams: Mapping[str, Stream], texts: Sequence[str]) -> PartitioningSet | None:
    """The set whose axes have these texts, as far as they are of these streams; None if unreadable."""
    axes = []
    for text in texts:
        terms: dict[str, Expression] = {}
        for written in _OF_A_STREAM.split(text):
            named = [name for name in streams if written.startswith(f"{name}.")]
            if named:
                stream = max(named, key=len)
                rest = written.removeprefix(f"{stream}.")
                term = _read_back(streams[stream], rest)
                if term is not None:
                    terms[stream] = term
                elif not _OF_A_REPLAY.match(rest):
                    return None
        if terms:
            axes.append(Axis(terms))
    return PartitioningSet(tuple(axes))


def _read_back(stream: Stream, text: str) -> Expression | None:
    """The term of which this is the text; None if there is none."""
    try:
        (term,) = _terms(stream, [text])
    except AnabranchError:
        return None
    return term if Axis({stream.name: term}).text == f"{stream.name}.{text}" else None


def _read_together(
    streams: Mapping[str, Stream], some: Mapping[str, Sequence[str | Expression]]
) -> PartitioningSet:
    for name, terms in some.items():
        if name not in streams:
            raise PlanningError(f"There is no stream '{name}'.{suggest(name, streams)}")
        if isinstance(terms, str):
            raise PlanningError(
                f"permit() takes a list of expressions for stream '{name}', not the text "
                f"'{terms}': {{'{name}': ['{terms}']}}."
            )
        if not isinstance(terms, Sequence):
            raise PlanningError(
                f"permit() takes a list of expressions for stream '{name}', not {terms!r}."
            )
    if len({len(terms) for terms in some.values()}) > 1:
        raise PlanningError(
            "Streams that are permitted together must have equally many terms: the first of each "
            "belong together, the second, and so on."
        )
    read = {name: _terms(streams[name], terms) for name, terms in some.items()}
    count = len(next(iter(read.values()), ()))
    axes = [Axis({name: terms[at] for name, terms in read.items()}) for at in range(count)]
    return PartitioningSet(tuple(axes))


def _terms(stream: Stream, terms: Sequence[str | Expression]) -> list[Expression]:
    from anabranch.language.sql.expression import (
        read_expression,  # loads sqlglot, which not all need
    )

    where = f"The partitioning of stream '{stream.name}'"
    read = [
        read_expression(term, stream.schema, where) if isinstance(term, str) else term
        for term in terms
    ]
    for term in read:
        type_of(term, stream.schema, where)
    known = attributes_of(stream)
    return [substitute(term, known) for term in read]
