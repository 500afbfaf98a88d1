"""What to write where the inputs of a union differ: casts, names, and the order of their columns."""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.decimals import common, decimal_of
from anabranch.language.kinds import TYPES, decimal_name, type_named, type_words
from anabranch.language.tree import Column

SQL_NAMES = {
    "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT",
    "uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINT", "uint64": "UBIGINT",
    "float32": "FLOAT", "float64": "DOUBLE", "string": "VARCHAR", "timestamp": "TIMESTAMP",
}  # fmt: skip
"""The types that inputs can be brought to, as SQL calls them."""
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_TIMES = (pl.Date(), pl.Datetime("us"), pl.Datetime("ms"))


def refuse_unlike(schemas: Sequence[pl.Schema], sql: bool) -> None:
    """Raises a LanguageError that says what to write, if these inputs of a union are not alike."""
    first = schemas[0]
    for number, other in enumerate(schemas[1:], start=2):
        if list(other.items()) != list(first.items()):
            raise LanguageError(
                "UNION needs inputs with the same columns: "
                f"{'; '.join(_differences(first, other, number))}. "
                f"{' '.join(_advice(first, other, number, sql))}"
            )


def _differences(first: pl.Schema, other: pl.Schema, number: int) -> list[str]:
    return [
        f"'{name}' is {_kind_words(first, name)} in the first input and "
        f"{_kind_words(other, name)} in input {number}"
        for name in dict.fromkeys((*first, *other))
        if first.get(name) != other.get(name)
    ] or [f"the columns stand in another order in input {number}"]


def _kind_words(schema: pl.Schema, name: str) -> str:
    return type_words(schema[name]) if name in schema else "missing"


def common_type(one: pl.DataType, other: pl.DataType) -> str | None:
    """The name of the type to bring both to; None if there is none.

    >>> common_type(pl.Int16(), pl.Int64()), common_type(pl.Int64(), pl.Float32())
    ('int64', 'float64')
    """
    kinds = [one, other]
    if all(kind.is_integer() for kind in kinds):
        # In the order of their width; of a mixture of signs, the one that counts do not leave
        signed = sum(kind.is_signed_integer() for kind in kinds)
        names = {0: UNSIGNED, 1: ("int64",), 2: SIGNED}[signed]
        return next(name for name in reversed(names) if signed == 1 or TYPES[name] in kinds)
    decimals = [decimal_of(kind) for kind in kinds]
    if any(kind.is_decimal() for kind in kinds) and all(decimals):
        try:
            return decimal_name(common([kind for kind in decimals if kind]))
        except LanguageError:
            return None
    if all(kind.is_numeric() for kind in kinds):
        return "float64"
    if pl.String in kinds:
        fitting = all(kind in TYPES.values() and kind != pl.Binary for kind in kinds)
        return "string" if fitting else None
    return "timestamp" if all(kind in _TIMES for kind in kinds) else None


def _advice(first: pl.Schema, other: pl.Schema, number: int, sql: bool) -> list[str]:
    """How to write both inputs so that they are alike, and what becomes of the columns that cannot be."""
    sources = _sources(first, other)
    kinds = {
        name: _wanted(first[name], source and other[source]) for name, source in sources.items()
    }
    alike = [name for name, kind in kinds.items() if kind is not None]
    told = []
    for which, schema, named in (
        ("the first input", first, {name: name for name in alike}),
        (f"input {number}", other, {name: sources[name] for name in alike}),
    ):
        columns = [(name, named[name], _cast(schema, named[name], kinds[name])) for name in alike]
        if columns != [(name, name, None) for name in schema]:
            written = ", ".join((_in_sql if sql else _in_python)(*column) for column in columns)
            form = f"SELECT {written} FROM (…)" if sql else f".select({written})"
            told.append(f"Write {which} as {form}.")
    told += [
        f"No type holds both '{name}', so it is left out." for name in first if name not in alike
    ]
    extra = [f"'{name}'" for name in other if name not in sources.values()]
    if extra:
        told.append(f"To keep {' and '.join(extra)}, select as much in the first input.")
    return told


def _sources(first: pl.Schema, other: pl.Schema) -> dict[str, str | None]:
    """What each column of the first input is called in the other; None if it is not there.

    SQL goes by position, so a column of an unknown name in the same place is taken to be meant.
    """
    placed = dict(zip(first, other, strict=True)) if len(first) == len(other) else {}
    unknown = {name: at for name, at in placed.items() if name not in other and at not in first}
    return {name: name if name in other else unknown.get(name) for name in first}


def _wanted(one: pl.DataType, other: pl.DataType | str | None) -> pl.DataType | None:
    """The type of a column in both inputs; None if there is none."""
    if one == other:
        return one
    if isinstance(other, pl.DataType):
        name = common_type(one, other)
        return type_named(name) if name else None
    return one if one in TYPES.values() or one.is_decimal() else None


def _cast(schema: pl.Schema, source: str | None, kind: pl.DataType | None) -> str | None:
    """The type to cast a column to, if it is not of it already."""
    if kind is None or (source is not None and schema[source] == kind):
        return None
    if isinstance(kind, pl.Decimal):
        return decimal_name(kind)
    return next(name for name, known in TYPES.items() if known == kind)


def _in_sql(name: str, source: str | None, cast: str | None) -> str:
    value = "NULL" if source is None else str(Column(source))
    shown = str(Column(name))
    if cast:
        return f"CAST({value} AS {SQL_NAMES.get(cast, cast.upper())}) AS {shown}"
    return shown if source == name else f"{value} AS {shown}"


def _in_python(name: str, source: str | None, cast: str | None) -> str:
    if source == name and not cast:
        return json.dumps(name, ensure_ascii=False)
    value = "lit(None)" if source is None else f"col({json.dumps(source, ensure_ascii=False)})"
    cast_to = f'.cast("{cast}")' if cast else ""
    return f"{value}{cast_to}.alias({json.dumps(name, ensure_ascii=False)})"
