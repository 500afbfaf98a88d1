"""What the choice of a partitioning rests on, and what it must not fall for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import LanguageError, PlanningError, SourceError, StateError
from anabranch.language.node import Stream
from anabranch.partitioning.written import read_chosen
from anabranch.testing.sources import EpochSource


def session(rows: pl.DataFrame, sites: int = 4, **settings: Any) -> Session:
    here = Session.in_process(sites, {"fsync": False, **settings})
    here.stream("s", EpochSource([rows]), ordered="time")
    return here


def results(here: Session, query: str, **options: Any) -> list[tuple[Any, ...]]:
    run = here.start(sinks={query: "memory"}, at_end="close", **options)
    assert run.await_termination(60)
    return sorted(run.results(query).rows(), key=repr)


# -- right results ----------------------------------------------------------------------------------


@pytest.mark.parametrize("term", ["CAST(f AS VARCHAR)", "1.0 / f"])
def test_zeros_of_both_signs_are_one_group(term: str) -> None:
    """They are equal, but their texts and their inverses are not: those must not part the rows."""
    rows = pl.DataFrame({"time": range(40), "f": [-0.0, 0.0] * 20})
    here = session(rows)
    here.query("whole", "SELECT tb, f, COUNT(*) AS c FROM s GROUP BY time/1000 AS tb, f")
    here.query("other", f"SELECT tb, k, COUNT(*) AS c FROM s GROUP BY time/1000 AS tb, {term} AS k")
    assert [count for _, _, count in results(here, "whole")] == [40]


def test_rows_with_and_without_arrival_numbers_meet() -> None:
    """A union of results, which have none, and of rows that need theirs, as operators of their own."""
    rows = pl.DataFrame({"time": range(30), "x": [1, 2, 3] * 10})
    here = session(rows, strategy="operator")
    here.query(
        "recent",
        "SELECT time, x, COUNT(*) OVER (PARTITION BY x ORDER BY time ROWS 2 PRECEDING) AS c FROM s",
    )
    here.query("counts", "SELECT time, x, COUNT(*) AS c FROM s GROUP BY time, x")
    here.query(
        "both",
        "SELECT tb, x, COUNT(*) AS n FROM"
        " (SELECT time, x, c FROM recent UNION ALL SELECT time, x, c FROM counts)"
        " GROUP BY time/10 AS tb, x",
    )  # fmt: skip
    assert sum(row[2] for row in results(here, "both")) == 60


def test_a_choice_is_read_though_a_replay_of_its_stream_is_gone() -> None:
    """What is said of the replay must not make all of it unreadable: kept state needs the rest."""
    rows = session(pl.DataFrame({"time": [1], "k": [1], "v": [1]})).from_stream("s").node
    assert isinstance(rows, Stream)
    found = read_chosen({"s": rows}, ["s.2.k", "s.k", "s.12.v = s.v"])
    assert found is not None
    assert found.texts == {"s.k", "s.v"}
    assert read_chosen({"s": rows}, ["s.gone"]) is None


# -- estimates never fail ---------------------------------------------------------------------------


def test_terms_that_only_filtered_rows_have() -> None:
    rows = pl.DataFrame({"time": range(100), "text": ["7", "abc"] * 50, "kind": ["n", "t"] * 50})
    here = session(rows)
    here.query("q", "SELECT tb, k, COUNT(*) AS c FROM s WHERE kind = 'n'"
                    " GROUP BY time/10 AS tb, CAST(text AS BIGINT) AS k")  # fmt: skip
    assert results(here, "q") == [(tb, 7, 5) for tb in range(10)]


def test_rows_without_a_time(tmp_path: Path) -> None:
    rows = pl.DataFrame({"time": [1, None, 30, 61], "x": [1, 1, 2, 2]})
    (tmp_path / "in").mkdir()
    rows.write_parquet(tmp_path / "in" / "1.parquet")
    here = Session.in_process(2)
    here.stream("s", path=tmp_path / "in", ordered="time", on_bad="dead-letter")
    here.query("q", "SELECT x, COUNT(*) AS c FROM s GROUP BY HOP(time, 60, 30), x")
    assert results(here, "q", dead_letter=tmp_path / "dead")


def test_joins_are_explained_over_streams_with_rows() -> None:
    here = Session.in_process(2)
    here.stream("tcp", generator="packets", rows=1000, ordered="time")
    here.query("j", "SELECT a.srcIP FROM tcp a JOIN tcp b ON a.srcIP = b.srcIP AND a.time = b.time")
    assert "inner join on a.srcIP = b.srcIP and a.time = b.time" in here.explain()
    assert results(here, "j")


def test_an_empty_folder_is_sampled_again_once_it_has_files(tmp_path: Path) -> None:
    """A claim that is wrong must be found by the start, though explain had nothing to look at."""
    here = Session.in_process(2)
    schema = {"time": "int64", "x": "int64"}
    here.stream(
        "s", path=tmp_path, format="parquet", schema=schema, ordered="time", partitioned_by=["x"]
    )
    here.query("q", "SELECT tb, x, COUNT(*) AS c FROM s GROUP BY time/10 AS tb, x")
    here.explain()
    for lane in ("a", "b"):
        (tmp_path / lane).mkdir()
        pl.DataFrame({"time": [1, 2], "x": [1, 2]}).write_parquet(tmp_path / lane / "1.parquet")
    with pytest.raises(SourceError, match=r"in the parts 'a' and 'b'|in the parts 'b' and 'a'"):
        here.start(sinks={"q": "memory"})


# -- skew and lanes ---------------------------------------------------------------------------------


def test_a_set_that_suits_more_is_not_worth_a_site_that_has_all_rows() -> None:
    rows = pl.DataFrame(
        {"time": range(2000), "x": [None] * 1800 + list(range(200)), "y": range(2000)}
    )
    here = session(rows)
    here.query("by_x", "SELECT tb, x, COUNT(*) AS c FROM s GROUP BY time/100 AS tb, x")
    here.query("by_both", "SELECT tb, x, y, COUNT(*) AS c FROM s GROUP BY time/100 AS tb, x, y")
    assert str(here.partitioning().partitioning) == "{x, y}"
    assert "{x} would have a site receive" in here.explain()


def test_few_lanes_leave_sites_idle(tmp_path: Path) -> None:
    for lane in range(2):
        (tmp_path / str(lane)).mkdir()
        rows = pl.DataFrame({"time": range(100), "x": [lane + 2 * at for at in range(100)]})
        rows.write_parquet(tmp_path / str(lane) / "1.parquet")

    def spreads(sites: int) -> set[str]:
        here = Session.in_process(sites)
        here.stream("s", path=tmp_path, ordered="time", partitioned_by=["x"])
        here.query("q", "SELECT tb, x, COUNT(*) AS c FROM s GROUP BY time/10 AS tb, x")
        return {part.spread for part in here.plan().subqueries.values()}

    assert spreads(2) == spreads(4) == {"lane"}
    assert spreads(8) == {"terms"}


def test_lanes_need_folders(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    pl.DataFrame({"time": [1], "x": [1]}).write_parquet(tmp_path / "a" / "1.parquet")
    with pytest.raises(SourceError, match="its path must be a folder"):
        Session.in_process().stream(
            "s", path=tmp_path / "*" / "*.parquet", ordered="time", partitioned_by=["x"]
        )


@pytest.mark.parametrize("made", ["[x, time]", "{'a': [x, time]}"])
def test_lists_and_structs_of_what_needs_128_bits_are_refused(made: str) -> None:
    rows = pl.DataFrame({"time": [1], "x": pl.Series([1], dtype=pl.UInt64)})
    with pytest.raises(LanguageError, match="needs 128 bits"):
        session(rows).query("q", f"SELECT time, {made} AS y FROM s")


def test_what_needs_128_bits_is_refused() -> None:
    rows = pl.DataFrame({"time": [1], "x": pl.Series([1], dtype=pl.UInt64)})
    with pytest.raises(LanguageError, match="needs 128 bits"):
        session(rows).query(
            "q", "SELECT tb, k, COUNT(*) AS c FROM s GROUP BY time/9 AS tb, x/2 AS k"
        )


# -- what a checkpoint keeps ------------------------------------------------------------------------

QUERIES = {
    "a": "SELECT tb, x, COUNT(*) AS c FROM s GROUP BY time/10 AS tb, x",
    "b": "SELECT tb, x, y, COUNT(*) AS c FROM s GROUP BY time/10 AS tb, x, y",
}
ROWS = pl.DataFrame(
    {"time": range(200), "x": [at % 17 for at in range(200)], "y": [at % 5 for at in range(200)]}
)


def asked(**settings: Any) -> Session:
    here = session(ROWS, 2, **settings)
    for name, query in QUERIES.items():
        here.query(name, query)
    return here


def test_a_checkpoint_needs_no_permit_to_go_on(tmp_path: Path) -> None:
    first = asked()
    first.permit({"s": ["x", "y"]})
    assert str(first.partitioning().partitioning) == "{x, y}"
    assert results(first, "b", checkpoint=tmp_path)
    assert str(asked().partitioning().partitioning) == "{x}"
    run = asked().start(sinks={"b": "memory"}, checkpoint=tmp_path)
    assert run.await_termination(60)
    assert run.plan.subqueries["b@1"].partitioning == ("x", "y")


def test_another_partitioning_is_refused_by_that_name(tmp_path: Path) -> None:
    assert results(asked(), "b", checkpoint=tmp_path)
    with pytest.raises(
        StateError, match="was started with another partitioning: partitioning of b@1"
    ):
        asked(strategy="query").start(sinks={"b": "memory"}, checkpoint=tmp_path)


def test_streams_that_are_permitted_together_belong_together() -> None:
    here = session(ROWS, 2)
    here.stream("t", EpochSource([ROWS]), ordered="time")
    union = "(SELECT time, x FROM s UNION ALL SELECT time, x FROM t)"
    here.query("u", f"SELECT tb, x, COUNT(*) AS c FROM {union} GROUP BY time/10 AS tb, x")
    here.permit({"s": ["x"], "t": ["x"]})
    assert str(here.partitioning().partitioning) == "s {x} = t {x}"
    assert here.partitioning().parts[0].winner.cost.suited >= {"u@1"}
    with pytest.raises(PlanningError, match="equally many terms"):
        here.permit({"s": ["x"], "t": ["x", "y"]})


def all_on_one(run: Any) -> None:
    known = run.partition_map("a@1")
    run.repartition("a@1", known.on((1,) * known.partitions))


def test_a_map_that_the_user_has_set_stays_his(tmp_path: Path) -> None:
    def start(here: Session) -> Any:
        return here.start(sinks={"a": "memory"}, checkpoint=tmp_path, on_step=step)

    runs: list[Any] = []

    def step(name: str, epoch: int) -> None:
        while not runs:
            time.sleep(0.01)
        if name == "begin":
            all_on_one(runs[0])

    run = start(asked())
    runs.append(run)
    assert run.await_termination(60)
    assert asked().plan(tmp_path).subqueries["a@1"].exchange in run._governor.holdings.by_hand
    again = asked().start(sinks={"a": "memory"}, checkpoint=tmp_path)
    assert again.await_termination(60)
    assert again._governor.holdings.by_hand == run._governor.holdings.by_hand
