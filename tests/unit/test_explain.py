"""Plans explained: as text, as JSON and drawn; with expected figures and with those of a run."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from anabranch import Query, Session, col, count
from anabranch.amount import in_bytes
from anabranch.cli import app
from anabranch.errors import StateError
from anabranch.explain.json import describe_plan
from anabranch.explain.words import operator_words
from anabranch.sources.generate import Generator
from anabranch.spec import read_spec
from anabranch.testing.sources import EpochSource

ROOT = Path(__file__).parents[2]
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.sql")) if path.stem != "nexmark"]
"""Those that make their own rows."""
SCHEMA = {"time": pl.Int64, "srcIP": pl.Int64, "destIP": pl.Int64, "len": pl.Int64}
PACKETS = Generator("packets", keys=300, rows_per_second=100).rows(0, 12_000).select(*SCHEMA)

FLOWS = """SELECT tb, srcIP, destIP, COUNT(*) AS cnt FROM tcp WHERE len > 0
           GROUP BY time/60 AS tb, srcIP, destIP"""
NETS = "SELECT tb, net, SUM(cnt) AS cnt FROM flows GROUP BY tb, srcIP & 0xFF00 AS net"
ACTIVE = "SELECT tb, COUNT(*) AS hosts FROM nets WHERE cnt > 10 GROUP BY tb"

TEXT = """\
Streams
  tcp: EpochSource, ordered by time, lateness 5
    comes unpartitioned
    about 1,000,000 rows / 100.0 MB an epoch, assumed
    reads time int64, srcIP int64, destIP int64, len int64

Partitioning of tcp: {srcIP & 0xFF00}
  flows@1, nets@1 run on its partitions; active@1 cannot. Each site receives 25,250,000 bytes an epoch,
  against 27,750,000 with {srcIP, destIP}, the next best.

     set               to each site  skew  nodes on it  made for
  *  {srcIP & 0xFF00}       25.2 MB   1.0       5 of 6  flows@1 + nets@1
     {srcIP, destIP}        27.8 MB   1.0       2 of 6  flows@1
     {}                     27.8 MB   1.0       1 of 6  spreading evenly

Subqueries, level 1
  flows@1: windows of 60 (tb) by srcIP, destIP: COUNT(*) AS cnt
    partitioned by srcIP & 0xFF00: 64 partitions on 2 sites
    reads tcp where len > 0: exchange by srcIP & 0xFF00, about 1,000,000 rows / 50.0 MB an epoch; senders may
      sub-aggregate
    yields about 100,000 rows / 5.0 MB an epoch

  nets@1: each tb by srcIP & 0xFF00 AS net: SUM(cnt)
    partitioned by srcIP & 0xFF00: on the partitions of flows@1
    reads flows@1: stays on the partitions of flows@1, about 100,000 rows / 5.0 MB an epoch
    yields about 10,000 rows / 500.0 kB an epoch

Subqueries, level 2
  active@1: each tb: COUNT(*) AS hosts
    a single group: all rows go to one site
    reads nets@1 select tb, net, "SUM(cnt)" AS cnt, then where cnt > 10: exchange to one site, about
      10,000 rows / 500.0 kB an epoch; senders may sub-aggregate
    yields about 1,000 rows / 50.0 kB an epoch

