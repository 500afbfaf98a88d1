"""Streams that come partitioned: their exchange is saved, their groups stay whole, claims are checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from anabranch import Session
from anabranch.engine import transport
from anabranch.engine.orders import Orders
from anabranch.engine.reading import spread
from anabranch.engine.report import Word
from anabranch.engine.run import Run
from anabranch.engine.site import run_site
from anabranch.errors import LanguageError, RunError, SourceError
from anabranch.plan.subquery import BY_LANE
from anabranch.routing.frame import unpack
from anabranch.routing.lanes import place_lanes
from anabranch.sources.generate import Generator
from anabranch.testing.sources import FramePiece

FLOWS = "SELECT tb, srcIP, destIP, COUNT(*) AS cnt FROM tcp GROUP BY time/60 AS tb, srcIP, destIP"
DESTS = "SELECT tb, destIP, SUM(cnt) AS cnt FROM flows GROUP BY tb, destIP"
ACTIVE = "SELECT tb, COUNT(*) AS hosts FROM dests GROUP BY tb"

PACKETS = Generator("packets", keys=300, rows_per_second=100).rows(0, 20_000)


def write_lanes(folder: Path, by: str, lanes: int = 4, epochs: int = 4) -> Path:
    for epoch, rows in enumerate(PACKETS.iter_slices(PACKETS.height // epochs)):
        for lane in range(lanes):
            path = folder / f"lane-{lane}" / f"{epoch}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            rows.filter(pl.col(by) % lanes == lane).write_parquet(path)
    return folder


def network(path: Path, sites: int = 3, **options: Any) -> Session:
    session = Session.in_process(sites, {"max_files_per_epoch": 4})
    session.stream("tcp", path=path, ordered="time", lateness=200, **options)
    return session


def test_rows_stay_in_their_lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = network(write_lanes(tmp_path / "tcp", "destIP"), partitioned_by=["destIP"])
    session.query("flows", FLOWS)
    session.query("dests", DESTS)
    plan = session.plan()
    assert {part.spread for part in plan.subqueries.values()} == {BY_LANE}
    assert plan.levels == 1
    senders: dict[int, set[int]] = {}

    def noted(orders: Orders, level: int, site: int, parcels: Iterable[bytes]) -> Iterator[bytes]:
        sent = list(parcels)
        for plain, contents in map(unpack, sent):
            if any(frame.rows.height for _, frame, _ in contents):
                senders.setdefault(site, set()).add(msgspec.convert(plain, Word).sender)
        return run_site(orders, level, site, sent)

    monkeypatch.setattr(transport, "run_site", noted)
    run = session.start(sinks={"flows": "memory", "dests": "memory"}, at_end="close")
    assert run.await_termination(60)
    minutes = PACKETS.with_columns(tb=pl.col("time") // 60)
    flows = minutes.group_by("tb", "srcIP", "destIP").len("cnt")
    order = ["tb", "srcIP", "destIP"]
    assert run.results("flows").sort(order).rows() == flows.sort(order).rows()
    dests = minutes.group_by("tb", "destIP").len("cnt").sort("tb", "destIP")
    assert run.results("dests").sort("tb", "destIP").rows() == dests.rows()
    assert senders == {0: {0}, 1: {1}, 2: {2}}


def test_what_the_lanes_do_not_suit_has_an_exchange(tmp_path: Path) -> None:
    session = network(write_lanes(tmp_path / "tcp", "destIP"), partitioned_by=["destIP"])
    session.query("flows", FLOWS)
    session.query("dests", DESTS)
    session.query("active", ACTIVE)
    plan = session.plan()
    assert plan.subqueries["flows@1"].spread == plan.subqueries["dests@1"].spread == BY_LANE
    assert (plan.subqueries["active@1"].exchange, plan.levels) == ("active@1", 2)
    run = session.start(sinks={"active": "memory"}, at_end="close")
    assert run.await_termination(60)
    minutes = PACKETS.select(pl.col("time") // 60, "destIP").unique().group_by("time").len()
    assert run.results("active").sort("tb").rows() == minutes.sort("time").rows()


def test_lanes_follow_their_partitions(tmp_path: Path) -> None:
    """Over a restart on another number of sites, maps that change, and a lane that is new."""
    folder = write_lanes(tmp_path / "tcp", "destIP")
    late = [(p, p.read_bytes()) for p in sorted(folder.rglob("*.parquet")) if p.stem in "23"]
    late += [(p, p.read_bytes()) for p in sorted(folder.rglob("lane-3/*.parquet"))]
    for path, _ in late:
        path.unlink(missing_ok=True)
    results = []
    for sites in (3, 2):
        session = network(folder, sites=sites, partitioned_by=["destIP"])
        session.query("flows", FLOWS)
        run = session.start(sinks={"flows": "memory"}, checkpoint=tmp_path / "c", at_end="keep")
        assert run.await_termination(60)
        results.append(run.results("flows"))
        for path, data in late:
            path.write_bytes(data)
    session = network(folder, sites=4, partitioned_by=["destIP"])
    session.query("flows", FLOWS)
    run = session.start(sinks={"flows": "memory"}, checkpoint=tmp_path / "c", at_end="close")
    assert run.await_termination(60)
    results.append(run.results("flows"))
    flows = (
        PACKETS.with_columns(tb=pl.col("time") // 60).group_by("tb", "srcIP", "destIP").len("cnt")
    )
    order = ["tb", "srcIP", "destIP"]
    assert pl.concat(results).sort(order).rows() == flows.sort(order).rows()


def test_a_claim_that_the_sample_refutes(tmp_path: Path) -> None:
    session = network(write_lanes(tmp_path / "tcp", "srcIP"), partitioned_by=["destIP"])
    session.query("flows", FLOWS)
    with pytest.raises(SourceError, match=r"rows with destIP = \d+ are in the parts 'lane-\d' and"):
        session.plan()


def test_a_claim_that_only_later_files_refute(tmp_path: Path) -> None:
    """What the sample cannot show is found while it runs, and the epoch is not counted."""
    folder = write_lanes(tmp_path / "tcp", "destIP", epochs=2)
    for lane in range(4):
        path = folder / f"lane-{lane}" / "1.parquet"
        PACKETS.filter(pl.col("srcIP") % 4 == lane).tail(1000).write_parquet(path)
    session = network(folder, partitioned_by=["destIP"])
    session.query("flows", FLOWS)
    run = session.start(sinks={"flows": "memory"}, checkpoint=tmp_path / "c", at_end="close")
    with pytest.raises(RunError, match=r"the same value came in the parts 'lane-\d' and 'lane-\d'"):
        run.await_termination(60)
    assert run._checkpoint.manifest.epoch == 0


def test_files_outside_of_every_part(tmp_path: Path) -> None:
    folder = write_lanes(tmp_path / "tcp", "destIP")
    PACKETS.head(5).write_parquet(folder / "stray.parquet")
    session = network(folder, partitioned_by=["destIP"])
    session.query("flows", FLOWS)
    with pytest.raises(SourceError, match=r"stray.parquet' is in none"):
        session.plan()


def test_what_cannot_come_partitioned(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="must be a folder of files"):
        Session.in_process().stream(
            "tcp", generator="packets", rows=5, ordered="time", partitioned_by=["destIP"]
        )
    folder = write_lanes(tmp_path / "tcp", "destIP")
    with pytest.raises(LanguageError, match="destIp"):
        network(folder, partitioned_by=["destIp"])


def test_lanes_lie_far_apart_and_stay_where_they_are() -> None:
    placed = place_lanes({}, list("abcdef"), 96)
    assert list(placed.values()) == [0, 16, 32, 48, 64, 80]
    for lane in "ghijkl":
        more = place_lanes(placed, [lane, "a"], 96)
        assert placed.items() <= more.items()
        assert more[lane] not in placed.values()
        placed = more


def test_pieces_of_a_lane_go_to_its_reader() -> None:
    rows = PACKETS.head(10)
    pieces = [("tcp", FramePiece(rows, at, "", lane)) for at, lane in enumerate("abba")]
    pieces += [("udp", FramePiece(rows, 9, "", None))]
    boxes = spread(pieces, 1, {("tcp", "a"): 2, ("tcp", "b"): 0})
    assert [[piece.lane for _, piece in box] for box in boxes] == [["b", "b"], [None], ["a", "a"]]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x.time FROM tcp x JOIN other y ON x.len = y.len AND x.time = y.time",
        "SELECT tb, len, COUNT(*) AS c FROM (SELECT time, len FROM tcp UNION ALL SELECT time, len "
        "FROM other) u GROUP BY time/5 AS tb, len",
    ],
)
def test_queries_may_do_without_what_a_stream_is_partitioned_by(tmp_path: Path, query: str) -> None:
    session = network(write_lanes(tmp_path / "tcp", "destIP"), partitioned_by=["destIP"])
    session.stream("other", generator="packets", rows=100, ordered="time")
    session.query("q", query)
    assert session.plan().subqueries


def test_values_of_lanes_are_remembered_over_a_restart(tmp_path: Path) -> None:
    def put(lane: str, number: int, keys: list[int]) -> None:
        (tmp_path / "in" / lane).mkdir(parents=True, exist_ok=True)
        rows = pl.DataFrame({"time": [number] * len(keys), "k": keys})
        rows.write_parquet(tmp_path / "in" / lane / f"{number}.parquet")

    def start() -> Run:
        session = network(tmp_path / "in", partitioned_by=["k"])
        session.query("q", "SELECT tb, k, COUNT(*) AS c FROM tcp GROUP BY time/60 AS tb, k")
        return session.start(sinks={"q": "memory"}, checkpoint=tmp_path / "c")

    put("a", 0, [7, 8])
    put("b", 0, [9])
    start().await_termination(60)
    for lane in "ab":
        (tmp_path / "in" / lane / "0.parquet").unlink()
    put("b", 1, [7])
    with pytest.raises(RunError, match="the same value came in the parts 'a' and 'b'"):
        start().await_termination(60)
