"""Tables in specification files: the same sinks, and faults at their places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anabranch.errors import AnabranchError
from anabranch.sinks import DeltaSink, IcebergSink, PostgresSink
from anabranch.spec.file import read_spec

STREAM = "CREATE STREAM t ORDERED BY time WITH (generator = 'packets', rows = 100);\n"
QUERY = "CREATE QUERY q AS SELECT time, srcIP FROM t;\n"
GIVEN: dict[str, tuple[str, str, Any]] = {
    "delta": (
        "TO 'out/q' WITH (format = 'delta', partition_by = 'a, b', optimize = 7, evolve = true, "
        "retain = '7 days', updates = 'append')",
        "{path: out/q, format: delta, partition_by: [a, b], optimize: 7, evolve: true, "
        "retain: 7 days, updates: append}",
        lambda: DeltaSink("out/q", ["a", "b"], True, "append", 7, retain="7 days"),
    ),
    "iceberg": (
        "TO 'lake.q' WITH (format = 'iceberg', catalog = 'c', uri = 'sqlite:///c.db', warehouse = 'w', "
        "partition_by = 'a')",
        "{path: lake.q, format: iceberg, catalog: c, uri: 'sqlite:///c.db', warehouse: w, "
        "partition_by: a}",
        lambda: IcebergSink("lake.q", "c", "sqlite:///c.db", "w", ["a"]),
    ),
    "pg": (
        "TO 'public.q' WITH (format = 'postgres', uri = 'postgresql://host/db', evolve = true)",
        "{path: public.q, format: postgres, uri: 'postgresql://host/db', evolve: true}",
        lambda: PostgresSink("public.q", "postgresql://host/db", True),
    ),
}


@pytest.mark.parametrize("format", GIVEN)
def test_sql_and_yaml_mean_the_same_table(tmp_path: Path, format: str) -> None:
    sql, yaml, wanted = GIVEN[format]
    (tmp_path / "a.sql").write_text(f"{STREAM}{QUERY}CREATE SINK q {sql};\n")
    (tmp_path / "a.yaml").write_text(
        "streams: {t: {generator: packets, rows: 100, ordered: time}}\n"
        f"queries: {{q: {{sql: 'SELECT time, srcIP FROM t'}}}}\nsinks: {{q: {yaml}}}\n"
    )
    for name in ("a.sql", "a.yaml"):
        assert read_spec(tmp_path / name).sinks["q"] == wanted(), name


@pytest.mark.parametrize(
    ("sink", "told"),
    [
        ("TO 'o' WITH (format = 'dalta')", "line 3, .*there is no result format 'dalta'.*'delta'"),
        ("TO 'o' WITH (optimize = 7)", "line 3, .*results as parquet have no option 'optimize'"),
        ("TO 'o' WITH (format = 'delta', optimize = 'x')", "line 3, .*expected a whole number"),
        ("TO 'o' WITH (format = 'delta', retain = 'long')", "line 3, .*retain"),
        ("TO 'o' WITH (format = 'delta', colour = 'x')", "line 3, .*there is no option 'colour'"),
    ],
)
def test_faults_have_a_place(tmp_path: Path, sink: str, told: str) -> None:
    (tmp_path / "a.sql").write_text(f"{STREAM}{QUERY}CREATE SINK q {sink};\n")
    with pytest.raises(AnabranchError, match=told):
        read_spec(tmp_path / "a.sql")
