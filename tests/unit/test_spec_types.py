"""The types of columns in SQL files: the spellings of other systems, and what is said of others."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch import Session
from anabranch.errors import AnabranchError, SettingsError
from anabranch.language.kinds import type_named
from anabranch.spec import read_spec

FILE = """\
CREATE STREAM s (
  t BIGINT, v {}
) ORDERED BY t WITH (path = 'in', format = 'json');
CREATE QUERY q AS SELECT t, v FROM s;
"""
LETTERS, PAIR = pl.List(pl.String()), pl.Struct({"a": pl.Int64(), "b": pl.String()})


def type_of_column(folder: Path, written: str) -> pl.DataType | None:
    path = folder / "spec.sql"
    path.write_text(FILE.format(written))
    return type_named(read_spec(path).streams["s"]["schema"]["v"])


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        # Spark
        ("ARRAY<STRING>", LETTERS),
        ("STRUCT<a: BIGINT, b: STRING>", PAIR),
        ("STRUCT<`a` BIGINT, b: VARCHAR(9)>", PAIR),
        ("MAP<STRING, DECIMAL(9,2)>",
         pl.List(pl.Struct({"key": pl.String(), "value": pl.Decimal(9, 2)}))),
        ("ARRAY<ARRAY<MAP<STRING,ARRAY<TEXT>>>>",
         pl.List(pl.List(pl.List(pl.Struct({"key": pl.String(), "value": LETTERS}))))),
        ("TIMESTAMP_NTZ", pl.Datetime("us")),
        # Flink
        ("ROW<a BIGINT, b STRING>", PAIR),
        ("ROW(a BIGINT, b VARCHAR)", PAIR),
        ("VARCHAR(3) ARRAY", LETTERS),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", pl.Datetime("us")),
        ("BYTES", pl.Binary()),
        # DuckDB and PostgreSQL
        ("VARCHAR[]", LETTERS),
        ("VARCHAR(20)[][]", pl.List(LETTERS)),
        ("STRUCT(a BIGINT, b VARCHAR)", PAIR),
        ("STRUCT(\"a\" BIGINT, b TEXT)[]", pl.List(PAIR)),
        ("MAP(VARCHAR, BIGINT)", pl.List(pl.Struct({"key": pl.String(), "value": pl.Int64()}))),
        ("DOUBLE PRECISION", pl.Float64()),
        ("CHARACTER VARYING(20)", pl.String()),
        ("BIGINT NULL", pl.Int64()),
    ],
)  # fmt: skip
def test_nested_types_in_the_spellings_of_other_systems(
    tmp_path: Path, written: str, kind: pl.DataType
) -> None:
    assert type_of_column(tmp_path, written) == kind


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("ARRAY<STRNG>", "line 2, column 21: there is no type STRNG. Did you mean 'STRING'?"),
        ("STRUCT<a INT, b FOO>", "column 31: there is no type FOO."),
        ("ARRAY<STRING", "line 3, column 1: expected ',' or '>' in the type, got ')'. The bracket that is "
         "open begins in line 2, column 20."),
        ("STRUCT(a INT", "line 3, column 3: expected ',' or ')' after the type of 'v', got 'ORDERED'. The "
         "bracket that is open begins in line 1, column 17."),
        ("DECIMAL(10, 2", "The bracket that is open begins in line 1, column 17."),
        ("MAP<STRING>", "column 15: expected a type of keys and one of values in MAP, got 1 type."),
        ("ARRAY<INT, INT>", "expected one type of values in ARRAY, got 2 types."),
        ("STRUCT<a INT, a INT>", "column 29: the field 'a' appears twice."),
        ('STRUCT("a b" INT)', "a field is called 'a b', which a list of columns cannot say"),
        ("ARRAY", "there is no type ARRAY. Write it with the type of its values: ARRAY<STRING>."),
        ("INT[3]", "arrays have no fixed length: write the type and []."),
        ("INT[", "arrays have no fixed length: write the type and []."),
        ("CHAR(3)", "there is no type CHAR(3). Texts are not filled with blanks here: write VARCHAR."),
        ("TIMESTAMP WITH TIME ZONE", "there is no type TIMESTAMP WITH TIME ZONE. Columns that are listed "
         "have no time zone"),
        ("TIMESTAMP_LTZ(3)", "there is no type TIMESTAMP_LTZ(3). Columns that are listed have no time zone"),
        ("TIMESTAMP(9)", "there is no type TIMESTAMP(9). Times have microseconds: TIMESTAMP(6)."),
        ("DECIMAL(50, 2)", "there is no type DECIMAL(50, 2). A decimal has 1 to 38 digits"),
        ("ARRAY<" * 60 + "INT" + ">" * 60, "expected at most 50 types within each other."),
        # what else stands among columns
        ("BIGINT NOT NULL", "line 2, column 22: NOT NULL is not checked when rows are read. Leave it out"),
        ("STRUCT<a INT NOT NULL>", "NOT NULL is not checked when rows are read."),
        ("ARRAY<INT> NOT NULL", "NOT NULL is not checked when rows are read."),
        ("BIGINT PRIMARY KEY", "streams and tables have no keys: leave PRIMARY KEY out"),
        ("BIGINT, PRIMARY KEY (v) NOT ENFORCED", "column 23: streams and tables have no keys"),
        ("BIGINT DEFAULT 3", "columns have no defaults: leave DEFAULT out, and write COALESCE"),
        ("STRING COMMENT 'x'", "columns have no comments of this kind: write --"),
        ("AS t + 1", "column 15: computed columns are for a query"),
    ],
)  # fmt: skip
def test_faults_in_types_are_told_where_they_stand(
    tmp_path: Path, written: str, message: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        type_of_column(tmp_path, written)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("'json')", "'json'", "The bracket that is open begins in line 3, column 21."),
        ("'json')", "'json', nulls = ['a', 'b')",
         "expected ',' or ']' in the value of 'nulls', got ')'. The bracket that is open begins in line 3, "
         "column 60."),
        ("WITH", "PARTITIONED BY (t WITH", "line 3, column 31: the bracket that begins here is not closed."),
    ],
)  # fmt: skip
def test_an_open_bracket_is_told_with_its_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "spec.sql"
    path.write_text(FILE.format("BIGINT").replace(old, new))
    with pytest.raises(SettingsError) as refused:
        read_spec(path)
    assert message in str(refused.value)


@pytest.mark.parametrize("schema", [None, {"t": "int64", "v": "map(string, int64)"}])
def test_a_map_in_a_file_is_refused_with_what_to_write(
    tmp_path: Path, schema: dict[str, str] | None
) -> None:
    entries = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table({"t": [1], "v": entries}), tmp_path / "in.parquet")
    session = Session.in_process()

    def run() -> None:
        session.stream(
            "s", path=tmp_path / "in.parquet", ordered="t", schema=schema, format="parquet"
        )
        session.query("q", "SELECT t, v FROM s")
        session.start(sinks={"q": "memory"}).await_termination()

    with pytest.raises(
        AnabranchError, match=r"write map_entries\(column\) where the files are made"
    ):
        run()


def test_a_column_of_entries_is_a_map(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"t": 1, "v": [{"key": "a", "value": 7}]}\n')
    path = tmp_path / "spec.sql"
    path.write_text(
        f"CREATE STREAM s (t BIGINT, v MAP<STRING, BIGINT>) ORDERED BY t "
        f"WITH (path = '{tmp_path}/in.json');\nCREATE QUERY q AS SELECT v['a'] AS a FROM s;"
    )
    run = read_spec(path).session(in_process=True).start(sinks={"q": "memory"})
    run.await_termination()
    assert run.results("q")["a"].to_list() == [7]
