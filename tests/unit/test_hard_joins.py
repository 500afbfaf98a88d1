"""Joins of input that is hard on them: hot keys, keys that are mostly NULL, very many matches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from anabranch import Session
from anabranch.engine.run import Run
from anabranch.errors import LanguageError
from anabranch.operators import meeting
from anabranch.testing.compare import assert_same_rows
from anabranch.testing.sources import EpochSource

QUERY = "SELECT a.time, a.k, x, y FROM a {} JOIN b ON a.k = b.k AND ABS(a.time - b.time) <= 60"


def run_join(
    a: pl.DataFrame, b: pl.DataFrame, kind: str, sites: int = 4
) -> tuple[pl.DataFrame, dict[str, Any]]:
    session = Session.in_process(sites, {"fsync": False})
    session.stream("a", EpochSource([a]), ordered="time")
    session.stream("b", EpochSource([b]), ordered="time")
    session.query("both", QUERY.format(kind))
    run = session.start(sinks={"both": "memory"}, at_end="close")
    assert run.await_termination(120)
    return run.results("both"), run.recent_progress[0]


@pytest.mark.parametrize("kind", ["", "LEFT", "FULL", "ANTI"])
def test_a_key_that_is_mostly_null(kind: str) -> None:
    """NULL meets nothing; rows with it are not sent where they are not wanted, and to all sites else."""
    rng = np.random.default_rng(5)
    rows = 4000

    def stream(value: str) -> pl.DataFrame:
        keys = pl.Series(rng.integers(0, 100, rows)).to_frame("k")
        keys = keys.select(pl.when(pl.Series(rng.random(rows) < 0.1)).then("k").alias("k"))
        time = pl.Series("time", np.sort(rng.integers(0, 30, rows)))
        return keys.with_columns(time, pl.Series(value, rng.integers(0, 9, rows)))

    a, b = stream("x"), stream("y")
    query = QUERY.replace(", y", "") if kind == "ANTI" else QUERY
    global_query = query.format(kind)
    session = Session.in_process(4, {"fsync": False})
    session.stream("a", EpochSource([a]), ordered="time")
    session.stream("b", EpochSource([b]), ordered="time")
    session.query("both", global_query)
    run = session.start(sinks={"both": "memory"}, at_end="close")
    assert run.await_termination(120)
    with duckdb.connect() as duck:
        duck.register("a", a.to_arrow())
        duck.register("b", b.to_arrow())
        wanted = duck.sql(global_query).pl()
    assert_same_rows(run.results("both"), wanted.cast(dict(run.results("both").schema)))
    (operator,) = run.recent_progress[0]["stateOperators"]
    taken, skew = operator["customMetrics"]["rowsIn"], operator["customMetrics"]["skew"]
    nulls = {"": 0, "LEFT": 1, "FULL": 2, "ANTI": 1}[kind] * 0.9 * rows
    assert 0.9 < taken / (0.2 * rows + nulls) < 1.1
    assert skew < 1.5, "rows without a key are spread over all sites"


def test_a_null_key_stays_with_its_like_where_a_group_needs_it() -> None:
    """An aggregate by the key of an outer join runs on its partitions: NULL is one group there."""
    a = pl.DataFrame({"time": [1] * 50, "k": [None] * 40 + [*range(10)], "x": [1] * 50})
    b = pl.DataFrame(
        {"time": [1, 2], "k": [3, None], "y": [1, 2]}, schema_overrides={"k": pl.Int64}
    )
    session = Session.in_process(4, {"fsync": False})
    session.stream("a", EpochSource([a]), ordered="time")
    session.stream("b", EpochSource([b]), ordered="time")
    session.query("both", QUERY.format("LEFT"))
    session.query("counts", "SELECT w, k, COUNT(*) AS n FROM both GROUP BY time/60 AS w, k")
    run = session.start(sinks={"counts": "memory"}, at_end="close")
    assert run.await_termination(60)
    assert run.plan.levels == 1, "both run on the same partitions"
    assert sorted(run.results("counts").select("k", "n").rows(), key=str) == sorted(
        [(None, 40), *((key, 1) for key in range(10))], key=str
    )


def test_a_hot_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "CHUNK", 1000)
    monkeypatch.setattr(meeting, "HOT", 10_000)
    a = pl.DataFrame({"time": [1] * 300, "k": [7] * 200 + [*range(100)], "x": [*range(300)]})
    b = pl.DataFrame({"time": [2] * 150, "k": [7] * 100 + [*range(50)], "y": [*range(150)]})
    found, told = run_join(a, b, "")
    assert found.height == 201 * 101 + 49
    (warning,) = told["customMetrics"]["warnings"]
    assert "Subquery 'both@1': the key 7 alone has 201 x 101 rows that may meet" in warning
    assert "20,301 pairs of them within the bounds of time" in warning
    assert "What helps: tighter bounds on the times of all inputs, one more equality" in warning
    _, told = run_join(a[200:], b[100:], "")
    assert told["customMetrics"]["warnings"] == []


def test_a_key_with_many_rows_and_few_pairs_within_the_bound_is_not_hot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(meeting, "HOT", 10_000)
    a = pl.DataFrame({"time": range(0, 100_000, 100), "k": [7] * 1000, "x": range(1000)})
    found, told = run_join(a, a.rename({"x": "y"}), "")
    assert found.height == 1000
    assert told["customMetrics"]["warnings"] == []


def pairs_compared(run: Any) -> int:
    """The pairs of rows that the joins of a run have looked at."""
    operators = [one for told in run.recent_progress for one in told["stateOperators"]]
    return sum(operator["customMetrics"]["pairsCompared"] for operator in operators)


def in_epochs(rows: pl.DataFrame, epochs: int) -> EpochSource:
    size = -(-rows.height // epochs)
    return EpochSource([rows[at : at + size] for at in range(0, rows.height, size)])


@pytest.mark.parametrize("epochs", [1, 4, 12])
@pytest.mark.parametrize("shuffled", [False, True])
def test_pairs_looked_at_are_those_within_the_bounds(epochs: int, shuffled: bool) -> None:
    """Whatever the epochs, and though rows that are kept for late ones could meet none of these."""
    rng = np.random.default_rng(3)
    frames = {}
    for name, value in (("a", "x"), ("b", "y")):
        times = np.sort(rng.integers(0, 20_000, 10_000))
        rows = pl.DataFrame({"time": times, "k": rng.integers(0, 2, 10_000)})
        frames[name] = rows.with_columns(pl.Series(value, rng.integers(0, 100, 10_000)))
        if shuffled:
            frames[name] = frames[name].sample(fraction=1.0, shuffle=True, seed=4)
    session = Session.in_process(2, {"fsync": False})
    for name, rows in frames.items():
        session.stream(name, in_epochs(rows, epochs), ordered="time", lateness=20_000)
    near = "FROM a JOIN b ON a.k = b.k AND b.time BETWEEN a.time - 3 AND a.time + 9"
    session.query("q", f"SELECT a.time, a.k, x, y {near} AND x < y - 90")
    run = session.start(sinks={"q": "memory"}, at_end="close")
    assert run.await_termination(120)
    with duckdb.connect() as duck:
        for name, rows in frames.items():
            duck.register(name, rows.to_arrow())
        within = duck.sql(f"SELECT count(*) {near}").fetchall()[0][0]
        wanted = duck.sql(f"SELECT a.time, a.k, x, y {near} AND x < y - 90").pl()
    assert_same_rows(run.results("q"), wanted.cast(dict(run.results("q").schema)))
    assert pairs_compared(run) == within


def test_pairs_of_three_inputs_follow_the_bounds_of_all() -> None:
    rng = np.random.default_rng(3)
    rows = 4_000
    frames = {
        name: pl.DataFrame({"time": np.sort(rng.integers(0, rows, rows)), "k": [1] * rows})
        for name in ("a", "b", "c")
    }
    query = """SELECT a.time, b.time AS u, c.time AS v FROM a
        JOIN b ON a.k = b.k AND b.time BETWEEN a.time AND a.time + 2
        JOIN c ON a.k = c.k AND c.time BETWEEN b.time AND b.time + 2"""
    session = Session.in_process(2, {"fsync": False})
    for name, frame in frames.items():
        session.stream(name, in_epochs(frame, 2), ordered="time")
    session.query("q", query)
    run = session.start(sinks={"q": "memory"}, at_end="close")
    assert run.await_termination(120)
    with duckdb.connect() as duck:
        for name, frame in frames.items():
            duck.register(name, frame.to_arrow())
        wanted = duck.sql(query).pl()
    assert_same_rows(run.results("q"), wanted)
    assert pairs_compared(run) < 2 * wanted.height


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
def test_rows_that_are_only_filtered_make_no_pairs(kind: str) -> None:
    """Whether a row meets anything is told by where its run begins and ends."""
    rows = 3_000
    a = pl.DataFrame({"time": range(rows), "k": [1] * rows})
    b = a.filter(pl.col("time") % 100 < 60)
    query = f"SELECT a.time FROM a {kind} JOIN b ON a.k = b.k AND ABS(a.time - b.time) <= 5"
    session = Session.in_process(2, {"fsync": False})
    session.stream("a", in_epochs(a, 7), ordered="time")
    session.stream("b", in_epochs(b, 5), ordered="time")
    session.query("q", query)
    run = session.start(sinks={"q": "memory"}, at_end="close")
    assert run.await_termination(120)
    met = [time for time in range(rows) if (time + 5) % 100 < 70 and time < 2995]
    left = sorted(set(range(rows)) - set(met))
    assert sorted(run.results("q")["time"]) == (met if kind == "SEMI" else left)
    assert pairs_compared(run) == 0


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
@pytest.mark.parametrize("epochs", [1, 6])
def test_a_row_that_is_only_filtered_looks_at_few_pairs_beyond_its_first(
    kind: str, epochs: int
) -> None:
    rng = np.random.default_rng(8)
    rows = 3_000
    a = pl.DataFrame({"time": range(rows), "k": [1] * rows, "x": rng.integers(0, 100, rows)})
    b = pl.DataFrame({"time": range(rows), "k": [1] * rows, "y": rng.integers(0, 100, rows)})
    near = "a.k = b.k AND ABS(a.time - b.time) <= 200 AND x < y - 30"
    query = f"SELECT a.time FROM a {kind} JOIN b ON {near}"
    session = Session.in_process(2, {"fsync": False})
    session.stream("a", in_epochs(a, epochs), ordered="time")
    session.stream("b", in_epochs(b, epochs), ordered="time")
    session.query("q", query)
    run = session.start(sinks={"q": "memory"}, at_end="close")
    assert run.await_termination(120)
    with duckdb.connect() as duck:
        duck.register("a", a.to_arrow())
        duck.register("b", b.to_arrow())
        wanted = duck.sql(query).pl()
        within = duck.sql(f"SELECT count(*) FROM a JOIN b ON {near.split(' AND x')[0]}").fetchall()
    assert_same_rows(run.results("q"), wanted)
    # Rows with an x of 69 and more meet none and look at all
    assert within[0][0] * 0.3 < pairs_compared(run) < within[0][0] * 0.45


CHILD = """
import json, resource, sys
import polars as pl
from anabranch import Session
from anabranch.engine.run import Run
from anabranch.errors import LanguageError
from anabranch.testing.sources import EpochSource
rows = int(sys.argv[1])
session = Session.in_process(2, {"fsync": False})
for name, value in (("a", "x"), ("b", "y")):
    made = {"time": [1] * rows, "k": ["hot"] * rows, value: list(range(rows))}
    session.stream(name, EpochSource([pl.DataFrame(made)]), ordered="time")
