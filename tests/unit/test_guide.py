"""What the guide shows works as it says: programs run, clauses are read, fields and changes are as told."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import AnabranchError, Session
from anabranch.spec import read_spec
from anabranch.spec.yaml_queries import CLAUSES, INPUTS

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guide.md").read_text()


def section(title: str) -> str:
    return re.split(r"^#+ ", GUIDE.split(f"# {title}\n", 1)[1], flags=re.M)[0]


def cells(title: str) -> list[list[str]]:
    """The rows of the first table of a section, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def programs() -> list[str]:
    """The Python programs of the guide that are whole: they import what they use and make a session."""
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```", GUIDE, flags=re.S | re.M)
    whole = [re.sub(rf"^{indent}", "", text, flags=re.M) for indent, text in blocks]
    return [text for text in whole if "import" in text and "Session." in text]


def test_the_guide_has_whole_programs() -> None:
    assert len(programs()) == 6


@pytest.mark.parametrize(
    "text", [text for text in programs() if "SparkSink" not in text and "faults" not in text]
)
def test_programs_of_the_guide_run(text: str) -> None:
    exec(text, {})


def test_the_program_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Spark, which it starts and stops; twice, as it says."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    (text,) = (block for block in blocks if "Session.local(cores=2)" in block)
    assert "session.stop()" in text
    for _ in range(2):
        exec(text.replace("Session.local(cores=2)", "Session.in_process()"), {})
    assert pl.read_parquet(tmp_path / "out/pairs").height > 0


BESIDE = {
    "window": "group_by: srcIP, aggregate: [count(*) AS cnt]",
    "group_by": "window: {tumble: 60}, aggregate: [count(*) AS cnt]",
    "aggregate": "window: {tumble: 60}",
    "emit": "window: {tumble: 60}, aggregate: [count(*) AS cnt]",
    "having": "window: {tumble: 60}, aggregate: [count(*) AS cnt]",
}
"""What a clause needs beside it."""


def yaml(folder: Path, query: str) -> Path:
    file = folder / "spec.yml"
    stream = "{generator: packets, rows: 100, ordered: time}"
    file.write_text(
        f"streams:\n  tcp: {stream}\n  udp: {stream}\nqueries:\n  q: {{{query}}}\nsinks: {{}}\n"
    )
    return file


def test_the_guide_has_every_clause_of_yaml() -> None:
    assert [spans(row[0])[0] for row in cells("YAML")] == [*INPUTS, *CLAUSES_IN_ORDER]
    assert set(CLAUSES_IN_ORDER) == set(CLAUSES)


CLAUSES_IN_ORDER = (
    "where", "window", "group_by", "aggregate", "emit", "having", "history", "select",
)  # fmt: skip


@pytest.mark.parametrize("row", cells("YAML"), ids=lambda row: spans(row[0])[0])
def test_every_shape_of_a_clause_is_read(tmp_path: Path, row: list[str]) -> None:
    clause = spans(row[0])[0]
    for shape in spans(row[1]):
        assert shape.startswith(f"{clause}: ")
        whole = shape if clause in INPUTS else f"from: tcp, {shape}"
        if clause == "sql":
            whole = shape.replace("sql: ", 'sql: "') + '"'
        elif clause == "where":
            whole = whole.replace("where: ", 'where: "') + '"'
        whole += f", {BESIDE[clause]}" if clause in BESIDE else ""
        read_spec(yaml(tmp_path, whole)).session(in_process=True).plan()


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("from: tcp, window: tumble('1 hour'), aggregate: [count(*) AS c]",
         "expected a mapping such as {tumble: 60}, {hop: [60, 10]}"),
        ("from: tcp, history: 5", "expected a mapping such as {by: caller, rows: 5, aggregate:"),
        ("case: tcp", "expected a mapping such as {of: calls, branches: {short: duration < 60"),
        ("case: {of: tcp, branches: [len < 5]}", "expected a mapping such as {short: duration < 60}"),
    ],
)  # fmt: skip
def test_a_clause_of_another_shape_is_refused_with_its_shape(
    tmp_path: Path, query: str, shown: str
) -> None:
    with pytest.raises(AnabranchError) as told:
        read_spec(yaml(tmp_path, query)).session(in_process=True).plan()
    assert shown in str(told.value)


def test_the_fields_of_a_report_are_as_told() -> None:
    session = Session.in_process()
    session.stream("tcp", generator="packets", rows=100, ordered="time")
    session.query("q", "SELECT tb, COUNT(*) AS c FROM tcp GROUP BY time/60 AS tb")
    run = session.start(sinks={"q": "memory"})
    run.await_termination()
    report = run.last_progress
    assert report is not None
    told: set[str] = set()
    for names, described in cells("What a run reports"):
        for name in spans(names):
            at: Any = report
            for step in name.split("."):
                at = at[step.removesuffix("[]")]
                at = at[0] if step.endswith("[]") else at
            told.add(name.split("[]")[0])
            if isinstance(at, dict):
                fields = [span for span in spans(described) if span.isidentifier()]
                inner = {*at, *at.get("customMetrics", {})}
                assert set(fields) <= inner, f"{name} has no {set(fields) - inner}"
                if "others" not in described and name != "eventTime":
                    assert set(at) <= set(fields), f"{set(at) - set(fields)} of {name} are not told"
    assert told >= set(report)


Change = Callable[[dict[str, Any]], None]
SAME: dict[str, Change] = {
    "sites": lambda made: made["session"].update(sites=5),
    "trigger": lambda made: made["start"].update(trigger="continuous"),
    "name": lambda made: made["start"].update(name="other"),
    "settings": lambda made: made["session"].update(settings={"max_files_per_epoch": 7}),
    "on_bad": lambda made: made["stream"].update(on_bad="dead-letter"),
    "on_late": lambda made: made["stream"].update(on_late="dead-letter"),
    "file_order": lambda made: made["stream"].update(file_order="name"),
    "results elsewhere": lambda made: made["start"]["sinks"].update(q=made["folder"] / "elsewhere"),
    "another format": lambda made: made["start"]["sinks"].update(
        q={"path": str(made["folder"] / "csv"), "format": "csv"}
    ),
}
OTHER: dict[str, Change] = {
    "text": lambda made: made.update(sql=made["sql"].replace("COUNT(*)", "COUNT(time)")),
    "lateness": lambda made: made["stream"].update(lateness=1),
    "one more": lambda made: made.update(more="SELECT time FROM t"),
}


def start(made: dict[str, Any]) -> None:
    session = Session.in_process(**made["session"])
    session.stream("t", path=made["folder"] / "data", ordered="time", **made["stream"])
    session.query("q", made["sql"])
    if "more" in made:
        session.query("more", made["more"])
    run = session.start(**made["start"])
    while not run.last_progress:
        run.await_termination(0.01)
    run.stop()
    run.await_termination()


@pytest.mark.parametrize("change", [*SAME, *OTHER])
def test_what_a_checkpoint_goes_on_with_is_as_told(tmp_path: Path, change: str) -> None:
    (tmp_path / "data").mkdir()
    pl.DataFrame({"time": range(100), "k": [1, 2] * 50}).write_parquet(tmp_path / "data/a.parquet")
    made: dict[str, Any] = {
        "folder": tmp_path, "session": {}, "stream": {},
        "sql": "SELECT tb, k, COUNT(*) AS c FROM t WHERE k > 0 GROUP BY time/10 AS tb, k",
        "start": {
            "checkpoint": tmp_path / "checkpoint", "dead_letter": tmp_path / "dead",
            "sinks": {"q": tmp_path / "out"},
        },
    }  # fmt: skip
    start(made)
    pl.DataFrame({"time": range(100, 200), "k": [1, 2] * 50}).write_parquet(
        tmp_path / "data/b.parquet"
    )
    {**SAME, **OTHER}[change](made)
    if change in SAME:
        start(made)
    else:
        with pytest.raises(AnabranchError, match="checkpoint"):
            start(made)


def test_the_example_in_python_says_when_there_is_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without_spark(cores: int, settings: dict[str, Any]) -> Session:
        return Session.in_process(cores, settings)

    monkeypatch.setattr(Session, "local", without_spark)
    main = runpy.run_path(str(ROOT / "examples" / "flows.py"))["main"]
    main(tmp_path)
    assert "Nothing new" not in capsys.readouterr().out
    main(tmp_path)
    assert "Nothing new to read: an earlier run has read all packets." in capsys.readouterr().out
