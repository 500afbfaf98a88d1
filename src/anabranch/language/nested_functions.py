"""Functions of lists and structs, and those that make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from anabranch.errors import LanguageError


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


def _list(*parts: pl.Expr) -> pl.Expr:
    if not parts:
        raise LanguageError(
            "A list without elements has no type: write one with some, as in [x, y]."
        )
    return pl.concat_list(*parts)


def _slice(values: pl.Expr, first: pl.Expr, last: pl.Expr) -> pl.Expr:
    """The elements from one place to another, both with it; -1 is the last. What lies outside is left out."""
    length = values.list.len().cast(pl.Int64)
    start = pl.when(first < 0).then(length + first + 1).otherwise(first).clip(lower_bound=1)
    end = pl.when(last < 0).then(length + last + 1).otherwise(last)
    # Polars takes all that follows for a length of NULL
    known = first.is_not_null() & last.is_not_null()
    return pl.when(known).then(values.list.slice(start - 1, (end - start + 1).clip(lower_bound=0)))


def _map_value(entries: pl.Expr, key: object) -> pl.Expr:
    """The value of a key; NULL where the map has none."""
    entry = pl.element()
    found = entry.filter(entry.struct.field("key").eq(key)).struct.field("value")
    return entries.list.eval(found).list.first()


def _joined(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """One list after the other; NULL has no elements, as in DuckDB."""
    return pl.concat_list(*(part.fill_null(pl.lit([])) for part in (left, right)))


NESTED: Mapping[str, Callable[..., pl.Expr]] = {
    "struct": struct,
    "field": lambda a, name: a.struct.field(name),
    "list": _list,
    "element": _element,
    "list_length": lambda a: a.list.len().cast(pl.Int64),
    "list_contains": lambda a, value: a.list.contains(value, nulls_equal=False),
    "list_join": lambda a, separator: a.list.drop_nulls().list.join(separator),
    "list_sort": lambda a: a.list.sort(nulls_last=True),
    "sort_array": lambda a: a.list.sort(),
    "list_distinct": lambda a: a.list.drop_nulls().list.unique().list.sort(),
    "list_sum": lambda a: pl.when(a.list.drop_nulls().list.len() > 0).then(a.list.sum()),
    "list_min": lambda a: a.list.min(),
    # NaN is above all; the max of Polars passes over it
    "list_max": lambda a: a.list.drop_nulls().list.sort().list.last(),
    "list_reverse": lambda a: a.list.reverse(),
    "list_concat": _joined,
    "list_slice": _slice,
    "map_extract_value": _map_value,
    "map_keys": lambda a: a.list.eval(pl.element().struct.field("key")),
    "map_values": lambda a: a.list.eval(pl.element().struct.field("value")),
}
NESTED_CONSTANTS: Mapping[str, tuple[int, ...]] = {
    "struct": tuple(range(0, 200, 2)), "field": (1,), "list_join": (1,), "map_extract_value": (1,),
}  # fmt: skip
