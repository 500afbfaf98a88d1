"""The report of a run: one file that says what happened, and lets no name in it become markup."""

from __future__ import annotations

import re
import struct
import zlib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tests.browser.stage import large_story
from typer.testing import CliRunner

from anabranch import Session, col, count
from anabranch.cli import app
from anabranch.observe.drawing import png
from anabranch.observe.report import report
from anabranch.observe.story import story_of

VOID = {"meta", "img"}


class Checked(HTMLParser):
    """Reads HTML, and counts what is open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def checked(text: str) -> Checked:
    found = Checked()
    found.feed(text)
    assert found.open == []
    return found


def run_into(checkpoint: Path, fail_at: int | None = None) -> None:
    session = Session.in_process(sites=2, settings={"max_rows_per_epoch": 1_000})
    session.stream("tcp", generator="packets", rows=8_000, ordered="time")
    flows = session.from_stream("tcp").group_by((col("time") // 60).alias("tb"), "srcIP")
    session.query("flows", flows.agg(count().alias("cnt")))

    def fail(step: str, epoch: int) -> None:
        if (step, epoch) == ("before-commit", fail_at):
            raise OSError("<b>the disk</b> is on fire")

    name = "<script>alert(1)</script>"
    run = session.start(
        sinks={"flows": "memory"}, checkpoint=checkpoint, name=name, at_end="close", on_step=fail
    )
    if fail_at is None:
        run.await_termination()
    else:
        with pytest.raises(Exception, match="on fire"):
            run.await_termination()


def test_a_report_says_what_happened_and_needs_nothing_else(tmp_path: Path) -> None:
    run_into(tmp_path / "ck")
    done = CliRunner().invoke(
        app, ["report", str(tmp_path / "ck"), "-o", str(tmp_path / "run.html")]
    )
    assert done.exit_code == 0, done.output
    text = (tmp_path / "run.html").read_text()
    found = checked(text)
    assert found.tags.isdisjoint({"script", "link", "iframe", "b>the"})
    assert not re.search(r"https?://(?!www\.w3\.org)", text)
    assert "8,000" in found.text
    assert "ended" in found.text
    assert "flows@1" in found.text
    assert "event_history_bytes" in found.text
    assert text.count("<figure>") == 7


def test_a_failed_run_says_why_and_as_text(tmp_path: Path) -> None:
    run_into(tmp_path / "ck", fail_at=3)
    found = checked(report(story_of(str(tmp_path / "ck"))[0]))
    assert "<b>the disk</b> is on fire" in found.text
    assert "It failed:" in found.text
    assert "<script>alert(1)</script>" in found.text


def test_a_report_of_a_very_large_run_stays_small() -> None:
    text = report(large_story(epochs=40, decisions=5_000))
    checked(text)
    assert len(text) < 2_000_000


def test_without_a_history_there_is_no_report(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["report", str(tmp_path / "no"), "-o", str(tmp_path / "run.html")]
    )
    assert done.exit_code == 1
    assert not (tmp_path / "run.html").exists()


def test_pictures_are_what_was_drawn() -> None:
    pixels = np.arange(2 * 3 * 3, dtype="u1").reshape(2, 3, 3)
    data = png(pixels)
    assert struct.unpack(">II", data[16:24]) == (3, 2)
    body = data[data.index(b"IDAT") + 4 : data.index(b"IEND") - 8]
    rows = zlib.decompress(body)
    assert rows == b"\0" + pixels[0].tobytes() + b"\0" + pixels[1].tobytes()
