"""The benchmarks run, say what they should and find equal results. No figure is judged here."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from rich.console import Console

from anabranch.bench import aggregate, balance, balance_runs, join, join_growth, join_series
from anabranch.bench.balance_runs import BalanceCourse, BalanceFiles, Scenario
from anabranch.bench.data import Events, w1
from anabranch.bench.jobs import (
    Answer,
    EpochTime,
    Job,
    JobOutcome,
    Ours,
    Reference,
    results_of,
    steady,
)
from anabranch.bench.join_oracle import digest_of_join, digest_of_results, join_text
from anabranch.bench.measure import Peak, percentile, spread
from anabranch.bench.oracle import BenchOracle
from anabranch.bench.placement import busiest_over_even, loads_of, place_by_load
from anabranch.bench.report import show
from anabranch.bench.state_growth import MEASURED, SETTLING, SIZES, course
from anabranch.engine import local
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps, silent
from anabranch.routing.partition_map import even_map, slots_for

quick_run = [pytest.mark.spark, pytest.mark.timeout(1200)]


def bench(name: str) -> dict[str, Any]:
    """The JSON of a quick benchmark."""
    command = [sys.executable, "-m", "anabranch.bench", name, "--quick", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class TestQuickRuns:
    pytestmark = quick_run

    @pytest.mark.soak
    def test_aggregate_compares_both_sides(self) -> None:
        found = bench("aggregate")
        assert found["equal"] is True
        assert found["ten_times_groups"]["equal"] is True
        assert found["comparison"]["windows"][:3] == [0, 1, 2]
        assert found["comparison"]["missing"] == found["comparison"]["unexpected"] == 0
        for key in (
            "rows_per_s", "spark_rows_per_s", "ratio", "best_ratio", "dataframe_ratio",
            "peak_rss_mb", "spark_peak_rss_mb",
        ):  # fmt: skip
            assert found[key] > 0, key
        assert found["ten_times_groups"]["peak_rss_mb"] > 0
        sides = {(run["side"], run["files"]) for run in found["configurations"]}
        assert {("anabranch", 1), ("spark", 1), ("anabranch", 5), ("spark", 5)} <= sides
        assert {bar["name"] for bar in found["bars"]} == {
            "ratio", "best_ratio", "dataframe_ratio", "peak_rss_mb", "ten_times_groups.peak_rss_mb",
        }  # fmt: skip
        assert found["versions"]["pyspark"]
        assert len(found["loadavg"]["before"]) == 3

    @pytest.mark.soak
    def test_state_growth_measures_every_size(self) -> None:
        found = bench("state-growth")
        assert found["growth"] > 0
        assert [stage["state_rows"] for stage in found["stages"]] == [s // 10 for s in SIZES]
        for stage in found["stages"]:
            assert stage["epochs"] == MEASURED
            assert stage["median_ms"] <= stage["p90_ms"] <= stage["most_ms"]
            # Nothing was closed or lost: the open state is what was sent; the rows of a segment
            # that is merged away in part are an estimate
            sent = stage["state_rows"] + (SETTLING + MEASURED) * found["delta_rows"]
            assert stage["state_rows_at_end"] == pytest.approx(sent, rel=0.1)

    @pytest.mark.soak
    def test_latency_times_both_sides(self) -> None:
        found = bench("latency")
        assert found["ratio"] == pytest.approx(
            found["median_ms"] / found["spark_median_ms"], rel=0.01
        )
        assert len(found["ours"]["epoch_ms"]) == len(found["spark"]["epoch_ms"]) == 5

    @pytest.mark.soak
    def test_join_compares_both_sides(self) -> None:
        found = bench("join")
        assert found["equal"] is True
        assert found["comparison"]["different"] == 0
        assert found["comparison"]["runs_against_duckdb"] >= 4
        for key in ("rows_per_s", "spark_rows_per_s", "ratio", "best_ratio", "spark_peak_rss_mb"):
            assert found[key] > 0, key
        growth = found["state_growth"]
        assert growth["equal"] is True
        assert growth["state_ratio"] == pytest.approx(10, rel=0.3)
        assert [stage["epochs"] for stage in growth["stages"]] == [join_growth.MEASURED] * 2
        assert {bar["name"] for bar in found["bars"]} == {
            "ratio", "best_ratio", "state_growth.ratio",
        }  # fmt: skip

    @pytest.mark.soak
    def test_multijoin_compares_both_sides(self) -> None:
        found = bench("multijoin")
        assert found["equal"] is True
        assert found["comparison"]["different"] == 0
        assert {bar["name"] for bar in found["bars"]} == {"ratio", "best_ratio"}
        sides = {(run["side"], run["files"]) for run in found["configurations"]}
        assert sides == {("anabranch", 1), ("spark", 1), ("anabranch", 5), ("spark", 5)}

    @pytest.mark.soak
    def test_partitioning_draws_every_curve(self) -> None:
        found = bench("partitioning")
        assert found["equal"] is True
        for name, ways in (("simple", 3), ("conflict", 3), ("complex", 4)):
            curves = [points for points in found[name].values() if isinstance(points, list)]
            assert len(curves) == ways
            assert all([point["hosts"] for point in points] == [1, 2, 3, 4] for points in curves)
        assert found["analysis"]["queries"] == 50

    @pytest.mark.soak
    def test_strategies_compares_three(self) -> None:
        found = bench("strategies")
        assert found["equal"] is True
        levels = [found[name]["levels"] for name in ("subquery", "query", "operator")]
        assert levels == sorted(levels)
        for name in ("subquery", "query", "operator"):
            shares = [found[name][f"{kind}_share"] for kind in ("work", "exchange", "idle")]
            assert sum(shares) == pytest.approx(1, abs=0.1)

    @pytest.mark.soak
    def test_balance_runs_every_scenario_three_ways(self) -> None:
        found = bench("balance")
        assert found["equal"] is True
        for name in balance.SCENARIOS:
            assert found[name]["adaptive_over_static"] > 0
            assert found[name]["adaptive_over_ideal"] > 0
            assert found[name]["static"]["moved"] == found[name]["ideal"]["moved"] == 0
            assert found[name]["ideal_rest"] < 1.05 < found[name]["most_by_moving"]
        assert found["one_slow"]["adaptive"]["moved"] > 0
        assert len(found["idle"]["by_pairs"]) == 1
        assert {bar["name"] for bar in found["bars"]} >= {
            "one_slow.adaptive_over_static", "drift.adaptive_over_ideal", "idle_cost",
            "move_p99_ratio",
        }  # fmt: skip

    @pytest.mark.soak
    def test_skew_compares_adaptive_with_static(self) -> None:
        found = bench("skew")
        assert found["equal"] is True
        for work in ("w4", "w4_raw", "join"):
            for sites in ("2", "4"):
                assert found[work][sites]["ratio"] > 0
                assert found[work][sites]["static"]["moved"] == 0
        assert found["join"]["2"]["static"]["busiest_rows"] > 1.1


class TestPlacement:
    """The ideal of `bench balance` must be one."""

    def test_a_slow_site_gets_as_much_less(self) -> None:
        random = np.random.default_rng(0)
        loads, slowness = random.integers(50, 150, 256), np.array([2.0, 1.0, 1.0, 1.0])
        first = np.repeat(np.arange(4), 64).tolist()
        placed = place_by_load(loads, first, slowness)
        assert busiest_over_even(loads, first, slowness) > 1.6
        assert busiest_over_even(loads, placed, slowness) < 1.01
        moved = [at for at in range(256) if placed[at] != first[at]]
        assert len(moved) < 48
        assert sum(first[at] == 0 for at in moved) > 30

    @pytest.mark.parametrize("kind", ["80/20", "drift"])
    def test_skewed_keys_can_be_placed_evenly(self, kind: str, tmp_path: Path) -> None:
        data = balance_runs.write(tmp_path / "data", kind, 20_000, 8)
        even = np.ones(8)
        first = even_map(256, 8, slots_for(256))
        for epoch in (0, 4):
            loads = loads_of(data.keys(epoch), first)
            assert loads.sum() == 20_000 * (4 if kind == "drift" else 8)
            assert busiest_over_even(loads, first.sites, even) > 1.3
            assert busiest_over_even(loads, place_by_load(loads, first.sites, even), even) < 1.05

    def test_80_20_is_what_it_says(self, tmp_path: Path) -> None:
        counts = balance_runs.write(tmp_path / "data", "80/20", 50_000, 1).keys(0).value_counts()
        hot = counts.filter(counts["k"] < balance_runs.HOT)
        assert hot["count"].sum() == pytest.approx(40_000, rel=0.02)
        assert (hot.height, counts.height) == (
            balance_runs.HOT,
            balance_runs.HOT + balance_runs.COLD,
        )


class TestBalanceFlow:
    """The whole benchmark with canned runs: the figures are made of the right epochs."""

    @pytest.mark.parametrize("quick", [False, True])
    def test_figures_are_of_the_epochs_that_count(
        self, quick: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def run(spark: object, scenario: Scenario, mode: str, data: BalanceFiles) -> BalanceCourse:
            if mode == "in turn":
                each = range(data.epochs)
                ms, moved = [1200.0 if n % 2 else 1000.0 for n in each], [8 * (n % 2) for n in each]
                return BalanceCourse([1000] * data.epochs, ms, moved, [1.0] * data.epochs, True)
            settled = {"static": 2000.0, "adaptive": 1000.0, "ideal": 900.0}[mode]
            trouble = bool(scenario.slow) or scenario.keys != "uniform"
            ms = [9000.0, 1000.0, 1000.0, 1000.0, 2000.0]
            ms += [settled if trouble else 1000.0] * (data.epochs - 5)
            moved = [0] * data.epochs
            if mode == "adaptive" and trouble:
                moved[4] = 3
                ms[5] = 1200.0
            return BalanceCourse([1000] * data.epochs, ms, moved, [1.0] * data.epochs, True)

        monkeypatch.setattr(balance, "run_one", run)
        monkeypatch.setattr(balance, "ROWS", 2000)
        monkeypatch.setattr(balance, "QUICK_ROWS", 2000)
        monkeypatch.setattr(balance, "MOVE_ROWS", 20)
        monkeypatch.setattr(local, "local_spark", lambda master: SimpleNamespace(stop=lambda: None))
        heard: list[tuple[int, int]] = []
        steps = Steps(lambda what, done, total: heard.append((done, total)))
        result = balance.run_balance(quick, steps)
        found = json.loads(json.dumps(result.plain()))
        assert heard[-1][0] + 1 == heard[-1][1] == len(heard)
        assert found["one_slow"]["adaptive_over_static"] == 2.0
        assert found["one_slow"]["adaptive_over_ideal"] == 0.9
        assert found["idle_cost"] == 0.0
        assert found["move_p99_ratio"] == 1.2
        assert found["moves"]["moving"]["epochs"] == (4 if quick else 100)
        show(result, Console(quiet=True))


class TestOracle:
    """The benchmark must notice wrong results, or `equal` says nothing."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for _ in w1(rows=500, files=10, sources=20).write(tmp_path / "data"):
            pass
        return tmp_path

    def results(self, folder: Path, name: str, change: str = "SELECT * FROM right_rows") -> Path:
        import duckdb

        target = folder / name
        target.mkdir()
        with duckdb.connect() as duck:
            duck.execute(
                f"""CREATE TABLE right_rows AS
                SELECT time // 60 AS tb, srcIP, destIP, count(*) AS cnt, sum(len)::BIGINT AS bytes
                FROM '{folder}/data/*.parquet' WHERE time < 180 GROUP BY ALL"""
            )
            duck.execute(f"COPY ({change}) TO '{target}/part.parquet'")
        return target

    def test_right_results_are_equal(self, folder: Path) -> None:
        oracle = BenchOracle(str(folder / "data"), 60)
        right = self.results(folder, "right")
        check = oracle.check(right)
        assert check.equal
        assert check.windows == (0, 1, 2)
        assert oracle.compare(right, right).equal

    @pytest.mark.parametrize(
        ("change", "missing", "unexpected"),
        [
            ("SELECT * FROM right_rows OFFSET 1", 1, 0),
            ("SELECT * FROM right_rows UNION ALL (SELECT * FROM right_rows LIMIT 1)", 0, 1),
            ("SELECT * REPLACE (cnt + (rowid = 0)::INT AS cnt) FROM right_rows", 1, 1),
            ("SELECT * FROM right_rows WHERE tb < 2", 0, 0),
        ],
        ids=["lost", "doubled", "changed", "window lost"],
    )
    def test_wrong_results_are_found(
        self, folder: Path, change: str, missing: int, unexpected: int
    ) -> None:
        oracle = BenchOracle(str(folder / "data"), 60)
        check = oracle.check(self.results(folder, "wrong", change))
        assert not check.equal
        assert (check.missing, check.unexpected) == (missing, unexpected)

    def test_sides_that_differ_are_found(self, folder: Path) -> None:
        oracle = BenchOracle(str(folder / "data"), 60)
        right = self.results(folder, "right")
        wrong = self.results(folder, "wrong", "SELECT * FROM right_rows OFFSET 1")
        assert not oracle.compare(right, wrong).equal

    def test_one_common_window_is_too_few(self, folder: Path) -> None:
        oracle = BenchOracle(str(folder / "data"), 60)
        right = self.results(folder, "right")
        short = self.results(folder, "short", "SELECT * FROM right_rows WHERE tb = 1")
        assert not oracle.compare(right, short).equal


