"""Random expressions over numbers of all kinds: values, and the types of decimals, are those of DuckDB.

Where we refuse, DuckDB may answer (it rounds digits off where 38 are too few); where it refuses, we may (it
computes with as few bits as the columns have). What both answer must be the same.
"""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pytest

from anabranch.errors import LanguageError
from anabranch.language.expression import Named, type_of
from anabranch.language.sql.expression import read_expression
from anabranch.operators.stateless import compute

SCHEMA = pl.Schema(
    {
        "i": pl.Int64(), "j": pl.Int64(), "f": pl.Float64(), "a": pl.Decimal(10, 2), "b": pl.Decimal(8, 3),
        "w": pl.Decimal(38, 4), "z": pl.Decimal(18, 0), "s": pl.String(), "p": pl.Boolean(),
    }
)  # fmt: skip
DECIMALS = ("a", "b", "w", "z")
FAR = (-(2**63), 2**63 - 1, 2**62, 0, 2**53 + 1)
POINTS = ("4611686018427387903.5", "9007199254740992.5", "-0.5", "9223372036854775807.5", "1.0")
TEXTS = (
    "1",
    "2.5",
    "-3.5",
    "x",
    " 7 ",
    "1e3",
    "",
    "0.005",
    "99999999999999999999",
    "true",
    "2020-02-29",
)
ROWS, EACH = 30, 40


class Expressions:
    """Expressions of a seed."""

    def __init__(self, seed: int) -> None:
        self.of = random.Random(seed)

    def rows(self) -> pl.DataFrame:
        draw = self.of

        def column(value: Any) -> list[Any]:
            return [None if draw.random() < 0.1 else value() for _ in range(ROWS)]

        def digits(count: int, scale: int) -> Any:
            return lambda: Decimal(draw.randint(-(10**count), 10**count)).scaleb(-scale)

        columns = {
            "i": column(lambda: draw.choice(FAR) if draw.random() < 0.3 else draw.randint(-50, 50)),
            "j": column(lambda: draw.randint(-9, 9)),
            "f": column(lambda: draw.choice((0.5, -1.25, 2.0, 1e10, 0.0))),
            "a": column(digits(6, 2)), "b": column(digits(4, 3)), "w": column(digits(12, 4)),
            "z": column(digits(4, 0)), "s": column(lambda: draw.choice(TEXTS)),
            "p": column(lambda: draw.random() < 0.5),
        }  # fmt: skip
        return pl.DataFrame(columns, schema=SCHEMA)

    def number(self, depth: int) -> str:
        pick, inner = self.of.choice, depth - 1
        if depth <= 0 or self.of.random() < 0.3:
            return str(pick((*DECIMALS, *DECIMALS, "j", "f", "0.10", "2.5", "3", "-1", "0.005")))
        match self.of.randrange(9):
            case 0 | 1 | 2:
                return f"({self.number(inner)} {pick('+-*')} {self.number(inner)})"
            case 3:
                return f"{pick(('ABS', 'FLOOR', 'CEIL', '-'))}({pick(DECIMALS)})"
            case 4:
                return f"CAST({self.number(inner)} AS DECIMAL({pick(('10, 2', '20, 1', '38, 6', '5, 0'))}))"
            case 5:
                return f"TRY_CAST({pick(('s', self.number(inner)))} AS {pick(('DECIMAL(6, 2)', 'DOUBLE'))})"
            case 6:
                return f"ROUND({pick(DECIMALS)}, {self.of.randrange(5)})"
            case 7:
                name = pick(("COALESCE", "GREATEST", "LEAST"))
                return f"{name}({self.number(inner)}, {self.number(inner)})"
        return (
            f"CASE WHEN {self.truth(inner)} THEN {self.number(inner)} ELSE {self.number(inner)} END"
        )

    def truth(self, depth: int) -> str:
        pick, inner = self.of.choice, depth - 1
        sign = pick(("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"))
        match self.of.randrange(8):
            case 0 | 1:
                return f"({self.number(inner)} {sign} {self.number(inner)})"
            case 2:
                return f"({pick(('i', 'j'))} {sign} {pick(POINTS)})"
            case 3:
                options = self.of.sample(("1", "2.5", "0.10", "-3", "NULL", "12.5"), 3)
                return f"({pick(('i', 'j', 'f', *DECIMALS))} IN ({', '.join(options)}))"
            case 4:
                return str(pick(("TRUE", "NULL", "(1 = 2)", "(10 <> COALESCE(3, j))", "p")))
            case 5 if depth > 0:
                return f"({self.truth(inner)} {pick(('AND', 'OR'))} {self.truth(inner)})"
            case 6 if depth > 0:
                return f"(NOT {self.truth(inner)})"
        return f"({self.number(inner)} IS NULL)"

    def other(self) -> str:
        pick = self.of.choice
        kinds = ("BIGINT", "SMALLINT", "BOOLEAN", "DATE", "TIMESTAMP", "DOUBLE")
        match self.of.randrange(3):
            case 0:
                return f"(i >> {pick(('0', '1', '62', '63', '64', 'j', 'ABS(j) * 9'))})"
            case 1:
                return f"TRY_CAST(s AS {pick(kinds)})"
        return f"TRY_CAST({pick((*DECIMALS, 'i'))} AS {pick(('TINYINT', 'BIGINT', 'VARCHAR', 'BOOLEAN'))})"

    def any(self) -> str:
        return str(self.of.choice((self.number(3), self.truth(3), self.other())))


def same(mine: Any, theirs: Any) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    if isinstance(mine, float) or isinstance(theirs, float):
        near = math.isclose(float(mine), float(theirs), rel_tol=1e-9, abs_tol=1e-9)
        return near or (math.isnan(mine) and math.isnan(theirs))
    return bool(mine == theirs)


def refused(text: str) -> bool:
    """Whether no decimal has the digits that it needs."""
    try:
        type_of(read_expression(text, SCHEMA), SCHEMA, text)
    except LanguageError as error:
        return "no decimal holds" in str(error) or "digits after the point" in str(error)
    return False


@pytest.mark.parametrize("seed", range(12))
def test_expressions_give_what_duckdb_gives(seed: int) -> None:
    expressions = Expressions(seed)
    rows = expressions.rows()
    compared = 0
    with duckdb.connect() as connection:
        connection.register("arrow", rows.to_arrow())
        connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
        for _ in range(EACH):
            text = expressions.any()
            if refused(text):
                continue
            expression = read_expression(text, SCHEMA)
            kind = type_of(expression, SCHEMA, text)
            try:
                found = connection.execute(f"SELECT {text}, typeof({text}) FROM t").fetchall()
            except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.BinderException):
                continue
            mine = compute(rows, [Named("value", expression)])["value"]
            assert mine.dtype == kind, text
            for ours, (theirs, _) in zip(mine.to_list(), found, strict=True):
                assert same(ours, theirs), f"{text}: {ours!r}, DuckDB {theirs!r}"
            if isinstance(kind, pl.Decimal):
                assert found[0][1] == f"DECIMAL({kind.precision},{kind.scale})", text
            compared += 1
    assert compared > EACH // 2, "most of them are compared"
