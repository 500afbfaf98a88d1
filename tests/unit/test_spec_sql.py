"""A SQL file means what the YAML file means, and its faults are named with line and column."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from anabranch import Session
from anabranch.cli import app
from anabranch.errors import AnabranchError, LanguageError, SettingsError, SourceError
from anabranch.language.expression import TYPES, type_of
from anabranch.language.sql.expression import read_expression
from anabranch.language.window import duration
from anabranch.sinks.files import FileSink
from anabranch.sources.generate import Generator
from anabranch.sources.make import read_schema
from anabranch.spec import Spec, read_spec
from anabranch.spec.sql_type import SQL_TYPES

ROOT = Path(__file__).parents[2]
STREAM = "CREATE STREAM tcp ORDERED BY time WITH (generator = 'packets', rows = 1000);\n"
FLOWS = """\
CREATE QUERY flows AS
  SELECT tb, srcIP, COUNT(*) AS cnt
  FROM tcp GROUP BY time/60 AS tb, srcIP;
"""
SINK = "CREATE SINK flows TO CONSOLE;\n"
FILE = STREAM + FLOWS + SINK


def spec_of(folder: Path, text: str, name: str = "spec.sql") -> Spec:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_spec(path)


def fault(folder: Path, text: str, kind: type[AnabranchError] = SettingsError) -> str:
    with pytest.raises(kind) as caught:
        spec_of(folder, text).session(in_process=True).plan()
    return str(caught.value).replace(f"{folder}/", "")


def results(spec: Spec, folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    run = spec.session(in_process=True).start(
        sinks=dict.fromkeys(spec.sinks, "memory"), checkpoint=folder, at_end="close"
    )
    run.await_termination()
    return {query: sorted(run.results(query).rows()) for query in spec.sinks}


SQL = """\
-- Traffic by the minute; a comment may have a semicolon
CREATE STREAM tcp ORDERED BY time LATENESS 3
  WITH (generator = 'packets', rows = 6_000, rows_per_second = 20, skew = 'zipf', exponent = 1.2,
        disorder = 3, on_late = 'count');
create query top as select tb, max(cnt) as most, 'a;b;' as word from flows group by tb;
/* read before
   it is there; */
CREATE VIEW flows AS
  SELECT tb, srcIP, COUNT(*) AS cnt   -- one row; a minute and source
  FROM tcp GROUP BY time/60 AS tb, srcIP;
CREATE QUERY ever EMIT UPDATE AS SELECT srcIP, COUNT(*) AS c FROM tcp GROUP BY srcIP;
CREATE SINK top TO 'out/top' WITH (format = 'csv');
CREATE SINK ever TO 'out/ever';
SET max_rows_per_epoch = 1000; SET allow_unbounded_state = TRUE; SET idle_after_seconds = 2.5;
SET checkpoint = 'ck'; SET trigger = 5; SET at_end = 'close'; SET sites = 3;
"""
YAML = """\
streams:
  tcp: {generator: packets, rows: 6_000, rows_per_second: 20, skew: zipf, exponent: 1.2, disorder: 3,
        on_late: count, ordered: time, lateness: 3}
queries:
  flows: SELECT tb, srcIP, COUNT(*) AS cnt FROM tcp GROUP BY time/60 AS tb, srcIP
  top: SELECT tb, max(cnt) AS most, 'a;b;' AS word FROM flows GROUP BY tb
  ever: {sql: "SELECT srcIP, COUNT(*) AS c FROM tcp GROUP BY srcIP", emit: update}