class TestAggregateFlow:
    """The whole benchmark with canned runs: DuckDB makes the results, the times are given."""

    RATES: ClassVar = {("spark", 1): 200, ("spark", 2): 300, ("spark", 5): 250}

    @pytest.fixture
    def flawed(self, monkeypatch: pytest.MonkeyPatch) -> set[type]:
        """Runs of these kinds lose a row."""
        kinds: set[type] = set()

        def run(job: Job) -> JobOutcome:
            import duckdb

            results_of(job).mkdir(parents=True)
            with duckdb.connect() as duck:
                duck.execute(
                    f"""COPY (
                    SELECT time // 60 AS tb, srcIP, destIP, count(*) AS cnt, sum(len) AS bytes
                    FROM '{job.data}/*.parquet'
                    WHERE time < (SELECT max(time) // 60 * 60 FROM '{job.data}/*.parquet')
                    GROUP BY ALL OFFSET {int(type(job) in kinds)}
                    ) TO '{results_of(job)}/part.parquet'"""
                )
            side = "ours" if isinstance(job, Ours) else "spark"
            rate = self.RATES.get((side, job.files), 1000 * job.files)
            epochs = [EpochTime(1000, 9000.0), EpochTime(1000, 1e6 / rate, 10)]
            answer = Answer(epochs=epochs, seconds=10, steady_rows=1000, steady_seconds=1000 / rate)
            return JobOutcome(job, answer, Peak(100, 90, 1, 2, 3, 4), 11, [0.0] * 3, [0.0] * 3)

        monkeypatch.setattr(aggregate, "run_job", run)
        monkeypatch.setattr(aggregate, "w1", lambda rows, *rest: w1(200, *rest))
        return kinds

    @pytest.mark.parametrize("quick", [False, True])
    def test_each_side_counts_at_its_best(self, flawed: set[type], quick: bool) -> None:
        heard: list[tuple[int, int]] = []
        steps = Steps(lambda what, done, total: heard.append((done, total)))
        result = aggregate.run_aggregate(quick, steps)
        found = json.loads(json.dumps(result.plain()))
        assert heard[-1][0] + 1 == heard[-1][1] == len(heard)
        assert found["equal"] is True
        assert found["ratio"] == found["dataframe_ratio"] == 5.0
        assert found["best_files_per_epoch"] == {"ours": 5, "spark": 5 if quick else 2}
        assert found["best_ratio"] == (20.0 if quick else 16.67)
        show(result, Console(quiet=True))

    @pytest.mark.parametrize("kind", [Ours, Reference])
    def test_a_lost_row_on_either_side_is_no_result(self, flawed: set[type], kind: type) -> None:
        flawed.add(kind)
        result = aggregate.run_aggregate(True, silent())
        assert result.plain()["equal"] is False
        assert not result.sound


