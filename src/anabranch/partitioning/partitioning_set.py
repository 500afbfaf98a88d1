"""Partitioning sets: the terms whose hash decides where a row goes, stream by stream.

A set is made of axes. An axis has one term, or one for each of several streams whose rows must meet:
rows that agree on the axis have the same value there, whichever stream they are of, so their hashes
agree. The terms of a stream stand in the order of the set's axes, the same on all streams.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from anabranch.errors import PlanningError, suggest
from anabranch.language.expression import Expression, columns_of, substitute
from anabranch.language.node import Stream
from anabranch.partitioning.lattice import express
from anabranch.partitioning.requirement import attributes_in, attributes_of
from anabranch.partitioning.term import canonical, reads_columns, text_of

UNKNOWN_POSITION = 1 << 16
"""Where terms of columns that no stream is known for are put: after the others, by name."""

CACHED = 1 << 16
"""Relations between axes that are kept: a search meets the same few over and over."""


@dataclass(frozen=True)
class Axis:
    """One term, or one of each of several streams that belong together."""

    terms: Mapping[str, Expression] = field(compare=False)
    text: str = field(init=False)
    kinds: tuple[str, ...] = field(init=False, repr=False)
    """The types of its attributes, as far as known: laws of numbers depend on them."""

    def __post_init__(self) -> None:
        terms = {stream: canonical(self.terms[stream]) for stream in sorted(self.terms)}
        for stream, term in terms.items():
            if not reads_columns(term):
                raise PlanningError(
                    f"Stream '{stream}' cannot be partitioned by '{term}', which is the same for "
                    "all rows: name columns, or expressions of columns."
                )
        object.__setattr__(self, "terms", terms)
        shown = (f"{stream}.{text_of(term)}" for stream, term in terms.items())
        object.__setattr__(self, "text", " = ".join(shown))
        known = (part for term in terms.values() for part in attributes_in(term))
        object.__setattr__(self, "kinds", tuple(f"{part.name} {part.kind}" for part in known))

    @functools.cached_property
    def reads(self) -> Mapping[str, frozenset[str]]:
        """The columns it reads on each stream."""
        return {stream: frozenset(columns_of(term)) for stream, term in self.terms.items()}

    @functools.cached_property
    def order(self) -> tuple[int, str]:
        """The place of an axis in its set: that of its attribute in the schema, then by text."""
        term = next(iter(self.terms.values()))
        places = [attribute.position for attribute in attributes_in(term)]
        return min(places, default=UNKNOWN_POSITION), self.text


@dataclass(frozen=True, eq=False)
class PartitioningSet:
    """The axes that streams are partitioned by; streams without an axis are spread evenly.

    >>> from anabranch.language.expression import col
    >>> print(PartitioningSet.of({"tcp": [col("srcIP") & 0xFFF0, col("destIP")]}))
    {destIP, srcIP & 0xFFF0}
    """

    axes: tuple[Axis, ...] = ()

    def __post_init__(self) -> None:
        ordered = sorted(dict.fromkeys(self.axes), key=lambda axis: axis.order)
        object.__setattr__(self, "axes", tuple(_without_redundant(ordered)))

    @classmethod
    def of(cls, terms: Mapping[str, Iterable[Expression]]) -> PartitioningSet:
        """Sets of streams that have nothing to do with each other."""
        return cls(tuple(Axis({name: term}) for name, some in terms.items() for term in some))

    @classmethod
    def over(cls, stream: Stream, *terms: Expression) -> PartitioningSet:
        """A set for one stream, written with its columns; their types are then known."""
        for term in terms:
            for name in columns_of(term):
                if name not in stream.schema:
                    raise PlanningError(
                        f"Stream '{stream.name}' cannot be partitioned by '{term}': it has no "
                        f"column '{name}'.{suggest(name, stream.schema)}"
                    )
        known = attributes_of(stream)
        return cls.of({stream.name: [substitute(term, known) for term in terms]})

    @functools.cached_property
    def streams(self) -> frozenset[str]:
        return frozenset(self.by_stream)

    @functools.cached_property
    def by_stream(self) -> Mapping[str, tuple[Axis, ...]]:
        """The axes of each stream."""
        found: dict[str, tuple[Axis, ...]] = {}
        for axis in self.axes:
            for stream in axis.terms:
                found[stream] = (*found.get(stream, ()), axis)
        return found

    def terms(self, stream: str) -> tuple[Expression, ...]:
        """What rows of the stream are hashed by, in this order; nothing if they are spread evenly."""
        return tuple(axis.terms[stream] for axis in self.by_stream.get(stream, ()))

    def restricted(self, streams: Collection[str]) -> PartitioningSet:
        """The axes of these streams."""
        wanted = set(streams)
        return PartitioningSet(tuple(axis for axis in self.axes if wanted & axis.terms.keys()))

    @functools.cached_property
    def texts(self) -> frozenset[str]:
        """The axes by name: the same for equal sets."""
        return frozenset(axis.text for axis in self.axes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitioningSet) and self.texts == other.texts

    def __hash__(self) -> int:
        return hash(self.texts)

    def __len__(self) -> int:
        return len(self.axes)

    def __str__(self) -> str:
        """The terms of each stream; `=` between streams whose terms belong together."""
        sets = {
            stream: f"{{{', '.join(map(text_of, self.terms(stream)))}}}"
            for stream in sorted(self.streams)
        }
        if len(sets) < 2:
            return next(iter(sets.values()), "{}")
        linked = [
            " = ".join(f"{stream} {sets[stream]}" for stream in sorted(group))
            for group in self._groups()
        ]
        return ", ".join(linked)

    def _groups(self) -> list[set[str]]:
        """The streams that share axes."""
        groups: list[set[str]] = []
        for axis in self.axes:
            met = [group for group in groups if group & axis.terms.keys()]
            groups = [group for group in groups if group not in met]
            groups.append(set(axis.terms).union(*met))
        return sorted(groups, key=sorted)


def _without_redundant(axes: list[Axis]) -> list[Axis]:
    """The axes without those that are functions of the rest: they part no rows further."""
    kept = list(axes)
    # Those of fewer streams first: the others are what makes streams meet
    for axis in sorted(axes, key=lambda axis: (-len(axis.terms), axis.order), reverse=True):
        others = [other for other in kept if other is not axis]
        if others and all(_follows(axis, stream, others) for stream in axis.terms):
            kept = others
    return kept


def _follows(axis: Axis, stream: str, others: list[Axis]) -> bool:
    bases = [other for other in others if stream in other.terms]
    return any(depends(axis, stream, some) is not None for some in choices(axis, stream, bases))


def choices(axis: Axis, stream: str, bases: list[Axis]) -> Iterator[tuple[Axis, ...]]:
    """The bases of which the axis may be a function on this stream: each, then all together."""
    reads = axis.reads[stream]
    for base in bases:
        if reads <= base.reads[stream]:
            yield (base,)
    # Only a term of several columns can need several bases
    if len(reads) > 1 and len(bases) > 1:
        yield tuple(bases)


@functools.lru_cache(maxsize=CACHED)
def depends(axis: Axis, stream: str, bases: tuple[Axis, ...]) -> Expression | None:
    """The axis on this stream as a function of the others there; see `lattice.express`."""
    return express(axis.terms[stream], tuple(base.terms[stream] for base in bases))
