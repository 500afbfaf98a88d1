"""Random joins with a table: every kind and key, of rows of a stream and of what was grouped before."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from anabranch.language.aggregate import count
from anabranch.language.builder import Query
from anabranch.language.expression import col
from anabranch.language.lookup import KINDS, Table
from anabranch.language.window_key import tumble
from anabranch.session import Session
from anabranch.sources.lookup_table import LookupTable
from anabranch.testing.chooser import Chooser, Clock

NAME = "known"
"""The table that streams are joined with."""
SIZES = [5, 20]
STEADY = 5
"""How often a restless table is asked for its version until it has another one."""


def draw_lookup(
    chooser: Chooser, source: Query, values: Mapping[str, Sequence[Any]], keys: Sequence[str],
    clock: Clock,
) -> tuple[pl.DataFrame, Query]:  # fmt: skip
    """A table and a query that looks up rows in it; it has some of the keys, and none of them twice."""
    key = chooser.choice(list(keys))
    # In floats 0.0 and -0.0 are one
    some = [value for value in values[key] if str(value) != "-0.0" and chooser.flag(0.6)]
    table = pl.DataFrame({"k": pl.Series(some, dtype=source.node.schema[key])})
    table = table.with_columns(pl.int_range(table.height, dtype=pl.Int64).alias("rank"))
    known = Query(Table(NAME, table.schema))
    if chooser.flag(0.3):
        known = known.where(col("rank") > 0)
    kind = chooser.choice(list(KINDS))
    shown = ["rank"] if kind in ("inner", "left") else []
    window = tumble(clock.length(chooser.choice(SIZES)))
    if chooser.flag(0.3):
        grouped = source.group_by(window, key).agg(count().alias("many"))
        return table, grouped.join(known, on=[(key, "k")], how=kind)
    met = source.join(known, on=[(key, "k")], how=kind)
    if chooser.flag():
        return table, met.select("time", key, *shown)
    return table, met.group_by(window, *shown).agg(count().alias("many"))


def register_restless(session: Session, tables: Mapping[str, pl.DataFrame]) -> None:
    """Registers tables that have another version every few epochs, and the same rows in all of them."""
    for name, rows in tables.items():
        session.table(name, rows)
        session._tables[name] = _restless(session._tables[name])


def _restless(table: LookupTable) -> LookupTable:
    asked = itertools.count()
    return replace(table, version=lambda: f"{table.version()} {next(asked) // STEADY}")
