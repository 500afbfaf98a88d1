"""`bench nexmark`: its queries give what DuckDB gives, and its figures say what the sides did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anabranch.bench import nexmark
from anabranch.bench.jobs import Answer, EpochTime, Job, JobOutcome, Ours, Reference
from anabranch.bench.measure import Peak
from anabranch.bench.nexmark_queries import (
    QUERIES,
    UNBOUNDED,
    NexmarkDigest,
    expected_digest,
    found_digest,
)
from anabranch.errors import RunError
from anabranch.observe.steps import silent
from anabranch.session import Session
from anabranch.testing.nexmark import write_nexmark


def test_queries_give_what_duckdb_gives(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_nexmark(data, 12_000, parts=2)
    for name, query in QUERIES.items():
        settings = {"max_files_per_epoch": 1, "allow_unbounded_state": name in UNBOUNDED}
        session = Session.in_process(2, settings)
        for stream in query.streams:
            session.stream(stream, path=data / stream, ordered="date_time", file_order="name")
        session.query("results", query.text)
        run = session.start(sinks={"results": tmp_path / name}, checkpoint=tmp_path / f"of-{name}")
        run.await_termination()
        expected = expected_digest(str(data), name)
        assert expected.rows > 0, f"{name} has no rows to compare"
        assert found_digest(str(data), name, tmp_path / name) == expected, name


def test_a_run_without_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="q2 left no results"):
        found_digest(str(tmp_path), "q2", tmp_path / "nothing")


def test_the_figures_of_nexmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates are those of a core, the faster of Spark's counts, and where Spark fails it is said."""

    def run(job: Job) -> JobOutcome:
        if isinstance(job, Reference) and job.nexmark == "q8":
            raise RunError("Spark cannot do this")
        seconds = 1.0 if isinstance(job, Ours) else 2.0 if job.tuned else 4.0
        epochs = [EpochTime(1000, 500.0), EpochTime(1000, 1000 * seconds)]
        answer = Answer(epochs=epochs, seconds=9.0, steady_rows=1000, steady_seconds=seconds)
        return JobOutcome(job, answer, Peak(1, 1, 1, 1, 1, 1), 9.0, [0.0], [0.0])

    def digest(*given: Any) -> NexmarkDigest:
        return NexmarkDigest(7, 8)

    monkeypatch.setattr(nexmark, "run_job", run)
    monkeypatch.setattr(nexmark, "expected_digest", digest)
    monkeypatch.setattr(nexmark, "found_digest", digest)
    monkeypatch.setattr(nexmark, "write_nexmark", lambda folder, events, parts: None)
    result = nexmark.run_nexmark(False, silent())
    figures = result.figures
    assert {*QUERIES} <= {*figures}
    assert figures["q0"]["rows_per_s_per_core"] == 500
    assert figures["q0"]["ratio"] == 2.0
    assert figures["q8"]["spark_rows_per_s"] is None
    assert "cannot" in figures["q8"]["why"]
    assert figures["least_ratio"] == 2.0
    assert result.sound
    lines = list(nexmark.nexmark_lines(figures))
    assert len(lines) == len(QUERIES)
    assert any("Spark failed" in line for line in lines)
