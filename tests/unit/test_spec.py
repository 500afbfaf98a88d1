"""A specification file means what the builder means, and its faults are named with their line."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from anabranch import Session, col, count, count_window, max_, session_window, sum_, tumble
from anabranch.errors import AnabranchError, LanguageError, SettingsError, SourceError
from anabranch.sinks.files import FileSink
from anabranch.spec import Spec, read_spec

STREAMS = """\
streams:
  tcp: {generator: packets, rows: 1000, rows_per_second: 10, ordered: time}
"""
SINKS = """\
sinks:
  flows: out/flows
"""
FLOWS = """\
queries:
  flows: {from: tcp, group_by: [time/60 AS tb, srcIP], aggregate: [count(*) AS cnt]}
"""


def spec_of(folder: Path, text: str) -> Spec:
    path = folder / "spec.yml"
    path.write_text(text)
    return read_spec(path)


def built(folder: Path, queries: str, sink: str = "flows") -> Session:
    text = f"{STREAMS}queries:\n{queries}sinks: {{{sink}: console}}\n"
    text += "settings: {allow_unbounded_state: true}\n"
    return spec_of(folder, text).session(in_process=True)


def packets(made: Session) -> Session:
    made.stream("tcp", generator="packets", rows=1000, rows_per_second=10, ordered="time")
    return made


def signature(made: Session, query: str) -> str:
    return made.from_stream(query).node.signature


def fault(folder: Path, text: str, kind: type[AnabranchError] = SettingsError) -> str:
    with pytest.raises(kind) as caught:
        spec_of(folder, text).session(in_process=True).plan()
    return str(caught.value).replace(f"{folder}/", "")


def test_a_full_file(tmp_path: Path) -> None:
    spec = spec_of(
        tmp_path,
        STREAMS
        + FLOWS
        + """\
sinks:
  flows: {path: out/flows, format: csv}