session.query("both", sys.argv[3])
run = session.start(sinks={"both": sys.argv[2]}, at_end="close")
run.await_termination()
told = run.recent_progress[0]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps([peak, told["sinks"][0]["numOutputRows"], told["customMetrics"]["warnings"]]))
"""


def test_memory_is_bounded_however_many_rows_match(tmp_path: Path) -> None:
    """5,000 x 5,000 rows of one key in one epoch: 25 million results, written in parts."""
    peaks = {}
    for rows in (500, 5000):
        out = tmp_path / str(rows)
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(rows), str(out), QUERY.format("")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        peaks[rows], written, warnings = json.loads(done.stdout)
        assert written == rows * rows
        assert (
            pl.scan_parquet(out / "epoch=*/*.parquet").select(pl.len()).collect().item() == written
        )
    assert len(list(out.glob("epoch=*/*.parquet"))) >= 50, "parts of half a million rows"
    assert "the key 'hot' alone has 5,000 x 5,000 rows" in warnings[0]
    # All results at once would take a gigabyte and more
    assert peaks[5000] - peaks[500] < 400, peaks


def results_of(
    query: str, frames: dict[str, pl.DataFrame], **settings: Any
) -> list[tuple[Any, ...]]:
    """What a query gives, each frame an epoch of its own one after the other."""
    session = Session.in_process(2, {"fsync": False, **settings})
    for name, rows in frames.items():
        parts = [rows[:1], rows[1:]] if rows.height > 1 else [rows]
        session.stream(name, EpochSource(parts), ordered="time")
    session.query("q", query)
    run = session.start(sinks={"q": "memory"}, at_end="close")
    assert run.await_termination(60)
    return sorted(run.results("q").rows(), key=str)


def test_an_equality_is_not_lost_where_a_key_stands_twice() -> None:
    """a.k is equal to two columns of b, and b.y = c.z is no key of the lower join."""
    query = """SELECT b.y, c.z FROM a
        JOIN b ON a.k = b.k AND a.k = b.j AND b.time BETWEEN a.time AND a.time
        JOIN c ON a.k = c.k AND b.y = c.z AND c.time BETWEEN a.time AND a.time"""
    frames = {
        "a": pl.DataFrame({"time": [1], "k": [1]}),
        "b": pl.DataFrame({"time": [1], "k": [1], "j": [1], "y": [5]}),
        "c": pl.DataFrame({"time": [1, 1], "k": [1, 1], "z": [6, 5]}),
    }
    for strategy in ("subquery", "query", "operator"):
        assert results_of(query, frames, strategy=strategy) == [(5, 5)]


LAST = {
    "a": pl.DataFrame({"time": [10], "x": [1]}),
    "b": pl.DataFrame({"time": [1, 2, 3], "y": [9, 0, 0]}),
}


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("SELECT x, y FROM a JOIN b ON WITHIN_ROWS(2)", [(1, 0), (1, 0)]),
        ("SELECT x, y FROM a JOIN b ON WITHIN_ROWS(3) AND a.x <= b.y", [(1, 9)]),
        ("SELECT x, y FROM a JOIN b ON WITHIN_ROWS(2) AND b.y > 5", []),
        ("SELECT x, y FROM a JOIN b ON WITHIN_ROWS(2) WHERE b.y > 5", []),
        ("SELECT x, y FROM a JOIN (SELECT * FROM b WHERE y > 5) c ON WITHIN_ROWS(2)", [(1, 9)]),
    ],
)
def test_all_rows_are_counted_whatever_else_is_asked(query: str, wanted: list[Any]) -> None:
    assert results_of(query, LAST) == wanted


def test_rows_of_one_input_only_in_many_epochs() -> None:
    """What is held back for its order is merged though the inputs come in turn."""
    epochs = 12
    nothing = pl.DataFrame(schema={"time": pl.Int64, "x": pl.Int64})
    session = Session.in_process(1, {"fsync": False, "compaction_fan": 2})
    for turn, name in enumerate(("a", "b")):
        rows = [pl.DataFrame({"time": [at], "x": [at]}) for at in range(epochs)]
        frames = [rows[at] if at % 2 == turn else nothing for at in range(epochs)]
        session.stream(name, EpochSource(frames), ordered="time", lateness=100)
    session.query("q", "SELECT a.x, b.x AS y FROM a JOIN b ON WITHIN_ROWS(1)")
    run = session.start(sinks={"q": "memory"}, at_end="close")
    assert run.await_termination(60)
    assert sorted(run.results("q").rows()) == sorted(
        (at, at + way) for at in range(0, epochs, 2) for way in (-1, 1) if at + way > 0
    )


@pytest.mark.parametrize(
    ("kind", "left", "right", "condition", "wanted"),
    [
        (pl.Float64, [float("inf")], [float("inf")], "a.x - b.y >= 0", 1),
        (pl.Float64, [1e308], [1e308], "a.x + b.y > b.y", 1),
        (pl.Float32, [0.1], [0.2], "a.x + b.y > 0.300000012", 0),
        (pl.Int8, [100], [100], "a.x + b.y > 150", 1),
    ],
)
def test_numbers_compare_alike_beside_others(
    kind: Any, left: list[float], right: list[float], condition: str, wanted: int
) -> None:
    """A NULL elsewhere changes the way pairs are computed, not what holds of them."""
    query = f"SELECT a.x, b.y FROM a JOIN b ON {condition} AND ABS(a.time - b.time) <= 5"
    for more in ([], [None]):
        a = pl.DataFrame({"x": pl.Series([*left, *more], dtype=kind)}).with_columns(time=pl.lit(1))
        b = pl.DataFrame({"y": pl.Series(right, dtype=kind)}).with_columns(time=pl.lit(1))
        frames = {"a": a.cast({"time": pl.Int64}), "b": b.cast({"time": pl.Int64})}
        assert len(results_of(query, frames)) == wanted


def test_bounds_beyond_all_times_are_none() -> None:
    query = (
        "SELECT a.x, b.y FROM a JOIN b ON a.x = b.y AND b.time >= a.time AND b.time - a.time <= {}"
    )
    frames = {
        "a": pl.DataFrame({"time": [100, 200], "x": [1, 2]}),
        "b": pl.DataFrame({"time": [100, 200], "y": [3, 1]}),
    }
    assert results_of(query.format(5000), frames) == [(1, 1)]
    huge = query.format(9_223_372_036_854_775_800)
    assert results_of(huge, frames, allow_unbounded_state=True) == [(1, 1)]


def test_windows_by_the_time_of_either_input() -> None:
    frames = {
        "a": pl.DataFrame({"time": [8, 9, 21], "k": [1, 1, 1]}),
        "b": pl.DataFrame({"time": [11, 22], "k": [1, 1]}),
    }
    join = "FROM a JOIN b ON a.k = b.k AND ABS(a.time - b.time) <= 5"
    for group, wanted in (
        ("a.time/10 AS w", [(0, 2), (2, 1)]),
        ("b.time/10 AS w", [(1, 2), (2, 1)]),
    ):
        assert results_of(f"SELECT w, COUNT(*) AS n {join} GROUP BY {group}", frames) == wanted
    tumbled = f"SELECT window_start, COUNT(*) AS n {join} GROUP BY TUMBLE(b.time, 10)"
    assert results_of(tumbled, frames) == [(10, 2), (20, 1)]
    with pytest.raises(LanguageError, match=r"which is 'a.time' or 'b.time'"):
        results_of(f"SELECT COUNT(*) AS n {join} GROUP BY TUMBLE(a.k, 10)", frames)
    full = join.replace("JOIN", "FULL JOIN")
    with pytest.raises(LanguageError, match="no ordered attribute any more: a full join loses it"):
        results_of(f"SELECT w, COUNT(*) AS n {full} GROUP BY a.time/10 AS w", frames)


def test_what_falls_due_is_one_part_however_its_state_is_cut(tmp_path: Path) -> None:
    """Rows of an outer side wait in many segments, on sites that own every other partition."""
    left = [
        pl.DataFrame({"t": [n] * 200, "k": [n * 200 + i for i in range(200)]}) for n in range(12)
    ]
    right = [pl.DataFrame({"t": [n], "k": [-1]}) for n in range(12)]
    session = Session.in_process(2, {"fsync": False, "policy": "none", "compaction_fan": 100})
    session.stream("a", EpochSource(left), ordered="t", lateness=100)
    session.stream("b", EpochSource(right), ordered="t", lateness=100)
    session.query(
        "q",
        "SELECT a.t, a.k, b.t AS u FROM a LEFT JOIN b ON a.k = b.k AND a.t - b.t BETWEEN 0 AND 5",
    )
    holder: list[Run] = []

    def step(name: str, epoch: int) -> None:
        if name == "begin" and epoch == 6:
            known = holder[0].partition_map("q@1")
            turns = [n % 2 for n in range(known.partitions)]
            holder[0].repartition("q@1", known.on(turns))

    run = session.start(sinks={"q": tmp_path / "out"}, at_end="close", on_step=step)
    holder.append(run)
    assert run.await_termination(60)
    parts = sorted((tmp_path / "out").glob("epoch=*/*.parquet"))
    assert pl.read_parquet(parts).height == 2400
    assert len(parts) == 2, "one for each site, in the epoch that ended it all"
