"""Joins in words: what must be equal, how far apart rows may be, what else must hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anabranch.amount import several
from anabranch.language.expression import Column, Expression, substitute
from anabranch.language.join import Join
from anabranch.language.shape import flat_shape
from anabranch.language.window import UNITS
from anabranch.partitioning.term import text_of
from anabranch.routing.shaped import OnTrack


def join_words(node: Join) -> str:
    """A join as a person would say it, with the names its text has for columns."""
    if node.rows is not None:
        what = f"inner join of every row with the last {node.rows:,} rows of the other input"
        return f"{what}{_rest(node)}"
    ways = "" if len(node.parts) == 2 else f" of {len(node.parts)} inputs"
    pairs = " and ".join(
        " = ".join(_text(node, number, key) for number, key in enumerate(group))
        for group in zip(*node.keys, strict=True)
    )
    return f"{node.kind} join{ways}{f' on {pairs}' if pairs else ''}{_apart(node)}{_rest(node)}"


def shape_words(inputs: int, shapes: Mapping[str, int], partitions: int) -> str:
    """The shapes that a join of so many inputs works in, and on how many partitions.

    >>> shape_words(3, {"((0,1),2)": 60, "": 4}, 64)
    '((0,1),2) on 60 partitions, (0,1,2) on 4 partitions'
    """
    flat = str(flat_shape(inputs))
    used = shapes or {"": partitions}
    return ", ".join(
        f"{shape or flat} on {several(count, 'partition')}" for shape, count in used.items()
    )


def track_words(inputs: int, tracks: Sequence[OnTrack]) -> str:
    """What of them comes to another shape on parallel tracks.

    >>> track_words(3, [OnTrack("((0,1),2)", 7, 4)])
    '; of these, 4 partitions since epoch 7 on a parallel track to ((0,1),2)'
    """
    found = [
        f"{several(one.partitions, 'partition')} since epoch {one.since} on a parallel track to "
        f"{one.shape or flat_shape(inputs)}"
        for one in tracks
    ]
    return f"; of these, {', '.join(found)}" if found else ""


def _text(node: Join, number: int, key: Expression) -> str:
    names = node.names[number]
    return _plain(key, {own: node.written.get(shown, own) for own, shown in names.items()})


def _rest(node: Join) -> str:
    texts = [_plain(condition, node.written) for condition in node.residual]
    return f", where {' and '.join(texts)}" if texts else ""


def _plain(expression: Expression, names: Mapping[str, str]) -> str:
    """An expression with these names for columns, which are not quoted for their dots."""
    text = text_of(substitute(expression, {name: Column(to) for name, to in names.items()}))
    for name in names.values():
        text = text.replace(f'"{name}"', name)
    return text


def _apart(node: Join) -> str:
    """How far apart in time rows may be that meet: each input beside the first."""
    times = node.time_names()
    if len(times) < len(node.parts):
        return ""
    return "".join(f", {_beside(node, number, times)}" for number in range(1, len(times)))


def _beside(node: Join, number: int, times: list[str]) -> str:
    after, before = node.bounds[0][number], node.bounds[number][0]
    stamps = any(part.ordered and part.ordered.timestamps for part in node.parts)
    if after is None and before is None:
        return f"{times[number]} however far from {times[0]}"
    if after is not None and before is not None and after == -before:
        way = f"{length(abs(after), stamps)} {'later' if after > 0 else 'earlier'} than"
        return f"{times[number]} {way if after else 'at the same time as'} {times[0]}"
    limits = [
        f"not {way}"
        if most == 0
        else f"at most {length(most, stamps)} {way}"
        if most > 0
        else f"at least {length(-most, stamps)} {other}"
        for most, way, other in ((after, "later", "earlier"), (before, "earlier", "later"))
        if most is not None
    ]
    return f"{times[number]} {' and '.join(limits)} than {times[0]}"


def length(value: int, timestamps: bool) -> str:
    """A length of time: in the largest unit it is a whole number of, if the attribute has units."""
    if not timestamps:
        return f"{value:,}"
    fitting = [unit for unit, size in UNITS.items() if value % size == 0 and value]
    unit = fitting[-1] if fitting else "microsecond"
    count = value // UNITS[unit]
    return f"{count:,} {unit}{'' if count == 1 else 's'}"