class TestJoinFlow:
    """Both benchmarks of joins with canned runs: DuckDB makes the results, the times are given."""

    RATES: ClassVar = {("spark", 1): 200, ("spark", 2): 300, ("spark", 5): 250}

    @pytest.fixture
    def flawed(self, monkeypatch: pytest.MonkeyPatch) -> set[type]:
        """Runs of these kinds lose a row."""
        kinds: set[type] = set()

        def run(job: Job) -> JobOutcome:
            import duckdb

            results_of(job).mkdir(parents=True)
            with duckdb.connect() as duck:
                for name in job.streams:
                    duck.execute(f"CREATE VIEW {name} AS FROM '{job.data}/{name}/*.parquet'")
                duck.execute(
                    f"""COPY (FROM ({join_text(job.streams, job.window)})
                    OFFSET {int(type(job) in kinds)}) TO '{results_of(job)}/part.parquet'"""
                )
            side = "ours" if isinstance(job, Ours) else "spark"
            rate = self.RATES.get((side, job.files), 1000 * job.files)
            epochs = [EpochTime(1000, 9000.0)] + [EpochTime(1000, 1e6 / rate, job.window)] * 20
            answer = Answer(epochs=epochs, seconds=10, steady_rows=1000, steady_seconds=1000 / rate)
            return JobOutcome(job, answer, Peak(100, 90, 1, 2, 3, 4), 11, [0.0] * 3, [0.0] * 3)

        for module in (join_series, join_growth):
            monkeypatch.setattr(module, "run_job", run)
            monkeypatch.setattr(module, "ROWS", 2000)
        for name in ("W2", "W3"):
            work = dataclasses.replace(getattr(join, name), keys=2000)
            monkeypatch.setattr(join, name, work)
        return kinds

    @pytest.mark.parametrize("quick", [False, True])
    @pytest.mark.parametrize("name", ["join", "multijoin"])
    def test_each_side_counts_at_its_best(self, flawed: set[type], name: str, quick: bool) -> None:
        heard: list[tuple[int, int]] = []
        steps = Steps(lambda what, done, total: heard.append((done, total)))
        result = (join.run_join if name == "join" else join.run_multijoin)(quick, steps)
        found = json.loads(json.dumps(result.plain()))
        assert heard[-1][0] + 1 == heard[-1][1] == len(heard)
        assert found["equal"] is True
        assert found["ratio"] == 5.0
        assert found["best_files_per_epoch"] == {"ours": 5, "spark": 5 if quick else 2}
        assert found["best_ratio"] == (20.0 if quick else 16.67)
        if name == "join":
            assert found["state_growth"]["ratio"] == 1.0
            assert found["state_growth"]["state_ratio"] == join_growth.TIMES
        show(result, Console(quiet=True))

    @pytest.mark.parametrize("kind", [Ours, Reference])
    def test_a_lost_row_on_either_side_is_no_result(self, flawed: set[type], kind: type) -> None:
        flawed.add(kind)
        result = join.run_multijoin(True, silent())
        assert result.plain()["equal"] is False
        assert not result.sound

    def test_the_order_of_results_makes_no_difference(self, tmp_path: Path) -> None:
        import duckdb

        Events(("a", "b"), 500, 4, 100).write(tmp_path)
        with duckdb.connect() as duck:
            for name in ("a", "b"):
                duck.execute(f"CREATE VIEW {name} AS FROM '{tmp_path}/{name}/*.parquet'")
            for folder, change in (
                ("right", "ORDER BY b_v"),
                ("changed", "ORDER BY b_v OFFSET 1"),
            ):
                (tmp_path / folder).mkdir()
                duck.execute(
                    f"COPY (FROM ({join_text(('a', 'b'), 60)}) {change}) "
                    f"TO '{tmp_path}/{folder}/part.parquet'"
                )
        wanted = digest_of_join(str(tmp_path), ("a", "b"), 60)
        assert wanted.rows > 0
        assert digest_of_results(tmp_path / "right", ("a", "b")) == wanted
        assert digest_of_results(tmp_path / "changed", ("a", "b")) != wanted