Outputs
  flows (no sink): about 100,000 rows / 5.0 MB an epoch
    from flows@1: tb, srcIP, destIP, cnt
  nets -> console: about 10,000 rows / 500.0 kB an epoch
    from nets@1: select tb, net, "SUM(cnt)" AS cnt
  active -> memory: about 1,000 rows / 50.0 kB an epoch
    from active@1: tb, hosts"""


def network(*frames: pl.DataFrame, **settings: Any) -> Session:
    session = Session.in_process(sites=2, settings=settings)
    source = EpochSource(frames or [pl.DataFrame(schema=SCHEMA)])
    session.stream("tcp", source, ordered="time", lateness=5)
    for name, query in (("flows", FLOWS), ("nets", NETS), ("active", ACTIVE)):
        session.query(name, query)
    return session


def epochs(count: int) -> list[pl.DataFrame]:
    return list(PACKETS.iter_slices(PACKETS.height // count))


def example(path: Path) -> Session:
    return read_spec(path).session(in_process=True)


# -- text -----------------------------------------------------------------------------------------


def test_text_reads_from_top_to_bottom() -> None:
    assert network().explain(sinks={"nets": "console", "active": "memory"}) == TEXT


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_text_of_the_examples_is_narrow_and_has_no_decimal_masks(path: Path) -> None:
    for verbose in (False, True):
        text = example(path).explain(verbose=verbose)
        assert max(map(len, text.splitlines())) <= 110
        assert not re.search(r"& \d+\b(?!x)", text.replace("& 0x", ""))
        assert not re.search(r" $", text, flags=re.M)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("b.time = a.time", "b.time at the same time as a.time"),
        ("b.time = a.time + 60", "b.time 60 later than a.time"),
        ("b.time = a.time - 60", "b.time 60 earlier than a.time"),
        ("b.time BETWEEN a.time AND a.time + 60", "b.time at most 60 later and not earlier than a.time"),
        ("b.time BETWEEN a.time + 5 AND a.time + 60",
         "b.time at most 60 later and at least 5 later than a.time"),
        ("b.time <= a.time", "b.time not later than a.time"),
        ("b.len = 7", "b.time however far from a.time"),
    ],
)  # fmt: skip
def test_how_far_apart_joined_rows_are_in_words(condition: str, words: str) -> None:
    session = network()
    session.query("j", f"SELECT a.len FROM tcp a JOIN tcp b ON a.srcIP = b.srcIP AND {condition}")
    node = session.from_stream("j").node.inputs[0]
    assert operator_words(node).endswith(f", {words}")


def test_each_input_of_a_join_has_its_own_rows() -> None:
    session = network(*epochs(2))
    session.query(
        "j", "SELECT a.time FROM tcp a ANTI JOIN tcp b ON a.time = b.time WHERE a.len < 0"
    )
    text = session.explain()
    reads = re.findall(
        r"reads tcp(.*): exchange .* about ([\d,]+) rows", text[text.index("j@1:") :]
    )
    assert (reads[0][0], reads[0][1]) == (" where len < 0", "0")
    assert (reads[1][0], reads[1][1]) == ("", f"{epochs(2)[0].height:,}")


def test_masks_are_hexadecimal_wherever_they_stand() -> None:
    session = network()
    session.query(
        "odd",
        "SELECT tb, srcIP & 240 AS s, n & 15 AS n FROM (SELECT tb, srcIP, SUM(len & 255) AS n FROM tcp "
        "WHERE (srcIP & 4080) > 1 GROUP BY time/60 AS tb, srcIP) AS t",
    )
    text = session.explain()
    for mask in (
        "where (srcIP & 0xFF0) > 1",
        "SUM(len & 0xFF)",
        "srcIP & 0xF0 AS s",
        "n & 0xF AS n",
    ):
        assert mask in text


def test_verbose_shows_the_cost_of_every_candidate_at_each_node() -> None:
    text = network().explain(verbose=True)
    for part in network().partitioning().parts:
        for one in part.candidates:
            for name, cost in one.cost.received.items():
                assert f"{name} {cost:,.0f}" in text
    assert "nets@1 0" in text
    assert "nets@1 0" not in network().explain()


def test_figures_say_what_they_rest_on() -> None:
    assert "2,000 rows / 64.0 kB an epoch, from a sample" in network(PACKETS[:2000]).explain()
    flows = network(PACKETS[:2000]).explanation().choice.flows
    assert {flow.basis for flow in flows.values()} == {"sample"}
    assert {flow.basis for flow in network().explanation().choice.flows.values()} == {"assumed"}


@pytest.mark.parametrize("strategy", ["query", "operator"])
def test_other_strategies(strategy: str) -> None:
    text = network(PACKETS[:2000], strategy=strategy).explain()
    assert f"Not used: with strategy='{strategy}'" in text
    assert "stays on" not in text
    assert "exchange by srcIP, destIP" in text


def test_unions_share_what_is_expected() -> None:
    session = network(PACKETS[:2000])
    session.stream("udp", EpochSource([PACKETS[:1000]]), ordered="time", lateness=5)
    session.query("all", "SELECT * FROM tcp UNION ALL SELECT * FROM udp")
    session.query("sizes", "SELECT tb, SUM(len) AS len FROM all GROUP BY time/60 AS tb")
    part = next(one for one in session.explanation().subqueries if one.name == "sizes@1")
    rows = {edge.origin: edge.expected.rows for edge in part.edges if edge.expected}
    assert rows == pytest.approx({"tcp": 2000, "udp": 1000})


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT srcIP, SUM(len) AS s FROM tcp GROUP BY HOP(time, 60, 10), srcIP",
         "windows of 60 every 10 by srcIP: SUM(len) AS s"),
        ("SELECT COUNT(*) AS n FROM tcp GROUP BY SESSION(time, 30)",
         "sessions until 30 without a row: COUNT(*) AS n"),
        ("SELECT srcIP, MAX(len & 0xFF) AS m FROM tcp GROUP BY COUNT_WINDOW(20, 10), srcIP",
         "windows of 20 rows every 10 by srcIP: MAX(len & 0xFF) AS m"),
        ("SELECT SUM(len) OVER (PARTITION BY srcIP ORDER BY time ROWS 9 PRECEDING) AS s FROM tcp",
         "every row, with the last 10 rows of each srcIP: SUM(len)"),
    ],
)  # fmt: skip
def test_operators_in_words(query: str, words: str) -> None:
    session = Session.in_process()
    session.stream("tcp", EpochSource([pl.DataFrame(schema=SCHEMA)]), ordered="time")
    session.query("q", query)
    (part,) = session.plan().subqueries.values()
    assert operator_words(part.node) == words


def test_lengths_of_time_have_units_where_the_attribute_does() -> None:
    session = Session.in_process(settings={"allow_unbounded_state": True})
    frame = pl.DataFrame(schema={**SCHEMA, "time": pl.Datetime("us")})
    tcp = session.stream("tcp", EpochSource([frame]), ordered="time", lateness="90 seconds")
    assert isinstance(tcp, Query)
    session.query(
        "q", "SELECT srcIP, COUNT(*) AS n FROM tcp GROUP BY TUMBLE(time, '1 hour'), srcIP"
    )
    session.query("r", tcp.group_by("srcIP").agg(count().alias("n"), emit="update"))
    text = session.explain()
    assert "ordered by time, lateness 90 seconds" in text
    assert "q@1: windows of 1 hour by srcIP" in text
    assert "r@1: all rows so far by srcIP, told on every change: COUNT(*) AS n" in text


def test_the_guide_shows_what_is_printed(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "guide.md").read_text()
    (query, shown) = re.findall(
        r"```sql\n([^`]*?/data/ckpt[^`]*)```.*?```\n(.*?)```", text, flags=re.S
    )[0]
    path = tmp_path / "guide.sql"
    path.write_text(query)
    assert example(path).explain().startswith(shown)


# -- JSON -----------------------------------------------------------------------------------------


def test_json_has_what_the_text_has() -> None:
    told = describe_plan(network().explanation(sinks={"nets": "console"}))
    json.dumps(told)
    stream, (part,) = told["streams"][0], told["partitioning"]
    assert stream["expected"] == {"rows": 1e6, "bytes": 1e8, "basis": "assumed"}
    assert (stream["source"], stream["partitionedBy"], stream["lateness"]) == ("EpochSource", [], 5)
    assert (part["streams"], part["set"], part["complete"]) == (["tcp"], "{srcIP & 0xFF00}", True)
    assert part["reason"].startswith("Each site receives 25,250,000 bytes")
    assert [one["chosen"] for one in part["candidates"]] == [True, False, False]
    for one in part["candidates"]:
        assert one["mostBytes"] == one["allBytes"] == sum(one["bytesPerNode"].values())
    flows, nets, active = told["subqueries"]
    assert (flows["level"], flows["exchange"], flows["spread"], flows["terms"], flows["combines"]) == (
        1, "flows@1", "terms", "srcIP & 0xFF00", True
    )  # fmt: skip
    assert (nets["exchange"], nets["sites"], nets["reads"]) == (
        "flows@1",
        2,
        ["cnt", "srcIP", "tb"],
    )
    assert [part["inputs"][0]["exchange"] for part in told["subqueries"]] == [True, False, True]
    assert active["inputs"][0]["expected"]["rows"] == 10_000
    assert [(one["query"], one["sink"]) for one in told["outputs"]] == [
        ("flows", None), ("nets", "console"), ("active", None)
    ]  # fmt: skip
    assert told["epochs"] is told["betterPartitioning"] is flows["measured"] is None


# -- drawings -------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"
Box = tuple[float, float, float, float]


def many() -> Session:
    """Twenty subqueries on two levels, in many frames, with unions and edges that pass levels."""
    session = Session.in_process(sites=4)
    session.stream("tcp", generator="packets", rows=5000, ordered="time")
    session.stream("udp", generator="packets", rows=5000, ordered="time", seed=5)
    session.stream("bids", generator="bids", rows=5000, ordered="time")
    keys = ("srcIP", "destIP", "srcIP, destIP", "srcPort", "destPort", "srcIP & 0xFF00 AS net")
    for number, key in enumerate(keys):
        names = key.split(" AS ")[-1]
        first = names.split(",")[0]
        session.query(
            f"q{number}",
            f"SELECT tb, {names}, COUNT(*) AS c FROM tcp WHERE len > {number} GROUP BY time/60 AS tb, {key}",
        )
        session.query(
            f"r{number}", f"SELECT tb, {first}, MAX(c) AS c FROM q{number} GROUP BY tb, {first}"
        )
        session.query(f"t{number}", f"SELECT tb, c, COUNT(*) AS n FROM r{number} GROUP BY tb, c")
    session.query("both", "SELECT time, srcIP FROM tcp UNION ALL SELECT time, srcIP FROM udp")
    session.query("u", "SELECT tb, srcIP, COUNT(*) AS n FROM both GROUP BY time/60 AS tb, srcIP")
    session.query(
        "counts",
        "SELECT tb, c FROM r0 UNION ALL SELECT tb, c FROM r1 UNION ALL SELECT tb, c FROM q3",
    )
    session.query("v", "SELECT tb, c, COUNT(*) AS n FROM counts GROUP BY tb, c")
    session.query("plain", "SELECT time, auction FROM bids WHERE price < 10 AND auction > 1")
    return session


def only_a_filter() -> Session:
    session = Session.in_process()
    session.stream("tcp", EpochSource([pl.DataFrame(schema=SCHEMA)]), ordered="time")
    session.query("q", "SELECT time FROM tcp WHERE len < 5 AND srcIP > 1")
    return session


DRAWN = [
    *(pytest.param(lambda path=path: example(path), id=path.stem) for path in EXAMPLES),
    pytest.param(network, id="network with two levels"),
    pytest.param(lambda: network(PACKETS[:500], strategy="operator"), id="operators"),
    pytest.param(lambda: network(PACKETS[:500], central=True), id="central"),
    pytest.param(many, id="twenty"),
    pytest.param(only_a_filter, id="none"),
]


def boxes(tree: ET.Element, *kinds: str) -> dict[tuple[str, str], Box]:
    found = {}
    for rect in tree.iter(f"{SVG}rect"):
        if rect.get("class") in kinds:
            x, y, width, height = (float(rect.get(k, 0)) for k in ("x", "y", "width", "height"))
            found[rect.get("class", ""), rect.get("data-name", "")] = (x, y, x + width, y + height)
    return found


def meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def inside(one: Box, other: Box) -> bool:
    return all((one[0] > other[0], one[1] > other[1], one[2] < other[2], one[3] < other[3]))


def texts(tree: ET.Element) -> list[tuple[str, Box]]:
    """Texts with about the place they take."""
    sizes = {"small": 11, "label": 11, "title": 15}
    found = []
    for text in tree.iter(f"{SVG}text"):
        x, y, size = (
            float(text.get("x", 0)),
            float(text.get("y", 0)),
            sizes.get(text.get("class", ""), 12),
        )
        found.append(
            (text.text or "", (x, y - size * 0.8, x + len(text.text or "") * size * 0.55, y))
        )
    return found


def apart(named: dict[Any, Box] | list[tuple[str, Box]]) -> None:
    entries = list(named.items()) if isinstance(named, dict) else named
    for number, (name, one) in enumerate(entries):
        for other_name, other in entries[:number]:
            assert not meet(one, other), f"{name} meets {other_name}"


@pytest.mark.parametrize("make", DRAWN)
def test_drawings_are_whole_and_nothing_meets(make: Any) -> None:
    session = make()
    tree = ET.fromstring(session.explain_svg())
    plan = session.plan()
    found = boxes(tree, "stream", "subquery", "output")
    assert set(found) == {
        *(("stream", name) for name in plan.streams),
        *(("subquery", name) for name in plan.subqueries),
        *(("output", output.query) for output in plan.outputs),
    }
    frames = boxes(tree, "frame")
    assert {name for _, name in frames} == set(plan.exchanges)
    apart(found)
    apart(frames)
    apart(texts(tree))
    for name, part in plan.subqueries.items():
        box, frame = found["subquery", name], frames["frame", part.exchange]
        assert inside(box, frame)
    width, height = float(tree.get("width", 0)), float(tree.get("height", 0))
    for box in (*found.values(), *frames.values(), *(place for _, place in texts(tree))):
        assert inside(box, (0, 0, width, height))


def way(path: ET.Element) -> tuple[list[Box], list[tuple[float, float]]]:
    """The level stretches of a line, as thin boxes, and points of its curves."""
    level: list[Box] = []
    points: list[tuple[float, float]] = []
    x = y = 0.0
    for sign, numbers in re.findall(r"([MHC])([-\d. ]+)", path.get("d", "")):
        values = [float(number) for number in numbers.split()]
        if sign == "H":
            level.append((x + 1, y - 1, values[0] - 1, y + 1))
            x = values[0]
            continue
        if sign == "C":
            first, _, second, _, end, low = values
            for at in (number / 24 for number in range(1, 24)):
                rest = 1 - at
                parts = (rest**3, 3 * rest**2 * at, 3 * rest * at**2, at**3)
                ways = ((x, first, second, end), (y, y, low, low))
                points.append(
                    tuple(sum(a * b for a, b in zip(parts, one, strict=True)) for one in ways)  # type: ignore[arg-type]
                )
        x, y = values[-2:]
    return level, points


@pytest.mark.parametrize("make", DRAWN)
def test_no_line_runs_through_anything(make: Any) -> None:
    tree = ET.fromstring(make().explain_svg())
    solid: list[tuple[Any, Box]] = [*boxes(tree, "stream", "subquery", "output").items()]
    solid += [(text, box) for text, box in texts(tree) if box[1] > 60]
    known: list[tuple[str | None, Box]] = []
    for path in tree.iter(f"{SVG}path"):
        origin = path.get("data-from")
        if origin is None:
            continue  # of the legend
        level, points = way(path)
        thin = [*level, *((x - 1, y - 1, x + 1, y + 1) for x, y in points)]
        for name, box in solid:
            # Curves may pass a label of another line, which is drawn over them
            lines = level if isinstance(name, str) else thin
            assert not any(meet(line, box) for line in lines), f"a line runs through {name}"
        for other, box in known:
            wide = (box[0], box[1] - 5, box[2], box[3] + 5)
            close = other != origin and any(meet(line, wide) for line in level)
            assert not close, f"lines of {origin} and {other} cannot be told apart"
        known += [(origin, line) for line in level]


def test_exchanges_are_thick_and_labels_tell_their_rows() -> None:
    tree = ET.fromstring(network().explain_svg())
    kinds = [path.get("class") for path in tree.iter(f"{SVG}path")]
    # Two of each in the plan's first two levels and outputs, and one of each in the legend
    assert (kinds.count("exchange"), kinds.count("local")) == (3, 5)
    assert "1,000,000 rows / 50.0 MB ?" in [text for text, _ in texts(tree)]


def test_long_and_odd_texts_are_cut_and_escaped() -> None:
    session = Session.in_process()
    column = 'a <long> & "odd" name that goes on and on, far beyond the width of any box'
    frame = pl.DataFrame(schema={"time": pl.Int64, column: pl.Int64})
    session.stream("s", EpochSource([frame]), ordered="time")
    some = session.from_stream("s").where(col(column) > 0)
    session.query(
        "q", some.group_by((col("time") // 60).alias("tb"), column).agg(count().alias("n"))
    )
    tree = ET.fromstring(session.explain_svg())
    apart(texts(tree))
    titles = [title.text or "" for title in tree.iter(f"{SVG}title")]
    assert any(column in title for title in titles)
    inner = [text for text, box in texts(tree) if box[1] > 100]
    assert not any(column in text for text in inner)
    assert any(text.endswith("…") for text in inner)


# -- with what a run has measured -----------------------------------------------------------------


def measured(session: Session, checkpoint: Path, **options: Any) -> dict[str, Any]:
    run = session.start(
        sinks={"nets": "memory", "active": "memory"}, checkpoint=checkpoint, **options
    )
    assert run.await_termination(60)
    told = describe_plan(run.explanation())
    assert told == describe_plan(
        session.explanation(checkpoint, {"nets": "memory", "active": "memory"})
    )
    return told


def test_measured_figures_add_up(tmp_path: Path) -> None:
    # Were epochs slow, the controller would have rows sub-aggregated before they are sent
    session = network(*epochs(4), combine_reduction=1e9, policy="none")
    told = measured(session, tmp_path / "c", at_end="close")
    assert told["epochs"] == 5
    (stream,) = told["streams"]
    assert stream["rowsTotal"] == PACKETS.height
    assert stream["measured"]["rows"] == pytest.approx(PACKETS.height / 5)
    flows, nets, active = (part["measured"] for part in told["subqueries"])
    sent = PACKETS.filter(pl.col("len") > 0)
    minutes = sent.with_columns(tb=pl.col("time") // 60)
    assert flows["rowsReceivedTotal"] == flows["rowsInTotal"] == sent.height
    assert flows["rowsOutTotal"] == minutes.select("tb", "srcIP", "destIP").n_unique()
    assert (nets["rowsInTotal"], nets["rowsReceivedTotal"]) == (flows["rowsOutTotal"], 0)
    assert active["rowsReceivedTotal"] == active["rowsInTotal"] <= nets["rowsOutTotal"]
    assert flows["bytesReceived"] > 0
    for part in told["subqueries"]:
        (edge,) = part["inputs"]
        assert edge["measured"]["rows"] * 5 == pytest.approx(
            part["measured"]["rowsInTotal"], abs=0.1
        )
    assert sum(part["measured"]["share"] for part in told["subqueries"]) == pytest.approx(
        1, abs=0.01
    )
    rows = {one["query"]: one["rowsTotal"] for one in told["outputs"]}
    assert rows == {
        "flows": flows["rowsOutTotal"], "nets": nets["rowsOutTotal"], "active": active["rowsOutTotal"]
    }  # fmt: skip
    assert flows["stateRows"] == 0


def test_open_windows_are_state(tmp_path: Path) -> None:
    told = measured(network(*epochs(4)), tmp_path / "c", at_end="keep")
    flows = told["subqueries"][0]["measured"]
    assert flows["stateRows"] > 0
    assert flows["stateBytes"] > 0


def test_skew_is_the_rows_of_the_busiest_site_against_the_mean(tmp_path: Path) -> None:
    session = network(PACKETS.with_columns(srcIP=pl.lit(7)))
    told = measured(session, tmp_path / "c", at_end="close")
    assert told["subqueries"][0]["measured"]["skew"] == 2.0  # all on one of two sites
    more = measured(network(PACKETS), tmp_path / "d", at_end="close")
    assert 1 <= more["subqueries"][0]["measured"]["skew"] < 2


def test_sites_without_partitions_do_not_count_as_skew() -> None:
    holder: list[Any] = []

    def move(step: str, epoch: int) -> None:
        if step == "begin" and epoch == 1:
            known = holder[0].partition_map("flows@1")
            holder[0].repartition("flows@1", known.on((0,) * known.partitions))

    session = network(*epochs(10))
    holder.append(session.start(sinks={"nets": "memory"}, trigger=0.2, on_step=move))
    assert holder[0].await_termination(60)
    (flows, *_) = describe_plan(holder[0].explanation())["subqueries"]
    assert flows["sites"] == 1
    assert flows["measured"]["skew"] < 1.2


def test_a_run_explains_itself_while_it_lasts_and_after() -> None:
    seen: list[str] = []
    holder: list[Any] = []

    def look(step: str, epoch: int) -> None:
        if step == "begin" and epoch == 2 and holder:
            seen.append(holder[0].explain())

    session = network(*epochs(4))
    run = session.start(sinks={"nets": "memory"}, trigger=0.2, on_step=look)
    holder.append(run)
    assert run.await_termination(60)
    session.query("later", "SELECT time FROM tcp")  # of no concern to a run under way
    assert seen[0].startswith("Measured in 2 epochs; figures are means of an epoch.")
    text = run.explain()
    assert text.startswith("Measured in 4 epochs")
    assert "3,000 rows / 96.0 kB an epoch (expected 3,000 rows / 96.0 kB)" in text
    assert re.search(r"busy \d\.\d{3} s an epoch \(\d+% of all\), skew 1\.\d\d over 2 sites", text)
    assert "later" not in text
    assert ET.fromstring(run.explain_svg()).tag == f"{SVG}svg"
    assert max(map(len, text.splitlines())) <= 110


def test_state_that_is_put_aside_is_told() -> None:
    seen: list[tuple[dict[str, Any], str, str]] = []
    holder: list[Any] = []

    def steer(step: str, epoch: int) -> None:
        if step == "begin" and epoch == 1:
            holder[0].spill("pairs@1", holder[0].partition_map("pairs@1").starts[3])
        elif step == "begin" and epoch == 3:
            (part,) = describe_plan(holder[0].explanation())["subqueries"]
            seen.append((part["measured"], holder[0].explain(), holder[0].explain_svg()))

    session = Session.in_process(sites=2, settings={"allow_unbounded_state": True})
    session.stream("tcp", EpochSource(epochs(4)), ordered="time", lateness=5)
    session.query("pairs", "SELECT a.time AS t FROM tcp a JOIN tcp b ON a.srcIP = b.srcIP")
    holder.append(session.start(sinks={"pairs": "memory"}, trigger=0.2, on_step=steer))
    assert holder[0].await_termination(60)
    ((told, text, drawing),) = seen
    assert told["asidePartitions"] == 1
    assert 0 < told["asideBytes"] < told["stateBytes"]
    words = f"{in_bytes(told['asideBytes'])} of it put aside"
    assert f"{in_bytes(told['stateBytes'])}, {words} (1 of " in " ".join(text.split())
    assert words in drawing
    assert max(map(len, text.splitlines())) <= 110


def test_another_session_explains_a_run_under_way(tmp_path: Path) -> None:
    """Whose checkpoint is locked: only the newest manifest is read."""
    seen: list[str] = []

    def look(step: str, epoch: int) -> None:
        if step == "before-tasks":
            seen.append(network(*epochs(4)).explain(tmp_path / "c").splitlines()[0])

    run = network(*epochs(4)).start(
        sinks={"nets": "memory"}, checkpoint=tmp_path / "c", on_step=look
    )
    assert run.await_termination(60)
    assert seen == [
        "Streams",
        "Measured in 1 epoch; figures are means of an epoch.",
        "Measured in 2 epochs; figures are means of an epoch.",
        "Measured in 3 epochs; figures are means of an epoch.",
    ]


def test_a_better_set_is_named(tmp_path: Path) -> None:
    by_hand = network(*epochs(2))
    by_hand.permit({"tcp": ["srcIP", "destIP"]})
    run = by_hand.start(sinks={"nets": "memory"}, checkpoint=tmp_path / "c")
    assert run.await_termination(60)
    text = network(*epochs(2)).explain(tmp_path / "c")
    assert "Partitioning of tcp: {srcIP, destIP}" in text
    assert "With the measured rates, {srcIP & 0xFF00} would be chosen instead." in text
    told = describe_plan(network(*epochs(2)).explanation(tmp_path / "c"))
    assert told["betterPartitioning"] == "{srcIP & 0xFF00}"
    same = network(*epochs(2))
    run = same.start(sinks={"nets": "memory"}, checkpoint=tmp_path / "d")
    assert run.await_termination(60)
    assert "would be chosen" not in same.explain(tmp_path / "d")


def test_a_checkpoint_of_other_queries_is_refused(tmp_path: Path) -> None:
    run = network(*epochs(2)).start(sinks={"nets": "memory"}, checkpoint=tmp_path / "c")
    assert run.await_termination(60)
    other = network(*epochs(2))
    other.query("more", "SELECT tb, COUNT(*) AS n FROM flows GROUP BY tb")
    with pytest.raises(StateError, match=r"belongs to another query set: .*query more is new"):
        other.explain(tmp_path / "c")


SPEC = """\
CREATE STREAM tcp ORDERED BY time WITH (generator = 'packets', rows = 3000);
CREATE QUERY flows AS SELECT tb, srcIP, COUNT(*) AS cnt FROM tcp GROUP BY time/60 AS tb, srcIP;
CREATE SINK flows TO '{out}/flows';
SET checkpoint = '{out}/c';
SET at_end = 'close';
"""


def test_commands(tmp_path: Path) -> None:
    path, drawing = tmp_path / "spec.sql", tmp_path / "plan.svg"
    path.write_text(SPEC.format(out=tmp_path))

    def explain(*options: str | Path) -> Any:
        told = CliRunner().invoke(app, ["explain", str(path), *map(str, options)])
        assert told.exit_code == 0, told.output
        return told

    assert f"flows -> {tmp_path}/flows (parquet): about" in explain().stdout
    assert re.search(r"flows@1 [\d,]+$|flows@1 [\d,]+,", explain("--verbose").stdout, flags=re.M)
    assert explain("--svg", drawing).stdout == ""
    assert ET.fromstring(drawing.read_text()).tag == f"{SVG}svg"
    early = explain("--checkpoint", tmp_path / "c")
    assert "has no epoch yet" in early.stderr
    assert CliRunner().invoke(app, ["run", str(path), "--in-process"]).exit_code == 0
    assert explain("--checkpoint", tmp_path / "c").stdout.startswith("Measured in 2 epochs")
    told = json.loads(explain("--checkpoint", tmp_path / "c", "--json", "--svg", drawing).stdout)
    assert told["subqueries"][0]["measured"]["rowsInTotal"] <= 3000
    assert told["outputs"][0]["sink"] == f"{tmp_path}/flows (parquet)"
    assert "means of 2 epochs measured" in drawing.read_text()
    refused = CliRunner().invoke(
        app, ["explain", str(path), "--svg", str(tmp_path / "no" / "x.svg")]
    )
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (1, 1)
