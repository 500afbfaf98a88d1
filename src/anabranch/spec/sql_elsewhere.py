"""Statements that other systems have, and what to write or do in place of each."""

from __future__ import annotations

FORMS = {
    "STREAM": "CREATE STREAM name ORDERED BY column WITH (path = 'folder')",
    "QUERY": "CREATE QUERY name AS SELECT * FROM stream",
    "VIEW": "CREATE VIEW name AS SELECT * FROM stream",
    "SINK": "CREATE SINK query TO 'folder'",
    "TABLE": "CREATE TABLE name WITH (path = 'folder')",
    "FUNCTION": "CREATE FUNCTION name(BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS 'module:function'",
}
STATEMENTS = (
    "There are CREATE STREAM, CREATE TABLE, CREATE QUERY, CREATE VIEW (a query without a sink), CREATE "
    "FUNCTION, CREATE SINK and SET."
)

_WHOLE = (
    "A file says all that there is, and is read anew at each start: change its statements. A checkpoint of "
    "the queries of before goes on with SET changed = 'keep-same'."
)
_LOOK = "To look at streams, columns, types and the plan: anabranch explain FILE."
_PLACES = "There are no databases or catalogs: folders are named in WITH (path = 'folder') and TO 'folder'."
_TOGETHER = "All queries of a file run together: leave it out."
_NOTHING = "There is nothing to load, keep or prepare: leave it out."
_RESULTS = f"Results go to the sink of a query: {FORMS['QUERY']}; {FORMS['SINK']}."

INSTEAD = {
    "INSERT": _RESULTS,
    "COPY": _RESULTS,
    "USE": _PLACES,
    **dict.fromkeys(("SHOW", "DESCRIBE", "DESC", "EXPLAIN"), _LOOK),
    **dict.fromkeys(("DROP", "ALTER", "TRUNCATE", "RESET"), _WHOLE),
    **dict.fromkeys(
        ("DELETE", "UPDATE", "MERGE"),
        "What was read stays as it is: leave rows out by WHERE in a query.",
    ),
    **dict.fromkeys(("BEGIN", "COMMIT", "END", "EXECUTE", "STATEMENT", "START"), _TOGETHER),
    **dict.fromkeys(
        ("ADD", "INSTALL", "LOAD", "ATTACH", "PRAGMA", "CACHE", "REFRESH", "ANALYZE", "OPTIMIZE"),
        _NOTHING,
    ),
}
CREATE_INSTEAD = {
    "SOURCE": f"A source is a stream: {FORMS['STREAM']}.",
    "STREAMING": f"A streaming table is a query with a sink: {FORMS['QUERY']}; {FORMS['SINK']}.",
    "OR": "A file is read anew at each start: leave OR REPLACE out.",
    **dict.fromkeys(
        ("TEMPORARY", "TEMP", "GLOBAL"),
        f"Nothing of a file outlives its run: leave the word out, {FORMS['VIEW']}.",
    ),
    "EXTERNAL": f"Rows are read where they are: leave the word out, {FORMS['TABLE']}.",
    **dict.fromkeys(("DATABASE", "SCHEMA", "CATALOG"), _PLACES),
    "INDEX": "There are no indexes: how rows are spread follows from the queries.",
    "RECURSIVE": f"A query cannot read itself: {FORMS['VIEW']}.",
}
"""The same for what stands behind CREATE."""