settings: {max_rows_per_epoch: 300, idle_after_seconds: 2.5, fsync: false}
run: {checkpoint: ck, trigger: 5, at_end: close, dead_letter: dead, sites: 3, name: mine, cores: 1}
""",
    )
    assert spec.sinks == {"flows": FileSink(Path("out/flows").absolute(), "csv")}
    assert spec.settings.max_rows_per_epoch == 300
    assert spec.settings.idle_after_seconds == 2.5
    assert spec.settings.fsync is False
    assert spec.run["trigger"] == 5.0
    assert spec.session(in_process=True).sites == 3


def test_clauses_mean_what_the_builder_means(tmp_path: Path) -> None:
    made = built(
        tmp_path,
        """\
  top: {from: flows, group_by: [tb, srcIP], aggregate: max(cnt) AS most}
  flows:
    from: tcp
    where: len > 0 AND destPort IN (80, 443)
    group_by: [time // 60 AS tb, srcIP]
    aggregate:
      - count(*) AS cnt
      - sum(len) AS bytes
    having: cnt > 1
    select: [tb, srcIP, cnt, bytes / cnt AS mean]
    emit: final
""",
    )
    other = packets(Session.in_process())
    flows = other.query(
        "flows",
        other.from_stream("tcp")
        .where((col("len") > 0) & col("destPort").is_in([80, 443]))
        .group_by((col("time") // 60).alias("tb"), "srcIP")
        .agg(count().alias("cnt"), sum_("len").alias("bytes"))
        .having(col("cnt") > 1)
        .select("tb", "srcIP", "cnt", (col("bytes") // col("cnt")).alias("mean")),
    )
    other.query("top", flows.group_by("tb", "srcIP").agg(max_("cnt").alias("most")))
    for query in ("flows", "top"):
        assert signature(made, query) == signature(other, query)


@pytest.mark.parametrize(
    ("window", "key"),
    [
        ("{tumble: 60}", tumble(60)),
        ("{session: 30}", session_window(30)),
        ("{rows: [10, 5]}", count_window(10, 5)),
        ("{rows: 10}", count_window(10)),
    ],
)
def test_windows(tmp_path: Path, window: str, key: object) -> None:
    made = built(
        tmp_path,
        f"  flows: {{from: tcp, window: {window}, group_by: srcIP, aggregate: count(*) AS c}}\n",
    )
    other = packets(Session.in_process())
    grouped = other.from_stream("tcp").group_by(key, "srcIP")  # type: ignore[arg-type]
    other.query("flows", grouped.agg(count().alias("c")))
    assert signature(made, "flows") == signature(other, "flows")


def test_history_union_case_and_update(tmp_path: Path) -> None:
    made = built(
        tmp_path,
        """\
  sizes: {case: {of: tcp, branches: {big: len > 1000, small: len < 100}, rest: middle}}
  both: {union: [big, small]}
  flows: {from: both, history: {by: srcIP, rows: 3, aggregate: [sum(len) AS total]}}
  ever: {from: middle, group_by: srcIP, aggregate: count(*) AS c, emit: update}
""",
    )
    other = packets(Session.in_process())
    big, small, middle = other.from_stream("tcp").case(col("len") > 1000, col("len") < 100)
    history = big.union(small).history("srcIP", rows=3).agg(sum_("len").alias("total"))
    other.query("flows", history)
    other.query("ever", middle.group_by("srcIP").agg(count().alias("c"), emit="update"))
    for query in ("flows", "ever"):
        assert signature(made, query) == signature(other, query)
    assert {output.query for output in made.plan().outputs} == {
        "big", "small", "middle", "both", "flows", "ever"
    }  # fmt: skip


def test_sql_means_what_the_clauses_mean(tmp_path: Path) -> None:
    made = built(
        tmp_path,
        """\
  top: SELECT tb, max(cnt) AS most FROM flows GROUP BY tb
  flows: |
    SELECT tb, srcIP, COUNT(*) AS cnt
    FROM tcp
    GROUP BY time/60 AS tb, srcIP
  ever: {sql: "SELECT srcIP, COUNT(*) AS c FROM tcp GROUP BY srcIP", emit: update}
""",
    )
    other = packets(Session.in_process())
    flows = other.query("flows", "SELECT tb, srcIP, COUNT(*) AS cnt FROM tcp "
                        "GROUP BY time/60 AS tb, srcIP")  # fmt: skip
    assert flows.node.schema == {"tb": pl.Int64(), "srcIP": pl.Int64(), "cnt": pl.Int64()}
    other.query("top", "SELECT tb, max(cnt) AS most FROM flows GROUP BY tb")
    other.query("ever", "SELECT srcIP, COUNT(*) AS c FROM tcp GROUP BY srcIP", emit="update")
    for query in ("flows", "top", "ever"):
        assert signature(made, query) == signature(other, query)


def test_file_streams(tmp_path: Path) -> None:
    pl.DataFrame({"t": [1, 2], "k": ["a", "b"]}).write_csv(tmp_path / "in.csv")
    made = spec_of(
        tmp_path,
        f"""\
streams:
  s: {{path: {tmp_path}/in.csv, format: csv, schema: {{t: int64, k: string}}, ordered: t}}
queries:
  q: {{from: s, window: {{tumble: 10}}, group_by: k, aggregate: count(*) AS n}}
sinks: {{q: console}}
""",
    ).session(in_process=True)
    assert made.from_stream("s").node.schema == {"t": pl.Int64(), "k": pl.String()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STREAMS + FLOWS.replace("queries:", "querys:") + SINKS,
         "spec.yml, line 3, querys: there is no key 'querys' here. Did you mean 'queries'?"),
        (STREAMS + FLOWS.replace("from:", "form:") + SINKS,
         "spec.yml, line 4, queries.flows.form: there is no key 'form' here. "
         "Did you mean 'from'?"),
        (STREAMS.replace("ordered", "orderd") + FLOWS + SINKS,
         "line 2, streams.tcp.orderd: there is no key 'orderd' here. Did you mean 'ordered'?"),
        (STREAMS + FLOWS + SINKS + "settings:\n  fsink: true\n",
         "line 8, settings.fsink: there is no key 'fsink' here. Did you mean 'fsync'?"),
        (STREAMS + FLOWS + SINKS + "run: {chekpoint: x}\n",
         "line 7, run.chekpoint: there is no key 'chekpoint' here. Did you mean 'checkpoint'?"),
        (STREAMS + FLOWS + "sinks:\n  flows: {paht: x}\n", "Did you mean 'path'?"),
        (STREAMS + FLOWS + SINKS.replace("flows:", "flow:"),
         "line 6, sinks.flow: there is no query 'flow'. Did you mean 'flows'?"),
        (STREAMS + FLOWS + "sinks:\n  flows: {path: x, format: parket}\n",
         "there is no result format 'parket'. Did you mean 'parquet'?"),
        (STREAMS + FLOWS + "sinks: {flows: memory}\n", "a memory sink is for Python programs"),
        (STREAMS + FLOWS + "sinks: {flows: 7}\n",
         "sinks.flows: expected a text or a mapping, got a whole number (7)."),
        (STREAMS.replace("1000", "many") + FLOWS + SINKS,
         "streams.tcp.rows: expected a whole number, got a text ('many')."),
        (STREAMS.replace("1000", "true") + FLOWS + SINKS,
         "expected a whole number, got true or false (True)."),
        (STREAMS.replace("ordered: time", "path: x") + FLOWS + SINKS, "no key 'path' here"),
        (STREAMS.replace(", ordered: time", "") + FLOWS + SINKS, "'ordered' is missing"),
        ("streams: {s: {ordered: t}}\n" + FLOWS + SINKS,
         "'path' (files), 'kafka', 'delta', 'iceberg' or 'generator'"),
        (STREAMS + FLOWS + SINKS + "settings: {fsync: 3}\n",
         "line 7, settings.fsync: Setting 'fsync' is 3; expected true or false."),
        (STREAMS + FLOWS + SINKS + "settings: {keep_manifests: 0}\n", "expected at least 1"),
        (STREAMS + FLOWS + SINKS + "run: {trigger: [1]}\n",
         "run.trigger: expected a text or a number, got a list."),
        (STREAMS + FLOWS + "sinks: []\n", "sinks: expected a mapping (key: value), got a list."),
        (STREAMS + FLOWS + SINKS + "run: {name: a, name: b}\n", "the key 'name' appears twice"),
        (STREAMS + FLOWS.replace("flows:", "tcp:") + SINKS, "there already is a stream called"),
        ("", "is empty"),
        ("a: [1, 2\n", "line 2: not YAML"),
        ("a: {b: !!python/object:os.system x}\n", "there is no key 'a'"),
    ],
)  # fmt: skip
def test_faults_of_the_file(tmp_path: Path, text: str, message: str) -> None:
    assert message in fault(tmp_path, text)


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        ("{from: tpc}", LanguageError,
         "queries.flows.from: there is no stream or query 'tpc'. Did you mean 'tcp'?"),
        ("{from: tcp, where: lenn > 0}", LanguageError,
         "queries.flows.where, at character 1: column 'lenn' is not found. "
         "Did you mean 'len'?"),
        ("{from: tcp, where: len >}", LanguageError, "queries.flows.where, at character"),
        ("{from: tcp, where: len + 1}", LanguageError,
         "spec.yml, line 4, queries.flows: WHERE len + 1: expected a condition"),
        ("{from: tcp, group_by: srcIP, aggregate: [summ(len)]}", LanguageError,
         "there is no aggregate 'summ'. Did you mean 'sum'?"),
        ("{from: tcp, group_by: srcIP, aggregate: [count(*) AS c]}", LanguageError,
         "queries.flows: This aggregate has no window"),
        ("{from: tcp, select: [round(len, 2) AS x]}", SettingsError,
         "the parentheses of 'round(len' do not match"),
        ("{from: tcp, group_by: srcIP}", SettingsError, "'group_by' needs 'aggregate: [...]'"),
        ("{from: tcp, having: len > 3}", SettingsError, "use 'where' here"),
        ("{from: tcp, union: [tcp, tcp]}", SettingsError, "got from and union"),
        ("{where: len > 3}", SettingsError, "needs one input: sql, from, union or case; got none"),
        ("{union: tcp}", SettingsError, "a union needs two inputs or more"),
        ("{from: tcp, window: {tumbl: 60}, aggregate: count(*) AS c}", SettingsError,
         "Did you mean 'tumble'?"),
        ("{from: tcp, window: {hop: 60}, aggregate: count(*) AS c}", SettingsError,
         "'hop' takes 2 sizes, got 1"),
        ("{from: tcp, window: {tumble: 1 minute}, aggregate: count(*) AS c}", LanguageError,
         "the ordered attribute is an integer"),
        ("{from: tcp, history: {by: srcIP, aggregate: count(*) AS c}}", SettingsError,
         "queries.flows.history: 'rows' is missing"),
        ("{from: tcp, history: {rows: 3, aggregate: count(*) AS c}, aggregate: count(*) AS d}",
         SettingsError, "either 'history' or 'aggregate'"),
        ("{from: tcp, where: 7}", SettingsError, "expected a text, got a whole number (7)"),
        ("{from: tcp, select: {a: b}}", SettingsError, "expected a list, got a mapping"),
        ("{case: {of: tcp, branches: {flows: len > 3}}, where: len > 3}", SettingsError,
         "a case stands alone"),
        ("{from: flows}", LanguageError, "in a circle: flows -> flows"),
        ("SELECT len FROM flows", LanguageError, "in a circle: flows -> flows"),
        ("SELECT lenn FROM tcp", LanguageError, "Query 'flows', at character 8: column 'lenn'"),
        ("SELECT len FROM tpc", LanguageError, "Did you mean 'tcp'?"),
        ("SELECT len FRM tcp", LanguageError, "queries.flows: Query 'flows'"),
        ("{sql: SELECT len FROM tcp, where: len > 3}", SettingsError,
         "'where' has no place beside SQL"),
        ("7", SettingsError,
         "expected a mapping such as {from: calls, where: duration > 60}, or SQL, got a whole number (7)"),
        ("{from: tcp}\n  a b: {from: tcp}", LanguageError, "'a b' cannot be a name"),
    ],
)  # fmt: skip
def test_faults_of_a_query(
    tmp_path: Path, query: str, kind: type[AnabranchError], message: str
) -> None:
    told = fault(tmp_path, f"{STREAMS}queries:\n  flows: {query}\n{SINKS}", kind)
    assert message in told
    assert told.startswith("spec.yml, line ")


def test_a_circle_of_queries(tmp_path: Path) -> None:
    queries = "queries:\n  flows: {from: a}\n  a: {from: b}\n  b: {from: flows}\n"
    told = fault(tmp_path, STREAMS + queries + SINKS, LanguageError)
    assert "in a circle: flows -> a -> b -> flows" in told


def test_faults_of_a_source_have_a_place(tmp_path: Path) -> None:
    text = f"streams:\n  tcp: {{path: {tmp_path}/none.parquet, ordered: time}}\n{FLOWS}{SINKS}"
    told = fault(tmp_path, text, SourceError)
    assert told.startswith("spec.yml, line 2, streams.tcp: ")
    assert "no file or folder" in told


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"Cannot read .*: No such file or directory"):
        read_spec(tmp_path / "none.yml")


def test_variables_are_not_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "elsewhere")
    spec = spec_of(tmp_path, STREAMS + FLOWS + "sinks: {flows: '${HERE}/flows'}\n")
    assert spec.sinks == {"flows": FileSink(Path("${HERE}/flows").absolute())}
