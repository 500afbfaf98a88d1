"""Random query sets over random streams, run the hard way, must give what DuckDB gives.

Every example is a case (`anabranch.testing.cases`: streams, cuts into epochs, queries) and a trial
(`anabranch.testing.trial`: sites, settings, partition maps that change each epoch, stops, crashes and
restarts on other numbers of sites), on the in-process twin. Results are compared epoch by epoch. A failing
example is printed whole, with the line that reproduces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from anabranch import (
    Session,
    approx_distinct,
    approx_quantile,
    avg,
    bit_and,
    bit_or,
    bit_xor,
    col,
    count,
    count_distinct,
    count_window,
    first,
    hop,
    last,
    max_,
    min_,
    session_window,
    stddev,
    sum_,
    tumble,
    var,
)
from anabranch.errors import LanguageError
from anabranch.language.builder import Query
from anabranch.operators import aggregate, base
from anabranch.testing.aggregates import DOUBLED
from anabranch.testing.cases import (
    CLOCKS,
    KEYS,
    NUMBERS,
    SCHEMA,
    VALUES,
    WIDE,
    Case,
    Shape,
    draw_case,
    draw_shape,
    make_frames,
    streams,
)
from anabranch.testing.oracle import EpochSource, Oracle, assert_same_rows
from anabranch.testing.queries import QueryMaker
from anabranch.testing.trial import Leg, Outcome, Trial, check, draw_trial
from helpers import examples, in_soak

T = TypeVar("T")


class Drawn:
    """The decisions of a case, made by Hypothesis."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))

    def choice(self, options: Sequence[T]) -> T:
        # Not sampled_from: expressions have no truth value to be compared by
        return options[self.integer(0, len(options) - 1)]

    def flag(self, chance: float = 0.5) -> bool:
        return self.integer(0, 99) >= 100 * (1 - chance)


def run(case: Case, trial: Trial) -> Outcome:
    note(case.describe())
    note(str(trial))
    return check(case, trial)


@st.composite
def cases(draw: Any) -> tuple[Case, Trial]:
    """Anything: one or two streams, all kinds of queries over them and over each other."""
    chooser = Drawn(draw)
    case = draw_case(chooser)
    return case, draw_trial(chooser, case.epochs)


@st.composite
def focused(draw: Any, kind: str) -> tuple[Case, Trial]:
    """One stream and one stateful operator of this kind."""
    chooser = Drawn(draw)
    clock = chooser.choice(CLOCKS)
    epochs = chooser.integer(1, 7)
    maker = QueryMaker(chooser, KEYS, set(WIDE), clock)
    (source,) = streams(["one"], clock)
    source = maker.stateless(source, ["time"])
    if kind == "history":
        made = maker.history(source)
    elif kind == "update":
        made = maker.update(source, in_order=True)
    else:
        window = maker.window(source, [kind])
        keys = maker.some_keys(source)
        made = source.group_by(window, *keys).agg(*maker.aggregates(source, in_order=True))
    made = maker.stateless(made, [])
    frames = {"one": make_frames(draw_shape(chooser, epochs), clock)}
    case = Case(frames, {"one": chooser.choice([0, 1, 5, 20])}, {"made": made}, clock)
    return case, draw_trial(chooser, epochs)


@st.composite
def few_rows(draw: Any) -> tuple[Case, Trial]:
    """Up to a dozen rows, each drawn by itself, so that a failure shrinks to the rows it needs."""
    chooser = Drawn(draw)
    row = st.fixed_dictionaries(
        {"time": st.integers(-3, 20), **{name: st.sampled_from(v) for name, v in VALUES.items()}}
    )
    epochs = draw(st.lists(st.lists(row, max_size=4), min_size=1, max_size=4))
    frames = {"one": [pl.DataFrame(rows, schema=SCHEMA) for rows in epochs]}
    maker = QueryMaker(chooser, KEYS, set(WIDE), NUMBERS)
    queries = maker.query_set(streams(["one"], NUMBERS))
    case = Case(frames, {"one": chooser.choice([0, 1, 5])}, queries)
    return case, draw_trial(chooser, len(epochs))


@given(cases())
@examples(180)
def test_random_query_sets(drawn: tuple[Case, Trial]) -> None:
    run(*drawn)


