"""State that is put aside, and what can go wrong with it: it is told, and nothing is lost."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Session
from anabranch.engine import remembering
from anabranch.engine.run import Run
from anabranch.errors import AnabranchError, RunError, StateError
from anabranch.state import group, packing
from anabranch.state.group import SiteState
from anabranch.state.manifest import Manifest
from anabranch.state.place import place
from anabranch.state.segment import Part
from anabranch.state.store import read_latest
from anabranch.testing.faults import Schedule, small_memory
from anabranch.testing.sources import EpochSource
from helpers import oracle, plain, read_results

QUERY = "SELECT a.t AS t, a.k AS k, x, y FROM a JOIN b ON a.k = b.k"
EPOCHS = 8
LITTLE = {"site_memory_bytes": 700}


def frames(column: str, keys: int = 6, rows: int = 30) -> list[pl.DataFrame]:
    draw = random.Random(f"{column} {keys}")
    return [
        pl.DataFrame(
            {
                "t": [10 * epoch + draw.randrange(10) for _ in range(rows)],
                "k": [draw.randrange(keys) for _ in range(rows)],
                column: [draw.randrange(100) for _ in range(rows)],
            }
        )
        for epoch in range(EPOCHS)
    ]


class Stage:
    """Two streams, a join without bounds, and a checkpoint that runs go on with."""

    def __init__(self, folder: Path, keys: int = 6, rows: int = 30, query: str = QUERY) -> None:
        self.folder, self.query = folder, query
        self.checkpoint, self.out = folder / "checkpoint", folder / "out"
        self.inputs = {
            name: frames(column, keys, rows) for name, column in (("a", "x"), ("b", "y"))
        }

    def start(self, epochs: int = EPOCHS, sites: int = 2, **options: Any) -> Run:
        settings = {
            "allow_unbounded_state": True, "fsync": False, "partitions_per_site": 4, "policy": "none",
            **LITTLE, **options.pop("settings", {}),
        }  # fmt: skip
        session = Session.in_process(sites, settings)
        for name, some in self.inputs.items():
            session.stream(name, EpochSource(some[:epochs]), ordered="t", lateness=20)
        session.query("q", self.query)
        return session.start(sinks={"q": self.out}, checkpoint=self.checkpoint, **options)

    def run(self, epochs: int = EPOCHS, **options: Any) -> Run:
        run = self.start(epochs, **options)
        assert run.await_termination(60)
        return run

    def manifest(self) -> Manifest:
        found = read_latest(place(str(self.checkpoint)))
        assert found is not None
        return found

    def packed(self) -> list[Path]:
        """The files of what is put aside."""
        refs = [ref for one in self.manifest().subqueries.values() for ref in one.shelf]
        return sorted({self.checkpoint / ref.file for ref in refs if ref.packed})

    def check(self, epochs: int = EPOCHS) -> None:
        """All is delivered, once."""
        tables = {name: pl.concat(some[:epochs]) for name, some in self.inputs.items()}
        assert plain(read_results(self.out)) == oracle(self.query, **tables)
        assert not self.manifest().spilled


def test_what_is_owed_is_kept_and_given_by_the_next_run(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.run(5)
    assert stage.manifest().spilled
    given = read_results(stage.out).height
    stage.run(5, at_end="close")
    assert read_results(stage.out).height > given, "the same input, but what was owed"
    stage.check(epochs=5)


@pytest.mark.parametrize("sites", [1, 3, 5])
def test_another_number_of_sites(tmp_path: Path, sites: int) -> None:
    stage = Stage(tmp_path)
    stage.run(4)
    assert stage.manifest().spilled
    stage.run(6, sites=sites)
    stage.run(sites=2, at_end="close")
    stage.check()


def test_without_a_limit_all_comes_back(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.run(4)
    assert stage.manifest().spilled
    stage.run(7, settings={"site_memory_bytes": 1 << 40})
    assert not stage.manifest().spilled
    stage.run(at_end="close")
    stage.check()


def test_memory_that_is_lowered_and_raised_while_it_runs(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    cut = [small_memory(site, 300, from_epoch=2, until=5) for site in (0, 1)]
    run = stage.run(settings={"site_memory_bytes": 1 << 40}, burdens=Schedule(cut), at_end="close")
    kinds = [(line["epoch"], line["kind"]) for line in run.history()]
    assert {kind for _, kind in kinds} == {"spill", "cleanup"}
    assert min(epoch for epoch, kind in kinds if kind == "spill") == 2
    assert min(epoch for epoch, kind in kinds if kind == "cleanup") == 5
    stage.check()


def test_a_site_that_may_keep_less_than_a_slot_tells_what_that_needs(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "little", keys=1, rows=10)
    run = stage.run(at_end="close")
    told = [text for one in run.recent_progress for text in one["customMetrics"]["warnings"]]
    (memory,) = (text for text in told if text.startswith("Memory"))
    assert "of q@1 alone has" in memory
    assert "may keep 700 B" in memory
    (needed,) = re.findall(r"would have to be ([\d,]+) or more", memory)
    assert 700 < int(needed.replace(",", "")) < 3_000
    stage.check()


@pytest.mark.parametrize("limit", [1_000_000, None])
def test_nothing_is_told_where_every_slot_fits(tmp_path: Path, limit: int | None) -> None:
    def steer(step: str, epoch: int) -> None:
        if step == "begin" and epoch in (2, 4):
            for start in runs[0].partition_map("q@1").starts:
                runs[0].spill("q@1", start)

    stage, runs = Stage(tmp_path, keys=1, rows=10), list[Run]()
    runs.append(stage.start(settings={"site_memory_bytes": limit}, on_step=steer, at_end="close"))
    assert runs[0].await_termination(60)
    assert any(line["kind"] == "spill" for line in runs[0].history())
    warned = [one["customMetrics"]["warnings"] for one in runs[0].recent_progress]
    assert not any("Memory" in text for some in warned for text in some)
    stage.check()


THREE = "SELECT a.t AS t, a.k AS k, a.x AS x, y, c.x AS z FROM a JOIN b ON a.k = b.k JOIN a AS c ON a.k = c.k"


@pytest.mark.parametrize(("query", "rows"), [(QUERY, 12), (THREE, 3)], ids=["two", "three"])
@pytest.mark.parametrize("aside", [True, False], ids=["kept aside", "brought back"])
def test_all_rows_have_one_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, rows: int, aside: bool
) -> None:
    """A slot cannot be divided: its blocks of rows are, where they go, meet and come back."""
    read: dict[str, int] = Counter()
    sizes: list[float] = []
    blocks, parts = SiteState.blocks, packing._parts

    def counted(piece: SiteState, table: str) -> Iterator[tuple[int, pl.DataFrame]]:
        for born, block in blocks(piece, table):
            read["met"] += 1
            sizes.append(block.estimated_size() / piece.piece_bytes)
            yield born, block

    def written(piece: SiteState, *rest: Any) -> list[Part]:
        found = parts(piece, *rest)
        if piece.oversized:
            # What has gone block by block comes back so
            read["went" if rest[2] else "came back"] += len(found)
        return found

    def steer(step: str, epoch: int) -> None:
        if step == "begin" and epoch in (4, 6) and runs and not aside:
            (join,) = runs[0].plan.subqueries
            for start in runs[0].partition_map(join).starts:
                runs[0].recall(join, start)

    monkeypatch.setattr(group, "LEAST_PIECE", 100)
    monkeypatch.setattr(SiteState, "blocks", counted)
    monkeypatch.setattr(packing, "_parts", written)
    stage = Stage(tmp_path, keys=1, rows=rows, query=query)
    runs: list[Run] = []
    run = stage.start(on_step=steer, at_end="close")
    runs.append(run)
    assert run.await_termination(60)
    stage.check()
    assert read["met"] > 100
    assert max(sizes) <= 2, "more than a piece at once"
    assert read["went"] > 1
    assert aside or read["came back"] > 1


@pytest.mark.parametrize("damage", ["missing", "cut off", "flipped"])
def test_a_file_of_what_is_put_aside_is_damaged(tmp_path: Path, damage: str) -> None:
    stage = Stage(tmp_path)
    stage.run(4)
    path = stage.packed()[0]
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    damages: dict[str, Callable[[], object]] = {
        "missing": path.unlink,
        "cut off": lambda: path.write_bytes(whole[: len(whole) // 2]),
        "flipped": lambda: path.write_bytes(flipped),
    }
    damages[damage]()
    with pytest.raises(StateError, match="Restore it") as told:
        stage.run(at_end="close")
    assert str(path) in str(told.value)
    path.write_bytes(whole)
    stage.run(at_end="close")
    stage.check()


@pytest.mark.parametrize("direction", ["aside", "back"])
def test_the_disk_is_full_while_state_goes_or_comes_back(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    stage = Stage(tmp_path, rows=400)
    stage.checkpoint = small_disk / "checkpoint"
    ballast = small_disk / "ballast"
    name = {"aside": "put_away", "back": "bring_back"}[direction]
    writes = getattr(packing, name)
    failed: list[int] = []

    def filled(state: SiteState, *rest: Any) -> packing.Written:
        if state.epoch >= 3 and not failed:
            failed.append(state.epoch)
            left = os.statvfs(small_disk)
            ballast.write_bytes(bytes(left.f_bavail * left.f_frsize))
        found: packing.Written = writes(state, *rest)
        return found

    def steer(step: str, epoch: int) -> None:
        if step == "begin" and epoch in (1, 3):
            for start in runs[0].partition_map("q@1").starts:
                runs[0].spill("q@1", start)
        elif step == "begin" and epoch == 5:
            runs[0].clean_up()

    monkeypatch.setattr(remembering, name, filled)
    runs: list[Run] = []
    runs.append(stage.start(settings={"site_memory_bytes": None}, on_step=steer))
    told = rf"Cannot write the state segment '.*-{direction}.*No space left on device.*start again"
    with pytest.raises(AnabranchError, match=told):
        runs[0].await_termination(60)
    assert stage.manifest().epoch == failed[0] - 1
    assert stage.manifest().spilled
    ballast.unlink()
    stage.run(at_end="close")
    stage.check()


def test_by_hand(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    runs: list[Run] = []
    told: list[set[str]] = []

    def steer(step: str, epoch: int) -> None:
        if step != "begin" or not runs:
            return
        if epoch == 2:
            for start in runs[0].partition_map("q@1").starts:
                runs[0].spill("q@1", start)
        elif epoch == 5:
            told.append(set(stage.manifest().spilled))
            runs[0].recall("q@1", 0)
        elif epoch == 7:
            spilled = stage.manifest().spilled["q@1"]
            assert min(one.first for one in spilled) == runs[0].partition_map("q@1").starts[1]

    run = stage.start(settings={"site_memory_bytes": None}, on_step=steer, at_end="close")
    runs.append(run)
    assert run.await_termination(60)
    assert told == [{"q@1"}]
    lines = [(line["action"], line["cause"], line["origin"]) for line in run.history()]
    assert ("put q@1/0 of site 0 aside", "asked for", "hand") in lines
    assert ("bring q@1/0 on site 0 together", "asked for", "hand") in lines
    stage.check()


@pytest.mark.parametrize("call", ["spill", "recall"])
def test_what_is_not_there_is_refused(tmp_path: Path, call: str) -> None:
    def refused(step: str, epoch: int) -> None:
        if step == "begin" and runs and epoch == 3:
            with pytest.raises(RunError, match="no partition that begins at slot 7"):
                getattr(runs[0], call)("q@1", 7)
            with pytest.raises(RunError, match="There is no subquery 'p@1'"):
                getattr(runs[0], call)("p@1", 0)
            seen.append(epoch)

    runs: list[Run] = []
    seen: list[int] = []
    run = Stage(tmp_path).start(on_step=refused)
    runs.append(run)
    run.await_termination(60)
    assert seen == [3]
