"""Queries that are long or nested deeply: read, planned and run, in time that follows their size."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session, col
from anabranch.errors import AnabranchError, LanguageError, SettingsError
from anabranch.language.builder import Query
from anabranch.language.deep import MOST_NESTED
from anabranch.language.expression import Column, Expression, Literal, Named, call, substitute, when
from anabranch.language.node import Stream
from anabranch.language.order import Ordered
from anabranch.operators.stateless import compute
from anabranch.spec import read_spec


def session() -> Session:
    made = Session.in_process(sites=2)
    made.stream("t", generator="packets", rows=200, ordered="time")
    return made


def cpu_seconds(work: Callable[[], object]) -> float:
    """Of this process: how busy the machine is does not matter."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


NESTED = {
    "parentheses": f"SELECT time, {'(' * 50}len{')' * 50} AS x FROM t",
    "ABS": f"SELECT time, {'ABS(' * 50}len{')' * 50} AS x FROM t",
    "NOT": f"SELECT time FROM t WHERE {'NOT ' * 200}len > 3",
    "minus": f"SELECT time, {'- ' * 300}len AS x FROM t",
    "CASE": f"SELECT time, {'CASE WHEN len > 1 THEN ' * 40}1{' ELSE 0 END' * 40} AS x FROM t",
    "sub-selects": f"{'SELECT * FROM (' * 300}SELECT * FROM t{')' * 300}",
    "filtered sub-selects": f"{'SELECT * FROM (' * 300}SELECT * FROM t{') WHERE len > 1' * 300}",
    "ANDs": f"SELECT time FROM t WHERE {' AND '.join(f'len <> {n}' for n in range(200))}",
    "ORs": f"SELECT time FROM t WHERE {' OR '.join(f'len = {n}' for n in range(200))}",
    "sum": f"SELECT time, {' + '.join(['len'] * 1000)} AS x FROM t",
    "texts": f"SELECT time, {' || '.join(['CAST(len AS VARCHAR)'] * 300)} AS x FROM t",
    "union": " UNION ALL ".join(["SELECT time, len FROM t"] * 100),
    "greatest": f"SELECT time, GREATEST({', '.join(f'len + {n}' for n in range(100))}) AS x FROM t",
    "nullif": f"SELECT time, {'NULLIF(' * 12}len{', 3)' * 12} AS x FROM t",
}


@pytest.mark.parametrize("what", NESTED)
def test_what_is_nested_deeply_is_read_planned_and_run(what: str) -> None:
    made = session()
    made.query("q", NESTED[what])
    made.explain()
    run = made.start(sinks={"q": "memory"}, at_end="close")
    run.await_termination()
    assert run.exception() is None


@pytest.mark.parametrize(
    "text", ["(" * 5000 + "len" + ")" * 5000, "ABS(" * 2000 + "len" + ")" * 2000]
)
def test_what_is_nested_beyond_the_limit_is_refused_with_the_limit(text: str) -> None:
    with pytest.raises(LanguageError, match=f"{MOST_NESTED:,} parentheses"):
        session().query("q", f"SELECT time, {text} AS x FROM t")


@pytest.mark.parametrize("word", ["NOT ", "- "])
def test_signs_beyond_all_measure_are_refused(word: str) -> None:
    with pytest.raises(LanguageError, match="nested too deeply"):
        session().query("q", f"SELECT time, {word * 100_000}len AS x FROM t")


def test_many_joins_without_conditions_are_refused_at_once() -> None:
    text = f"SELECT a.time FROM t AS a {'JOIN t AS b ' * 40} ON a.time = b.time"
    with pytest.raises(LanguageError, match="JOINs in a row have no ON"):
        session().query("q", text)


def test_expressions_that_double_are_refused_by_their_size() -> None:
    with pytest.raises(LanguageError, match="parts, written out; expected at most 1,000,000"):
        session().query("q", f"SELECT time, {'NULLIF(' * 60}len{', 3)' * 60} AS x FROM t")


FAST = {
    "10,000 terms": (f"SELECT time, {' + '.join(['len'] * 10_000)} AS x FROM t", 6.0),
    "CASE of 1,000 branches": (
        f"SELECT time, CASE {' '.join(f'WHEN len = {n} THEN {n}' for n in range(1000))} END AS x FROM t",
        4.0,
    ),
    "2,000 sums": (
        f"SELECT tb, {', '.join(f'SUM(len + {n}) AS s{n}' for n in range(2000))} "
        "FROM t GROUP BY time/60 AS tb",
        8.0,
    ),
}
"""With room for slower machines: the squares that were there took a minute."""


