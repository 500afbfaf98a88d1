"""Joins with tables: rows are DuckDB's, and every epoch has one version of each table."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import duckdb
import polars as pl
import pytest

from anabranch import Session, col
from anabranch.errors import AnabranchError, LanguageError, SourceError, StateError
from anabranch.operators.looked_up import LookedUp, read_table
from anabranch.spec.file import read_spec
from anabranch.state.place import place
from anabranch.state.store import read_latest
from anabranch.testing.oracle import EpochSource, Oracle

FRAMES = [
    pl.DataFrame({"time": [1, 2, 7], "cur": ["EUR", "USD", None], "amount": [10, 20, 30]}),
    pl.DataFrame({"time": [8, 12], "cur": ["GBP", "EUR"], "amount": [40, 50]}),
    pl.DataFrame({"time": [21, 29], "cur": ["EUR", "USD"], "amount": [60, 70]}),
]
RATES = pl.DataFrame(
    {"cur": ["EUR", "USD", "USD", None, "JPY"], "rate": [2, 3, 4, 5, 6], "amount": [0, 1, 2, 3, 4]}
)
QUERIES = {
    "inner": "SELECT s.time, s.amount * r.rate AS worth, r.amount AS other FROM s JOIN rates r "
    "ON s.cur = r.cur",
    "left": "SELECT s.time, s.cur, r.rate FROM s LEFT JOIN rates r ON s.cur = r.cur AND r.rate > 2",
    "using": "SELECT time, rate FROM s JOIN rates USING (cur) WHERE rate + s.amount > 13",
    "semi": "SELECT time FROM s SEMI JOIN rates r ON s.cur = r.cur",
    "anti": "SELECT time FROM s ANTI JOIN rates r ON s.cur = r.cur",
    "twice": "SELECT s.time, a.rate, b.rate AS other FROM s JOIN rates a ON s.cur = a.cur "
    "JOIN rates b ON a.rate = b.amount + 1",
    "grouped": "SELECT time // 10 AS w, r.rate, COUNT(*) AS n FROM s LEFT JOIN rates r ON s.cur = r.cur "
    "GROUP BY time // 10, r.rate",
    "behind": "SELECT g.w, g.n, r.rate FROM (SELECT time // 10 AS w, cur, COUNT(*) AS n FROM s "
    "GROUP BY time // 10, cur) g JOIN rates r ON g.cur = r.cur",
    "met": "SELECT a.time, b.time AS later FROM (SELECT s.time, r.rate FROM s JOIN rates r "
    "ON s.cur = r.cur) a JOIN (SELECT s.time, r.rate FROM s JOIN rates r ON s.cur = r.cur) b "
    "ON a.rate = b.rate AND b.time BETWEEN a.time AND a.time + 15",
}  # fmt: skip


def made(frames: list[pl.DataFrame] = FRAMES, **table: object) -> Session:
    session = Session.in_process(2, {"poll_interval_seconds": 0.0})
    session.stream("s", EpochSource(frames), ordered="time")
    session.table("rates", **(table or {"rows": RATES}))
    return session


@pytest.mark.parametrize("frames", [FRAMES, [pl.concat(FRAMES)]], ids=["three", "one"])
def test_results_are_those_of_duckdb(frames: list[pl.DataFrame]) -> None:
    session = made(frames)
    queries = {name: session.query(name, sql) for name, sql in QUERIES.items()}
    run = session.start(sinks=dict.fromkeys(queries, "memory"), at_end="close")
    run.await_termination()
    oracle = Oracle(queries, {"s": frames}, tables={"rates": RATES})
    for name in queries:
        oracle.check(name, run.results(name))
        assert run.results(name).height or name == "anti"
    plain = oracle.plain(QUERIES["inner"])
    assert sorted(plain.rows()) == sorted(run.results("inner").rows())


def test_the_builder_joins_with_tables_too() -> None:
    session = made()
    rates = session.from_stream("rates")
    joined = session.from_stream("s").join(rates, on="cur", how="left", suffix="r")
    query = session.query("q", joined.where(col("rate") > 2).select("time", "rate", "amount_r"))
    run = session.start(sinks={"q": "memory"}, at_end="close")
    run.await_termination()
    Oracle({"q": query}, {"s": FRAMES}, tables={"rates": RATES}).check("q", run.results("q"))


def write(folder: Path, rates: dict[str, int]) -> None:
    folder.mkdir(exist_ok=True)
    part = folder / ".part"
    pl.DataFrame({"cur": list(rates), "rate": list(rates.values())}).write_csv(part)
    part.rename(folder / "rates.csv")


SQL = "SELECT s.time, r.rate FROM s JOIN rates r ON s.cur = r.cur"


def test_a_table_that_changes_holds_from_the_next_epoch_on(tmp_path: Path) -> None:
    """And is read, and written to the checkpoint, only when it has changed."""
    write(tmp_path / "rates", {"EUR": 1, "USD": 1})
    session = made(path=tmp_path / "rates")
    session.query("q", SQL)

    def change(step: str, epoch: int) -> None:
        if (step, epoch) == ("after-commit", 1):
            write(tmp_path / "rates", {"EUR": 9})

    run = session.start(
        sinks={"q": "memory"}, checkpoint=tmp_path / "checkpoint", on_step=change,
    )  # fmt: skip
    run.await_termination()
    assert sorted(run.results("q").rows()) == [(1, 1), (2, 1), (12, 1), (21, 9)]
    files = list((tmp_path / "checkpoint" / "state" / "table@rates").iterdir())
    assert len(files) <= 2


class Crash(BaseException):
    pass


@pytest.mark.parametrize("step", ["before-tasks", "before-commit", "after-commit", "after-publish"])
def test_a_crash_around_a_change_gives_each_epoch_one_version(tmp_path: Path, step: str) -> None:
    """What was committed had the old version, what was not is done with the new one; nothing comes twice."""
    write(tmp_path / "rates", {"EUR": 1, "USD": 1})

    def session() -> Session:
        fresh = made(path=tmp_path / "rates")
        fresh.query("q", SQL)
        return fresh

    def crash(at: str, epoch: int) -> None:
        if (at, epoch) == (step, 1):
            write(tmp_path / "rates", {"EUR": 9, "USD": 9})
            raise Crash

    where = {"sinks": {"q": tmp_path / "out"}, "checkpoint": tmp_path / "checkpoint"}
    first = session().start(**where, on_step=crash)
    with pytest.raises(AnabranchError):
        first.await_termination()
    again = session().start(**where)
    again.await_termination()
    found = pl.read_parquet(tmp_path / "out" / "**" / "*.parquet")
    old = 1 if step.startswith("after") else 9
    assert sorted(found.select("time", "rate").rows()) == [
        (1, 1),
        (2, 1),
        (12, old),
        (21, 9),
        (29, 9),
    ]
    manifest = read_latest(place(str(tmp_path / "checkpoint")))
    assert manifest is not None
    assert manifest.tables["rates"].rows == 2
    kept = {file.name for file in (tmp_path / "checkpoint" / "state" / "table@rates").iterdir()}
    assert Path(manifest.tables["rates"].file).name in kept


def changing(folder: Path, seed: int) -> tuple[dict[int, pl.DataFrame], dict[int, pl.DataFrame]]:
    """The results of each epoch and the table that its manifest names, of a run with changes and crashes."""
    chance, chosen = random.Random(seed), {}
    write(folder / "rates", {"EUR": 0, "USD": 0})

    def disturb(at: str, epoch: int) -> None:
        if at == "after-commit":
            record = read_latest(place(str(folder / "checkpoint"))).tables["rates"]
            chosen[epoch] = read_table(place(str(folder / "checkpoint")), record)
        if chance.random() < 0.2:
            some = chance.sample(["EUR", "USD", "GBP"], 2)
            write(folder / "rates", {name: chance.randrange(1000) for name in some})
        if chance.random() < 0.05:
            raise Crash

    for _ in range(40):
        session = made(MANY, path=folder / "rates")
        session.query("q", SQL)
        session.query("w", "SELECT time // 50 AS w, r.rate, COUNT(*) AS n FROM s JOIN rates r "
                      "ON s.cur = r.cur GROUP BY time // 50, r.rate")  # fmt: skip
        run = session.start(
            sinks={"q": folder / "q", "w": folder / "w"}, checkpoint=folder / "checkpoint",
            on_step=disturb, at_end="close",
        )  # fmt: skip
        try:
            run.await_termination()
            break
        except AnabranchError:
            continue
    parts = {
        epoch: list((folder / "q" / f"epoch={epoch:012d}").glob("*.parquet"))
        for epoch in range(len(MANY))
    }
    found = {
        epoch: pl.concat([pl.DataFrame(schema=PAIRS), *(pl.read_parquet(one) for one in files)])
        for epoch, files in parts.items()
    }
    return found, {**chosen, -1: pl.read_parquet(folder / "w" / "**" / "*.parquet")}


MANY = [
    pl.DataFrame({"time": [10 * at, 10 * at + 1, 10 * at + 2], "cur": ["EUR", "USD", "GBP"]})
    for at in range(12)
]


PAIRS = {"time": pl.Int64, "rate": pl.Int64}


def judge(folder: Path, seed: int) -> None:
    found, tables = changing(folder, seed)
    grouped, expected = tables.pop(-1), []
    assert len({table["rate"].to_list().__str__() for table in tables.values()}) > 1
    for epoch, rows in found.items():
        right = duckdb.sql(
            "SELECT s.time, r.rate FROM frame s JOIN rates r ON s.cur = r.cur",
            connection=_with(MANY[epoch], tables[epoch]),
        ).pl()
        expected.append(right)
        assert sorted(rows.rows()) == sorted(right.rows()), f"seed {seed}, epoch {epoch}"
    every = pl.concat(expected).group_by(pl.col("time") // 50, "rate").len()
    assert sorted(grouped.select("w", "rate", "n").rows()) == sorted(every.rows())


def _with(frame: pl.DataFrame, rates: pl.DataFrame) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("frame", frame.to_arrow())
    connection.register("rates", rates.to_arrow())
    return connection


@pytest.mark.parametrize("seed", range(3))
def test_every_epoch_is_that_of_the_table_its_manifest_names(tmp_path: Path, seed: int) -> None:
    judge(tmp_path, seed)


def test_a_version_that_is_kept_too_long_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: dict[str, pl.DataFrame] = {}
    right = LookedUp._content
    monkeypatch.setattr(
        LookedUp, "_content", lambda step, told: first.setdefault(str(step), right(step, told))
    )
    with pytest.raises(AssertionError, match="seed 0, epoch"):
        judge(tmp_path, 0)


def test_the_same_files_read_otherwise_are_another_version(tmp_path: Path) -> None:
    """As is a Delta table that was made anew, though it begins with the same number."""
    write(tmp_path / "rates", {"EUR": 1})
    found = []
    for kind in ("int64", "float64"):
        session = made(path=tmp_path / "rates", schema={"cur": "string", "rate": kind})
        session.query("q", SQL)
        run = session.start(
            sinks={"q": "memory"}, checkpoint=tmp_path / "checkpoint", changed="keep-same", backfill=True,
        )  # fmt: skip
        run.await_termination()
        found.append(run.results("q"))
    assert found[1].schema["rate"] == pl.Float64
    assert found[1].rows() == [(1, 1.0), (12, 1.0), (21, 1.0)]
    versions = set()
    for _ in range(2):
        RATES.drop_nulls().write_delta(tmp_path / "delta")
        versions.add(made(delta=tmp_path / "delta")._tables["rates"].version())
        shutil.rmtree(tmp_path / "delta")
    assert len(versions) == 2


def test_a_table_that_is_the_same_after_a_restart_is_not_read_again(tmp_path: Path) -> None:
    write(tmp_path / "rates", {"EUR": 1})
    names = []
    for upto in (1, 3):
        session = made(FRAMES[:upto], path=tmp_path / "rates")
        session.query("q", SQL)
        run = session.start(sinks={"q": "memory"}, checkpoint=tmp_path / "checkpoint")
        run.await_termination()
        manifest = read_latest(place(str(tmp_path / "checkpoint")))
        assert manifest is not None
        names.append(manifest.tables["rates"].file)
    assert names[0] == names[1]


def test_a_damaged_table_in_the_checkpoint_is_told(tmp_path: Path) -> None:
    write(tmp_path / "rates", {"EUR": 1})
    session = made(path=tmp_path / "rates")
    session.query("q", SQL)

    def damage(step: str, epoch: int) -> None:
        if step == "before-tasks":
            file = next((tmp_path / "checkpoint" / "state" / "table@rates").iterdir())
            contents = bytearray(file.read_bytes())
            contents[len(contents) // 2] ^= 255
            file.write_bytes(contents)

    run = session.start(sinks={"q": "memory"}, checkpoint=tmp_path / "checkpoint", on_step=damage)
    with pytest.raises(StateError, match=r"The table in .* cannot be read: its checksum"):
        run.await_termination()


def test_tables_of_specifications_and_of_delta(tmp_path: Path) -> None:
    write(tmp_path / "rates", {"EUR": 4})
    pl.concat(FRAMES).write_parquet(tmp_path / "s.parquet")
    file = tmp_path / "run.sql"
    file.write_text(
        f"CREATE STREAM s ORDERED BY time WITH (path = '{tmp_path}/s.parquet');\n"
        f"CREATE TABLE rates (cur TEXT, rate INTEGER) WITH (path = '{tmp_path}/rates', format = 'csv');\n"
        f"CREATE QUERY q AS {SQL};\nCREATE SINK q TO CONSOLE;\n"
    )
    session = read_spec(file).session(in_process=True)
    run = session.start(sinks={"q": "memory"})
    run.await_termination()
    assert sorted(run.results("q").rows()) == [(1, 4), (12, 4), (21, 4)]
    file = tmp_path / "run.yaml"
    file.write_text(
        f"streams:\n  s: {{path: {tmp_path}/s.parquet, ordered: time}}\n"
        f"tables:\n  rates: {{path: {tmp_path}/rates, schema: {{cur: string, rate: int64}}}}\n"
        f"queries:\n  q: {SQL}\nsinks:\n  q: console\n"
    )
    session = read_spec(file).session(in_process=True)
    run = session.start(sinks={"q": "memory"})
    run.await_termination()
    assert sorted(run.results("q").rows()) == [(1, 4), (12, 4), (21, 4)]
    file.write_text(file.read_text().replace("path: " + str(tmp_path / "rates") + ",", ""))
    with pytest.raises(AnabranchError, match="where do the rows come from"):
        read_spec(file)
    RATES.drop_nulls().write_delta(tmp_path / "delta")
    other = made(delta=tmp_path / "delta")
    other.query("q", SQL)
    run = other.start(sinks={"q": "memory"})
    run.await_termination()
    assert run.results("q").height == 7


REFUSED = {
    "SELECT * FROM rates": "reads a table and no stream",
    "SELECT rates.rate FROM rates JOIN s ON s.cur = rates.cur": "with a stream on the left",
    "SELECT s.time FROM s RIGHT JOIN rates r ON s.cur = r.cur": "A right join with the table 'rates'",
    "SELECT s.time FROM s FULL JOIN rates r ON s.cur = r.cur": "A full join with the table 'rates'",
    "SELECT s.time FROM s JOIN rates r ON s.amount > r.rate": "needs an equality",
    "SELECT s.time FROM s JOIN rates r ON s.cur = r.rate": "cur is string and rate of 'r' is int64",
    "SELECT s.time FROM s LEFT JOIN rates r ON s.cur = r.cur AND s.amount > r.rate": "is neither",
    "SELECT s.time FROM s JOIN (SELECT cur, rate + 1 AS more FROM rates) r ON s.cur = r.cur":
        "stands by itself on the right side",
}  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED)
def test_refused_joins(sql: str) -> None:
    with pytest.raises(LanguageError, match=REFUSED[sql]):
        made().query("q", sql)


def test_refused_tables(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="needs one input"):
        Session.in_process().table("t")
    with pytest.raises(SourceError, match="expected a DataFrame of Polars or Spark"):
        Session.in_process().table("t", [1, 2])
    with pytest.raises(SourceError, match="'delimiter' is for tables of files"):
        Session.in_process().table("t", RATES, delimiter=";")
    with pytest.raises(LanguageError, match="There already is a stream, table or query"):
        made().table("rates", RATES)


def test_tables_that_others_put_aside_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several runs of a process, and the splits of the next epoch, keep their tables in one place."""

    class Restless(dict):  # type: ignore[type-arg]
        def __contains__(self, key: object) -> bool:
            found = super().__contains__(key)
            self.clear()
            return found

    monkeypatch.setattr("anabranch.operators.looked_up._KEPT", Restless())
    session = made()
    session.query("q", QUERIES["inner"])
    run = session.start(sinks={"q": "memory"})
    run.await_termination()
    assert run.results("q").height == 7