@given(few_rows())
@examples(80)
def test_few_rows(drawn: tuple[Case, Trial]) -> None:
    run(*drawn)


@pytest.mark.parametrize("kind", ["index", "tumble", "hop", "session", "rows", "update", "history"])
def test_one_operator(kind: str) -> None:
    @given(focused(kind))
    @examples(36)
    def examine(drawn: tuple[Case, Trial]) -> None:
        run(*drawn)

    examine()


# -- known cases ------------------------------------------------------------------------------------

EVERY_AGGREGATE = [
    count().alias("all"), count("v").alias("known"), count_distinct("t").alias("different"),
    approx_distinct("big").alias("about"), sum_("v").alias("sum_v"), sum_("f").alias("sum_f"),
    sum_("c").alias("sum_c"), min_("t").alias("min_t"), max_("r").alias("max_r"),
    avg("v").alias("avg_v"), var("f").alias("var_f"), stddev("v").alias("dev_v"),
    bit_or("u").alias("or_u"), bit_and("v").alias("and_v"), bit_xor("big").alias("xor_big"),
    first("t").alias("first_t"), last("b").alias("last_b"), approx_quantile("f", 0.5).alias("mid"),
    DOUBLED("v").alias("twice"),
]  # fmt: skip
WINDOWS: dict[str, Any] = {
    "index": (col("time") // 7).alias("tb"), "tumble": tumble(7), "hop": hop(10, 4),
    "session": session_window(4), "rows": count_window(4, 3),
}  # fmt: skip


def busy_stream(seed: int = 0, rows: int = 1500, epochs: int = 12) -> list[pl.DataFrame]:
    shape = Shape(rows, epochs, 0.2, 90, nulls=True, keys=3, begin=-20, seed=seed)
    return make_frames(shape, NUMBERS)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("sites", [2, *in_soak([1, 7])])
def test_every_aggregate_in_every_window(window: str, sites: int) -> None:
    """And: compaction, sub-aggregation, moves and late rows do happen."""
    (rows,) = streams(["rows"], NUMBERS)
    query = rows.group_by(WINDOWS[window], "i", "t").agg(*EVERY_AGGREGATE)
    case = Case({"rows": busy_stream(rows=600, epochs=8)}, {"rows": 70}, {"all": query})
    values = {"compaction_fan": 2, "compaction_floor_rows": 1, "partitions_per_site": 4,
              "combine_reduction": 0.1}  # fmt: skip
    outcome = check(case, Trial((Leg(sites),), values, moves=sites))
    assert max(outcome.tiers()) >= 1, "no segments were merged"
    assert outcome.combining() == (set() if window == "rows" else {"all@1"})
    assert outcome.manifests[-1].streams["rows"].late > 0
    assert sites == 1 or outcome.moved > 20


def test_sub_aggregation_can_be_switched_off() -> None:
    (rows,) = streams(["rows"], NUMBERS)
    query = rows.group_by(tumble(7), "i").agg(*EVERY_AGGREGATE)
    case = Case({"rows": busy_stream()}, {"rows": 6}, {"all": query})
    assert not check(case, Trial(settings={"combine_reduction": 1000.0})).combining()


def test_flows_and_heavy_flows() -> None:
    """The query over a query of the papers: flows per minute, then the heaviest of each source."""
    (packets,) = streams(["packets"], NUMBERS)
    tb = (col("time") // 10).alias("tb")
    flows = packets.group_by(tb, "i", "t").agg(count().alias("cnt"), bit_or("u").alias("flags"))
    heavy = flows.having(col("flags") != 41).group_by("tb", "i").agg(max_("cnt").alias("most"))
    per_hour = heavy.group_by((col("tb") // 6).alias("hour")).agg(sum_("most").alias("total"))
    queries = {"flows": flows, "heavy_flows": heavy, "per_hour": per_hour}
    case = Case({"packets": busy_stream(3)}, {"packets": 9}, queries)
    legs = (Leg(2, "stop", 3), Leg(7, "before-commit", 6), Leg(1, "after-commit", 8), Leg(2))
    outcome = check(case, Trial(legs, {"partitions_per_site": 3}, moves=1))
    # Written once more in plain SQL, by hand
    oracle = Oracle(case.queries, case.frames, case.lateness)
    by_hand = """
        WITH flows AS (SELECT time // 10 AS tb, i, t, count(*) AS cnt, bit_or(u) AS flags
                       FROM (SELECT * REPLACE (time + 1000 AS time) FROM packets) GROUP BY ALL),
        heavy AS (SELECT tb, i, max(cnt) AS most FROM flows WHERE flags <> 41 GROUP BY ALL)
        SELECT count(*) AS groups, sum(most)::BIGINT AS total FROM heavy
    """
    (wanted,) = oracle.plain(by_hand).rows()
    rows = outcome.sinks["heavy_flows"].rows()
    assert (rows.height, rows["most"].sum()) == wanted


def test_updates_end_with_the_final_values() -> None:
    """Each epoch emits the groups that changed in it, and the last value of a group is the right one."""
    (rows,) = streams(["rows"], NUMBERS)
    updates = rows.group_by("i", "t").agg(count().alias("n"), sum_("v").alias("v"), emit="update")
    case = Case({"rows": busy_stream(5)}, {"rows": 1000}, {"updates": updates})
    outcome = check(case, Trial((Leg(7, "stop", 4), Leg(2)), {"compaction_fan": 2}, moves=4))
    assert max(outcome.tiers()) >= 2, "no segment was merged twice"
    emitted: dict[tuple[Any, Any], tuple[Any, ...]] = {}
    for epoch, frame in sorted(outcome.sinks["updates"].epochs.items()):
        changed = set(case.frames["rows"][epoch].select("i", "t").rows())
        assert changed == set(frame.select("i", "t").rows()), f"epoch {epoch}"
        assert frame.height == len(changed), f"epoch {epoch}: a group was emitted twice"
        emitted |= {(row[0], row[1]): row for row in frame.rows()}
    whole = pl.concat(case.frames["rows"])
    sums = whole.group_by("i", "t").agg(
        pl.len().cast(pl.Int64).alias("n"),
        pl.when(pl.col("v").count() > 0).then(pl.col("v").sum()),
    )
    assert_same_rows(pl.DataFrame(list(emitted.values()), sums.schema, orient="row"), sums)


def test_hopping_windows_have_no_updates_yet() -> None:
    (rows,) = streams(["rows"], NUMBERS)
    with pytest.raises(LanguageError, match="emit='update' is not available for HOP"):
        rows.group_by(hop(10, 5), "i").agg(count(), emit="update")


@pytest.mark.parametrize("step", ["begin", "before-tasks", "before-commit", "after-commit",
                                  "after-publish", "stop", "end"])  # fmt: skip
@pytest.mark.parametrize("window", ["index", "hop", "session", "rows"])
def test_restarts_on_another_number_of_sites(window: str, step: str) -> None:
    (rows,) = streams(["rows"], NUMBERS)
    query = rows.group_by(WINDOWS[window], "i").agg(*EVERY_AGGREGATE)
    history = rows.history("i", rows=5).agg(sum_("v").alias("s"), first("f").alias("oldest"))
    case = Case({"rows": busy_stream(8, 400, 8)}, {"rows": 6}, {"all": query, "past": history})
    legs = (Leg(2, step, 2), Leg(7, step, 5), Leg(1, step, 8), Leg(3))
    check(case, Trial(legs, {"compaction_fan": 2, "partitions_per_site": 5}, moves=2))


@pytest.mark.parametrize("window", [*WINDOWS, "update", "history"])
def test_keys_that_share_a_locator(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one bit of hash left, nearly all keys collide; the answers must not know."""
    whole, mixed = base.locator, base.salted
    one = np.uint64(1)
    monkeypatch.setattr(base, "locator", lambda where, hashes: whole(where, hashes & one))
    monkeypatch.setattr(aggregate, "salted", lambda hashes, salt: mixed(hashes, salt) & one)
    (rows,) = streams(["rows"], NUMBERS)
    if window == "history":
        query = rows.history("i", "t", "r", rows=3).agg(*EVERY_AGGREGATE)
    elif window == "update":
        query = rows.group_by("i", "t", "r").agg(*EVERY_AGGREGATE, emit="update")
    else:
        query = rows.group_by(WINDOWS[window], "i", "t", "r").agg(*EVERY_AGGREGATE)
    case = Case({"rows": busy_stream(4, 400, 8)}, {"rows": 70}, {"all": query})
    values = {"compaction_fan": 2, "compaction_floor_rows": 1, "partitions_per_site": 1,
              "combine_reduction": 0.1}  # fmt: skip
    check(case, Trial((Leg(2),), values, moves=3))


def test_many_windows_close_at_once() -> None:
    """A jump in time closes a long row of hopping windows, in one epoch or at the end."""
    (rows,) = streams(["rows"], NUMBERS)
    query = rows.group_by(hop(50, 1), "i").agg(count().alias("n"), max_("v").alias("most"))
    times = [0, 3, 1000, 1001, 900_000, 900_050, 1]
    frames = [pl.DataFrame([{"time": t, "i": 1, "v": t}], schema=SCHEMA) for t in times]
    check(Case({"rows": frames}, {"rows": 10}, {"hops": query}), Trial())


def test_a_union_without_state_keeps_the_rows_of_all_its_inputs() -> None:
    """Both streams end in the same split task, and used to write to the same file."""
    one, two = streams(["one", "two"], NUMBERS)
    frames = {"one": busy_stream(1, 50, 3), "two": busy_stream(2, 50, 3)}
    case = Case(frames, {"one": 500, "two": 500}, {"both": one.union(two)})
    assert check(case, Trial()).sinks["both"].rows().height == 100


def test_columns_that_a_select_computes_and_nobody_wants() -> None:
    (rows,) = streams(["rows"], NUMBERS)
    chosen = rows.select("time", "i", "t", (col("v") + 1).alias("more"))
    case = Case({"rows": busy_stream(1, 50, 3)}, {"rows": 5},
                {"n": chosen.group_by(tumble(5), "i").agg(count().alias("n"))})  # fmt: skip
    check(case, Trial())


def test_late_rows_are_those_below_the_watermark_at_the_start_of_their_epoch() -> None:
    """By hand, with the oracle and the run side by side."""
    epochs: list[list[int]] = [[10, 3], [20], [9, 10, 14, 15], [], [5]]
    frames = [pl.DataFrame({"time": times}, schema={"time": pl.Int64}) for times in epochs]
    session = Session.in_process(2)
    rows = session.stream("rows", EpochSource(frames), ordered="time", lateness=5)
    query: Query = session.query("n", rows.group_by(tumble(5)).agg(count().alias("n")))
    run = session.start(sinks={"n": "memory"}, at_end="close")
    assert run.await_termination(60)
    assert run.last_progress
    assert run.last_progress["sources"][0]["customMetrics"]["lateRowsTotal"] == 4
    wanted = pl.DataFrame(
        {"window_start": [0, 10, 15, 20], "window_end": [5, 15, 20, 25], "n": [1, 1, 1, 1]}
    )
    assert_same_rows(run.results("n"), wanted)
    oracle = Oracle({"n": query}, {"rows": frames}, {"rows": 5})
    assert oracle.late == {"rows": 4}
    assert oracle.watermarks("n")[:-1] == [5, 15, 15, 15, 15]
    assert_same_rows(oracle.expected("n"), wanted)


def test_a_stream_that_wakes_up_does_not_turn_time_back() -> None:
    """An idle stream lets the watermark pass; its old rows are late."""
    times: dict[str, list[list[int]]] = {
        "one": [[10], [50], [60], [30, 51]],
        "two": [[5], [], [20], [52]],
    }
    session = Session.in_process(2, {"idle_after_seconds": 0.0, "fsync": False})
    one, two = (
        session.stream(
            name,
            EpochSource([pl.DataFrame({"time": t}, schema={"time": pl.Int64}) for t in epochs]),
            ordered="time",
        )
        for name, epochs in times.items()
    )
    session.query("rows", one.union(two))
    run = session.start(sinks={"rows": "memory"})
    assert run.await_termination(60)
    assert sorted(run.results("rows")["time"].to_list()) == [5, 10, 50, 52, 60]
    late = [s["customMetrics"]["lateRowsTotal"] for s in (run.last_progress or {})["sources"]]
    assert late == [2, 1]
    watermarks = [told["sources"][0]["eventTime"]["watermark"] for told in run.recent_progress]
    assert watermarks == [5, 50, 50, 52]
