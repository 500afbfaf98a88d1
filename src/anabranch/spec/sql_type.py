"""The type of a column in a SQL file, in the spellings of DuckDB, Flink, PostgreSQL and Spark."""

from __future__ import annotations

import re
from collections.abc import Callable

from anabranch.errors import SettingsError, suggest
from anabranch.language.expression import TYPES, type_named
from anabranch.language.kinds import suggest_type
from anabranch.spec.sql_tokens import Spot, Statement

SQL_TYPES = {
    **{name.upper(): name for name in TYPES}, "TINYINT": "int8", "SMALLINT": "int16",
    "FLOAT": "float32", "REAL": "float32", "TEXT": "string", "VARCHAR": "string",
    "VARBINARY": "binary", "BOOL": "boolean",
}  # fmt: skip
"""The types of columns: ours, and what else SQL calls them."""
_ALSO = {
    "DOUBLE PRECISION": "double", "CHARACTER VARYING": "string", "BYTES": "binary", "BYTEA": "binary",
    "BLOB": "binary", "DATETIME": "timestamp", "TIMESTAMP_NTZ": "timestamp",
}  # fmt: skip
"""Names that stand in lists of columns, and mean what one of ours does."""
_LENGTHS = {"string": r"\d+", "binary": r"\d+", "timestamp": "[0-6]", "time": "[0-6]"}
"""The lengths that may stand behind types, and say nothing here."""
_CLOSING = {"<": ">", "(": ")"}
MOST_NESTED = 50

NO_ZONE = (
    " Columns that are listed have no time zone: write TIMESTAMP for times without an offset, or leave the "
    "list out and have the types told from the files."
)
_INSTEAD = {
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMP_LTZ", "TIMESTAMP_TZ"), NO_ZONE),
    "HUGEINT": " Whole numbers have 64 bits at most; for more digits write DECIMAL(38, 0).",
    **dict.fromkeys(
        ("CHAR", "CHARACTER"), " Texts are not filled with blanks here: write VARCHAR."
    ),
    "NUMBER": " Write BIGINT, DOUBLE or DECIMAL(10, 2).",
    "JSON": " Write STRING, or the fields as STRUCT<a BIGINT, b STRING>.",
    "VARIANT": " Write STRING, or the fields as STRUCT<a BIGINT, b STRING>.",
    "MULTISET": " Write ARRAY<type>.",
    **dict.fromkeys(("ARRAY", "LIST"), " Write it with the type of its values: ARRAY<STRING>."),
    "MAP": " Write it with the types of keys and values: MAP<STRING, BIGINT>.",
    **dict.fromkeys(("STRUCT", "ROW"), " Write it with its fields: STRUCT<a BIGINT, b STRING>."),
}
"""What to write for types that are not there."""
REFUSED = {
    "NOT": "NOT NULL is not checked when rows are read. Leave it out, and keep rows with NULL away by "
    "WHERE column IS NOT NULL in the query",
    "PRIMARY KEY": "streams and tables have no keys: leave PRIMARY KEY out, and the rows as they are",
    "PRIMARY": "streams and tables have no keys: leave PRIMARY KEY out, and the rows as they are",
    "UNIQUE": "it is not checked that values are unique: leave UNIQUE out",
    "CONSTRAINT": "constraints are not checked: leave them out",
    "CHECK": "conditions are not checked when rows are read: leave CHECK out, and write WHERE in the query",
    "DEFAULT": "columns have no defaults: leave DEFAULT out, and write COALESCE(column, value) in the query",
    "COMMENT": "columns have no comments of this kind: write -- and the comment at the end of the line",
    "METADATA": "there are no columns of metadata: leave it out",
    "AS": "computed columns are for a query: leave it out, and write CREATE VIEW name AS SELECT *, …",
    "GENERATED": "computed columns are for a query: leave it out, and write CREATE VIEW name AS SELECT *, …",
}
"""What else other systems write in a list of columns, and what to do with it here."""


