"""Are these the same rows? Compared as multisets, with a difference a person can read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

TOLERANCE = 1e-9
RANK_ERROR = 0.04
"""How far off the rank of an approximate quantile may be: three times what KLL promises."""
SHOWN = 8

Row = tuple[Any, ...]


def assert_same_rows(
    got: pl.DataFrame,
    expected: pl.DataFrame,
    *,
    quantiles: Mapping[str, float] | None = None,
    where: str = "",
) -> None:
    """Raises AssertionError unless both have the same rows, in any order, as often in both.

    NULL equals NULL and NaN equals NaN; floats may differ by `TOLERANCE`, relatively. For the columns
    in `quantiles` (name -> fraction) `expected` holds the sorted values of the group instead, and the
    rank of the value got must be near the fraction.

    >>> assert_same_rows(pl.DataFrame({"n": [1, 2]}), pl.DataFrame({"n": [2, 1]}))
    """
    ranked = quantiles or {}
    place = f"{where}: " if where else ""
    wanted = {
        name: pl.Float64() if name in ranked else kind for name, kind in expected.schema.items()
    }
    if list(got.schema.items()) != list(wanted.items()):
        raise AssertionError(
            f"{place}the columns differ.\n  got      {dict(got.schema)}\n  expected {wanted}"
        )
    loose = [name for name, kind in wanted.items() if kind.is_float()]
    exact = [name for name in wanted if name not in loose]
    missing, unexpected = _unmatched(got, expected, exact, loose, ranked)
    if missing or unexpected:
        names = [*exact, *loose]
        raise AssertionError(
            f"{place}got {got.height} rows, expected {expected.height}.\n"
            + _listed("Missing", missing, names)
            + _listed("Unexpected", unexpected, names)
            + _nearest(missing, unexpected, names, len(exact), ranked)
        )


def _unmatched(
    got: pl.DataFrame, expected: pl.DataFrame, exact: Sequence[str], loose: Sequence[str],
    ranked: Mapping[str, float],
) -> tuple[list[Row], list[Row]]:  # fmt: skip
    """The rows of either side that have no partner on the other."""
    fractions = [ranked.get(name) for name in loose]
    waiting: dict[Row, list[Row]] = {}
    for key, values in zip(_keys(expected, exact), _rows(expected, loose), strict=True):
        waiting.setdefault(key, []).append(values)
    # First those that are equal: one that is only close must not take the partner of another
    alike = []
    for key, values in zip(_keys(got, exact), _rows(got, loose), strict=True):
        if values in waiting.get(key, []):
            waiting[key].remove(values)
        else:
            alike.append((key, values))
    unexpected = []
    for key, values in alike:
        partners = waiting.get(key, [])
        for number, partner in enumerate(partners):
            if all(map(_close, values, partner, fractions)):
                del partners[number]
                break
        else:
            unexpected.append((*key, *values))
    missing = [(*key, *values) for key, left in waiting.items() for values in left]
    return missing, unexpected


def _rows(frame: pl.DataFrame, names: Sequence[str]) -> list[Row]:
    return frame.select(names).rows() if names else [()] * frame.height


def _keys(frame: pl.DataFrame, names: Sequence[str]) -> list[Row]:
    """The rows as they are looked up: lists and structs as texts."""
    nested = [name for name in names if frame.schema[name].is_nested()]
    texts = (
        pl.Series(name, [None if value is None else repr(value) for value in frame[name].to_list()])
        for name in nested
    )
    return _rows(frame.with_columns(texts), names)


def _close(got: Any, expected: Any, fraction: float | None) -> bool:
    if fraction is not None:
        return _ranked(got, expected, fraction)
    if got is None or expected is None:
        return got is expected
    if math.isnan(got) or math.isnan(expected):
        return math.isnan(got) and math.isnan(expected)
    return math.isclose(got, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE * 1e-3)


def _ranked(got: float | None, values: list[float], fraction: float) -> bool:
    """Whether a value's rank among the sorted values is near the fraction of them."""
    if got is None or not values:
        return got is None and not values
    slack = RANK_ERROR * len(values) + 1
    below = sum(value < got for value in values)
    upto = sum(value <= got for value in values)
    aim = fraction * len(values)
    return got in values and below - slack <= aim <= upto + slack


def _listed(title: str, rows: Sequence[Row], names: Sequence[str]) -> str:
    if not rows:
        return ""
    shown = "".join(f"  {_text(row, names)}\n" for row in rows[:SHOWN])
    more = f"  … and {len(rows) - SHOWN} more\n" if len(rows) > SHOWN else ""
    return f"{title} ({len(rows)}):\n{shown}{more}"


def _text(row: Row, names: Sequence[str]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in zip(names, row, strict=True))


def _nearest(
    missing: Sequence[Row], unexpected: Sequence[Row], names: Sequence[str], exact: int,
    ranked: Mapping[str, float],
) -> str:  # fmt: skip
    """The pair of unmatched rows that differ least, and in what."""

    def differing(left: Row, right: Row) -> list[int]:
        return [
            number
            for number, (a, b) in enumerate(zip(left, right, strict=True))
            if not (a == b if number < exact else _close(a, b, ranked.get(names[number])))
        ]

    pairs = [(differing(b, a), a, b) for a in missing[:SHOWN] for b in unexpected[:SHOWN]]
    if not pairs:
        return ""
    where, wanted, came = min(pairs, key=lambda pair: len(pair[0]))
    parts = ", ".join(f"{names[n]}: got {came[n]!r}, expected {wanted[n]!r}" for n in where)
    return f"Nearest pair differs in {parts}\n"
