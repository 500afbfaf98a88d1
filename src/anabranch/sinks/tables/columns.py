"""The types that columns of results get in a table, and rows made to fit them.

What a table has no type for gets one that holds every value; what none holds is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from anabranch.errors import SettingsError
from anabranch.language.kinds import type_words

Wider = Mapping[type[pl.DataType], pl.DataType]
UNSIGNED: Wider = {
    pl.UInt8: pl.Int16(), pl.UInt16: pl.Int32(), pl.UInt32: pl.Int64(), pl.UInt64: pl.Decimal(20, 0),
}  # fmt: skip
"""No table here has integers without a sign."""
SMALL: Wider = {**UNSIGNED, pl.Int8: pl.Int32(), pl.Int16: pl.Int32(), pl.UInt8: pl.Int32()}
"""For tables whose least integers have 32 bits."""
ADVICE = {
    pl.Null: "no value has told its type: CAST it",
    pl.Duration: "take its EPOCH",
    pl.Time: "CAST it to a text",
    pl.Datetime: "it counts nanoseconds, and tables count microseconds: round it with CAST",
}


def table_types(
    what: str, schema: pl.Schema, wider: Wider, without: frozenset[type[pl.DataType]]
) -> pl.Schema:
    """The types of the columns in the table; SettingsError for one that it has nothing for.

    >>> dict(table_types("t", pl.Schema({"a": pl.UInt32()}), UNSIGNED, frozenset()))
    {'a': Int64}
    """
    types: dict[str, pl.DataType] = {}
    for name, kind in schema.items():
        base = kind.base_type()
        lossy = isinstance(kind, pl.Datetime) and kind.time_unit == "ns"
        if lossy or base in without or base in (pl.Null, pl.Duration):
            raise SettingsError(
                f"{what} has no type for column '{name}', which is {type_words(kind)}: "
                f"{ADVICE.get(base, 'leave it out')}, or use a result folder."
            )
        if isinstance(kind, pl.Datetime):
            types[name] = pl.Datetime("us", "UTC" if kind.time_zone else None)
        else:
            types[name] = wider.get(base, kind)
    return pl.Schema(types)


def fit(rows: pl.DataFrame, types: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The rows with the types that the table has; no value is changed by that."""
    changed = []
    for name, kind in types.items():
        before = rows.schema[name]
        if before == kind:
            continue
        column = pl.col(name)
        if isinstance(before, pl.Datetime) and before.time_zone is not None:
            column = column.dt.convert_time_zone("UTC")
        changed.append(column.cast(kind))
    return rows.with_columns(changed) if changed else rows


def agree(
    what: str, results: pl.Schema, table: Mapping[str, pl.DataType], evolve: bool
) -> dict[str, pl.DataType]:
    """The columns that the table lacks and is to get; SettingsError if the two do not fit together."""
    for name, kind in results.items():
        if name in table and table[name] != kind:
            raise SettingsError(
                f"{what} has column '{name}' as {type_words(table[name])}, but the results have it as "
                f"{type_words(kind)}. CAST it in the query, or use another table."
            )
    missing = {name: kind for name, kind in results.items() if name not in table}
    if missing and not evolve:
        names = ", ".join(f"'{name}'" for name in missing)
        raise SettingsError(
            f"{what} has no column {names}. Its columns: {', '.join(table)}. Leave it out of the query, or "
            "let the table get it: evolve=True."
        )
    return missing
