"""CREATE STREAM and CREATE TABLE: columns, ordered attribute, partitioning expressions, options."""

from __future__ import annotations

from typing import Any

from anabranch.errors import suggest
from anabranch.spec.misplaced import CLAUSES
from anabranch.spec.options import ORIGINS, TABLE, origin_of, stream_kinds, stream_options, values
from anabranch.spec.sql_tokens import Spot, Statement, Value
from anabranch.spec.sql_type import read_type, refuse_column

CALLED = {"generator": "generated stream", "kafka": "Kafka stream", "path": "stream of files"}


def read_stream(words: Statement, place: Spot) -> dict[str, Any]:
    """What follows CREATE STREAM and its name, as options of `Session.stream`."""
    parts: dict[str, Value] = {}

    def add(key: str, spot: Spot, of: Any) -> None:
        if key in parts:
            raise spot.error(f"{key.upper().replace('_', ' ')} appears twice.")
        parts[key] = Value(words.file, key, spot, of)

    columns = words.spot()
    if words.next_is("("):
        add("schema", columns, _columns(words))
    given: dict[str, Value] = {}
    while words.peek() is not None:
        spot = words.spot()
        if words.take("ORDERED", "BY"):
            add("ordered", spot, words.name("the column that grows with time"))
        elif words.take("LATENESS"):
            add("lateness", spot, _length(words))
        elif words.take("PARTITIONED BY"):
            add("partitioned_by", spot, words.expressions())
        elif words.take("WITH"):
            if given:
                raise spot.error("WITH appears twice: write all options in one.")
            given = _options(words)
        else:
            clauses = ("ORDERED BY", "LATENESS", "PARTITIONED BY", "WITH")
            raise words.expected(f"{', '.join(clauses)} or ';'", clauses)
    if "ordered" not in parts:
        raise place.error("ORDERED BY is missing: the column that grows with time.")
    if origin_of(given) not in given:
        raise place.error(
            "where do the rows come from? WITH (path = 'folder'), WITH (kafka = 'host:9092', topic = 'name') "
            "or WITH (generator = 'packets')."
        )
    if "generator" in given and "schema" in parts:
        raise columns.error("a generated stream has columns of its own: leave the list out.")
    return stream_options(place, {**parts, **given})


def read_table(words: Statement, place: Spot) -> dict[str, Any]:
    """What follows CREATE TABLE and its name, as options of `Session.table`."""
    found: dict[str, Any] = {"schema": _columns(words)} if words.next_is("(") else {}
    if words.next_is("AS"):
        raise words.spot().error(
            "a table is read from files; what is computed is a query: CREATE VIEW name AS SELECT …."
        )
    words.need("WITH", "WITH (path = 'folder') or WITH (delta = 'folder')")
    kinds = {key: kind for key, kind in TABLE.items() if key != "schema"}
    given = words.options(list(kinds), {"schema": CLAUSES["schema"].replace("stream", "table")})
    words.end()
    if "path" not in given and "delta" not in given:
        raise place.error(
            "where do the rows come from? WITH (path = 'folder') or (delta = 'folder')."
        )
    return {**found, **values(given, kinds)}


def _length(words: Statement) -> int | str:
    """`5`, `'5 seconds'`, or an INTERVAL in any of its spellings."""
    interval = words.take("INTERVAL")
    spot = words.spot()
    length = words.value("lateness").value(int, str)
    if not interval and isinstance(length, int) and (unit := words.unit()):
        raise spot.error(f"a length with a unit is a text: write LATENESS '{length} {unit}'.")
    if interval and str(length).strip().isdigit():
        return f"{length} {words.name('a unit of time, e.g. SECOND')}"
    return length  # type: ignore[no-any-return]


def _options(words: Statement) -> dict[str, Value]:
    """The options of WITH; which there are depends on where the rows come from."""
    everything = {key: None for origin in ORIGINS for key in stream_kinds([origin])}
    found = words.options([key for key in everything if key not in CLAUSES], CLAUSES)
    known = [key for key in stream_kinds(found) if key not in CLAUSES]
    origin = origin_of(found)
    for key, part in found.items():
        if key not in known:
            kind = CALLED.get(origin, f"stream of a {origin} table")
            raise part.spot.error(f"a {kind} has no option '{key}'.{suggest(key, known)}")
    return found


def _columns(words: Statement) -> dict[str, str]:
    """`(time BIGINT, srcIP BIGINT, ...)`."""
    opening = words.spot()
    words.need("(", "'(' and columns")
    found: dict[str, str] = {}
    while True:
        if any(words.next_is(word) for word in ("PRIMARY KEY", "CONSTRAINT")):
            refuse_column(words)
        spot, column = words.spot(), words.name("a column: its name and its type")
        if column in found:
            raise spot.error(f"the column '{column}' appears twice.")
        spot = words.spot()
        if column.upper() == "WATERMARK" and words.next_is("FOR"):
            raise spot.error(
                "WATERMARK FOR does not stand among the columns: write CREATE STREAM name (…) "
                "ORDERED BY column LATENESS '5 seconds'."
            )
        if words.next_is(",") or words.next_is(")") or words.peek() is None:
            raise words.expected(f"the type of '{column}', e.g. BIGINT")
        refuse_column(words)
        found[column] = read_type(words)
        refuse_column(words)
        if words.closes(opening, ")", f"after the type of '{column}'"):
            return found
