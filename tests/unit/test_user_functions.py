"""Functions of users: in SQL and in the builder, in files, checked for types, lengths and determinism."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from anabranch import Session, col
from anabranch.errors import AnabranchError, LanguageError, RunError
from anabranch.language.expression import Call
from anabranch.spec import read_spec
from anabranch.testing.sources import EpochSource

ROWS = pl.DataFrame({"time": [1, 2, 3], "k": [1, None, 3], "name": ["a", "b", None]})


def double(values: pa.Array) -> pa.Array:
    return pc.multiply(values, 2)


def session() -> Session:
    made = Session.in_process(sites=2, settings={"fsync": False})
    made.stream("rows", EpochSource([ROWS]), ordered="time")
    return made


def results(made: Session, query: str) -> list[tuple[object, ...]]:
    run = made.start(sinks={query: "memory"}, at_end="close")
    assert run.await_termination(60)
    return sorted(run.results(query).rows(), key=repr)


def test_a_function_is_called_in_sql_in_any_case_and_with_constants() -> None:
    made = session()
    made.function("double", double, arguments=["int64"], result="int64")
    made.query("q", "SELECT time, DOUBLE(k) + double(5) AS d FROM rows WHERE double(time) > 2")
    assert results(made, "q") == [(2, None), (3, 16)]


def test_a_function_is_called_in_the_builder_and_in_groups() -> None:
    made = session()
    join = made.function(
        "joined", lambda a, b: pc.binary_join_element_wise(a, b, "-"),
        arguments=["string", "string"], result="string",
    )  # fmt: skip
    made.query("q", made.from_stream("rows").select("time", join("name", col("name")).alias("x")))
    assert results(made, "q") == [(1, "a-a"), (2, "b-b"), (3, None)]


def test_a_function_travels_with_its_expression() -> None:
    made = session().function("double", double, arguments=["int64"], result="int64")("k")
    again = pickle.loads(pickle.dumps(made))
    assert isinstance(again, Call)
    assert again.function.body is double  # type: ignore[attr-defined]
    assert str(again) == "DOUBLE(k)"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (lambda x: pa.array([1] * 9), "must return an Arrow array of . values"),
        (lambda x: 7, "it returned a int"),
        (lambda x: pa.array(["x"] * len(x)), "is declared to return int64"),
        (lambda x: 1 / 0, "failed: ZeroDivisionError"),
    ],
)
def test_what_a_function_gives_is_checked(body: object, said: str) -> None:
    made = session()
    made.function("f", body, arguments=["int64"], result="int64")  # type: ignore[arg-type]
    made.query("q", "SELECT time, f(k) AS x FROM rows")
    with pytest.raises(RunError, match=said):
        results(made, "q")


def test_a_function_that_is_not_the_same_twice_is_found_out_on_request() -> None:
    numbers = itertools.count()
    made = session()
    made.function(
        "f", lambda x: pa.array([next(numbers)] * len(x)), arguments=["int64"], result="int64", check=True
    )  # fmt: skip
    made.query("q", "SELECT time, f(k) AS x FROM rows")
    with pytest.raises(RunError, match="gave other values for the same arguments"):
        results(made, "q")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT double(name) AS x FROM rows", "DOUBLE takes int64, but name is string"),
        ("SELECT double(k, k) AS x FROM rows", "DOUBLE takes 1 argument"),
        ("SELECT duoble(k) AS x FROM rows", "there is no function 'duoble'"),
    ],
)
def test_calls_that_do_not_fit_are_refused(sql: str, said: str) -> None:
    made = session()
    made.function("double", double, arguments=["int64"], result="int64")
    with pytest.raises(LanguageError, match=said):
        made.query("q", sql)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a b"}, {"arguments": []}, {"arguments": ["int65"]}, {"result": "thing"}, {"body": 5},
        {"name": "double"},
    ],
    ids=str,
)  # fmt: skip
def test_functions_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    made = session()
    made.function("double", double, arguments=["int64"], result="int64")
    given = {"name": "other", "body": double, "arguments": ["int64"], "result": "int64", **wrong}
    with pytest.raises(AnabranchError):
        made.function(given.pop("name"), given.pop("body"), **given)  # type: ignore[arg-type]


def test_a_file_names_a_function_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "prices_of_tests.py").write_text(
        "import pyarrow.compute as pc\n\n\ndef cents(price):\n    return pc.multiply(price, 100)\n"
    )
    ROWS.write_parquet(tmp_path / "rows.parquet")
    text = (
        "CREATE FUNCTION cents(price BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS 'prices_of_tests:cents';\n"
        f"CREATE STREAM rows ORDERED BY time WITH (path = '{tmp_path}/rows.parquet');\n"
        "CREATE MATERIALIZED VIEW q AS SELECT time, cents(k) AS c FROM rows EMIT ON WINDOW CLOSE;\n"
        "CREATE SINK q TO CONSOLE;\n"
    )
    file = tmp_path / "file.sql"
    file.write_text(text)
    made = read_spec(file).session(in_process=True)
    assert results(made, "q") == [(1, 100), (2, None), (3, 300)]
    file.write_text(text.replace(":cents'", ":dollars'"))
    with pytest.raises(AnabranchError, match="cannot be had"):
        read_spec(file).session(in_process=True)
