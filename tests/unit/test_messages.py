"""Messages: the reason before the text, the nearest names instead of all, and names that fit a folder."""

from __future__ import annotations

import pytest

from anabranch import Session
from anabranch.errors import LanguageError, suggest


def session() -> Session:
    made = Session.in_process(sites=2)
    made.stream("tcp", generator="packets", rows=100, ordered="time")
    return made


def fault(sql: str) -> str:
    with pytest.raises(LanguageError) as caught:
        session().query("q", sql)
    return str(caught.value)


def test_the_reason_comes_before_the_query() -> None:
    told = fault("SELECT time, lenn FROM tcp")
    assert told.startswith(
        "Query 'q', at character 14: column 'lenn' is not found. Did you mean 'len'?"
    )
    assert told.endswith("In: SELECT time, lenn FROM tcp")


def test_of_a_long_query_only_what_is_around_the_fault_is_told() -> None:
    told = fault(f"SELECT time, {', '.join(f'len AS c{n}' for n in range(5000))}, lenn FROM tcp")
    assert told.startswith("Query 'q', at character")
    assert "lenn FROM tcp" in told
    assert len(told) < 2500


def test_an_unknown_function_names_the_nearest_and_not_all() -> None:
    told = fault("SELECT time, substrin(len, 1) AS s FROM tcp")
    assert "there is no function 'substrin'. Did you mean 'substring'?" in told
    assert "approx_quantile" not in told
    assert len(told) < 300


def test_of_many_names_without_a_near_one_some_are_told() -> None:
    told = suggest("zzzzzz", [f"name{n}" for n in range(40)])
    assert told.endswith("and 28 more.")


def test_a_name_too_long_for_a_folder_is_refused_where_it_is_given() -> None:
    with pytest.raises(LanguageError, match="it has 300 letters"):
        session().query("q" * 300, "SELECT time FROM tcp")
    with pytest.raises(LanguageError, match="cannot be a name"):
        session().stream("ü" * 61, generator="packets", rows=1, ordered="time")
    session().query("q" * 120, "SELECT time FROM tcp")
