"""Sets that suit nodes: the examples, how they read, and that rows which must meet do meet."""

from __future__ import annotations

from itertools import product

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import PlanningError
from anabranch.language.expression import Expression, call, col, lit, to_polars
from anabranch.language.node import Stream
from anabranch.language.order import Ordered
from anabranch.partitioning.partitioning_set import Axis, PartitioningSet
from anabranch.partitioning.reconcile import compatible, largest, reconcile
from anabranch.partitioning.requirement import NodeNeed

TCP = Stream(
    "tcp",
    pl.Schema({name: pl.Int64() for name in ("time", "srcIP", "destIP", "srcPort", "destPort")}),
    Ordered("time", timestamps=False),
)
time, source, target = col("time"), col("srcIP"), col("destIP")
x, y, u, v = (col(name) for name in "xyuv")


def tcp(*terms: Expression) -> PartitioningSet:
    return PartitioningSet.over(TCP, *terms)


def pairs(*terms: tuple[Expression, Expression]) -> PartitioningSet:
    return PartitioningSet(tuple(Axis({"A": left, "B": right}) for left, right in terms))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (
            tcp(time // 60, source, target),
            tcp(time // 90, source & 0xFFF0),
            "{time // 180, srcIP & 0xFFF0}",
        ),
        (
            tcp(source, target),
            tcp(source, target, col("srcPort"), col("destPort")),
            "{srcIP, destIP}",
        ),
        (tcp(source & 0xFF00), tcp(source & 0xFF), None),
        (tcp(source), tcp(target), None),
        (tcp(source ^ target), tcp(source, target), "{srcIP ^ destIP}"),
        (tcp(source ^ target), tcp(source), None),
        (tcp(source // 6, source % 4), tcp(source // 4), "{srcIP // 12}"),
        (tcp(source // 6, source % 8), tcp(source // 4), "{(srcIP // 4) % 2, srcIP // 12}"),
        (tcp(source), PartitioningSet.of({"dns": [col("client")]}), "dns {client}, tcp {srcIP}"),
        (
            pairs((x, u), (y, v)),
            PartitioningSet.of({"A": [x & 0xFF0, y // 60]}),
            "A {x & 0xFF0, y // 60} = B {u & 0xFF0, v // 60}",
        ),
        (
            pairs((x, u), (y, v)),
            PartitioningSet.of({"A": [x & 0xFF0, y // 60], "B": [v // 90]}),
            "A {y // 180} = B {v // 180}",
        ),
        (pairs((x // 60, u)), PartitioningSet.of({"A": [x // 90]}), "A {x // 180} = B {u // 3}"),
        (pairs((x, u)), PartitioningSet.of({"A": [x], "B": [v]}), None),
        (pairs((x, u)), pairs((x, v)), None),
        (pairs((x, u), (y, v)), pairs((y, v), (x, v)), "A {y} = B {v}"),
        (
            pairs((x, u)),
            PartitioningSet((Axis({"B": u & 0xFF, "C": col("w")}),)),
            "A {x & 0xFF} = B {u & 0xFF} = C {w}",
        ),
        (PartitioningSet.of({"A": [x], "B": [u]}), pairs((x, u)), "A {x} = B {u}"),
        (pairs((x ^ y, u)), PartitioningSet.of({"A": [x, y]}), "A {x ^ y} = B {u}"),
    ],
)
def test_the_largest_set_that_suits_both(
    left: PartitioningSet, right: PartitioningSet, expected: str | None
) -> None:
    for found in (reconcile(left, right), reconcile(right, left)):
        assert (None if found is None else str(found)) == expected


def test_sets_read_in_the_order_of_the_schema() -> None:
    assert str(tcp(target, source & 0xFFF0)) == "{srcIP & 0xFFF0, destIP}"
    assert str(PartitioningSet()) == "{}"
    assert str(PartitioningSet.of({"tcp": [source, target]})) == "{destIP, srcIP}", "by name"
    quoted = PartitioningSet.of({"s": [col("x // 60")]})
    assert str(quoted) == '{"x // 60"}'
    assert quoted != PartitioningSet.of({"s": [x // 60]})
    assert tcp(target, source) == PartitioningSet.of({"tcp": [source, target]})


def test_terms_that_part_nothing_further_are_left_out() -> None:
    assert str(tcp(source, source & 0xFFF0, (source // 30) // 2, source ^ target, target)) == (
        "{srcIP, destIP}"
    )
    assert str(tcp(source // 16, source >> 4)) == "{srcIP // 16}"
    linked = PartitioningSet((*pairs((x, u)).axes, *PartitioningSet.of({"A": [x], "B": [u]}).axes))
    assert linked == pairs((x, u)), "what makes streams meet is kept"


def test_sets_that_make_no_sense_are_refused() -> None:
    with pytest.raises(PlanningError, match=r"has no column 'sourceIP'\. Did you mean 'srcIP'"):
        tcp(col("sourceIP"))
    with pytest.raises(
        PlanningError, match="cannot be partitioned by '1', which is the same for all"
    ):
        tcp(lit(1))


def aggregate(*terms: Expression, stream: str = "tcp") -> NodeNeed:
    return NodeNeed("aggregate", "aggregate", {stream: terms})


@pytest.mark.parametrize(
    ("partitioning", "suits"),
    [
        (tcp(source, target), True),
        (tcp(source), True),
        (tcp(source & 0xFFF0, target & 0xFF00), True),
        (tcp(call("abs", source) ^ target), True),
        (tcp(source, target, col("srcPort")), False),
        (tcp(time, source), False),
        (PartitioningSet(), False),
        (PartitioningSet.of({"dns": [source]}), False),
    ],
)
def test_sets_that_suit_an_aggregate(partitioning: PartitioningSet, suits: bool) -> None:
    assert compatible(partitioning, aggregate(source, target)) is suits


def test_a_join_takes_any_part_of_its_terms_on_all_its_streams_alike() -> None:
    join = NodeNeed("join", "join", {"A": (x, y // 60), "B": (u, v)})
    for suiting in (
        pairs((x, u), (y // 60, v)), pairs((x, u)), pairs((y // 180, v // 3)),
        pairs((x & 0xF0, u & 0xF0)), pairs((x ^ (y // 60), u ^ v)),
    ):  # fmt: skip
        assert compatible(suiting, join), str(suiting)
    for other in (
        PartitioningSet.of({"A": [x], "B": [u]}), PartitioningSet.of({"A": [x]}), pairs((x, v)),
        pairs((x & 0xF0, u)), pairs((y // 180, v // 2)), pairs((x ^ (y // 60), v ^ v)),
        PartitioningSet((*pairs((x, u)).axes, Axis({"A": y // 60}))),
    ):  # fmt: skip
        assert not compatible(other, join), str(other)


def test_two_terms_on_one_attribute_pair_with_their_own() -> None:
    join = NodeNeed("join", "join", {"A": (x, x), "B": (u, v)})
    assert compatible(pairs((x, u)), join)
    assert compatible(pairs((x, v)), join)


def test_everything_suits_a_stateless_node_and_nothing_a_single_group() -> None:
    stateless = NodeNeed("select", "stateless", {})
    assert compatible(PartitioningSet(), stateless)
    assert compatible(tcp(source), stateless)
    assert not compatible(tcp(source), aggregate())
    assert largest(aggregate()) == PartitioningSet() == largest(stateless)


ATTRIBUTES = st.sampled_from("xyz")
SHAPES = st.one_of(
    st.just(lambda a: a),
    st.sampled_from((2, 3, 4, 6, 10)).map(lambda n: lambda a: a // n),
    st.sampled_from((2, 3, 4, 6)).map(lambda n: lambda a: a % n),
    st.sampled_from((3, 6, 12, 13, -4)).map(lambda m: lambda a: a & m),
    st.integers(0, 3).map(lambda k: lambda a: a >> k),
)
TERMS = st.builds(lambda name, shape: shape(col(name)), ATTRIBUTES, SHAPES)
SOME = st.lists(TERMS | st.builds(lambda a, b: a ^ b, TERMS, TERMS), min_size=1, max_size=4)
ROWS = pl.DataFrame(
    list(product(range(-2, 13, 2), range(0, 14, 3), (0, 1, 5, 8))),
    schema=["x", "y", "z"],
    orient="row",
)


def values(rows: pl.DataFrame, terms: tuple[Expression, ...]) -> list[tuple[object, ...]]:
    return rows.select(
        to_polars(term, rows.schema).alias(str(n)) for n, term in enumerate(terms)
    ).rows()


@settings(max_examples=150)
@given(SOME, SOME)
def test_a_reconciled_set_suits_both_and_keeps_their_groups_whole(
    left: list[Expression], right: list[Expression]
) -> None:
    needs = [NodeNeed("q", "aggregate", {"s": tuple(terms)}) for terms in (left, right)]
    sets = [largest(need) for need in needs]
    both, again = reconcile(*sets), reconcile(*reversed(sets))
    assert both == again
    assert str(both) == str(again)
    if both is None:
        return
    placed = values(ROWS, both.terms("s"))
    for need in needs:
        assert compatible(both, need)
        groups = values(ROWS, need.terms_by_stream["s"])
        assert len(set(zip(groups, placed, strict=True))) == len(set(groups)), f"{both} for {need}"


@settings(max_examples=150)
@given(SOME)
def test_a_set_reconciled_with_itself_stays(terms: list[Expression]) -> None:
    own = PartitioningSet.of({"s": terms})
    assert reconcile(own, own) == own


@settings(max_examples=150)
@given(st.lists(st.tuples(TERMS, TERMS), min_size=1, max_size=3), SOME, SOME, st.booleans())
def test_rows_of_two_streams_that_must_meet_are_hashed_alike(
    equal: list[tuple[Expression, Expression]],
    left: list[Expression],
    right: list[Expression],
    join_first: bool,
) -> None:
    join = NodeNeed("j", "join", dict(zip("AB", zip(*equal, strict=True), strict=True)))
    needs = [join, aggregate(*left, stream="A"), aggregate(*right, stream="B")]
    both: PartitioningSet | None = None
    for need in needs if join_first else needs[::-1]:
        both = largest(need) if both is None else reconcile(both, largest(need))
        if both is None:
            return
    assert all(compatible(both, need) for need in needs)
    placed = {
        stream: zip(
            values(ROWS, join.terms_by_stream[stream]),
            values(ROWS, both.terms(stream)),
            strict=True,
        )
        for stream in "AB"
    }
    sites: dict[tuple[object, ...], set[tuple[object, ...]]] = {}
    for rows in placed.values():
        for key, site in rows:
            sites.setdefault(key, set()).add(site)
    assert all(len(some) == 1 for some in sites.values()), f"{both} for {join}"
