"""What a join may compare, as what, and what it calls its columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from anabranch.language.alike import SQL_NAMES, common_type
from anabranch.language.expression import Call, Expression, Literal, type_named, type_of


def right_names(left: Iterable[str], right: Iterable[str], suffix: str) -> dict[str, str]:
    """What the right side's columns are called beside the left's: `tb`, or `tb_S2` if that is taken.

    >>> right_names(["tb", "n"], ["tb", "m"], "S2")
    {'tb': 'tb_S2', 'm': 'm'}
    """
    taken = set(left)
    return {name: f"{name}_{suffix}" if name in taken else name for name in right}


def comparable(left: pl.DataType, right: pl.DataType) -> bool:
    """Whether an equality of values of these types means something."""
    if pl.Null in (left, right):
        return True
    if isinstance(left, pl.Datetime) and isinstance(right, pl.Datetime):
        # Other zones are compared in microseconds
        fine = left.time_zone == right.time_zone or "ns" not in (left.time_unit, right.time_unit)
        return fine and (left.time_zone is None) == (right.time_zone is None)
    if left.is_decimal() != right.is_decimal():
        return False
    return left == right or (left.is_numeric() and right.is_numeric())


def in_one_type(keys: Sequence[Expression], schemas: Sequence[pl.Schema]) -> tuple[Expression, ...]:
    """Expressions over different inputs, cast where their types differ, so that equals hash alike."""
    kinds = [
        type_of(key, schema, f"JOIN ON {key}") for key, schema in zip(keys, schemas, strict=True)
    ]
    if all(kind == kinds[0] for kind in kinds):
        return tuple(keys)
    name = _common(kinds)
    if name is None:
        return tuple(keys)
    return tuple(Call("cast", (key, Literal(name))) for key in keys)


def _common(kinds: Sequence[pl.DataType]) -> str | None:
    """The type in which values of these types are compared; None where they hash alike as they are."""
    if len({kind.time_zone for kind in kinds if isinstance(kind, pl.Datetime)}) > 1:
        return "timestamp"
    floats = any(kind.is_float() for kind in kinds)
    return "float64" if floats and all(kind.is_numeric() for kind in kinds) else None


def cast_to_write(*sides: tuple[Expression | str, pl.DataType]) -> str:
    """What makes the sides of an equality of one type."""
    name = common_type(sides[0][1], sides[1][1])
    if name is None:
        return "CAST one of them to the type of the other, or both to VARCHAR."
    written = [
        str(key)
        if kind == type_named(name)
        else f"CAST({key} AS {SQL_NAMES.get(name, name.upper())})"
        for key, kind in sides
    ]
    return f"Write {' = '.join(written)}."