def read_type(words: Statement, level: int = 0) -> str:
    """The next words as a type, by the name that `session.stream` has for it."""
    spot = words.spot()
    if level > MOST_NESTED:
        raise spot.error(f"expected at most {MOST_NESTED} types within each other.")
    found = _nested(words, spot, level) or _plain(words, spot)
    while words.take("ARRAY") or words.next_is("["):
        if words.take("[") and not words.take("]"):
            raise spot.error("arrays have no fixed length: write the type and [].")
        found = f"list({found})"
    words.take("NULL")
    return found


def refuse_column(words: Statement) -> None:
    """Refuses what other systems write among columns, with what to do instead."""
    for word, reason in REFUSED.items():
        if words.next_is(word):
            raise words.spot().error(f"{reason}.")


def _nested(words: Statement, spot: Spot, level: int) -> str | None:
    def inner() -> str:
        return read_type(words, level + 1)

    for word in ("ARRAY", "LIST", "MAP", "STRUCT", "ROW"):
        sign = next((sign for sign in _CLOSING if words.next_is(word, sign)), None)
        if sign is None:
            continue
        words.take(word)
        opening = words.spot()
        words.take(sign)
        if word in ("STRUCT", "ROW"):
            return f"struct({', '.join(_fields(words, opening, sign, inner))})"
        parts = [inner()]
        while not words.closes(opening, _CLOSING[sign], "in the type"):
            parts.append(inner())
        wanted = 2 if word == "MAP" else 1
        if len(parts) != wanted:
            raise spot.error(
                f"expected {'a type of keys and one of values' if word == 'MAP' else 'one type of values'} "
                f"in {word}, got {len(parts)} type{'s' if len(parts) > 1 else ''}."
            )
        return f"{'map' if word == 'MAP' else 'list'}({', '.join(parts)})"
    return None


def _fields(words: Statement, opening: Spot, sign: str, inner: Callable[[], str]) -> list[str]:
    found: dict[str, str] = {}
    while True:
        spot, name = words.spot(), words.name("a field: its name and its type")
        if not re.fullmatch(r"\w+", name):
            raise spot.error(
                f"a field is called '{name}', which a list of columns cannot say: leave the list out, and "
                "have the types told from the files."
            )
        if name in found:
            raise spot.error(f"the field '{name}' appears twice.")
        words.take(":")
        found[name] = inner()
        refuse_column(words)
        if words.closes(opening, _CLOSING[sign], "after the field"):
            return [f"{name} {kind}" for name, kind in found.items()]


def _plain(words: Statement, spot: Spot) -> str:
    name = next((name for name in _ALSO if words.take(name)), None) or words.name("a type").upper()
    numbers = words.expressions() if words.next_is("(") else []
    written = f"{name}({', '.join(numbers)})" if numbers else name
    if words.take("WITHOUT", "TIME", "ZONE"):
        pass
    elif words.next_is("WITH", "TIME", "ZONE") or words.next_is("WITH", "LOCAL", "TIME", "ZONE"):
        raise _no_type(spot, f"{written} WITH TIME ZONE", "TIMESTAMPTZ")
    found = SQL_TYPES.get(name) or _ALSO.get(name)
    if found is not None:
        if not numbers or re.fullmatch(_LENGTHS.get(found, ""), ",".join(numbers)):
            return found
        if found in ("timestamp", "time"):
            raise spot.error(f"there is no type {written}. Times have microseconds: {name}(6).")
        raise _no_type(spot, written, name)
    decimal = f"decimal{written[len(name) :]}"
    if name in ("DECIMAL", "NUMERIC", "DEC"):
        if type_named(decimal) is None:
            raise spot.error(f"there is no type {written}.{suggest_type(decimal)}")
        return decimal
    raise _no_type(spot, written, name)


def _no_type(spot: Spot, written: str, name: str) -> SettingsError:
    hint = _INSTEAD.get(name) or suggest(name, [*SQL_TYPES, "DECIMAL", "ARRAY", "MAP", "STRUCT"])
    return spot.error(f"there is no type {written}.{hint}")
