"""Which partitioning sets suit a node, and the largest set that suits two.

A set suits if each of its axes is a function of what the node's rows must agree on. On a node with
rows of several streams it must be the same function on each, or rows that must meet would hash
differently; `lattice.express` gives that function.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from anabranch.language.expression import Expression, columns_of
from anabranch.partitioning.lattice import express, fill, hole, meet
from anabranch.partitioning.partitioning_set import CACHED, Axis, PartitioningSet, choices, depends
from anabranch.partitioning.requirement import NodeNeed
from anabranch.partitioning.term import alike


def largest(need: NodeNeed) -> PartitioningSet:
    """The largest set that suits a need by itself; the empty one if none does, or all do."""
    if not need.stateful:
        return PartitioningSet()
    streams = tuple(need.terms_by_stream)
    rows = zip(*need.terms_by_stream.values(), strict=True)
    return PartitioningSet(tuple(Axis(dict(zip(streams, row, strict=True))) for row in rows))


def compatible(partitioning: PartitioningSet, need: NodeNeed) -> bool:
    """Whether the node's result is the union of its results on the partitions."""
    if not need.stateful:
        return True
    wanted, streams = largest(need), need.terms_by_stream.keys()
    if not wanted.axes or not streams <= partitioning.streams:
        return False
    touching = (axis for axis in partitioning.axes if streams & axis.terms.keys())
    return all(suits(axis, wanted) for axis in touching)


def suits(axis: Axis, wanted: PartitioningSet) -> bool:
    """Whether the axis is a function of the wanted ones on every stream that both have."""
    return next(_unsuited(axis, wanted), None) is None


def reconcile(left: PartitioningSet, right: PartitioningSet) -> PartitioningSet | None:
    """The largest set that suits what both sets suit, or None if there is none.

    Streams that only one of them has keep their terms, unless they must follow a stream that both
    have.

    >>> from anabranch.language.expression import col
    >>> time, source, target = col("time"), col("srcIP"), col("destIP")
    >>> print(reconcile(PartitioningSet.of({"tcp": [time // 60, source, target]}),
    ...                 PartitioningSet.of({"tcp": [time // 90, source & 0xFFF0]})))
    {srcIP & 0xFFF0, time // 180}
    """
    steps = 2 * len(left.streams | right.streams)
    found = dict.fromkeys(
        axis for start in (*left.axes, *right.axes) for axis in _close(start, left, right, steps)
    )
    both = PartitioningSet(tuple(found))
    return both if both.axes and both.streams == left.streams | right.streams else None


def _close(axis: Axis, left: PartitioningSet, right: PartitioningSet, steps: int) -> Iterator[Axis]:
    """The axis coarsened, and stretched over more streams, until it suits both sets: all ways.

    Each step settles a stream of one side, so there are at most as many as both have streams.
    """
    for side in (left, right):
        stream = None if axis.text in side.texts else next(_unsuited(axis, side), None)
        if stream is None:
            continue
        for other in side.by_stream[stream] if steps else ():
            met = _meet(axis, other) if _overlap(axis, other, stream) else None
            if met is not None:
                yield from _close(met, left, right, steps - 1)
        return
    yield axis


def _unsuited(axis: Axis, wanted: PartitioningSet) -> Iterator[str]:
    """The streams on which the axis is not a function of the wanted ones."""
    streams = axis.terms.keys()
    for stream in streams:
        bases = wanted.by_stream.get(stream, ())
        # Rows of all streams of a wanted axis must meet, so the axis has to have them too
        usable = [base for base in bases if base.terms.keys() <= streams]
        if bases and not any(
            _derives(axis, stream, some) for some in choices(axis, stream, usable)
        ):
            yield stream


@functools.lru_cache(maxsize=CACHED)
def _derives(axis: Axis, stream: str, bases: tuple[Axis, ...]) -> bool:
    """Whether the axis is one function of the bases on this stream and on all they share with it."""
    function = depends(axis, stream, bases)
    if function is None:
        return False
    read = set(columns_of(function))
    used = [base for number, base in enumerate(bases) if hole(number).name in read]
    for other in {name for base in used for name in base.terms} - {stream}:
        if not all(other in base.terms for base in used):
            return False
        # Bases that are not used may lack the stream; any term fills their holes
        values = tuple(base.terms.get(other, axis.terms[other]) for base in bases)
        if not alike(fill(function, values), axis.terms[other]):
            return False
    return True


def _overlap(left: Axis, right: Axis, stream: str) -> bool:
    """Whether terms can have anything in common there: one reads what the other reads."""
    ours, theirs = left.reads[stream], right.reads[stream]
    return ours <= theirs or theirs <= ours


@functools.lru_cache(maxsize=CACHED)
def _meet(left: Axis, right: Axis) -> Axis | None:
    """The finest axis below two that share a stream, over the streams of both."""
    shared = sorted(left.terms.keys() & right.terms.keys())[0]
    term = meet(left.terms[shared], right.terms[shared])
    if term is None:
        return None
    terms: dict[str, Expression] = {shared: term}
    for axis in (left, right):
        function = express(term, (axis.terms[shared],))
        assert function is not None, "a meet is a function of both"
        for stream in axis.terms.keys() - {shared}:
            value = fill(function, (axis.terms[stream],))
            if stream in terms and not alike(terms[stream], value):
                return None
            terms.setdefault(stream, value)
    return Axis(terms)
