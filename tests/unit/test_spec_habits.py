"""What users of other systems write in a SQL file, and options that are misspelt or stand elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from anabranch.cli import app
from anabranch.errors import AnabranchError
from anabranch.spec import read_spec
from anabranch.spec.override import override

FILE = """\
CREATE STREAM tcp ORDERED BY time WITH (generator = 'packets', rows = 1000);
CREATE QUERY flows AS SELECT time, srcIP FROM tcp;
CREATE SINK flows TO CONSOLE;
"""


def fault(folder: Path, text: str, name: str = "spec.sql") -> str:
    path = folder / name
    path.write_text(text)
    with pytest.raises(AnabranchError) as refused:
        read_spec(path).session(in_process=True)
    return str(refused.value).removeprefix(f"{folder}/")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SET trigger = 'continous'", "column 15, trigger: trigger is 'continous'; expected available-now, "
         'continuous, a number of seconds from 0 on, or a length of time such as "10 seconds". Did you '
         "mean 'continuous'?"),
        ("SET trigger = '10 secnds'", "column 15, trigger: trigger is '10 secnds'; expected"),
        ("SET trigger = -5", "column 15, trigger: trigger is -5.0; expected"),
        ("SET at_end = 'closed'", "column 14, at_end: at_end is 'closed'; expected one of keep, close. Did "
         "you mean 'close'?"),
        ("SET changed = 'keep_same'", "column 15, changed: changed is 'keep_same'; expected one of refuse, "
         "keep-same. Did you mean 'keep-same'?"),
        ("SET dialect = 'sparc'", "Did you mean 'spark'?"),
        ("SET sites = 0", "column 13, sites: expected a whole number, at least one, got"),
        ("SET cores = -1", "column 13, cores: expected a whole number, at least one"),
        ("SET checkpoint = ''", "column 18, checkpoint: expected a text that is not empty"),
        # in the wrong place
        ("SET lateness = 5", "column 5: there is no option 'lateness'. It is a clause of a stream: write "
         "ORDERED BY column LATENESS 5."),
        ("SET on_bad = 'stop'", "It stands elsewhere: CREATE STREAM … WITH (on_bad = …)."),
        ("SET retain = '1 day'", "It stands elsewhere: CREATE SINK … WITH (retain = …)."),
        ("SET 'trigger' = 'x'", "column 5: names of options stand without quotes: SET at_end = 'close'."),
        ("SET spark.executor.memory = '2g'", "Settings of Spark are given on the command line: --conf"),
        ("SET TIME ZONE 'UTC'", "Times have no zone of the session"),
        ("CREATE STREAM s ORDERED BY t WITH (path = 'in', trigger = 'x')",
         "column 49: there is no option 'trigger' here. It stands elsewhere: SET trigger = …."),
        ("CREATE STREAM s ORDERED BY t WITH (path = 'in', on_bad = 'dead-leter')",
         "column 58, on_bad: on_bad is 'dead-leter'; expected one of stop, dead-letter. Did you mean "
         "'dead-letter'?"),
        ("CREATE STREAM s ORDERED BY t WITH (path = 'in', growing = 'folow')", "Did you mean 'follow'?"),
        ("CREATE STREAM s ORDERED BY t WITH (connector = 'filesystem')",
         "there is no option 'connector' here. Where rows come from is said by path = 'folder'"),
        # statements of other systems
        ("USE foo", "line 4, column 1: there is no statement USE here. There are no databases or catalogs"),
        ("SHOW TABLES", "there is no statement SHOW here. To look at streams, columns, types and the plan: "
         "anabranch explain FILE."),
        ("EXPLAIN SELECT 1", "anabranch explain FILE."),
        ("DESCRIBE tcp", "anabranch explain FILE."),
        ("DROP TABLE x", "A file says all that there is, and is read anew at each start"),
        ("INSERT out SELECT 1", "Results go to the sink of a query"),
        ("DELETE FROM tcp", "leave rows out by WHERE in a query."),
        ("BEGIN STATEMENT SET", "All queries of a file run together: leave it out."),
        ("SELEC 1", "there is no statement SELEC here. Did you mean 'SELECT'?"),
        ("(SELECT 1)", "a SELECT needs a name here"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "leave OR REPLACE out."),
        ("CREATE TEMPORARY VIEW v AS SELECT 1", "Nothing of a file outlives its run: leave the word out"),
        ("CREATE VIEW IF NOT EXISTS v AS SELECT 1", "column 13: a file is read anew at each start, and every "
         "name stands once: leave IF NOT EXISTS out."),
        ("CREATE VIEW v (a, b) AS SELECT 1", "a view has no list of columns: name them in its SELECT"),
        ("CREATE SINK out FROM flows", "a sink is called like its query, and says where its results go"),
        ("CREATE TABLE v AS SELECT 1", "what is computed is a query: CREATE VIEW name AS SELECT"),
        ("CREATE QUERY z AS SELECT (time + 1 FROM tcp", "column 36: query 'z': cannot be understood near "
         "'FROM'. A bracket is open there: (time + 1"),
        ("CREATE QUERY z AS SELECT 'it\\'s' AS x FROM tcp", "\\' is read with SET dialect = 'spark'."),
    ],
)  # fmt: skip
def test_habits_are_answered_where_they_stand(tmp_path: Path, statement: str, message: str) -> None:
    told = fault(tmp_path, f"{FILE}{statement};")
    assert message in told
    assert told.startswith("spec.sql, line 4, column ")


@pytest.mark.parametrize(
    ("text", "dialect", "value"),
    [
        (r"'it\'s'", "spark", "it's"),
        ('"it\'s; one"', "spark", "it's; one"),
        ("'it''s'", "duckdb", "it's"),
        ("'a\\'", "flink", "a\\"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_texts_have_the_quotes_of_the_dialect_that_the_file_sets(
    tmp_path: Path, text: str, dialect: str, value: str, first: bool
) -> None:
    path = tmp_path / "spec.sql"
    query = f"CREATE QUERY words AS SELECT time, {text} AS word FROM tcp;\n"
    setting = f"SET dialect = '{dialect}';\n"
    path.write_text(FILE + (setting + query if first else query + setting))
    run = read_spec(path).session(in_process=True).start(sinks={"words": "memory"})
    run.await_termination()
    assert set(run.results("words")["word"]) == {value}


def test_options_in_the_wrong_section_of_yaml_are_told_where_they_belong(tmp_path: Path) -> None:
    text = (
        "streams: {tcp: {generator: packets, ordered: time}}\nqueries: {q: SELECT time FROM tcp}\n"
    )
    told = fault(tmp_path, f"{text}run: {{max_rows_per_epoch: 3}}\n", "spec.yml")
    assert "there is no key 'max_rows_per_epoch' here. It stands under settings:." in told
    told = fault(tmp_path, f"{text}settings: {{checkpoint: ck}}\n", "spec.yml")
    assert "there is no key 'checkpoint' here. It stands under run:." in told
    told = fault(tmp_path, f"{text}run: {{at_end: closed}}\n", "spec.yml")
    assert "line 3, run.at_end: at_end is 'closed'; expected one of keep, close. Did you" in told


def test_options_of_the_command_are_checked_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "spec.sql"
    path.write_text(FILE)
    for given, message in (
        (["--trigger", "continous"], "--trigger: trigger is 'continous'; expected available-now"),
        (["--changed", "keep"], "--changed: changed is 'keep'; expected one of refuse, keep-same."),
        (["--set", "at_end=closed"], "--set at_end=closed: at_end is 'closed'; expected one of"),
        (["--set", "on_bad=stop"], "It stands elsewhere: CREATE STREAM … WITH (on_bad = …)."),
    ):
        told = CliRunner().invoke(app, ["run", str(path), *given], env={"COLUMNS": "1000"})
        assert told.exit_code == 1
        assert message in told.stderr
    assert override(read_spec(path), (), {"trigger": "10 seconds"}).run["trigger"] == "10 seconds"


def test_a_session_of_spark_has_the_name_that_spark_gives_it(tmp_path: Path) -> None:
    path = tmp_path / "spec.sql"
    path.write_text(
        FILE
        + "CREATE QUERY ours AS SELECT srcIP, window_start AS s, window_end AS e, COUNT(*) AS n "
        "FROM tcp GROUP BY srcIP, SESSION(time, 5);\n"
        "CREATE QUERY theirs AS SELECT srcIP, session_window.start AS s, session_window.end AS e, "
        "COUNT(*) AS n FROM tcp GROUP BY srcIP, session_window(time, 5);\n"
        "CREATE QUERY whole AS SELECT session_window FROM tcp GROUP BY srcIP, session_window(time, 5);\n"
    )
    sinks = dict.fromkeys(("ours", "theirs", "whole"), "memory")
    run = read_spec(path).session(in_process=True).start(sinks=sinks, at_end="close")
    run.await_termination()
    rows = sorted(run.results("ours").rows())
    assert len(rows) > 1
    assert sorted(run.results("theirs").rows()) == rows
    whole = run.results("whole")["session_window"].to_list()
    assert sorted((one["start"], one["end"]) for one in whole) == sorted(row[1:3] for row in rows)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ('CAST(len AS VARCHAR) = "tcp"', "column 'tcp' is not found."),
        ('CAST(len AS VARCHAR) = "tcp"', "A text stands in single quotes: 'tcp'."),
        ("TIMESTAMP '2026-01-01' > '1.1.2026'", "is timestamp."),
    ],
)
def test_texts_and_times_in_the_manner_of_others(tmp_path: Path, where: str, message: str) -> None:
    query = f"CREATE QUERY q AS SELECT time FROM tcp WHERE {where};"
    assert message in fault(tmp_path, FILE + query)
