"""Lists and structs have no order, and are no texts: what needs that is refused before it runs."""

from __future__ import annotations

import pytest

from anabranch import Session
from anabranch.errors import AnabranchError

NO_ORDER = "no order"
AGGREGATES = [
    "MIN(xs)", "MAX(p)", "ANY_VALUE(xs)", "MAX_BY(time, xs)", "MIN_BY(time, p)", "QUANTILE_DISC(xs, 0.5)",
    "ARRAY_AGG(time ORDER BY xs)", "STRING_AGG(s, '-' ORDER BY time, p)",
]  # fmt: skip
VALUES = [
    ("xs < ys", NO_ORDER), ("p >= p", NO_ORDER), ("GREATEST(xs, ys)", NO_ORDER), ("LEAST(p, p)", NO_ORDER),
    ("LIST_SORT(ps)", NO_ORDER), ("LIST_MAX(lists)", NO_ORDER), ("LIST_MIN(ps)", NO_ORDER),
    ("LIST_DISTINCT(lists)", NO_ORDER), ("SORT_ARRAY(ps)", NO_ORDER), ("xs = 1", "compares"),
    ("COALESCE(xs, time)", "chooses among"), ("xs || ys", "LIST_CONCAT"), ("[xs, ys]", "list of lists"),
    ("CAST(xs AS VARCHAR)", "cannot be cast"), ("CAST(p AS VARCHAR)", "cannot be cast"),
    ("CAST(xs AS BIGINT)", "cannot be cast"),
]  # fmt: skip


def session() -> Session:
    made = Session.in_process(1)
    schema = {
        "time": "int64", "s": "string", "xs": "list(int64)", "ys": "list(int64)",
        "p": "struct(a int64, b string)", "ps": "list(struct(a int64, b string))",
        "lists": "list(list(int64))",
    }  # fmt: skip
    made.stream("t", path="nowhere", format="parquet", schema=schema, ordered="time")
    return made


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_aggregates_that_need_an_order(aggregate: str) -> None:
    with pytest.raises(AnabranchError, match=NO_ORDER):
        session().query("q", f"SELECT time/10 AS tb, {aggregate} AS a FROM t GROUP BY time/10")


def test_the_greatest_of_the_last_rows() -> None:
    with pytest.raises(AnabranchError, match=NO_ORDER):
        session().query(
            "q", "SELECT time, MAX(xs) OVER (ORDER BY time ROWS 2 PRECEDING) AS a FROM t"
        )


@pytest.mark.parametrize(("value", "reason"), VALUES)
def test_values_that_need_an_order_or_a_text(value: str, reason: str) -> None:
    with pytest.raises(AnabranchError, match=reason):
        session().query("q", f"SELECT time, {value} AS a FROM t")


@pytest.mark.parametrize(
    "value", ["xs = ys", "p <> p", "[p, p]", "LIST_CONCAT(xs, ys)", "COALESCE(xs, [1])",
              "LIST_SORT(xs)", "LIST_REVERSE(lists)"],
)  # fmt: skip
def test_what_does_not_need_one_is_there(value: str) -> None:
    session().query("q", f"SELECT time, {value} AS a FROM t")
