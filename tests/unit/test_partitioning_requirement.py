"""What nodes need: terms traced to source attributes, and those that do not count."""

from __future__ import annotations

import polars as pl
import pytest

from anabranch.errors import PlanningError
from anabranch.language.aggregate import count, max_, sum_
from anabranch.language.builder import Query
from anabranch.language.expression import Expression, col, lit
from anabranch.language.node import Node, Stream
from anabranch.language.order import Ordered
from anabranch.language.window_key import count_window, hop, session_window, tumble
from anabranch.partitioning.requirement import NodeNeed, join_need, need_of
from anabranch.partitioning.term import text_of
from anabranch.partitioning.tree import NeedTree, needs_of
from anabranch.plan.compile import compile_queries

INTS = ("time", "srcIP", "destIP", "srcPort", "destPort", "len", "flags")
TCP = Stream(
    "tcp", pl.Schema({name: pl.Int64() for name in INTS}), Ordered("time", timestamps=False)
)
DNS = Stream(
    "dns",
    pl.Schema({"at": pl.Int64(), "client": pl.UInt32(), "name": pl.String()}),
    Ordered("at", timestamps=False),
)
TB = (col("time") // 60).alias("tb")

tcp, dns = Query(TCP), Query(DNS)
flows = tcp.group_by(TB, "srcIP", "destIP").agg(count().alias("cnt"))
heavy_flows = flows.group_by("tb", "srcIP").agg(max_("cnt").alias("max_cnt"))


def terms(node: Node, name: str = "q") -> dict[str, list[str]]:
    return texts(need_of(name, node))


def texts(need: NodeNeed) -> dict[str, list[str]]:
    return {
        stream: [text_of(term) for term in some] for stream, some in need.terms_by_stream.items()
    }


@pytest.mark.parametrize(
    "window",
    [TB, tumble(60), hop(60, 10), session_window(30), count_window(5)],
    ids=["index", "tumble", "hop", "session", "rows"],
)
def test_an_aggregate_needs_its_keys_whatever_its_window(window: Expression) -> None:
    query = tcp.group_by(window, "srcIP", (col("destIP") & 0xFFF0).alias("net")).agg(count())
    assert terms(query.node) == {"tcp": ["srcIP", "destIP & 0xFFF0"]}


def test_an_unbounded_aggregate_and_a_history_need_their_keys() -> None:
    assert terms(tcp.group_by("srcIP").agg(count(), emit="update").node) == {"tcp": ["srcIP"]}
    history = tcp.history("srcIP", (col("len") // 100).alias("size"), rows=5).agg(sum_("len"))
    assert terms(history.node) == {"tcp": ["srcIP", "len // 100"]}


def test_stateless_nodes_need_nothing() -> None:
    for query in (tcp.where(col("len") > 0), tcp.select("time", "len"), tcp.union(tcp)):
        need = need_of("q", query.node)
        assert not need.stateful
        assert need.terms_by_stream == {}


def test_temporal_terms_do_not_count() -> None:
    mixed = tcp.group_by(TB, (col("time") % 7).alias("day"), (col("time") + col("len")).alias("x"))
    assert terms(mixed.agg(count()).node) == {"tcp": []}
    assert terms(heavy_flows.node) == {"tcp": ["srcIP"]}, "tb is time // 60 of the stream"


def test_terms_are_traced_through_queries_and_projections() -> None:
    nets = flows.where(col("cnt") > 3).select("tb", (col("srcIP") // 4).alias("net"), "cnt")
    query = nets.group_by("tb", (col("net") // 8).alias("wide")).agg(count())
    assert terms(query.node) == {"tcp": ["srcIP // 32"]}
    after = tcp.history("srcIP", rows=3).agg(sum_("len").alias("recent"))
    assert terms(after.group_by(TB, "destIP", "recent").agg(count()).node) == {"tcp": ["destIP"]}


def test_results_of_aggregates_and_constants_do_not_count() -> None:
    query = flows.select("tb", "srcIP", "cnt", (col("cnt") + col("srcIP")).alias("mixed"))
    grouped = query.group_by("tb", "cnt", "mixed").agg(count())
    assert terms(grouped.node) == {"tcp": []}
    constant = tcp.select("time", lit(1).alias("one"), "srcIP").group_by(TB, "one", "srcIP")
    assert terms(constant.agg(count()).node) == {"tcp": ["srcIP"]}


def test_keys_over_a_union_pair_up_and_count_only_if_traced_on_all_streams() -> None:
    left = tcp.select("time", col("srcIP").alias("host"), col("len").alias("size"))
    right = (
        dns.history("client", rows=2)
        .agg(count().alias("n"))
        .select(
            col("at").alias("time"),
            col("client").cast("int64").alias("host"),
            col("n").alias("size"),
        )
    )
    both = left.union(right).group_by(TB, "host", "size").agg(count())
    assert terms(both.node) == {"tcp": ["srcIP"], "dns": ["client"]}


def test_one_stream_that_comes_in_two_ways_must_bring_the_same() -> None:
    columns = ("time", "destIP")
    out = tcp.select(*columns, col("srcIP").alias("host"))
    back = tcp.select(*columns, col("destIP").alias("host"))
    both = out.union(back)
    assert terms(both.group_by(TB, "host", "destIP").agg(count()).node) == {"tcp": ["destIP"]}
    again = out.union(tcp.where(col("len") > 9).select(*columns, (col("srcIP") // 1).alias("host")))
    assert terms(again.group_by(TB, "host").agg(count()).node) == {"tcp": ["srcIP"]}


def test_a_self_join_over_views_needs_what_both_sides_have_alike() -> None:
    pairs = [(col("srcIP"), col("srcIP")), (col("tb"), col("tb") + 1)]
    need = join_need(
        "flow_pairs", (heavy_flows.node, heavy_flows.node), tuple(zip(*pairs, strict=True))
    )
    assert str(need) == "flow_pairs: join of tcp {srcIP}"
    replies = [(col("srcIP"), col("destIP")), (col("srcPort"), col("srcPort"))]
    assert texts(join_need("replies", (TCP, TCP), tuple(zip(*replies, strict=True)))) == {
        "tcp": ["srcPort"]
    }
    shifted = [(col("srcPort"), col("srcPort") + 1)]
    assert texts(join_need("neighbours", (TCP, TCP), tuple(zip(*shifted, strict=True)))) == {
        "tcp": []
    }


def test_terms_of_a_join_pair_up_and_must_hash_alike() -> None:
    pairs: list[tuple[Expression, Expression]] = [
        (col("srcIP"), col("client")),
        (col("len"), col("client").cast("float64")),
        (col("srcIP").cast("string"), col("name")),
        (col("time"), col("at")),
    ]
    assert texts(join_need("j", (TCP, DNS), tuple(zip(*pairs, strict=True)))) == {
        "tcp": ["srcIP", "CAST(srcIP AS string)"],
        "dns": ["client", "name"],
    }


def test_needs_that_make_no_sense_are_refused() -> None:
    with pytest.raises(PlanningError, match=r"must pair up.*tcp has 2, dns has 1"):
        NodeNeed("j", "join", {"tcp": (col("a"), col("b")), "dns": (col("c"),)})
    with pytest.raises(PlanningError, match="'filter'; expected one of aggregate, join, stateless"):
        NodeNeed("j", "filter", {})  # type: ignore[arg-type]


def test_the_tree_has_the_names_of_the_plan() -> None:
    wanted = flows.where(col("cnt") > 3).group_by("tb", "srcIP").agg(max_("cnt").alias("most"))
    tree = needs_of(
        {
            "flows": flows.node,
            "loud": wanted.having(col("most") > 9).node,
            "big": tcp.where(col("len") > 99).group_by(TB, "destIP").agg(count()).node,
            "all": tcp.where(col("len") > 99).node,
            "twice": tcp.group_by(TB, "len")
            .agg(count().alias("n"))
            .group_by("tb", "n")
            .agg(count())
            .node,
        }
    )
    assert dict(tree.inputs) == {
        "flows@1": ("tcp",),
        "loud@1 input": ("flows@1",),
        "loud@1": ("loud@1 input",),
        "loud": ("loud@1",),
        "all": ("tcp",),
        "big@1": ("all",),
        "twice@1": ("tcp",),
        "twice@2": ("twice@1",),
    }
    assert [name for name, need in tree.needs.items() if not need.stateful] == [
        "loud@1 input", "loud", "all",
    ]  # fmt: skip
    assert tree.streams == ("tcp",)
    assert tree.stateful_inputs()["loud@1"] == {"flows@1"}
    assert tree.consumers()["flows@1"] == ["loud@1 input"]


def test_names_are_those_of_the_compiled_subqueries() -> None:
    queries: dict[str, Node] = {
        "heavy": heavy_flows.where(col("max_cnt") > 1).node,
        "flows": flows.node,
        "hosts": dns.union(dns.where(col("client") > 5))
        .group_by("client", tumble(60))
        .agg(count())
        .node,
    }
    plan = compile_queries({"tcp": TCP, "dns": DNS}, queries, {"tcp": 0, "dns": 0}, False)
    tree = needs_of(queries)
    assert {name for name, need in tree.needs.items() if need.stateful} == set(plan.subqueries)


def test_nodes_are_put_on_what_exists() -> None:
    tree = needs_of({"flows": flows.node})
    join = NodeNeed("j", "join", {"tcp": (col("srcIP"),), "dns": (col("client"),)})
    grown = NeedTree({**tree.needs, "j": join}, {**tree.inputs, "j": ("flows@1", "dns")})
    assert grown.streams == ("dns", "tcp")
    assert grown.sources()["j"] == {"tcp", "dns"}
    with pytest.raises(PlanningError, match="reads nothing"):
        NeedTree({"j": join}, {"j": ()})
    with pytest.raises(PlanningError, match="'j' reads 'k', which must come before it"):
        NeedTree({"j": join, "k": NodeNeed("k", "stateless", {})}, {"j": ("k",), "k": ("tcp",)})
