"""Options that stand in the wrong place of a specification file, and where they belong."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from anabranch.errors import suggest
from anabranch.spec.options import KAFKA_SINK, ORIGINS, RUN, SETTINGS, SINK, STREAM

CLAUSES = {
    "ordered": "ORDERED BY column",
    "lateness": "ORDERED BY column LATENESS 5",
    "partitioned_by": "PARTITIONED BY (column, ...)",
    "schema": "the columns after the stream's name: (time BIGINT, ...)",
}
"""Options of a stream that are clauses of the statement."""
_SECTIONS: Mapping[str, Collection[str]] = {
    "run": RUN,
    "settings": SETTINGS,
    "streams": {*STREAM, *(key for kinds in ORIGINS.values() for key in kinds)},
    "sinks": {*SINK, *KAFKA_SINK},
}
"""The options, by the section that they have in YAML."""
_SQL = {
    "run": "SET {key} = …", "settings": "SET {key} = …",
    "streams": "CREATE STREAM … WITH ({key} = …)",
    "sinks": "CREATE SINK … WITH ({key} = …)",
}  # fmt: skip
_CONNECTOR = (
    " Where rows come from is said by path = 'folder', kafka = 'host:9092', delta, iceberg or "
    "generator."
)
_OTHERS = {
    "connector": _CONNECTOR,
    "connector.type": _CONNECTOR,
    "cloudfiles.format": _CONNECTOR,
    "outputmode": " CREATE QUERY name EMIT UPDATE AS SELECT … gives groups that change; else a window once.",
    "mode": " Results are added; CREATE QUERY name EMIT UPDATE AS SELECT … gives groups that change.",
    "checkpointlocation": " Write SET checkpoint = 'folder'.",
    "watermark": " Write ORDERED BY column LATENESS '5 seconds' at the stream.",
    "time": " Times have no zone of the session: leave SET TIME ZONE out.",
    "timezone": " Times have no zone of the session: leave it out.",
    "parallelism": " Write SET sites = 4, SET cores = 4.",
    "spark": " Settings of Spark are given on the command line: --conf spark.NAME=VALUE.",
}
"""Names that other systems have, and what to write."""


def elsewhere(key: str, known: Collection[str]) -> str:
    """What to say in SQL of an option that is not there: where it belongs, or what is much like it."""
    if key in CLAUSES:
        return f" It is a clause of a stream: write {CLAUSES[key]}."
    forms = dict.fromkeys(
        form.format(key=key) for section, form in _SQL.items() if key in _SECTIONS[section]
    )
    if forms:
        return f" It stands elsewhere: {' or '.join(forms)}."
    return _OTHERS.get(key) or suggest(key, known)


def elsewhere_in_yaml(key: str, known: Collection[str]) -> str:
    """The same for YAML."""
    sections = [section for section in _SECTIONS if key in _SECTIONS[section]]
    return (
        f" It stands under {' or '.join(f'{section}:' for section in sections)}" + "."
        if sections
        else suggest(key, known)
    )
