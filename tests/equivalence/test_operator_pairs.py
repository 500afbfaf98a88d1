"""Two operators without parentheses mean what they mean in DuckDB, or are refused: all pairs and types."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import duckdb
import polars as pl
import pytest

from anabranch.errors import LanguageError
from anabranch.language.expression import to_polars
from anabranch.language.sql.expression import read_expression

PREFIXES = ("", "NOT", "-", "~")
# One or two of those that bind equally strongly
JOINING = (
    "+",
    "*",
    "//",
    "&",
    "<<",
    "||",
    "=",
    "<",
    ">=",
    "AND",
    "OR",
    "IS DISTINCT FROM",
    "IS NOT DISTINCT FROM",
)
AFTER = (
    "IS NULL", "NOTNULL", "IS TRUE", "IS NOT FALSE", "IN (1, 5)", "NOT IN ('x')", "IN (TRUE)",
    "BETWEEN 1 AND 6", "NOT BETWEEN FALSE AND FALSE", "LIKE 'x%'", "NOT LIKE 'x%'",
)  # fmt: skip

# Such that differences and remainders stay above zero, where `//` and `%` are DuckDB's
WHOLE = {"a": [50, 37, None], "b": [7, 5, None], "c": [2, 1, None]}
VALUES = {
    "i": (pl.Int64, WHOLE),
    "t": (pl.String, {"a": ["x", "a", None], "b": ["x", "ab", None], "c": ["xy", "x", None]}),
    "o": (pl.Boolean, {name: [True, False, None] for name in "abc"}),
}


def table() -> pl.DataFrame:
    """All triples of the values of each type: columns ia, ib, ic, ta, … oc."""
    triples = list(itertools.product(range(3), repeat=3))
    columns = {
        f"{kind}{name}": pl.Series([values[row[place]] for row in triples], dtype=dtype)
        for kind, (dtype, by_name) in VALUES.items()
        for place, (name, values) in enumerate(by_name.items())
    }
    return pl.DataFrame(columns)


def written() -> Iterator[str]:
    """Texts of two operators each, with `{a}`, `{b}`, `{c}` for columns."""
    for prefix, one, inner in itertools.product(PREFIXES, JOINING, PREFIXES):
        for other in JOINING:
            if not (prefix and inner):
                yield f"{prefix} {{a}} {one} {inner} {{b}} {other} {{c}}"
        for other in AFTER:
            if not (prefix and inner):
                yield f"{prefix} {{a}} {one} {inner} {{b}} {other}"
    for prefix, one in itertools.product(PREFIXES, AFTER):
        for other in JOINING:
            yield f"{prefix} {{a}} {one} {other} {{b}}"
        for other in AFTER:
            yield f"{prefix} {{a}} {one} {other}"


def differs_on_purpose(text: str) -> bool:
    """Divisions of what may be below zero, which the guide has in its table of differences."""
    return "//" in text and ("-" in text or "~" in text)


@pytest.mark.parametrize("kinds", [*itertools.product("ito", repeat=3)], ids="".join)
def test_two_operators_mean_what_they_mean_in_duckdb_or_are_refused(
    kinds: tuple[str, str, str],
) -> None:
    frame = table()
    connection = duckdb.connect()
    connection.register("s", frame.to_arrow())
    connection.execute("SET threads = 1")
    columns = {name: f"{kind}{name}" for kind, name in zip(kinds, "abc", strict=True)}
    compared, differing = 0, []
    for form in written():
        text = form.format(**columns)
        if ("{c}" not in form and kinds[2] != "i") or ("{b}" not in form and kinds[1] != "i"):
            continue  # the same text for each type of a column that is not in it
        if differs_on_purpose(text):
            continue
        try:
            ours = frame.select(v=to_polars(read_expression(text, frame.schema), frame.schema))
        except LanguageError:
            continue
        try:
            theirs = connection.execute(f"SELECT {text} AS v FROM s").fetchall()
        except duckdb.OutOfRangeException:
            continue  # a shift by less than nothing, NULL here
        except duckdb.Error as error:
            differing.append(f"{text}: DuckDB refuses it: {str(error).splitlines()[0]}")
            continue
        compared += 1
        if ours["v"].to_list() != [value for (value,) in theirs]:
            differing.append(text)
    assert not differing, "\n".join(differing)
    assert compared
