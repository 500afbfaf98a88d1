"""Functions of lists and structs, and those that make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl


def struct(*parts: pl.Expr | str) -> pl.Expr:
    """Fields with their names before them: struct('a', x, 'b', y)."""
    return pl.struct(
        *(
            value.alias(name)
            for name, value in zip(parts[0::2], parts[1::2], strict=True)
            if isinstance(name, str) and isinstance(value, pl.Expr)
        )
    )


def _element(values: pl.Expr, number: pl.Expr) -> pl.Expr:
    """Element 1 is the first, -1 the last; NULL where there is none."""
    place = pl.when(number > 0).then(number - 1).otherwise(number)
    return pl.when(number != 0).then(values.list.get(place, null_on_oob=True))


NESTED: Mapping[str, Callable[..., pl.Expr]] = {
    "struct": struct,
    "field": lambda a, name: a.struct.field(name),
    "list": lambda *parts: pl.concat_list(*parts),
    "element": _element,
    "list_length": lambda a: a.list.len().cast(pl.Int64),
    "list_contains": lambda a, value: a.list.contains(value, nulls_equal=False),
    "list_join": lambda a, separator: a.list.drop_nulls().list.join(separator),
    "list_sort": lambda a: a.list.sort(),
    "list_distinct": lambda a: a.list.drop_nulls().list.unique().list.sort(),
    "list_sum": lambda a: pl.when(a.list.drop_nulls().list.len() > 0).then(a.list.sum()),
    "list_min": lambda a: a.list.min(),
    "list_max": lambda a: a.list.max(),
    "list_reverse": lambda a: a.list.reverse(),
    "list_concat": lambda a, b: (
        pl.when(a.is_null()).then(b).when(b.is_null()).then(a).otherwise(pl.concat_list(a, b))
    ),
    "list_slice": lambda a, first, last: a.list.slice(first - 1, last - first + 1),
}
NESTED_CONSTANTS: Mapping[str, tuple[int, ...]] = {
    "struct": tuple(range(0, 200, 2)), "field": (1,), "list_join": (1,),
}  # fmt: skip
