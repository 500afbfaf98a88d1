"""`anabranch top`: its tables, its keys, and what it does without a terminal and in a real one."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.browser.stage import PARTITIONS, SITES, LargeRun, large_story
from textual.pilot import Pilot
from textual.widgets import DataTable, Static
from typer.testing import CliRunner

from anabranch import Session, col, count
from anabranch.cli import app
from anabranch.errors import StateError
from anabranch.events.event import AnyEvent, RunEnded
from anabranch.observe.seeing import tell_of_no_history
from anabranch.observe.story import Story
from anabranch.observe.top.app import MOST_ROWS, Top
from anabranch.observe.top.plain import as_text, described
from anabranch.observe.top.rows import VIEWS, Sheet, headline


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks only when a test says so."""
    monkeypatch.setattr("anabranch.observe.top.app.LOOK_SECONDS", 1e6)


@pytest.fixture(scope="module")
def story() -> Story:
    return large_story(epochs=3, decisions=2_000)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("top") / "checkpoint")
    session = Session.in_process(sites=2, settings={"max_rows_per_epoch": 1_000})
    session.stream("tcp", generator="packets", rows=4_000, ordered="time")
    flows = session.from_stream("tcp").group_by((col("time") // 1).alias("tb"), "srcIP")
    session.query("flows", flows.agg(count().alias("cnt")))
    session.start(sinks={"flows": "memory"}, checkpoint=place).await_termination()
    return place


def text(top: Top, name: str) -> str:
    return str(top.query_one(name, Static).render())


def column(top: Top, name: int) -> list[str]:
    table: DataTable[object] = top.query_one(DataTable)
    return [str(table.get_row_at(row)[name]) for row in range(min(5, table.row_count))]


def use(top: Top, steps: Callable[[Pilot[None]], object], size: tuple[int, int] = (80, 24)) -> None:
    async def run() -> None:
        async with top.run_test(size=size) as pilot:
            await steps(pilot)  # type: ignore[misc]

    asyncio.run(run())


def test_order_of_a_view() -> None:
    view = Sheet(("name", "size"), [("x/64", 3), ("x/128", None), ("x/0", 7)], ["a", "b", "c"])
    assert view.sorted_by(0, False).keys == ["c", "a", "b"]
    assert view.sorted_by(0, True).keys == ["b", "a", "c"]
    # What is unknown comes last, whichever way
    assert view.sorted_by(1, False).keys == ["a", "c", "b"]
    assert view.sorted_by(1, True).keys == ["c", "a", "b"]
    assert view.first(2).left_out == 1
    assert view.first(3).left_out == 0


def test_rows_of_one_thing(story: Story) -> None:
    everything = VIEWS["partitions"](story, None)
    assert len(everything.rows) == PARTITIONS
    of_site = VIEWS["partitions"](story, "site 7")
    assert {row[1] for row in of_site.rows} == {7}
    assert len(of_site.rows) == PARTITIONS // SITES
    assert len(VIEWS["partitions"](story, "subquery flows@1").rows) == PARTITIONS
    assert VIEWS["partitions"](story, "exchange other").rows == []
    assert len(VIEWS["decisions"](story, "site 9").rows) == 2_000
    assert VIEWS["decisions"](story, "site 8").rows == []
    one = story.decisions[0]
    name = f"{one['exchange']}/{one['partition']}"
    found = VIEWS["decisions"](story, f"partition {name}")
    assert found.rows
    assert all(name in row[2] for row in found.rows)


def test_headline_says_how_old_the_news_is() -> None:
    run, story = LargeRun(), Story()
    assert headline(story, 0.0).startswith("waiting, 0 sites")
    story.add(run.started)
    story.add(run.epoch(4))
    at = 1_790_000_004.0
    assert ", epoch 4, 9 s ago\n" in headline(story, at + 9)
    assert ", epoch 4, 3 min ago\n" in headline(story, at + 180)
    story.add(RunEnded(at=at + 1, epoch=4, error="no space"))
    assert "failed: no space" in headline(story, at + 9)
    assert "ago" not in headline(story, at + 9)


def test_keys(story: Story) -> None:
    top = Top(story, list)

    async def steps(pilot: Pilot[None]) -> None:
        assert "[1 sites]" in text(top, "#tabs")
        assert top.query_one(DataTable).row_count == SITES
        await pilot.press("s", "s")
        busy = [float(cell.split()[0]) for cell in column(top, 1)]
        assert busy == sorted(busy, reverse=True)
        await pilot.press("r")
        busy = [float(cell.split()[0]) for cell in column(top, 1)]
        assert busy == sorted(busy)
        site = column(top, 0)[0]
        await pilot.press("enter")
        assert (top.view, top.of) == ("partitions", f"site {site}")
        assert set(column(top, 1)) == {site}
        assert "Executor executor-" in text(top, "#told")
        await pilot.press("escape")
        assert top.of is None
        assert f"{PARTITIONS - MOST_ROWS:,} more" in text(top, "#told")
        await pilot.press("5", "down")
        assert "move flows@1/" in text(top, "#told")
        await pilot.press("tab", "tab")
        assert top.view == "sites"
        await pilot.press("4", "enter")
        assert "level 1, reads tcp" in text(top, "#told")
        await pilot.press("q")

    use(top, steps)
    assert top.return_code == 0


def test_it_follows_until_the_end_and_keeps_what_is_under_the_cursor() -> None:
    run, story = LargeRun(), Story()
    coming: list[list[AnyEvent]] = [[run.started, run.epoch(0)], [run.epoch(1)]]
    coming.append([RunEnded(at=0.0, epoch=1, error=None)])
    top = Top(story, lambda: coming.pop(0))

    async def steps(pilot: Pilot[None]) -> None:
        assert "Nothing yet." in text(top, "#told")
        await top.follow()
        await pilot.press("s", "s", "down", "down")
        await pilot.pause()
        site = str(top.table.get_row_at(2)[0])
        await top.follow()
        await pilot.pause()
        assert str(top.table.get_row_at(top.table.cursor_row)[0]) == site
        await top.follow()
        assert "ended" in text(top, "#head")
        await pilot.press("3")
        assert top.table.row_count == MOST_ROWS

    use(top, steps)


def test_a_checkpoint_that_cannot_be_read_is_told_and_tried_again(story: Story) -> None:
    errors = [OSError("no route to the store")]

    def look() -> list[AnyEvent]:
        if errors:
            raise errors.pop()
        return []

    top = Top(story, look)

    async def steps(pilot: Pilot[None]) -> None:
        await top.follow()
        assert "no route to the store" in text(top, "#told")
        await top.follow()
        assert "no route" not in text(top, "#told")

    use(top, steps)


@pytest.mark.parametrize("size", [(40, 12), (12, 4)])
def test_narrow_terminals(story: Story, size: tuple[int, int]) -> None:
    top = Top(story, list)

    async def steps(pilot: Pilot[None]) -> None:
        for key in "123456":
            await pilot.press(key)
            assert top.table.row_count

    use(top, steps, size)


def test_all_tables_as_json(story: Story) -> None:
    told = json.loads(json.dumps(described(story)))
    assert told["epoch"] == 2
    assert told["status"]["state"] == "running"
    assert len(told["partitions"]) == PARTITIONS
    assert set(told["sites"][0]) == {
        "site", "busy", "load", "rowsIn", "rowsOut", "memory", "budget", "aside",
    }  # fmt: skip


def test_decisions_as_text_fit_into_a_terminal(story: Story) -> None:
    lines = as_text(story).split("decisions\n")[1].split("\n\n")[0].splitlines()
    assert sum(line.startswith("  epoch ") for line in lines) == 20
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "  and 1,980 more"


def test_without_a_terminal_it_prints_once(checkpoint: str) -> None:
    told = CliRunner().invoke(app, ["top", checkpoint])
    assert told.exit_code == 0
    assert "ended, 2 sites, epoch 3" in told.stdout
    assert "4,000 rows" in told.stdout
    assert "\x1b" not in told.stdout
    lines = told.stdout.splitlines()
    assert lines[lines.index("sites") + 1].split()[:2] == ["site", "busy"]
    asked = json.loads(CliRunner().invoke(app, ["top", checkpoint, "--json"]).stdout)
    assert asked["streams"][0]["rows"] == 4_000


@pytest.mark.parametrize("kind", ["none", "empty", "other", "file"])
@pytest.mark.parametrize("option", ["--once", "--json"])
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, kind: str, option: str) -> None:
    place = tmp_path / "place"
    if kind == "file":
        place.write_text("x")
    elif kind != "none":
        place.mkdir()
    if kind == "other":
        (place / "a.parquet").write_text("x")
    before = sorted(tmp_path.rglob("*"))
    told = CliRunner().invoke(app, ["top", str(place), option], env={"COLUMNS": "1000"})
    assert (told.exit_code, told.stdout) == (1, "")
    assert f"There is no checkpoint in '{place}'. Expected the folder or the URI" in told.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_who_may_wait_for_a_run_to_begin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell_of_no_history(str(tmp_path / "none"), waits=True)
    assert "this waits for a run to begin one" in capsys.readouterr().err
    (tmp_path / "a.parquet").write_text("x")
    with pytest.raises(StateError, match="There is no checkpoint in"):
        tell_of_no_history(str(tmp_path), waits=True)


def test_a_checkpoint_without_history(tmp_path: Path) -> None:
    session = Session.in_process(settings={"event_history_bytes": 0})
    session.stream("tcp", generator="packets", rows=100, ordered="time")
    session.query("q", "SELECT time FROM tcp")
    session.start(sinks={"q": "memory"}, checkpoint=tmp_path).await_termination()
    told = CliRunner().invoke(app, ["top", str(tmp_path), "--once"], env={"COLUMNS": "1000"})
    assert told.exit_code == 0
    assert "has no history: its runs keep none (event_history_bytes=0)." in told.stderr
    assert as_text(Story()).startswith("waiting")


def test_in_a_real_terminal(checkpoint: str) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from anabranch.cli import main; main()", "top", checkpoint]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    child = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        close_fds=True,
    )
    os.close(theirs)
    seen, until = b"", time.monotonic() + 60
    try:
        while b"rows out" not in seen and time.monotonic() < until:
            if select.select([ours], [], [], 1.0)[0]:
                seen += os.read(ours, 65_536)
        assert b"\x1b[?1049h" in seen  # the other screen, which leaves what was there as it was
        os.write(ours, b"q")
        while child.poll() is None and time.monotonic() < until:
            with suppress(OSError):  # that of a terminal whose last program has ended
                if select.select([ours], [], [], 0.2)[0]:
                    seen += os.read(ours, 65_536)
        assert child.wait(5) == 0, seen.decode(errors="replace")
        assert b"\x1b[?1049l" in seen
    finally:
        child.kill()
        os.close(ours)
