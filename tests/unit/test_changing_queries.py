"""A checkpoint goes on with another query set: what is the same keeps its state, the rest comes or goes."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from anabranch import Session, col
from anabranch.cli import app
from anabranch.engine.run import Run
from anabranch.errors import AnabranchError, SettingsError, StateError
from anabranch.language.expression import Expression
from anabranch.state.place import place
from anabranch.state.store import read_latest
from anabranch.testing.sources import EpochSource
from helpers import Rows, missing, oracle, orphans, plain, read_results

FRAMES = [
    pl.DataFrame(
        {
            "t": [10 * n + i % 10 for i in range(40)],
            "k": [(7 * n + i) % 5 for i in range(40)],
            "m": [i % 3 for i in range(40)],
            "v": [(n * 31 + i * 7) % 50 for i in range(40)],
        }
    )
    for n in range(9)
]
OTHERS = [frame.select("t", "k", pl.col("v").alias("w"))[::5] for frame in FRAMES]
BY_K = "SELECT tb, k, SUM(v) AS s FROM rows GROUP BY t/25 AS tb, k"
BY_KM = "SELECT tb, k, m, COUNT(*) AS c FROM rows GROUP BY t/25 AS tb, k, m"
JOIN = (
    "SELECT r.t AS t, r.k AS k, r.v AS v, o.w AS w FROM rows r JOIN others o "
    "ON r.k = o.k AND o.t BETWEEN r.t - 12 AND r.t + 12"
)
WANTED = {
    BY_K: "SELECT t//25 AS tb, k, SUM(v)::BIGINT AS s FROM rows GROUP BY ALL",
    BY_KM: "SELECT t//25 AS tb, k, m, COUNT(*) AS c FROM rows GROUP BY ALL",
    JOIN: JOIN,
}


class Set:
    """Runs of changing query sets from one checkpoint."""

    def __init__(self, base: Path, settings: Mapping[str, Any] | None = None) -> None:
        self.base, self.checkpoint = base, base / "checkpoint"
        self.settings = {"fsync": False, **(settings or {})}
        self.lateness = 0

    def session(self, queries: Mapping[str, str], frames: int) -> Session:
        session = Session.in_process(2, self.settings)
        session.stream("rows", EpochSource(FRAMES[:frames]), ordered="t", lateness=self.lateness)
        session.stream("others", EpochSource(OTHERS[:frames]), ordered="t")
        for name, text in queries.items():
            session.query(name, text)
        return session

    def run(
        self, queries: Mapping[str, str], frames: int, sinks: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Run:  # fmt: skip
        sinks = sinks or {name: self.base / name for name in queries}
        if frames == len(FRAMES):
            options.setdefault("at_end", "close")
        run = self.session(queries, frames).start(
            sinks=sinks, checkpoint=self.checkpoint, **options
        )
        assert run.await_termination(60)
        return run

    def change(self, queries: Mapping[str, str], frames: int, **options: Any) -> dict[str, Any]:
        run = self.run(queries, frames, changed="keep-same", **options)
        assert (orphans(self.checkpoint), missing(self.checkpoint)) == (set(), set())
        return run.evolution.described() if run.evolution else {}

    def results(self, *folders: str) -> Rows:
        return plain(pl.concat([read_results(self.base / folder) for folder in folders]))


@pytest.fixture
def queries(tmp_path: Path) -> Set:
    return Set(tmp_path)


def wanted(text: str, since: int = 0) -> Rows:
    """What DuckDB gives over the rows of these epochs."""
    return oracle(WANTED[text], rows=pl.concat(FRAMES[since:]), others=pl.concat(OTHERS[since:]))


def test_a_renamed_query_goes_on_and_writes_on_in_its_folder(queries: Set, tmp_path: Path) -> None:
    queries.run({"sums": BY_K}, 4)
    told = queries.change({"totals": BY_K}, 9, sinks={"totals": tmp_path / "sums"})
    assert told["renamed"] == {"totals": "sums"}
    assert queries.results("sums") == wanted(BY_K)


def test_names_that_are_exchanged(queries: Set) -> None:
    queries.run({"a": BY_K, "b": BY_KM}, 4)
    told = queries.change({"a": BY_KM, "b": BY_K}, 6, sinks={"a": "memory", "b": "memory"})
    assert told["renamed"] == {"a": "b", "b": "a"}
    run = queries.run({"a": BY_KM, "b": BY_K}, 9, sinks={"a": "memory", "b": "memory"})
    last = max(row[0] for row in wanted(BY_K))
    assert {row for row in plain(run.results("b")) if row[0] == last} == {
        row for row in wanted(BY_K) if row[0] == last
    }


def test_another_condition_on_the_results_keeps_the_state(queries: Set) -> None:
    queries.run({"sums": BY_K}, 4)
    told = queries.change({"sums": f"{BY_K} HAVING SUM(v) > 300"}, 9)
    assert told["adjusted"] == ["sums"]
    closed = 3 * 10 + 9
    whole = wanted(BY_K)
    before = [row for row in whole if (row[0] + 1) * 25 <= closed]
    after = [row for row in whole if (row[0] + 1) * 25 > closed and row[2] > 300]
    assert before
    assert 0 < len(after) < len(whole) - len(before)
    assert queries.results("sums") == sorted(before + after, key=repr)


def test_another_select_list_keeps_the_state(queries: Set, tmp_path: Path) -> None:
    queries.run({"sums": BY_K}, 4)
    again = "SELECT k, tb + 1 AS until, SUM(v) AS s FROM rows GROUP BY t/25 AS tb, k"
    sinks = {"sums": tmp_path / "until"}
    assert queries.change({"sums": again}, 9, sinks=sinks)["adjusted"] == ["sums"]
    found = [(until - 1, k, s) for k, until, s in queries.results("until")]
    assert sorted(found + queries.results("sums"), key=repr) == wanted(BY_K)


def test_a_new_query_gets_the_rows_from_now_on(queries: Set) -> None:
    queries.run({"sums": BY_K}, 4)
    told = queries.change({"sums": BY_K, "counts": BY_KM, "again": BY_K}, 9)
    assert (told["same"], told["new"]) == (["sums"], ["again", "counts"])
    assert queries.results("sums") == wanted(BY_K)
    # The window that was open has only what came since, even where another query knows the rest
    assert queries.results("counts") == wanted(BY_KM, since=4)
    assert queries.results("again") == wanted(BY_K, since=4)


def test_a_new_query_gets_all_that_the_sources_still_have(queries: Set) -> None:
    queries.run({"sums": BY_K}, 4)
    told = queries.change({"sums": BY_K, "counts": BY_KM}, 6, backfill=True)
    begin = {"from": "beginning", "replays": {"rows": "rows.1"}, "opened": []}
    assert told["begin"] == {"counts": begin}
    assert not queries.change({"sums": BY_K, "counts": BY_KM}, 9)
    assert queries.results("sums") == wanted(BY_K)
    assert queries.results("counts") == wanted(BY_KM)


def test_what_is_gone_is_forgotten_and_its_results_stay(queries: Set) -> None:
    queries.run({"sums": BY_K, "counts": BY_KM}, 4)
    before = queries.results("counts")
    told = queries.change({"sums": BY_K}, 9)
    assert told["gone"] == ["counts"]
    assert queries.results("counts") == before
    assert queries.results("sums") == wanted(BY_K)
    manifest = read_latest(place(str(queries.checkpoint)))
    assert manifest is not None
    assert [*manifest.subqueries] == ["sums@1"]


def test_a_query_goes_on_when_the_one_is_gone_that_its_partitioning_was_chosen_for(
    queries: Set,
) -> None:
    """Alone, it would be partitioned by both keys."""
    queries.run({"sums": BY_K, "counts": BY_KM}, 4)
    queries.change({"counts": BY_KM}, 6)
    queries.run({"counts": BY_KM}, 9)
    assert queries.results("counts") == wanted(BY_KM)


def test_a_new_join_of_streams_that_never_met_holds_up_nobody(queries: Set) -> None:
    queries.run({"sums": BY_K, "plain": "SELECT * FROM others"}, 4)
    both = {"sums": BY_K, "plain": "SELECT * FROM others"}
    told = queries.change({**both, "pairs": JOIN}, 9)
    assert told["begin"]["pairs"]["replays"] == {"rows": "rows.1", "others": "others.1"}
    assert queries.results("sums") == wanted(BY_K)
    assert queries.results("pairs") == wanted(JOIN, since=4)


def test_a_join_that_gives_fewer_columns_keeps_its_state(queries: Set, tmp_path: Path) -> None:
    queries.run({"pairs": JOIN}, 4)
    fewer = JOIN.replace("r.v AS v, ", "")
    sinks = {"pairs": tmp_path / "fewer"}
    assert queries.change({"pairs": fewer}, 6, sinks=sinks)["adjusted"] == ["pairs"]
    # And what it no longer gives it still has
    sinks = {"pairs": tmp_path / "all"}
    assert queries.change({"pairs": JOIN}, 9, sinks=sinks)["adjusted"] == ["pairs"]
    parts = [
        read_results(tmp_path / name).drop("v", strict=False) for name in ("pairs", "fewer", "all")
    ]
    assert plain(pl.concat(parts)) == sorted(((t, k, w) for t, k, _, w in wanted(JOIN)), key=repr)


def test_a_join_that_needs_another_column_begins_anew(queries: Set, tmp_path: Path) -> None:
    fewer = JOIN.replace("r.v AS v, ", "")
    queries.run({"pairs": fewer}, 4)
    told = queries.change({"pairs": JOIN}, 9, sinks={"pairs": tmp_path / "all"})
    assert (told["adjusted"], told["changed"]) == ([], ["pairs"])
    assert queries.results("all") == wanted(JOIN, since=4)


def test_what_was_said_is_what_a_refusal_promises(queries: Set) -> None:
    queries.run({"same": BY_K, "old": BY_KM, "gone": JOIN, "other": "SELECT t FROM rows"}, 4)
    changed = {
        "same": BY_K,
        "new": BY_KM,
        "other": "SELECT k FROM rows",
        "more": "SELECT * FROM rows",
    }
    with pytest.raises(StateError) as caught:
        queries.run(changed, 9)
    for words in (
        "changed='keep-same'", "--changed keep-same", "backfill=True", "go on: same",
        "new (was old)", "changed, begin anew with rows from now on: other", "gone", ": more",
    ):  # fmt: skip
        assert words in str(caught.value)
    told = queries.change(changed, 9)
    assert told["renamed"] == {"new": "old"}
    assert (told["same"], told["changed"]) == (["same"], ["other"])
    assert (told["new"], told["gone"]) == (["more"], ["gone"])


def test_a_change_counts_although_there_is_nothing_to_read(queries: Set) -> None:
    queries.run({"sums": BY_K}, 4)
    assert queries.change({"totals": BY_K}, 4)["renamed"] == {"totals": "sums"}
    assert queries.change({"totals": BY_K}, 9) == {}
    assert queries.results("sums", "totals") == wanted(BY_K)


def test_streams_cannot_change(queries: Set) -> None:
    queries.run({"sums": BY_K}, 4)
    queries.lateness = 7
    with pytest.raises(StateError, match=r"lateness was 0 and is now 7.*under another name"):
        queries.change({"totals": BY_K}, 9)


def test_a_checkpoint_that_was_closed_takes_no_change(queries: Set) -> None:
    queries.run({"sums": BY_K}, 4, at_end="close")
    with pytest.raises(StateError, match="streams have ended"):
        queries.change({"totals": BY_K}, 9)


def test_a_source_that_gives_its_rows_once_has_no_replays(
    queries: Set, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries.run({"sums": BY_K}, 4)
    monkeypatch.setattr(EpochSource, "once", True, raising=False)
    with pytest.raises(SettingsError, match="gives its rows only once"):
        queries.change({"sums": BY_K, "counts": BY_KM}, 9, backfill=True)
    queries.change({"sums": BY_K, "counts": BY_KM}, 9)
    assert queries.results("counts") == wanted(BY_KM, since=4)


def test_results_that_a_crash_left_unpublished_go_to_the_renamed_query(
    queries: Set, tmp_path: Path
) -> None:
    def crash(step: str, epoch: int) -> None:
        if step == "after-commit" and epoch == 5:
            raise RuntimeError("killed")

    queries.run({"sums": BY_K}, 4)
    with pytest.raises(AnabranchError):
        queries.run({"sums": BY_K}, 9, on_step=crash, at_end="keep")
    with pytest.raises(StateError, match="'sums' in epoch 5 are committed"):
        queries.change({"counts": BY_KM}, 9)
    queries.change({"totals": BY_K}, 9, sinks={"totals": tmp_path / "sums"})
    assert queries.results("sums") == wanted(BY_K)


def test_unpublished_results_go_to_the_function_of_the_renamed_query(queries: Set) -> None:
    """They wait in the checkpoint under the name that the query had."""
    handed: dict[int, pl.DataFrame] = {}

    def take(rows: pa.Table, epoch: int) -> None:
        handed[epoch] = pl.DataFrame(rows)

    def crash(step: str, epoch: int) -> None:
        if step == "after-commit" and epoch == 5:
            raise RuntimeError("killed")

    with pytest.raises(AnabranchError):
        queries.run({"sums": BY_K}, 9, {"sums": take}, on_step=crash, at_end="keep")
    told = queries.change({"totals": BY_K, "sums": BY_KM}, 9, sinks={"totals": take})
    assert told["renamed"] == {"totals": "sums"}
    assert plain(pl.concat(handed.values())) == wanted(BY_K)


def test_partitions_stay_where_they_were_moved_to(queries: Set) -> None:
    run: list[Run] = []
    started = threading.Event()

    def move(step: str, epoch: int) -> None:
        started.wait(60)
        if step == "begin" and epoch == 1:
            before = run[0].partition_map("sums@1")
            run[0].repartition("sums@1", before.respread([1]))

    run.append(
        queries.session({"sums": BY_K}, 4).start(
            sinks={"sums": "memory"}, checkpoint=queries.checkpoint, on_step=move
        )
    )
    started.set()
    assert run[0].await_termination(60)
    before = read_latest(place(str(queries.checkpoint)))
    queries.change({"totals": BY_K, "counts": BY_KM}, 4)
    after = read_latest(place(str(queries.checkpoint)))
    assert before is not None
    assert after is not None
    (old,) = before.exchanges.values()
    assert {*old.sites} == {1}
    assert after.exchanges[after.subqueries["totals@1"].exchange].sites == old.sites
    assert after.watermarks == before.watermarks
    assert after.streams == before.streams


@pytest.mark.parametrize("changed", ["HAVING SUM(v) > 300", ""])
def test_what_waits_for_a_query_goes_with_it(queries: Set, changed: str) -> None:
    """Whether another one changes that nothing waits for or not."""
    run: list[Run] = []
    started = threading.Event()

    def stop(step: str, epoch: int) -> None:
        started.wait(60)
        if step == "begin" and epoch == 1:
            for partition in run[0].partition_map("pairs@1").starts:
                run[0].pause("pairs@1", partition)
        if step == "after-publish" and epoch == 3:
            run[0].stop()

    asked = {"pairs": JOIN, "sums": BY_KM}
    session = queries.session(asked, 5)
    run.append(
        session.start(
            sinks=dict.fromkeys(asked, "memory"), checkpoint=queries.checkpoint, on_step=stop
        )
    )
    started.set()
    assert run[0].await_termination(60)
    before = read_latest(place(str(queries.checkpoint)))
    assert before is not None
    assert "pairs@1" in {ref.subquery for ref in before.held}
    told = queries.change({"sums": f"{BY_KM} {changed.replace('SUM(v)', 'COUNT(*)')}"}, 5)
    assert (told["gone"], told["adjusted"]) == (["pairs"], ["sums"] if changed else [])
    after = read_latest(place(str(queries.checkpoint)))
    assert after is not None
    assert not after.held


def test_the_command_line_says_what_it_did(tmp_path: Path) -> None:
    FRAMES[0].write_parquet(tmp_path / "a.parquet")

    def file(name: str, queries: str) -> Path:
        path = tmp_path / name
        path.write_text(
            f"CREATE STREAM rows ORDERED BY t WITH (path = '{tmp_path}/*.parquet');\n{queries}\n"
            f"SET checkpoint = '{tmp_path}/checkpoint';"
        )
        return path

    def run(path: Path, *options: str) -> Any:
        return CliRunner().invoke(app, ["run", str(path), "--in-process", *options])

    sums = f"CREATE QUERY sums AS {BY_K}; CREATE SINK sums TO '{tmp_path}/out';"
    totals = sums.replace("sums", "totals")
    assert run(file("one.sql", sums)).exit_code == 0
    refused = run(file("two.sql", totals))
    assert refused.exit_code == 1
    assert "totals (was sums)" in refused.output
    done = run(file("two.sql", totals), "--changed", "keep-same", "--backfill", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout.splitlines()[0])["evolution"]
    assert told["renamed"] == {"totals": "sums"}
    again = run(file("three.sql", f"{sums} SET changed = 'keep-same'; SET backfill = true;"))
    assert again.exit_code == 0, again.output
    assert "sums (was totals)" in again.output


def test_joins_that_were_read_apart_stay_apart(queries: Set) -> None:
    """Without the query between them, a new plan would make one join of three inputs of them."""

    def near(left: str, right: str) -> Expression:
        return (col(right) >= col(left) - 12) & (col(right) <= col(left) + 12)

    def session(frames: int, *names: str) -> Session:
        session = queries.session({}, frames)
        rows, others = session.from_stream("rows"), session.from_stream("others")
        more = others.select(col("t").alias("u"), "k", col("w").alias("x"))
        pairs = rows.join(others, on="k", where=near("t", "t_right"))
        triples = pairs.join(more, on="k", where=near("t", "u"), suffix="third")
        for name, query in (("pairs", pairs), ("triples", triples)):
            if name in names:
                session.query(name, query)
        return session

    assert len(session(4, "triples").plan().subqueries) == 1
    for frames, names, end in ((4, ("pairs", "triples"), "keep"), (9, ("triples",), "close")):
        sinks = {name: queries.base / name for name in names}
        run = session(frames, *names).start(
            sinks=sinks, checkpoint=queries.checkpoint, changed="keep-same", at_end=end
        )
        assert run.await_termination(60)
    assert len(run.plan.subqueries) == 2
    expected = oracle(
        "SELECT r.t, o.w, p.w FROM rows r JOIN others o ON r.k = o.k AND o.t BETWEEN r.t - 12 AND r.t + 12 "
        "JOIN others p ON r.k = p.k AND p.t BETWEEN r.t - 12 AND r.t + 12",
        rows=pl.concat(FRAMES), others=pl.concat(OTHERS),
    )  # fmt: skip
    assert plain(read_results(queries.base / "triples").select("t", "w", "x")) == expected


def test_a_changed_query_set_is_explained(queries: Set) -> None:
    queries.run({"sums": BY_K, "gone": BY_KM}, 4)
    changed = {"totals": BY_K, "counts": BY_KM, "pairs": JOIN}
    run = queries.run(changed, 6, changed="keep-same", backfill=True)
    assert "rows.1" in run.explain()
    assert run.explain() == queries.session(changed, 6).explain(
        queries.checkpoint, sinks={name: queries.base / name for name in changed}
    )
    assert run.last_progress is not None
    assert run.recent_progress[0]["customMetrics"]["evolution"]["renamed"] == {
        "counts": "gone", "totals": "sums"
    }  # fmt: skip


# -- queries that ask the same ----------------------------------------------------------------------


def test_of_two_that_ask_the_same_the_place_of_results_tells_which_goes_on(queries: Set) -> None:
    one, two = queries.base / "one", queries.base / "two"
    queries.run({"q": BY_K}, 3, {"q": one})
    queries.change({"q": BY_K, "p": BY_K}, 5, sinks={"q": one, "p": two})
    told = queries.change({"z": BY_K}, 9, sinks={"z": one})
    assert (told["renamed"], told["gone"]) == ({"z": "q"}, ["p"])
    assert queries.results("one") == wanted(BY_K)


def test_a_new_one_that_asks_the_same_does_not_take_the_state(queries: Set) -> None:
    one, two = queries.base / "one", queries.base / "two"
    queries.run({"p": BY_K}, 4, {"p": one})
    both = {"z": BY_K, "y": BY_K}
    told = queries.change(both, 9, sinks={"z": one, "y": two}, backfill=True)
    assert (told["renamed"], told["new"]) == ({"z": "p"}, ["y"])
    assert queries.results("one") == queries.results("two") == wanted(BY_K)


def test_the_place_of_results_tells_more_than_the_name(queries: Set) -> None:
    one, two = queries.base / "one", queries.base / "two"
    queries.run({"q": BY_K}, 3, {"q": one})
    queries.change({"q": BY_K, "p": BY_K}, 5, sinks={"q": one, "p": two})
    exchanged = {"p": one, "q": two}
    with pytest.raises(StateError, match="exchanged the places of their results"):
        queries.run({"q": BY_K, "p": BY_K}, 9, exchanged)
    told = queries.change({"q": BY_K, "p": BY_K}, 9, sinks=exchanged)
    assert told["renamed"] == {"p": "q", "q": "p"}
    assert queries.results("one") == wanted(BY_K)
    # The second one began with the rows of that time
    assert queries.results("two") == wanted(BY_K, since=3)


def test_a_new_query_of_an_old_name_does_not_take_what_goes_on_elsewhere(queries: Set) -> None:
    one, two = queries.base / "one", queries.base / "two"
    queries.run({"q": BY_K}, 4, {"q": one})
    told = queries.change({"z": BY_K, "q": BY_K}, 9, sinks={"z": one, "q": two})
    assert (told["renamed"], told["new"]) == ({"z": "q"}, ["q"])
    assert queries.results("one") == wanted(BY_K)


def test_a_changed_query_keeps_its_state_when_another_asks_what_it_did(queries: Set) -> None:
    one, two = queries.base / "one", queries.base / "two"
    queries.run({"q": BY_K}, 4, {"q": one})
    both = {"q": f"{BY_K} HAVING SUM(v) > 0", "z": BY_K}
    told = queries.change(both, 9, sinks={"q": one, "z": two})
    assert (told["adjusted"], told["new"]) == (["q"], ["z"])
    assert queries.results("one") == wanted(BY_K)


def test_which_of_two_goes_on_must_be_tellable(queries: Set) -> None:
    queries.run({"q": BY_K}, 3)
    with pytest.raises(StateError, match=r"Query y, z could go on as q, which asked the same"):
        queries.change({"y": BY_K, "z": BY_K}, 5)
    queries.change({"q": BY_K, "p": BY_K}, 5)
    with pytest.raises(StateError, match=r"Query z could go on as p or as q"):
        queries.change({"z": BY_K}, 7)
    # What asks the same since the same start is the same
    assert queries.change({"q": BY_K, "p": BY_K, "a": BY_KM, "b": BY_KM}, 6)["new"] == ["a", "b"]
    assert queries.change({"q": BY_K, "p": BY_K, "c": BY_KM}, 7)["renamed"] == {"c": "a"}


def test_results_that_wait_are_not_looked_for_under_a_name_that_another_has_now(
    queries: Set,
) -> None:
    one, two = queries.base / "one", queries.base / "two"

    def stop(step: str, epoch: int) -> None:
        if step == "after-commit":
            raise RuntimeError("the process is gone")

    with pytest.raises(AnabranchError):
        queries.run(
            {"p": "SELECT t, k FROM rows", "q": "SELECT t, v FROM rows"}, 4, {"p": one, "q": two},
            on_step=stop,
        )  # fmt: skip
    with pytest.raises(AnabranchError, match=r"'p' in epoch 0 are committed.*has no sink now"):
        queries.change({"p": "SELECT t, v FROM rows"}, 4, sinks={"p": two})


def test_streams_that_the_checkpoint_has_not_read_are_told(queries: Set) -> None:
    queries.run({"q": BY_K}, 3)
    run = queries.run({"q": BY_K, "n": "SELECT t, w FROM others"}, 5, changed="keep-same")
    assert run.evolution
    assert "new, begin with rows from now on: n (all of others)" in run.evolution.lines()
    assert run.evolution.described()["begin"]["n"]["opened"] == ["others"]
    assert queries.results("n") == plain(pl.concat(OTHERS[:5]).select("t", "w"))
