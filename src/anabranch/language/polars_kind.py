"""The type that Polars gives a function's values, asked of it once for arguments of these types."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from anabranch.language.decimals import Pointed
from anabranch.language.functions import CONSTANTS, FUNCTIONS
from anabranch.language.typed import Typed


def polars_kind(function: str, arguments: Sequence[Typed]) -> pl.DataType:
    """The type of a function's values, as Polars has it for arguments of these types."""
    fixed = CONSTANTS.get(function, ())
    parts = tuple(
        (
            part.kind,
            type(part.value) if part.is_constant else None,
            part.value if n in fixed else None,
        )
        for n, part in enumerate(arguments)
    )
    if function == "case":
        # However many branches there are, their types are few
        parts = (*(parts[0], parts[-1]), *dict.fromkeys(parts[1:-1:2]))
    elif function in ("coalesce", "greatest", "least", "concat"):
        parts = tuple(dict.fromkeys(parts))
    return _kind_for(function, parts)


_SAMPLES: Mapping[type, Any] = {
    int: pl.lit(1, pl.Int64), float: pl.lit(1.0), Pointed: pl.lit(1.0), str: pl.lit(""),
    bool: pl.lit(True), bytes: pl.lit(b""),
}  # fmt: skip


_READING = frozenset(("strptime", "strpdate"))
"""Functions that fail for texts that are not what they expect, as those of samples are."""
_SAMPLE_KINDS = (pl.Int64, pl.Float64, pl.String, pl.Boolean, pl.Binary)
"""The types of constants as they are written; one that was cast has the weight of a column."""


@functools.lru_cache(maxsize=4096)
def _kind_for(
    function: str, parts: tuple[tuple[pl.DataType, type | None, Any], ...]
) -> pl.DataType:
    fixed = CONSTANTS.get(function, ())
    schema: dict[str, pl.DataType] = {}
    plain: list[Any] = []
    for place, (kind, constant_of, value) in enumerate(parts):
        if place in fixed:
            plain.append(value)
        elif constant_of is type(None):
            plain.append(pl.lit(None, kind))
        elif (
            constant_of
            and constant_of in _SAMPLES
            and kind in _SAMPLE_KINDS
            and function not in _READING
        ):
            plain.append(_SAMPLES[constant_of])
        else:
            schema[str(place)] = kind
            plain.append(pl.col(str(place)))
    if function == "case":
        condition, *values = plain
        plain = [part for value in values[1:] for part in (condition, value)] + [values[0]]
    return pl.DataFrame(schema=schema).select(value=FUNCTIONS[function](*plain)).schema["value"]
