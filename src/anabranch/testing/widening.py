"""Random queries over rows in windows of FROM, elements of lists, and rows as of a time."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.language.aggregate import count, sum_
from anabranch.language.builder import Query
from anabranch.language.expression import Call, Expression, col
from anabranch.language.matching import right_names
from anabranch.language.temporal import as_of
from anabranch.language.unnest import Unnest
from anabranch.language.window_key import tumble
from anabranch.language.windowed import Covering, Windowed
from anabranch.testing.chooser import Chooser, Clock

STEPS = [5, 1, 2, 10]
SIZES = [5, 20]


def draw_widened(
    chooser: Chooser, inputs: Sequence[Query], keys: Sequence[str], clock: Clock
) -> Query:
    """A query over streams with the columns of `cases.SCHEMA`."""
    key = chooser.choice(list(keys))
    match chooser.choice(["windows", "windows", "elements", "elements", "as of"]):
        case "windows":
            return _windows(chooser, inputs[0], key, clock)
        case "elements":
            return _elements(chooser, inputs[0], key, clock)
    if clock.factor > 1 or getattr(clock.kind, "time_zone", None):
        # Times of these types cannot be carried along
        return _windows(chooser, inputs[0], key, clock)
    return _versions(chooser, inputs[0], inputs[-1], "t" if key == "m" else key, clock)


def _windows(chooser: Chooser, source: Query, key: str, clock: Clock) -> Query:
    step = chooser.choice(STEPS)
    size = step * chooser.integer(1, 4)
    offset = chooser.integer(0, size) if chooser.flag(0.3) else 0
    kind = chooser.choice(["tumble", "hop", "cumulate"])
    lengths = [
        length * clock.factor for length in (size, size if kind == "tumble" else step, offset)
    ]
    rows = Query(Windowed(source.select("time", key, "v").node, Covering(kind, *lengths)))
    if chooser.flag(0.3):
        return rows
    borders = ["window_start", "window_end"]
    some = [key] if chooser.flag() else []
    return rows.group_by(*borders, *some).agg(count().alias("many"), sum_("v").alias("sum"))


def _elements(chooser: Chooser, source: Query, key: str, clock: Clock) -> Query:
    values = [col(name).cast("int64") for name in ("v", "u", "i")][: chooser.integer(1, 3)]
    listed: Expression = Call("list", tuple(values))
    if chooser.flag(0.3):
        # Without NULL, so that there may be none
        listed = Call("list_distinct", (listed,))
    position = "place" if chooser.flag(0.4) else None
    narrowed = source.select("time", *dict.fromkeys([key, "v", "u", "i"])).node
    rows = Query(Unnest(narrowed, listed, "element", chooser.flag(0.3), position))
    if chooser.flag(0.4):
        return rows.where(col("element") > 0) if chooser.flag() else rows
    window = tumble(clock.length(chooser.choice(SIZES)))
    return rows.group_by(window, "element").agg(count().alias("many"))


def _versions(chooser: Chooser, source: Query, other: Query, key: str, clock: Clock) -> Query:
    rows = source.select("time", key, "v")
    versions = other.where(col("v") > 0).select("time", key, "u")
    names = right_names(rows.node.schema, versions.node.schema, "then")
    kind = chooser.choice(["inner", "left"])
    met = Query(as_of(rows.node, versions.node, [(col(key), col(key))], names, kind))
    if chooser.flag():
        return met
    window = tumble(clock.length(chooser.choice(SIZES)))
    return met.group_by(window, key).agg(sum_("u").alias("sum"), count().alias("many"))
