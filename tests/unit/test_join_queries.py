"""Joins as they are written: what they are in the graph, what they ask of the partitioning, refusals."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from anabranch import Query, Session, call, col, count, lit, tumble
from anabranch.errors import LanguageError, PlanningError
from anabranch.language.expression import Expression
from anabranch.language.join import Join
from anabranch.language.node import Node, Stream
from anabranch.language.order import Ordered
from anabranch.language.sql.read import read_query
from anabranch.language.stateless import Filter, Project
from anabranch.partitioning.requirement import need_of, trace
from anabranch.partitioning.tree import needs_of
from anabranch.testing.sources import EpochSource

TCP_SCHEMA = {"time": pl.Int64(), "srcIP": pl.Int64(), "destIP": pl.Int64(), "len": pl.Int64()}
TCP = Query(Stream("tcp", pl.Schema(TCP_SCHEMA), Ordered("time", timestamps=False)))
DNS_SCHEMA = {"at": pl.Int64(), "srcIP": pl.Int32(), "name": pl.String(), "ts": pl.Datetime("us")}
DNS = Query(Stream("dns", pl.Schema(DNS_SCHEMA), Ordered("at", timestamps=False)))
KNOWN = {"tcp": TCP, "dns": DNS}

FLOWS = "SELECT tb, srcIP, destIP, COUNT(*) AS cnt FROM tcp GROUP BY time/60 AS tb, srcIP, destIP"
HEAVY = "SELECT tb, srcIP, MAX(cnt) AS max_cnt FROM flows GROUP BY tb, srcIP"
PAIRS = (
    "SELECT S1.tb, S1.srcIP, S1.max_cnt, S2.max_cnt FROM heavy_flows S1, heavy_flows S2"
    " WHERE S1.srcIP = S2.srcIP AND S1.tb = S2.tb+1"
)


def paper() -> Session:
    session = Session.in_process()
    session.stream("tcp", EpochSource([pl.DataFrame(schema=TCP_SCHEMA)]), ordered="time")
    session.query("flows", FLOWS)
    session.query("heavy_flows", HEAVY)
    session.query("flow_pairs", PAIRS)
    return session


def join_of(query: Query) -> Join:
    node: Node = query.node
    while not isinstance(node, Join):
        node = node.inputs[0]
    return node


def texts(join: Join) -> list[str]:
    return [" = ".join(map(str, group)) for group in zip(*join.keys, strict=True)]


# -- the example of the papers ----------------------------------------------------------------------


def test_flows_heavy_flows_and_flow_pairs_go_by_source() -> None:
    session = paper()
    choice = session.partitioning()
    assert str(choice.partitioning) == "{srcIP}"
    needs = needs_of(
        {name: session.from_stream(name).node for name in ("flows", "heavy_flows", "flow_pairs")}
    )
    assert str(needs.needs["flow_pairs@1"]) == "flow_pairs@1: join of tcp {srcIP}"


def test_the_columns_of_flow_pairs_and_its_time() -> None:
    pairs = paper().from_stream("flow_pairs").node
    assert list(pairs.schema) == ["tb", "srcIP", "max_cnt", "max_cnt_S2"]
    join = join_of(Query(pairs))
    assert texts(join) == ["srcIP = srcIP", "tb = tb + 1"]
    # Minute 9 is over on the left; on the right, what is still to come meets minute 11 at the earliest
    assert pairs.ordered is not None
    assert pairs.ordered.column == "tb"
    assert pairs.ordered.watermark(600) == 10


def test_a_join_without_bounds_is_refused_unless_accepted() -> None:
    text = "SELECT len, name FROM tcp JOIN dns ON tcp.srcIP = dns.srcIP"
    for condition, bounded in (
        ("", False), (" AND at >= time", False), (" AND at BETWEEN time - 60 AND time + 5", True),
        (" AND ABS(at - time) < 9", True), (" AND at/60 = time/60", True), (" AND at = time + 1", True),
        (" AND at - time <= 5 AND time - at <= 5", True), (" AND at * 2 = time", False),
    ):  # fmt: skip
        assert join_of(read_query(text + condition, KNOWN)).bounded == bounded, condition
    session = Session.in_process()
    session.stream("tcp", EpochSource([pl.DataFrame(schema=TCP_SCHEMA)]), ordered="time")
    session.stream("dns", EpochSource([pl.DataFrame(schema=DNS_SCHEMA)]), ordered="at")
    session.query("both", text)
    expected = r"'both' joins rows however far .* dns.at BETWEEN tcp.time - 60 AND tcp.time \+ 60"
    with pytest.raises(PlanningError, match=expected):
        session.start(sinks={"both": "memory"})


@pytest.mark.parametrize(
    ("condition", "most", "rest"),
    [
        (col("at").between(col("time") - 60, col("time") + 5), (5, 60), []),
        (col("at") < col("time"), (-1, None), []),
        (col("time") + 3 > col("at") - 4, (6, None), []),
        (call("abs", col("at") - col("time")) <= 7, (7, 7), []),
        (lit(7) > call("abs", col("time") - col("at")), (6, 6), []),
        (col("at") - col("time") == 2, (2, -2), []),
        (col("at") // 60 == col("time") // 60, (59, 59), ["(at // 60) = (time // 60)"]),
        (col("at") <= col("len"), (None, None), ["at <= len"]),
        ((col("at") >= col("time")) | (col("len") > 0), (None, None), ["(at >= time) | (len > 0)"]),
    ],
)
def test_bounds(
    condition: Expression, most: tuple[int | None, int | None], rest: list[str]
) -> None:
    node = join_of(TCP.join(DNS, on="srcIP", where=condition))
    assert (node.bounds[0][1], node.bounds[1][0]) == most
    assert [str(part) for part in node.residual] == rest


def test_bounds_add_up_along_a_chain() -> None:
    near = TCP.join(DNS, on="srcIP", where=col("at").between(col("time") - 5, col("time") + 3))
    far = near.join(TCP, on="len", where=(col("time_far") - col("at")).between(0, 10), suffix="far")
    node = join_of(far)
    assert (node.bounds[0][1], node.bounds[1][0]) == (13, 5)
    assert node.bounded
    left = [str(part) for part in node.residual]
    assert left == ["(time_far - at) >= 0", "(time_far - at) <= 10"], (
        "at is not the ordered attribute"
    )
    by_other = near.select("at", "name").node.ordered
    assert by_other is not None
    assert (by_other.column, by_other.watermark(100)) == ("at", 92)


# -- SQL and builder give the same ------------------------------------------------------------------


def test_sql_and_builder_are_alike() -> None:
    written = read_query(
        "SELECT * FROM tcp JOIN dns ON tcp.srcIP = dns.srcIP AND time/60 = at/60 AND len > 10",
        KNOWN,
    )
    # What is about one input alone is a filter of that input
    built = TCP.where(col("len") > 10).join(
        DNS, on=["srcIP", (col("time") // 60, col("at") // 60)], suffix="dns"
    )
    assert join_of(written).signature == built.node.signature
    assert list(written.node.schema) == [*TCP_SCHEMA, "at", "srcIP_dns", "name", "ts"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.len FROM tcp a, dns b WHERE a.srcIP = b.srcIP AND a.time = b.at AND a.len > 3",
        "SELECT a.len FROM tcp a JOIN dns b WHERE a.srcIP = b.srcIP AND b.at = a.time AND a.len > 3",
        "SELECT a.len FROM tcp a JOIN dns b ON b.srcIP = a.srcIP WHERE (a.time = b.at AND a.len > 3)",
        "SELECT len FROM tcp AS a INNER JOIN dns AS b USING (srcIP) WHERE time = at AND len > 3",
    ],
)
def test_equalities_come_from_on_using_and_where(text: str) -> None:
    query = read_query(text, KNOWN)
    assert isinstance(query.node, Project)
    assert isinstance(query.node.input, Join)
    filtered = query.node.input.parts[0]
    assert isinstance(filtered, Filter)
    assert str(filtered) == "WHERE len > 3"
    assert texts(join_of(query)) == ["srcIP = srcIP", "time = at"]


def test_outer_joins_keep_where_apart() -> None:
    text = (
        "SELECT a.len, b.name FROM tcp a {} JOIN dns b ON a.srcIP = b.srcIP AND a.len > 1"
        " WHERE a.time = b.at"
    )
    for side in ("LEFT", "RIGHT OUTER", "FULL"):
        query = read_query(text.format(side), KNOWN)
        join = join_of(query)
        assert join.kind == side.split()[0].lower()
        assert texts(join) == ["srcIP = srcIP"]
        # On the side that is filled with NULL it may as well come first
        below = str(join.parts[0]) if side == "RIGHT OUTER" else str(join.predicate)
        assert below.removeprefix("WHERE ") == "len > 1"
        assert str(query.node.inputs[0]) == "WHERE time = at"


def test_using_makes_one_column_of_two() -> None:
    text = "SELECT srcIP, * FROM tcp {} JOIN dns USING (srcIP)"
    for side, wanted in (
        ("", "srcIP"), ("LEFT", "srcIP"), ("RIGHT", "srcIP_dns AS srcIP"),
        ("FULL", "COALESCE(srcIP, srcIP_dns) AS srcIP"),
    ):  # fmt: skip
        query = read_query(text.format(side).replace("srcIP, *", "srcIP, len"), KNOWN)
        assert str(query.node) == f"SELECT {wanted}, len"
    everything = read_query("SELECT * FROM tcp JOIN dns USING (srcIP)", KNOWN)
    assert list(everything.node.schema) == ["time", "srcIP", "destIP", "len", "at", "name", "ts"]


def test_three_inputs() -> None:
    query = read_query(
        "SELECT c.len, a.len FROM tcp a, dns b, tcp c"
        " WHERE a.srcIP = b.srcIP AND b.srcIP = c.destIP AND a.time = c.time",
        KNOWN,
    )
    outer = join_of(query)
    assert texts(outer) == ["srcIP_b = destIP", "time = time"]
    assert isinstance(outer.parts[0], Join)
    assert texts(outer.parts[0]) == ["srcIP = srcIP"]
    assert list(query.node.schema) == ["len", "len_a"]


@pytest.mark.parametrize(
    ("side", "after"),
    [("LEFT", "SELECT len"), ("RIGHT", "WHERE time = at"), ("FULL", "WHERE time = at")],
)
def test_an_equality_of_where_below_a_join_that_fills_with_null(side: str, after: str) -> None:
    query = read_query(
        f"SELECT a.len FROM tcp a JOIN dns b ON a.srcIP = b.srcIP {side} JOIN tcp c ON a.time = c.time"
        " WHERE a.time = b.at",
        KNOWN,
    )
    inner = join_of(query).parts[0]
    assert isinstance(inner, Join)
    assert texts(inner) == ["srcIP = srcIP", "time = at"]
    top = query.node if side == "LEFT" else query.node.inputs[0]
    assert str(top) == after, "the filter drops the rows that the outer join fills"


@pytest.mark.parametrize("kind", ["ANTI", "SEMI", "INNER"])
def test_what_is_about_one_input_is_filtered_once(kind: str) -> None:
    text = (
        f"SELECT len FROM tcp {kind} JOIN dns ON tcp.srcIP = dns.srcIP AND time = at WHERE len > 9"
    )
    nodes, filters = [read_query(text, KNOWN).node], []
    while nodes:
        node = nodes.pop()
        nodes += node.inputs
        filters += [node] if isinstance(node, Filter) else []
    assert [node.input for node in filters] == [TCP.node]


def test_grouping_over_a_join() -> None:
    query = read_query(
        "SELECT b.name, COUNT(*) AS n FROM tcp a JOIN dns b ON a.srcIP = b.srcIP AND a.time = b.at"
        " GROUP BY TUMBLE(a.time, 60), b.name HAVING MAX(b.srcIP) > 3",
        KNOWN,
    )
    assert list(query.node.schema) == ["name", "n"]


# -- time -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "how", "column", "watermark"),
    [
        (("time", "at"), "inner", "time", 100),
        (("time", "at"), "left", "time", 100),
        (("time", "at"), "right", "at", 100),
        (("time", "at"), "full", None, None),
        (("time", col("at") + 7), "inner", "time", 100),
        (("time", col("at") - 7), "inner", "time", 93),
        ((col("time") + 7, "at"), "inner", "time", 93),
        ((col("time") + 7, "at"), "right", "at", 100),
        ((col("time") // 60, col("at") // 60), "inner", "time", 41),
        ((lit(2) + col("time"), "at"), "inner", "time", 98),
        ((col("time") // 2, col("at") + 1), "inner", None, None),
        (("srcIP", "srcIP"), "inner", None, None),
        ((col("time") * 2, "at"), "inner", None, None),
    ],
)  # fmt: skip
def test_the_watermark_of_a_join(
    on: object, how: str, column: str | None, watermark: int | None
) -> None:
    node = TCP.join(DNS, on=[on], how=how).node  # type: ignore[list-item]
    assert (node.ordered and node.ordered.column) == column
    assert (node.ordered and node.ordered.watermark(100)) == watermark


def test_timestamps_apart_by_an_interval() -> None:
    stream = Stream(
        "s", pl.Schema({"ts": pl.Datetime("us"), "k": pl.Int64()}), Ordered("ts", timestamps=True)
    )
    query = read_query(
        "SELECT a.ts FROM s a, s b WHERE a.k = b.k AND a.ts = b.ts - INTERVAL '1 second'",
        {"s": Query(stream)},
    )
    assert query.node.ordered is not None
    assert query.node.ordered.watermark(5_000_000) == 4_000_000


# -- partitioning -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "known"),
    [
        ("inner", {"srcIP", "srcIP_right"}),
        ("left", {"srcIP"}),
        ("right", {"srcIP_right"}),
        ("full", set()),
    ],
)
def test_columns_above_a_join_that_count(how: str, known: set[str]) -> None:
    join = TCP.join(DNS, on=["srcIP", ("time", "at")], how=how)
    lineage = trace(join.node)
    assert set(lineage) == {"tcp", "dns"}
    assert {name for name in lineage["tcp"] if name not in ("time", "at")} == known
    assert lineage["tcp"].keys() == lineage["dns"].keys()


def test_an_aggregate_over_a_join_goes_by_its_key() -> None:
    joined = TCP.join(DNS, on=["srcIP", ("time", "at")])
    counted = joined.group_by(tumble(60), "srcIP").agg(count().alias("n"))
    assert str(need_of("n", counted.node)) == "n: aggregate of tcp {srcIP}, dns {srcIP}"
    by_name = joined.group_by(tumble(60), "name").agg(count().alias("n"))
    assert str(need_of("n", by_name.node)) == "n: aggregate of tcp {}, dns {}"


def test_masks_pair_up() -> None:
    nets = TCP.select("time", (col("srcIP") & 0xFF00).alias("net"))
    join = nets.join(DNS, on=[("net", col("srcIP") & 0xFF00), ("time", "at")])
    need = need_of("j", join.node)
    assert str(need) == "j: join of tcp {srcIP & 0xFF00}, dns {srcIP & 0xFF00}"
    crossed = TCP.join(TCP, on=[("srcIP", "destIP")])
    assert str(need_of("j", crossed.node)) == "j: join of tcp {}", "one row cannot go to two sites"


def test_what_feeds_a_join_has_a_name() -> None:
    left = TCP.where(col("len") > 3)
    tree = needs_of({"both": left.join(DNS, on=["srcIP"]).select("len").node})
    assert dict(tree.inputs) == {
        "both@1 left": ("tcp",), "both@1": ("both@1 left", "dns"), "both": ("both@1",),
    }  # fmt: skip


# -- refusals ---------------------------------------------------------------------------------------

REFUSED = {
    "SELECT a.len FROM tcp a, tcp b": "character 26: nothing says which rows of 'b' belong to which of 'a'",
    "SELECT a.len FROM tcp a LEFT JOIN dns b ON b.at > 3 WHERE a.srcIP = b.srcIP": "to ON, such as",
    "SELECT a.len FROM tcp a LEFT JOIN dns b ON a.len > 3": "A left join needs an equality",
    "SELECT a.len FROM tcp a JOIN dns b ON a.srcIP = b.name": "srcIP is int64 and name of 'b' is string",
    "SELECT a.len FROM tcp a JOIN dns b ON a.time = b.ts": "time is int64 and ts of 'b' is timestamp",
    "SELECT srcIP FROM tcp a JOIN dns b ON a.time = b.at": "is in a and in b: write a.srcIP or b.srcIP",
    "SELECT a.len FROM tcp a, tcp a WHERE a.srcIP = a.srcIP": "two inputs are called 'a'",
    "SELECT c.len FROM tcp a JOIN dns b ON a.time = b.at": "there is no input 'c' here",
    "SELECT a.lenn FROM tcp a": "'a' has no column 'lenn'. Did you mean 'len'?",
    "SELECT tcp.len FROM tcp a": "there is no input 'tcp' here",
    "SELECT len FROM tcp JOIN dns USING (time)": "USING: 'dns' has no column 'time'",
    "SELECT len FROM tcp JOIN dns USING (at)": "column 'at' is not found",
    "SELECT len FROM tcp NATURAL JOIN dns": "NATURAL JOIN is not available: name the columns with USING",
    "SELECT len FROM tcp CROSS JOIN dns": "nothing says which rows of 'dns' belong to which of 'tcp'",
    "SELECT len FROM tcp RIGHT SEMI JOIN dns ON time = at": "RIGHT SEMI JOIN is not available: exchange",
    "SELECT name FROM tcp SEMI JOIN dns ON time = at": "column 'name' is not found",
    "SELECT len FROM tcp ASOF JOIN dns ON time = at": "ASOF JOIN needs ON with an equality",
    "SELECT len FROM tcp, LATERAL (SELECT at FROM dns) x": "gives the elements of one list",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(LanguageError) as caught:
        read_query(text, KNOWN)
    assert REFUSED[text] in str(caught.value)


def test_refused_by_the_builder() -> None:
    with pytest.raises(LanguageError, match="has no condition"):
        TCP.join(DNS, on=[])
    with pytest.raises(LanguageError, match="'cross'; expected one of inner, left, right, full"):
        TCP.join(DNS, on="srcIP", how="cross")
    with pytest.raises(LanguageError, match="the left is int64 and the right is string"):
        TCP.join(DNS, on=[("srcIP", "name")])
    with pytest.raises(LanguageError, match=r"column 'srcPI' is not found. Did you mean 'srcIP'"):
        TCP.join(DNS, on="srcPI")
    with pytest.raises(LanguageError, match="expected a condition"):
        TCP.join(DNS, on="srcIP", where=col("len") + 1)
    with pytest.raises(LanguageError, match="other is 'dns'; expected a Query"):
        TCP.join("dns", on="srcIP")  # type: ignore[arg-type]
    assert TCP.join(DNS, on=[("time", col("at") + 1)]).where(col("ts") > dt.datetime(2026, 1, 1))