sinks: {top: {path: out/top, format: csv}, ever: out/ever}
settings: {max_rows_per_epoch: 1000, allow_unbounded_state: true, idle_after_seconds: 2.5}
run: {checkpoint: ck, trigger: 5, at_end: close, sites: 3}
"""


def test_a_file_means_what_the_yaml_file_means(tmp_path: Path) -> None:
    sql, yaml = spec_of(tmp_path, SQL), spec_of(tmp_path, YAML, "spec.yml")
    assert sql.streams == yaml.streams
    assert sql.sinks == yaml.sinks == {
        "top": FileSink(Path("out/top").absolute(), "csv"),
        "ever": FileSink(Path("out/ever").absolute()),
    }  # fmt: skip
    assert sql.settings == yaml.settings
    assert sql.run == yaml.run
    left, right = sql.session(in_process=True), yaml.session(in_process=True)
    assert left.sites == right.sites == 3
    for query in ("flows", "top", "ever"):
        signature = left.from_stream(query).node.signature
        assert signature == right.from_stream(query).node.signature
    rows = results(sql, tmp_path / "sql")
    assert rows == results(yaml, tmp_path / "yaml")
    assert len(rows["top"]) == 5
    assert len(rows["ever"]) > 1000


def test_streams_of_files(tmp_path: Path) -> None:
    pl.DataFrame({"time": [1, 2], "rows": ["a", "b"]}).write_csv(tmp_path / "in.csv")
    spec = spec_of(
        tmp_path,
        f"""\