@pytest.mark.parametrize("what", FAST)
def test_time_to_plan_follows_the_size_of_a_query(what: str) -> None:
    sql, most = FAST[what]
    made = session()
    assert cpu_seconds(lambda: made.query("q", sql)) + cpu_seconds(made.explain) < most


@pytest.mark.parametrize("sign", ["AND", "OR"])
def test_10_000_conditions_give_the_rows_that_one_gives(sign: str) -> None:
    made = session()
    many = [f"len {'<>' if sign == 'AND' else '='} {n}" for n in range(100, 10_100)]
    made.query("many", f"SELECT time, len FROM t WHERE {f' {sign} '.join(many)}")
    one = "len NOT BETWEEN 100 AND 10099" if sign == "AND" else "len BETWEEN 100 AND 10099"
    made.query("one", f"SELECT time, len FROM t WHERE {one}")
    run = made.start(sinks={"many": "memory", "one": "memory"}, at_end="close")
    run.await_termination()
    assert run.results("many").equals(run.results("one"))
    assert 0 < run.results("many").height < 200


def test_300_queries_are_planned_in_seconds() -> None:
    made = session()
    for n in range(300):
        made.query(
            f"q{n}",
            f"SELECT tb, srcIP, COUNT(*) AS n FROM t WHERE len > {n} GROUP BY time/60 AS tb, srcIP",
        )
    assert cpu_seconds(made.plan) < 5


def test_a_graph_of_shared_inputs_is_told_once_for_each_node() -> None:
    """40 self-joins have 2^40 ways down to the stream."""
    query = Query(
        Stream("t", pl.Schema({"time": pl.Int64, "k": pl.Int64}), Ordered("time", timestamps=False))
    )
    for _ in range(40):
        query = query.join(query, on=["time", "k"]).select("time", "k")
    assert cpu_seconds(lambda: (query.node.signature, query.node.streams, query.node.depth)) < 1
    assert len(query.node.described()) < 5000


def chain(length: int) -> Expression:
    return reduce(lambda left, right: left + right, [col("a") + n for n in range(length)])


def test_a_long_expression_is_told_pickled_and_rewritten() -> None:
    long = chain(20_000)
    again = pickle.loads(pickle.dumps(long))
    assert str(again) == str(long)
    renamed = substitute(long, {"a": Column("b")})
    assert str(renamed).count("b") == 20_000


@pytest.mark.parametrize(
    ("large", "python"),
    [
        (chain(300), lambda a: sum(a + n for n in range(300))),
        (
            when(*((col("a") == n, Literal(n * 10)) for n in range(100)), otherwise=-1),
            lambda a: a * 10 if 0 <= a < 100 else -1,
        ),
        (
            call("greatest", *(col("a") * (-1) ** n * n for n in range(50))),
            lambda a: max(48 * a, -49 * a),
        ),
        (reduce(lambda left, n: (left * 3 + n) % 1009, range(200), col("a") + 0), None),
    ],
)
def test_large_expressions_give_the_same_in_pieces(
    large: Expression, python: Callable[[int], int] | None
) -> None:
    rows = pl.DataFrame({"a": [0, 1, 7, 99, 100, -3, None]})
    values = compute(rows, [Named("x", large), Named("a", col("a"))])

    def expected(a: int) -> int:
        if python is not None:
            return python(a)
        for n in range(200):
            a = (a * 3 + n) % 1009
        return a

    whole = [a for a in rows["a"].to_list() if a is not None]
    assert values["x"].to_list()[: len(whole)] == [expected(a) for a in whole]
    assert values.columns == ["x", "a"]


def test_deep_yaml_is_refused_with_the_limit(tmp_path: Path) -> None:
    for text in (
        "[" * 200 + "]" * 200,
        "[" * 100_000,
        "{a: " * 3000 + "1" + "}" * 3000,
        "- " * 5000 + "x",
    ):
        (tmp_path / "spec.yml").write_text(f"streams: {text}\n")
        with pytest.raises(AnabranchError, match=r"nested too deeply|not YAML") as caught:
            read_spec(tmp_path / "spec.yml")
        assert isinstance(caught.value, SettingsError)