def test_course_reaches_the_sizes_with_fixed_deltas() -> None:
    way = course((1_000, 10_000), 200, 1_000)
    for size, epochs in way.measured.items():
        assert sum(way.rows[: epochs.start - SETTLING]) == size
        assert {way.rows[at] for at in epochs} == {200}
        assert len(epochs) >= 7


def test_at_every_number_of_files_at_least_three_epochs_count() -> None:
    assert all(files // each >= 4 for each, files in aggregate.FILES.items())


def test_the_first_epoch_and_empty_batches_do_not_count() -> None:
    epochs = [
        EpochTime(10, 9000.0),
        EpochTime(10, 500.0),
        EpochTime(20, 1500.0),
        EpochTime(0, 700.0),
    ]
    assert steady(epochs) == (30, 2.0)


def test_spread_and_percentile() -> None:
    assert spread([4.0, 1.0, 2.0]).median == 2.0
    assert spread([4.0, 1.0, 2.0]).relative == 1.5
    assert percentile([float(value) for value in range(1, 11)], 0.9) == 9.0
    assert percentile([7.0], 0.9) == 7.0


def test_a_bar_is_met_or_not() -> None:
    assert Bar("ratio", 5.0, ">=", 5).met
    assert not Bar("ratio", 4.99, ">=", 5).met
    assert not Bar("peak", 4096, "<", 4096).met
    assert Bar("growth", 2.0, "<=", 2.0).met