CREATE STREAM tcp (time BIGINT, "rows" TEXT, len int16) ORDERED BY time LATENESS 5
  WITH (path = '{tmp_path}/in.csv', format = 'csv', on_bad = 'dead-letter', on_late = 'count');
{SINK}CREATE QUERY flows AS SELECT time, rows FROM tcp;
""",
    )
    assert spec.streams["tcp"] == {
        "schema": {"time": "bigint", "rows": "string", "len": "int16"},
        "ordered": "time", "lateness": 5, "path": f"{tmp_path}/in.csv", "format": "csv",
        "on_bad": "dead-letter", "on_late": "count",
    }  # fmt: skip


@pytest.mark.parametrize("name", SQL_TYPES)
def test_types_are_those_of_cast(name: str) -> None:
    assert type_of(read_expression(f"CAST(NULL AS {name})", {}), {}, "") == TYPES[SQL_TYPES[name]]


def test_partitioning_expressions_reach_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}
    plain = Session.stream

    def stream(session: Session, name: str, **options: Any) -> Any:
        given.update(options)
        options.pop("partitioned_by")
        return plain(session, name, **options)

    monkeypatch.setattr(Session, "stream", stream)
    clause = "PARTITIONED BY (destIP, srcIP & 0xFFF0, (len + 1) / 2) WITH"
    sql = spec_of(tmp_path, FILE.replace("WITH", clause))
    sql.session(in_process=True)
    assert given["partitioned_by"] == ("destIP", "srcIP & 0xFFF0", "(len + 1) / 2")
    yaml = spec_of(
        tmp_path,
        YAML.replace("{gen", "{partitioned_by: [destIP, srcIP & 0xFFF0, (len + 1) / 2], gen"),
        "spec.yml",
    )
    assert yaml.streams["tcp"]["partitioned_by"] == sql.streams["tcp"]["partitioned_by"]
    one = spec_of(tmp_path, YAML.replace("{gen", "{partitioned_by: srcIP, gen"), "spec.yml")
    assert one.streams["tcp"]["partitioned_by"] == ("srcIP",)
    for wrong in ("[1]", "[]"):
        with pytest.raises(SettingsError, match=r"tcp\.partitioned_by: expected a list of texts"):
            spec_of(tmp_path, YAML.replace("{gen", f"{{partitioned_by: {wrong}, gen"), "spec.yml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # where a statement is wrong
        ("CREATE STREAM", "CREAT STREAM",
         "spec.sql, line 1, column 1: there is no statement CREAT here. Did you mean 'CREATE'? "
         "There are CREATE STREAM, CREATE TABLE, CREATE QUERY, CREATE VIEW (a query without a sink), CREATE "
         "FUNCTION, CREATE SINK and SET."),
        ("CREATE STREAM", "CREATE STREM", "line 1, column 8: there is no CREATE STREM here. "
         "Did you mean 'STREAM'? There are CREATE STREAM"),
        (SINK, SINK + "DROP QUERY flows;", "line 6, column 1: there is no statement DROP here."),
        (SINK, SINK + "SHOW STREAMS;", "line 6, column 1: there is no statement SHOW here."),
        (SINK, SINK + "CREATE INDEX x (y);", "line 6, column 8: there is no CREATE INDEX here."),
        (SINK, SINK + "CREATE TABLE x (y BIGINT);", "expected WITH (path = 'folder') or WITH (delta = "),
        (SINK, SINK + "CREATE TABLE x WITH (format = 'csv');", "where do the rows come from? WITH (path = "),
        (SINK, SINK + "CREATE TABLE x WITH (lanes = true);", "lanes"),
        (SINK, SINK + "CREATE", "column 7: expected STREAM, QUERY, VIEW, SINK, TABLE, FUNCTION after CREATE, "
         "got the end of the statement."),
        (SINK, SINK + "SELECT * FROM tcp", "line 6, column 1: a SELECT needs a name here: "
         "CREATE QUERY name AS SELECT * FROM stream."),
        ("srcIP;\n", "srcIP\n", "line 5, column 1: expected ';' before the next statement"),
        (SINK, "CREATE SINK flows TO 'a", "line 5, column 22: the quote that begins here is not"),
        (SINK, "/* CREATE", "line 5, column 1: the comment that begins here is not closed"),
        # streams
        ("ORDERED BY", "ORDER BY", "line 1, column 19: expected ORDERED BY, LATENESS, PARTITIONED BY, "
         "WITH or ';', got 'ORDER BY'. Did you mean 'ORDERED BY'?"),
        ("ORDERED BY time", "", "line 1, column 15: ORDERED BY is missing"),
        ("ORDERED BY time", "ORDERED BY 5", "line 1, column 30: expected the column that grows"),
        ("ORDERED BY time", "ORDERED BY a ORDERED BY b", "column 32: ORDERED appears twice"),
        ("ORDERED BY time", "ORDERED BY time LATENESS soon", "column 44: 'lateness' needs a text, a "
         "number, TRUE, FALSE or NULL, got 'soon'. Put a text in quotes: '...'."),
        ("ORDERED BY", "PARTITIONED BY () ORDERED BY", "column 35: expected a column or an expr"),
        ("ORDERED BY", "PARTITIONED BY srcIP ORDERED BY", "column 34: expected '(' and a list"),
        ("rows =", "rws =", "line 1, column 64: there is no option 'rws' here. Did you mean 'rows'?"),
        ("rows =", "path =", "line 1, column 71: a generated stream has no option 'path'."),
        ("rows =", "lateness =", "column 64: 'lateness' is not an option in SQL: write ORDERED BY"),
        ("rows =", "generator =", "column 64: the option 'generator' appears twice."),
        ("1000", "'many'", "line 1, column 71, rows: expected a whole number, got a text ('many')."),
        ("1000", "-x", "column 71: 'rows' needs a text, a number, TRUE, FALSE or NULL, got 'x'."),
        ("1000", "²", "column 71: 'rows' needs a text, a number, TRUE, FALSE or NULL, got '²'."),
        ("tcp ORD", '"tcp" "x\ny" ORD', "column 21: expected ORDERED BY, LATENESS, PARTITIONED BY, "
         """WITH or ';', got '"x'."""),
        ("1000)", "1000", "expected ',' or ')' after the option, got the end of the statement."),
        (" WITH (generator = 'packets', rows = 1000)", "", "where do the rows come from? WITH (path"),
        ("tcp ORD", "tcp (time BIGINT) ORD", "column 19: a generated stream has columns of its own"),
        ("tcp ORD", "tcp (time BIGNT) ORD", "line 1, column 25: there is no type BIGNT. Did you mean "
         "'BIGINT'?"),
        ("tcp ORD", "tcp (a INT, a INT) ORD", "column 27: the column 'a' appears twice."),
        ("tcp ORD", "tcp (a BIGINT(9)) ORD", "column 22: there is no type BIGINT(9)."),
        # queries
        ("AS\n", "\n", "line 3, column 3: expected AS and a SELECT"),
        ("AS\n", "EMIT SOON AS\n", "line 2, column 25: expected one of EMIT FINAL, EMIT UPDATE, EMIT ONCE"),
        ("SELECT tb", "tb", "line 3, column 3: expected a SELECT after AS, got 'tb'."),
        ("QUERY flows", "QUERY tcp", "line 2, column 14: there already is a stream called 'tcp', in "
         "line 1."),
        ("QUERY flows", "QUERY 7", "line 2, column 14: expected the name of the query: CREATE QUERY"),
        # sinks and options
        ("SINK flows", "SINK flow", "line 5, column 13: there is no query 'flow'. Did you mean 'flows'?"),
        ("SINK flows", "SINK tcp", "line 5, column 13: 'tcp' is a stream: a sink is for a query"),
        ("CREATE QUERY", "CREATE VIEW", "line 5, column 13: 'flows' is a view, which has no sink"),
        ("CONSOLE", "'console'", "line 5, column 22: write TO CONSOLE without quotes"),
        ("CONSOLE", "7", "line 5, column 22, TO: expected a text, got a whole number (7)."),
        ("CONSOLE", "'s3://b'", "is 's3://b', which cannot be used: expected s3://bucket/folder."),
        ("CONSOLE", "'a' WITH (format = 'cvs')", "line 5, column 41, format: there is no result "
         "format 'cvs'. Did you mean 'csv'?"),
        ("TO ", "", "line 5, column 19: expected TO and a folder"),
        (SINK, SINK * 2, "line 6, column 13: the query 'flows' already has a sink."),
        (SINK, SINK + "SET at_ned = 3;", "line 6, column 5: there is no option 'at_ned'. Did you mean"),
        (SINK, SINK + "SET at_end = close;", "line 6, column 14: 'at_end' needs a text"),
        (SINK, SINK + "SET sites 4;", "line 6, column 11: expected '=' after 'sites', got '4'."),
        (SINK, SINK + "SET sites = 4 5;", "column 15: expected ';' at the end of the statement, got"),
        (SINK, SINK + "SET sites = 'x';", "line 6, column 13, sites: expected a whole number"),
        (SINK, SINK + "SET sites = 4; SET sites = 5;", "column 20: the option 'sites' is set twice"),
        (SINK, SINK + "SET keep_manifests = 0;", "line 6, column 22, keep_manifests: Setting "),
    ],
)  # fmt: skip
def test_faults_of_the_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert FILE.count(old) == 1
    told = fault(tmp_path, FILE.replace(old, new))
    assert message in told
    assert told.startswith("spec.sql, line ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("srcIP, COUNT", "srcIPP, COUNT", "spec.sql, line 3, column 14: query 'flows': column "
         "'srcIPP' is not found. Did you mean 'srcIP'?"),
        ("AS tb, srcIP", "AS tb, srcIPP", "spec.sql, line 4, column 36: query 'flows': column"),
        ("FROM tcp", "FROM tpc", "line 4, column 8: there is no stream or query 'tpc'. Did you mean "
         "'tcp'? Existing: flows, tcp."),
        ("FROM tcp", "FRM tcp", "line 4, column 3: query 'flows': cannot be understood near 'FRM'."),
        ("FROM tcp", "FROM flows", "line 2, column 14: queries cannot read each other in a circle: "
         "flows -> flows."),
        ("FROM tcp", "FROM tcp WHERE len", "column 18: query 'flows': WHERE len: expected a condition"),
        ("srcIP;", "srcIP -- é; 'x\nLIMIT 5;", "line 5, column 7: query 'flows': LIMIT has no"),
        ("COUNT(*)", "/* 'ü; */ COUNTT(len)", "line 3, column 31: query 'flows': there is no func"),
        (SINK, SINK + "CREATE QUERY one AS SELECT lenn FROM tcp;",
         "line 6, column 28: query 'one': column 'lenn' is not found. Did you mean 'len'?"),
        ("ORDERED BY time", "ORDERED BY tme", "line 1, column 15: Stream 'tcp': the ordered attri"),
        ("ORDERED BY time", "ORDERED BY time LATENESS '5 minutes'", "line 1, column 15: lateness is"),
        ("QUERY flows", 'QUERY "a b"', "line 2, column 14: 'a b' cannot be a name"),
    ],
)  # fmt: skip
def test_faults_of_the_language(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert FILE.count(old) == 1
    text = FILE.replace(old, new)
    told = fault(tmp_path, text.replace("SINK flows", 'SINK "a b"') if '"' in new else text,
                 LanguageError)  # fmt: skip
    assert message in told
    assert told.startswith("spec.sql, line ")
    assert "\n" not in told


def test_faults_of_a_source_have_a_place(tmp_path: Path) -> None:
    text = FILE.replace("generator = 'packets', rows = 1000", f"path = '{tmp_path}/none.csv'")
    told = fault(tmp_path, text, SourceError)
    assert told.startswith("spec.sql, line 1, column 15: ")
    assert "no file or folder" in told


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"ends in \.sql, \.yml, \.yaml"):
        spec_of(tmp_path, FILE, "spec.txt")
    with pytest.raises(SettingsError, match=r"Cannot read .*: No such file or directory"):
        read_spec(tmp_path / "none.sql")
    assert "there is no CREATE STREAM" in fault(tmp_path, "-- nothing yet\n")


def test_commands_take_sql_files(tmp_path: Path) -> None:
    path = tmp_path / "spec.sql"
    path.write_text(FILE.replace("CONSOLE", f"'{tmp_path}/out'") + "SET at_end = 'close';")
    told = CliRunner().invoke(app, ["run", str(path), "--in-process"])
    assert told.exit_code == 0, told.output
    found = pl.read_parquet(tmp_path / "out", hive_partitioning=False)
    assert found.columns == ["tb", "srcIP", "cnt"]
    assert found["cnt"].sum() == 1000
    told = CliRunner().invoke(app, ["explain", str(path)])
    assert "partitioned by srcIP" in told.stdout
    path.write_text(FILE.replace("srcIP;", "srcIPP;"))
    told = CliRunner().invoke(app, ["run", str(path), "--in-process"])
    assert (told.exit_code, told.stdout) == (1, "")
    assert len(told.stderr.splitlines()) == 1
    assert f"{path}, line 4, column 36: query 'flows': column 'srcIPP' is not found." in told.stderr


@pytest.mark.parametrize("document", ["README.md", "docs/guide.md"])
def test_files_in_the_documents_can_be_planned(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/tcp").mkdir(parents=True)
    Generator("packets").rows(0, 10).write_parquet(tmp_path / "data/tcp/a.parquet")
    (tmp_path / "trips").mkdir()
    (tmp_path / "trips/a.csv").write_text("pickup,zone,fare\n2026-03-01T22:00:00,7,2.5\n")
    text = (ROOT / document).read_text()
    blocks = [
        block
        for block in re.findall(r"```sql\n(.*?)```", text, flags=re.S)
        if "CREATE STREAM" in block
    ]
    assert blocks
    for block in blocks:
        assert spec_of(tmp_path, block).session(in_process=True).plan().outputs


@pytest.mark.parametrize(
    "length", ["INTERVAL '5' SECOND", "INTERVAL 5 SECONDS", "INTERVAL '5 seconds'", "'5 seconds'"]
)
def test_lateness_may_be_an_interval_in_any_spelling(tmp_path: Path, length: str) -> None:
    text = (
        f"CREATE STREAM s (ts TIMESTAMP, k BIGINT) ORDERED BY ts LATENESS {length} WITH (path = 'in');\n"
        "CREATE QUERY q AS SELECT ts FROM s;\n"
    )
    written = spec_of(tmp_path, text).streams["s"]["lateness"]
    assert duration(written, True, "lateness") == 5_000_000


@pytest.mark.parametrize(
    "query",
    [
        "CREATE QUERY q EMIT UPDATE AS SELECT srcIP, COUNT(*) AS n FROM tcp GROUP BY srcIP;",
        "CREATE QUERY q AS SELECT a.time, b.len FROM tcp a JOIN tcp b ON a.srcIP = b.destIP;",
    ],
)
def test_state_that_grows_for_ever_is_told_at_its_place_in_the_file(
    tmp_path: Path, query: str
) -> None:
    path = tmp_path / "spec.sql"
    path.write_text(f"{STREAM}{query}\nCREATE SINK q TO CONSOLE;", encoding="utf-8")
    for command in ("explain", "run"):
        told = CliRunner().invoke(app, [command, str(path)], env={"COLUMNS": "1000"})
        assert told.exit_code == 1
        said = " ".join(told.output.split())
        assert "spec.sql, line 2, column 14: Query 'q'" in said
        assert "SET allow_unbounded_state = true" in said


def test_options_that_are_lists_and_maps(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("t,Arr Delay,v\n1,2,NA\n2,k.A.,5\n")
    options = "nulls = ['NA', 'k.A.'], rename = {'Arr Delay': 'delay'}, types = {'v': 'DOUBLE'}"
    stream = f"CREATE STREAM s ORDERED BY t WITH (path = '{tmp_path}/in.csv', {options});\n"
    query = "CREATE QUERY q AS SELECT t, delay, v FROM s; CREATE SINK q TO CONSOLE;"
    spec = spec_of(tmp_path, stream + query)
    assert results(spec, tmp_path / "checkpoint") == {"q": [(1, 2, None), (2, None, 5.0)]}
    arrays = spec_of(tmp_path, (stream + query).replace("[", "ARRAY["))
    assert arrays.streams == spec.streams
    empty = stream.replace("['NA', 'k.A.']", "[]")
    assert spec_of(tmp_path, empty + query).streams["s"]["nulls"] == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("['NA' 'x']", "expected ',' or ']' in the value of 'nulls', got 'x'."),
        ("{'NA' 'x'}", "expected ':' after a name in the value of 'nulls', got 'x'."),
        ("{'NA': 'x'}", "nulls: expected a text or a list, got a mapping."),
        ("[x]", "'nulls' needs a text, a number, TRUE, FALSE or NULL, got 'x'."),
    ],
)
def test_faults_in_lists_and_maps(tmp_path: Path, value: str, message: str) -> None:
    text = f"CREATE STREAM s ORDERED BY t WITH (path = 'in', nulls = {value});\n{FILE}"
    assert message in fault(tmp_path, text)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("TIMESTAMP(3)", pl.Datetime("us")),
        ("VARCHAR(20)", pl.String()),
        ("ARRAY<STRING>", pl.List(pl.String())),
        ("integer[]", pl.List(pl.Int32())),
        ("STRUCT<x: INT, deep list(int64)>", pl.Struct({"x": pl.Int32(), "deep": pl.List(pl.Int64())})),
        ("MAP(STRING, BIGINT)", pl.List(pl.Struct({"key": pl.String(), "value": pl.Int64()}))),
        ("DECIMAL(10, 2)", pl.Decimal(10, 2)),
    ],
)  # fmt: skip
def test_types_of_columns(tmp_path: Path, written: str, kind: pl.DataType) -> None:
    stream = "CREATE STREAM s (t BIGINT, v {}) ORDERED BY t WITH (path = 'in', format = 'json');"
    spec = spec_of(tmp_path, stream.format(written) + "CREATE QUERY q AS SELECT t, v FROM s;")
    assert read_schema("s", spec.streams["s"]["schema"])["v"] == kind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT INTO out SELECT 1", "Results go to the sink of a query: CREATE QUERY name AS"),
        ("CREATE SOURCE s (a INT)", "A source is a stream: CREATE STREAM name ORDERED BY column"),
        (
            "CREATE TABLE s (t TIMESTAMP(3), WATERMARK FOR t AS t - INTERVAL '5' SECOND)",
            "write CREATE STREAM name (…) ORDERED BY column LATENESS '5 seconds'.",
        ),
        (
            "CREATE STREAM s ORDERED BY t LATENESS 5 SECONDS",
            "a length with a unit is a text: write LATENESS '5 seconds'.",
        ),
        (
            "CREATE SINK flows TO MEMORY",
            "expected a folder in quotes, CONSOLE or KAFKA 'host:9092' after TO, got 'MEMORY'.",
        ),
        ("CREATE STREAM s (t TIMESTAMP(9))", "there is no type TIMESTAMP(9)."),
    ],
)
def test_what_other_systems_write(tmp_path: Path, text: str, message: str) -> None:
    assert message in fault(tmp_path, f"{STREAM}{FLOWS}{text};")
