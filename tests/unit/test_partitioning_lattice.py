"""Terms that are functions of others: what is claimed, that Polars agrees, and that no more was possible."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.language.expression import (
    TYPES,
    Expression,
    call,
    col,
    lit,
    substitute,
    to_polars,
    when,
)
from anabranch.partitioning.cast import loses_nothing, type_name
from anabranch.partitioning.lattice import express, fill, hole, is_function_of, meet
from anabranch.partitioning.term import Attribute, alike, canonical, key_of, text_of

x, y, s = col("x"), col("y"), col("s")

NUMBERS = pl.DataFrame(
    {"x": [*range(-700, 1500), *(7**n - 3 for n in range(22)), -(2**62), 2**62, None]},
    schema={"x": pl.Int64()},
).with_columns(y=(pl.col("x") * 31 + 5) % 17)
WORDS = pl.DataFrame(
    {"s": ["", "a", "ab", "abc", "abd", "äbc", "äb", "b", "ba", "abcdef", "abcdeg", "Ab", None]}
)


def prefix(term: Expression, length: int) -> Expression:
    return call("substring", term, 1, length)


@pytest.mark.parametrize(
    ("term", "other"),
    [
        (x, x),
        (x // 60, x),
        (x // 60, x // 30),
        (x // 60, x // 60),
        (x // 180, (x // 60) // 3),
        (x & 0xFF00, x & 0xFFF0),
        (lit(0xFF00) & x, x & 0xFFF0),
        (x & 0xFF00, (x & 0xFFFF) & 0xFF0F),
        (x & 0xFFF0, x >> 4),
        (x & 0xFF0, x % 4096),
        (x >> 5, x >> 3),
        (x >> 5, x // 32),
        (x // 32, x >> 5),
        (x // 64, x >> 5),
        (x // 60, x & -4),
        (x % 6, x % 12),
        (x % 4, x & 0xFF),
        ((x // 3600) % 24, x // 60),
        ((x // 3600) % 24, x % 86_400),
        (prefix(s, 2), prefix(s, 3)),
        (prefix(s, 2), s),
        (prefix(prefix(s, 3), 2), prefix(s, 2)),
        (call("upper", prefix(s, 2)), prefix(s, 5)),
        (x // 60, x + 1),
        (x // 60, 7 - x),
        (x, -x),
        (x ^ y, (y, x)),
        ((x // 60, y & 3), (x // 30, y)),
        (when((x > 5, 1), otherwise=0), x),
        (lit(1), x),
    ],
)
def test_what_is_a_function_of_what(
    term: Expression | tuple[Expression, ...], other: Expression | tuple[Expression, ...]
) -> None:
    assert is_function_of(term, other)


@pytest.mark.parametrize(
    ("term", "other"),
    [
        (x, x // 60),
        (x // 60, x // 90),
        (x // 60, x // 120),
        (x & 0xFFF0, x & 0xFF00),
        (x & 0xFFF0, x >> 5),
        (x & 0xFFF0, x % 4096),
        (x >> 3, x >> 5),
        (x >> 1, x // 3),
        (x % 12, x % 6),
        (x % 5, x % 6),
        (x // 60, x % 3600),
        (prefix(s, 3), prefix(s, 2)),
        (prefix(s, 2), call("substring", s, 2, 3)),
        (x, y),
        (x ^ y, x),
        (x, x ^ y),
        (x, x * 0),
        ((x, y), x),
        (call("upper", s), call("lower", s)),
        (x // -60, x // 60),
        (x, x.cast("int64")),
        (x // 180.0, x // 60.0),
    ],
)
def test_what_is_not_claimed(
    term: Expression | tuple[Expression, ...], other: Expression | tuple[Expression, ...]
) -> None:
    assert not is_function_of(term, other)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (x // 60, x // 90, "x // 180"),
        (x, x & 0xFFF0, "x & 0xFFF0"),
        (x & 0xFFF0, x & 0xFF0F, "x & 0xFF00"),
        (x & 0xF0, x & 0xF, None),
        (x >> 3, x >> 5, "x >> 5"),
        (x >> 3, x // 12, "x // 24"),
        (x >> 4, x // 16, "x >> 4"),
        (x & 0xFFF0, x >> 6, "x & 0xFFC0"),
        (x & 0xFFF0, x % 4096, "x & 0xFF0"),
        (x & -15, x & -14, "x & -16"),
        (x % 12, x % 18, "x % 6"),
        (x % 5, x % 7, None),
        (x // 7200, (x // 3600) % 24, "(x // 7200) % 12"),
        (prefix(s, 3), prefix(s, 5), "SUBSTRING(s, 1, 3)"),
        (x // 60, y // 60, None),
        (call("upper", s), call("lower", s), None),
        (call("upper", s), s, "UPPER(s)"),
        ((x + 1) // 60, (x + 1) // 90, "(x + 1) // 180"),
        (x & 0, x, None),
        (x % 1, x, None),
        (x // 2**40, x // 3**30, None),
    ],
)
def test_finest_term_below_two(left: Expression, right: Expression, expected: str | None) -> None:
    for found in (meet(left, right), meet(right, left)):
        assert (found if found is None else text_of(found)) == expected


def test_functions_are_written_over_the_values_of_the_others() -> None:
    assert str(express(x // 180, (x // 60,))) == "#0 // 3"
    assert str(express(x & 0xFF00, (y, x >> 4))) == "(#1 * 16) & 65280"
    function = express((x // 60) ^ (y & 8), (y, x // 30))
    assert function is not None
    assert str(function) == "(#1 // 2) ^ (#0 & 8)"
    assert alike(fill(function, (y, x // 30)), (x // 60) ^ (y & 8))


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ((x // 60) // 3, "x // 180"),
        ((x >> 2) >> 3, "x >> 5"),
        ((x >> 2) // 3, "x // 12"),
        ((x % 12) % 6, "x % 6"),
        ((x % 12) % 5, "(x % 12) % 5"),
        ((x % 12) // 4, "(x // 4) % 3"),
        ((x & 0xFFF0) & 0xFF, "x & 0xF0"),
        ((x % 256) & 0xF0, "x & 0xF0"),
        ((x // 60) & 3, "(x // 60) & 0x3"),
        (x // 1, "x"),
        (prefix(prefix(s, 3), 9), "SUBSTRING(s, 1, 3)"),
        (call("abs", (x // 2) // 2), "ABS(x // 4)"),
    ],
)
def test_one_form_for_all_ways_to_write_a_term(term: Expression, expected: str) -> None:
    assert text_of(canonical(term)) == expected


def test_columns_and_texts_that_look_alike_are_told_apart() -> None:
    assert not is_function_of(col("x // 60"), x // 60)
    assert key_of(lit(1)) != key_of(lit(True))


def test_laws_of_integers_are_not_claimed_of_floats() -> None:
    price = Attribute("price", pl.Float64())
    # Not even what is a function of other numbers: 0.0 and -0.0 are equal, their inverses are not
    assert not is_function_of(price // 30, price)
    assert is_function_of(price, price)
    assert not is_function_of(price // 0.3, price // 0.1)
    assert not is_function_of(price // 30, price // 10)
    assert meet(price // 10, price // 15) is None
    assert not is_function_of(price, price + 1)
    rows = pl.DataFrame({"price": [0.29999999999999993, 0.3]})
    fine, coarse = (
        rows.select(to_polars(price // n, rows.schema)).to_series().to_list() for n in (0.1, 0.3)
    )
    assert fine[0] == fine[1], "two prices agree on price // 0.1"
    assert coarse[0] != coarse[1], "and do not on price // 0.3"


SAMPLES: dict[pl.DataType, list[object]] = {
    pl.Boolean(): [False, True],
    pl.Float32(): [0.0, 0.1, 1e30, -2.5],
    pl.Float64(): [0.1, 0.1 + 2**-56, 1e300],
    pl.Date(): [dt.date(1970, 1, 1), dt.date(2026, 3, 4), dt.date(1850, 1, 1)],
    pl.Datetime("us"): [dt.datetime(2026, 1, 1, 1), dt.datetime(2026, 1, 1, 2)],
    pl.String(): ["1", "01", "a"],
}
for bits in (8, 16, 32, 64):
    signed, unsigned = TYPES[f"int{bits}"], TYPES[f"uint{bits}"]
    SAMPLES[signed] = [-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 2, 2 ** (bits - 1) - 1]
    SAMPLES[unsigned] = [0, 1, 2 ** (bits - 1), 2**bits - 2, 2**bits - 1]


@pytest.mark.parametrize("kind", SAMPLES, ids=str)
@pytest.mark.parametrize("name", TYPES)
def test_casts_said_to_lose_nothing_can_be_undone(kind: pl.DataType, name: str) -> None:
    attribute = Attribute("v", kind)
    back = is_function_of(attribute, attribute.cast(name))
    assert back == loses_nothing(kind, name)
    if back:
        rows = pl.DataFrame({"v": SAMPLES[kind]}, schema={"v": kind})
        there = rows.select(v=to_polars(attribute.cast(name), rows.schema))
        again = there.select(v=to_polars(col("v").cast(str(type_name(kind))), there.schema))
        assert again.equals(rows)


def test_what_casts_lose() -> None:
    lossy = [
        (pl.Int64(), "int32"), (pl.Int64(), "uint64"), (pl.UInt64(), "int64"), (pl.Int64(), "float64"),
        (pl.Int32(), "float32"), (pl.Float64(), "int64"), (pl.Float64(), "float32"),
        (pl.String(), "int64"), (pl.Datetime("us"), "date"), (pl.Int64(), "boolean"),
    ]  # fmt: skip
    assert not any(loses_nothing(kind, name) for kind, name in lossy)
    narrow, wide = Attribute("v", pl.UInt16()), Attribute("v", pl.UInt16()).cast("int64")
    assert text_of(canonical(wide // 60)) == "v // 60", "the hash does not see the width"
    assert text_of(canonical(narrow.cast("string"))) == "CAST(v AS string)"
    assert is_function_of(narrow // 60, narrow.cast("string"))


STEPS = st.sampled_from((1, 2, 3, 4, 6, 8, 12, 16, 30, 60, 64, 90))
MASKS = st.integers(-300, 300) | st.sampled_from((0xFFF0, 0xFF00, 0xF0F0, -16, -256))
PLAIN = st.one_of(
    STEPS.map(lambda n: x // n), STEPS.map(lambda n: x % n), MASKS.map(lambda m: x & m),
    st.integers(0, 8).map(lambda k: x >> k), st.just(x),
)  # fmt: skip


def deeper(terms: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(lambda t, n: t // n, terms, STEPS),
        st.builds(lambda t, n: t % n, terms, STEPS),
        st.builds(lambda t, m: t & m, terms, MASKS),
        st.builds(lambda t, k: t >> k, terms, st.integers(0, 6)),
        st.builds(lambda t, n: t + n, terms, st.integers(-9, 9)),
        st.builds(lambda t, n: n - t, terms, st.integers(-9, 9)),
        st.builds(lambda t: -t, terms),
        st.builds(lambda t, u: t ^ u, terms, terms),
        st.builds(lambda t: call("abs", t), terms),
    )


TERMS = st.recursive(PLAIN, deeper, max_leaves=4)
STRINGS = st.recursive(
    st.integers(1, 6).map(lambda n: prefix(s, n)) | st.just(s),
    lambda terms: st.one_of(
        st.builds(prefix, terms, st.integers(1, 6)),
        st.builds(lambda t: call("upper", t), terms),
        st.builds(lambda t: call("length", t), terms),
    ).filter(lambda term: "LENGTH(LENGTH" not in str(term)),
    max_leaves=3,
).filter(lambda term: not any(f"{f}(LENGTH" in str(term) for f in ("SUBSTRING", "UPPER")))


def check_sound(rows: pl.DataFrame, left: Expression, right: Expression) -> None:
    """Whatever is claimed of the two holds on the rows, and the witness computes it."""
    for term, other in ((left, right), (right, left)):
        function = express(term, (other,))
        assert is_function_of(term, other) == (function is not None)
        if function is not None:
            values = rows.select(t=to_polars(term, rows.schema), o=to_polars(other, rows.schema))
            assert values.n_unique() == values.select("o").n_unique(), f"{term} of {other}"
            again = values.select(
                t=to_polars(fill_column(function, "o"), values.schema)
            ).to_series()
            assert again.eq_missing(values["t"]).all(), f"{term} = {function} of {other}"
        same = rows.select(
            t=to_polars(term, rows.schema), c=to_polars(canonical(term), rows.schema)
        )
        assert same["t"].eq_missing(same["c"]).all(), f"{term} as {canonical(term)}"
    found, again = meet(left, right), meet(right, left)
    assert (found is None) == (again is None)
    if found is not None and again is not None:
        assert text_of(found) == text_of(again)
        assert is_function_of(found, left)
        assert is_function_of(found, right)


def fill_column(function: Expression, name: str) -> Expression:
    return substitute(function, {hole(0).name: col(name)})


@settings(max_examples=400)
@given(TERMS, TERMS)
def test_claims_about_numbers_hold(left: Expression, right: Expression) -> None:
    check_sound(NUMBERS, left, right)


@settings(max_examples=100)
@given(STRINGS, STRINGS)
def test_claims_about_strings_hold(left: Expression, right: Expression) -> None:
    check_sound(WORDS, left, right)


def classes(values: Iterable[tuple[object, object]]) -> int:
    """How many classes there are if rows that agree on either part are together."""
    parent: dict[tuple[str, object], tuple[str, object]] = {}

    def find(key: tuple[str, object]) -> tuple[str, object]:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for left, right in values:
        parent[find(("left", left))] = find(("right", right))
    return len({find(key) for key in list(parent)})


@settings(max_examples=150)
@given(st.one_of(
    st.tuples(STEPS, STEPS).map(lambda n: (x // n[0], x // n[1])),
    st.tuples(STEPS, STEPS).map(lambda n: (x % n[0], x % n[1])),
    st.tuples(STEPS, STEPS).map(lambda n: (x // n[0], x % n[1])),
    st.tuples(st.integers(0, 255), st.integers(0, 255)).map(lambda m: (x & m[0], x & m[1])),
    st.tuples(st.integers(0, 255), st.integers(0, 6)).map(lambda m: (x & m[0], x >> m[1])),
))  # fmt: skip
def test_no_finer_term_is_possible(pair: tuple[Expression, Expression]) -> None:
    rows = pl.DataFrame({"x": range(2880)})
    values = rows.select(
        left=to_polars(pair[0], rows.schema), right=to_polars(pair[1], rows.schema)
    )
    found = meet(*pair)
    most = 1 if found is None else rows.select(to_polars(found, rows.schema)).n_unique()
    assert most == classes(values.iter_rows())
