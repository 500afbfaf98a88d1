"""Unions whose inputs differ: the error says what to write, and what it says can be run."""

from __future__ import annotations

import re

import polars as pl
import pytest

from anabranch import Query, col, lit
from anabranch.errors import LanguageError
from anabranch.language.alike import SQL_NAMES, common_type
from anabranch.language.expression import TYPES
from anabranch.language.node import Stream
from anabranch.language.order import Ordered
from anabranch.language.sql.expression import read_expression
from anabranch.language.sql.read import read_query

CASES = {
    "narrower integer": ({"time": "int64", "len": "int64"}, {"time": "int64", "len": "int16"}),
    "wider integer": ({"time": "int32", "len": "uint8"}, {"time": "int64", "len": "uint16"}),
    "signs": ({"time": "int64", "len": "uint32"}, {"time": "int64", "len": "int8"}),
    "integer and float": ({"time": "int64", "len": "int64"}, {"time": "int64", "len": "float64"}),
    "floats": ({"time": "int64", "len": "float32"}, {"time": "int64", "len": "float64"}),
    "text and number": ({"time": "int64", "len": "string"}, {"time": "int64", "len": "int64"}),
    "date and timestamp": ({"time": "int64", "d": "date"}, {"time": "int64", "d": "timestamp"}),
    "another order": ({"time": "int64", "a": "int64"}, {"a": "int64", "time": "int64"}),
    "a column less": ({"time": "int64", "a": "string"}, {"time": "int64"}),
    "a column more": ({"time": "int64"}, {"time": "int64", "a": "string", "b": "date"}),
    "another name": ({"time": "int64", "len": "int64"}, {"time": "int64", "the length": "int32"}),
    "no type for both": ({"time": "int64", "x": "binary"}, {"time": "int64", "x": "int64"}),
}


def stream(name: str, types: dict[str, str]) -> Query:
    schema = pl.Schema({column: TYPES[kind] for column, kind in types.items()})
    return Query(Stream(name, schema, Ordered("time", timestamps=False)))


def inputs(case: str) -> dict[str, Query]:
    return {name: stream(name, types) for name, types in zip("ab", CASES[case], strict=True)}


@pytest.mark.parametrize("case", CASES)
def test_what_the_builder_says_can_be_run(case: str) -> None:
    parts = inputs(case)
    with pytest.raises(LanguageError) as refused:
        parts["a"].union(parts["b"])
    told = re.findall(
        r"(the first input|input 2) as (\.select\(.*?\))\.(?= |$)", str(refused.value)
    )
    assert told, str(refused.value)
    for which, text in told:
        name = "a" if which == "the first input" else "b"
        parts[name] = eval(f"part{text}", {"part": parts[name], "col": col, "lit": lit})
    both = parts["a"].union(parts["b"])
    assert both.node.ordered, "the union has lost its time"


@pytest.mark.parametrize("case", CASES)
def test_what_sql_says_can_be_run(case: str) -> None:
    parts = inputs(case)
    written = {name: f"SELECT * FROM {name}" for name in parts}
    with pytest.raises(LanguageError) as refused:
        read_query(" UNION ALL ".join(written.values()), parts, "q")
    told = re.findall(r"(the first input|input 2) as (SELECT .*?) FROM \(…\)", str(refused.value))
    assert told, str(refused.value)
    for which, text in told:
        name = "a" if which == "the first input" else "b"
        written[name] = f"{text} FROM ({written[name]})"
    both = read_query(" UNION ALL ".join(written.values()), parts, "q")
    assert both.node.ordered, "the union has lost its time"


def test_messages() -> None:
    def told(case: str) -> str:
        parts = inputs(case)
        with pytest.raises(LanguageError) as refused:
            parts["a"].union(parts["b"])
        return str(refused.value).partition(": ")[2]

    assert told("narrower integer") == (
        "'len' is int64 in the first input and int16 in input 2. "
        'Write input 2 as .select("time", col("len").cast("int64").alias("len")).'
    )
    assert told("a column less").endswith(
        'Write input 2 as .select("time", lit(None).cast("string").alias("a")).'
    )
    assert told("a column more").endswith(
        """Write input 2 as .select("time"). To keep 'a' and 'b', select as much in the first input."""
    )
    assert told("no type for both").endswith(
        """Write input 2 as .select("time"). No type holds both 'x', so it is left out."""
    )


def test_every_type_of_the_advice_has_a_name_in_sql() -> None:
    kinds = list(dict.fromkeys(TYPES.values()))
    for one in kinds:
        for other in kinds:
            name = common_type(one, other)
            if one == other or name is None:
                continue
            cast = read_expression(f"CAST(x AS {SQL_NAMES[name]})", {"x": one})
            assert str(cast) == str(col("x").cast(name))


def test_time_in_64_bits_is_still_time() -> None:
    narrow = stream("a", {"time": "int32"})
    assert narrow.select(col("time").cast("int64").alias("t")).node.ordered == Ordered("t", False)
    assert narrow.select(col("time").cast("int16").alias("t")).node.ordered is None
