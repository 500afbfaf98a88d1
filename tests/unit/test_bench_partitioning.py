"""The experiments on partitioning, small and without Spark: loads have their shapes, results are right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session
from anabranch.bench import partitioning
from anabranch.bench.network import EXPERIMENTS, Experiment, Trace, many_queries, part_of

TRACE = Trace(windows=4, rows=8_000, flows=100, hosts=40)


@pytest.mark.parametrize("one", EXPERIMENTS, ids=lambda one: one.name)
def test_experiment(one: Experiment, tmp_path: Path) -> None:
    trace = replace(TRACE, flows=TRACE.flows * one.spread)
    expected = dict(partitioning._expected(one, trace))
    measured: dict[str, list[dict[str, int]]] = {}
    for way in one.configurations:
        for hosts in (1, 2):
            found, right = partitioning._run(
                Session.in_process(), trace, one, way, hosts, tmp_path, expected
            )
            assert right, (one.name, way.name, hosts)
            assert found["epochs"] == 1
            measured.setdefault(way.name, []).append(found)
    rows = {name: [found["rows"] for found in points] for name, points in measured.items()}
    assert max(rows["optimal"]) < rows["naive"][0] < rows["naive"][1]
    assert rows["optimal"][0] == rows["optimal"][1]
    if one.name != "conflict":
        assert rows["naive"][1] == pytest.approx(2 * rows["naive"][0], rel=0.02)
        assert rows["partial"] == pytest.approx([rows["naive"][0] / 2, rows["naive"][0]], rel=0.02)
    assert 0 < partitioning._figures(measured)["optimal_saving"] < 1


def test_wrong_results_are_noticed(tmp_path: Path) -> None:
    one = EXPERIMENTS[0]
    expected = {name: rows[1:] for name, rows in partitioning._expected(one, TRACE)}
    _, right = partitioning._run(
        Session.in_process(), TRACE, one, one.configurations[0], 1, tmp_path, expected
    )
    assert not right


def test_parts_keep_groups_whole() -> None:
    rows = TRACE.window(0)
    parts = part_of(rows, 6, ("srcIP & 0xFFF0", "destIP"))
    named = rows.with_columns(part=pl.Series(parts), net=pl.col("srcIP") & 0xFFF0)
    assert named.group_by("net", "destIP").agg(pl.col("part").n_unique())["part"].max() == 1
    assert named["part"].n_unique() == 6
    assert part_of(rows, 3, ()).tolist()[:4] == [0, 1, 2, 0]


def test_many_queries_are_many() -> None:
    session = Session.in_process()
    session.stream("tcp", generator="packets", rows=1000, ordered="time")
    for name, query in many_queries(12).items():
        session.query(name, query)
    assert len(session.plan().subqueries) > 8
