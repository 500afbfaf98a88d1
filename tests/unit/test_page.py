"""The page's data: what it is told is what happened, for small runs and for very large ones."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.browser.stage import large_story

from anabranch import Session, col, count
from anabranch.engine.run import Run
from anabranch.events.event import EpochHappened, ExchangeFigures, RunEvent, RunStarted, columns
from anabranch.observe.page.opening import page_of_checkpoint, page_of_run
from anabranch.observe.page.server import BYTES_PER_SECOND, Page
from anabranch.observe.page.telling import detail, older, packed, since, whole
from anabranch.observe.story import MOST_DECISIONS, Story, along

EPOCHS = 11
"""Ten with rows, and the end."""


def small_run(checkpoint: Path | None = None, sink: Any = "memory") -> tuple[Run, list[RunEvent]]:
    session = Session.in_process(sites=3, settings={"max_rows_per_epoch": 2_000})
    session.stream("tcp", generator="packets", rows=20_000, ordered="time")
    flows = session.from_stream("tcp").group_by((col("time") // 5).alias("tb"), "srcIP")
    session.query("flows", flows.agg(count().alias("cnt")))
    heard: list[RunEvent] = []
    session.listen(heard.append)
    run = session.start(sinks={"flows": sink}, checkpoint=checkpoint, at_end="close")
    run.await_termination()
    return run, heard


def get(page: Page, path: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
    connection.request("GET", path, headers={"Authorization": f"Bearer {page.access.token}"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    return json.loads(answer.read())


def test_the_page_tells_every_epoch_and_what_it_was_made_of() -> None:
    run, _ = small_run()
    page = page_of_run(run)
    try:
        told = get(page, "/api/state")
        assert [one["epoch"] for one in told["series"]] == list(range(EPOCHS))
        assert sum(one["rows"] for one in told["series"]) == 20_000
        assert told["status"]["state"] == "ended"
        assert told["detail"]["epoch"] == EPOCHS - 1
        fourth = get(page, "/api/epoch/4")
        assert fourth["streams"][0]["rows"] == 2_000
        sample = get(page, "/api/results/flows")
        assert sample["columns"] == ["tb", "srcIP", "cnt"]
        assert sample["rows"]
    finally:
        page.close()


def test_packed_partitions_can_be_unpacked_to_what_they_were() -> None:
    _, heard = small_run()
    last = [event for event in heard if isinstance(event, EpochHappened)][-2]
    figures = last.exchanges["flows@1"]
    told = packed(figures)
    raw, n = zlib.decompress(base64.b64decode(told["data"])), told["count"]
    assert np.frombuffer(raw[: 2 * n], "<u2").tolist() == figures.column("starts").tolist()
    assert np.frombuffer(raw[2 * n : 4 * n], "<u2").tolist() == figures.column("sites").tolist()
    rows = (np.frombuffer(raw[4 * n : 5 * n], "u1") / 255.0) ** 2 * told["top"]["rows"]
    np.testing.assert_allclose(rows, figures.column("rows"), atol=0.01 * told["top"]["rows"])


def test_the_map_of_slots_keeps_the_sum_and_the_place() -> None:
    figures = ExchangeFigures(
        slots=1_000,
        **columns(
            starts=[0, 100, 900], sites=[0, 1, 0], rows=[10, 80, 30], rows_out=[0, 0, 0],
            size=[1, 1, 1], aside=[0, 0, 0], marks=[0, 0, 0],
        ),
    )  # fmt: skip
    found = along(figures, "rows", 10)
    np.testing.assert_allclose(found, [10, *[10] * 8, 30])


def test_what_comes_later_is_told_once() -> None:
    _, heard = small_run()
    story, version, epochs = Story(), -1, []
    for event in heard:
        story.add(event)
        news = since(story, version)
        version = news["version"]
        epochs += [one["epoch"] for one in news["series"]]
    assert epochs == list(range(EPOCHS))


def test_a_page_of_a_checkpoint_shows_what_the_run_has_shown(tmp_path: Path) -> None:
    small_run(tmp_path / "ck", str(tmp_path / "out"))
    page = page_of_checkpoint(str(tmp_path / "ck"))
    try:
        told = get(page, "/api/state")
        assert [one["epoch"] for one in told["series"]] == list(range(EPOCHS))
        assert not told["live"]
        assert not told["control"]
        assert get(page, "/api/results/flows")["rows"]
    finally:
        page.close()


def test_a_page_follows_a_run_of_another_process(tmp_path: Path) -> None:
    page = page_of_checkpoint(str(tmp_path / "ck"))
    try:
        assert get(page, "/api/state")["series"] == []
        small_run(tmp_path / "ck")
        small_run(tmp_path / "ck2")  # another one changes nothing
        until = time.monotonic() + 120
        while get(page, "/api/state")["status"]["state"] != "ended":
            assert time.monotonic() < until, "the run was not followed to its end"
            time.sleep(0.1)
        series = get(page, "/api/state")["series"]
        assert [one["epoch"] for one in series] == list(range(EPOCHS))
    finally:
        page.close()


def heeding_ctrl_c() -> None:
    """A shell lets what it starts in the background ignore Ctrl-C, and that is handed on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_the_command_opens_a_page_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    small_run(tmp_path / "ck")
    opened = subprocess.Popen(
        [sys.executable, "-m", "anabranch", "page", str(tmp_path / "ck")],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=heeding_ctrl_c,
    )  # fmt: skip
    try:
        assert opened.stdout
        url = opened.stdout.readline().strip()
        port, token = url.removeprefix("http://127.0.0.1:").split("/?token=")
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        connection.request("GET", "/api/state", headers={"Authorization": f"Bearer {token}"})
        assert json.loads(connection.getresponse().read())["status"]["epochs"] == EPOCHS
    finally:
        opened.send_signal(signal.SIGINT)
        assert opened.wait(60) in (0, 130)


def test_the_command_takes_names_for_other_machines(tmp_path: Path) -> None:
    small_run(tmp_path / "ck")
    names = ["--page-name", "db1.example", "--page-name", "proxy.example"]
    opened = subprocess.Popen(
        [sys.executable, "-m", "anabranch", "page", str(tmp_path / "ck"), *names],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=heeding_ctrl_c,
    )  # fmt: skip
    try:
        assert opened.stdout
        url = opened.stdout.readline().strip()
        port, token = url.removeprefix("http://127.0.0.1:").split("/?token=")
        for name in (f"db1.example:{port}", "proxy.example"):
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
            headers = {"Authorization": f"Bearer {token}", "Host": name}
            connection.request("GET", "/api/state", headers=headers)
            assert connection.getresponse().status == 200, name
            connection.close()
    finally:
        opened.send_signal(signal.SIGINT)
        assert opened.wait(60) in (0, 130)


def test_256_sites_with_8192_partitions_fit_into_the_stream() -> None:
    story = large_story(epochs=3, decisions=10_000)
    newest = story.newest
    assert newest is not None
    version = story.series[-2]["version"]
    message = json.dumps({**since(story, version), "detail": detail(newest)})
    assert len(message) < 200_000, "one epoch, which the server sends at most once a second"
    assert BYTES_PER_SECOND < 200_000
    beginning = json.dumps(whole(story, False, True))
    assert len(beginning) < 1_000_000


def test_ten_thousand_decisions_are_kept_and_told_in_parts() -> None:
    story = large_story(epochs=1, decisions=MOST_DECISIONS + 500)
    assert len(story.decisions) == MOST_DECISIONS
    seen: list[int] = []
    before = 2**53
    while part := older(story, before, 500):
        seen = [one["number"] for one in part] + seen
        before = part[0]["version"]
    assert seen == list(range(501, MOST_DECISIONS + 501))


def test_memory_of_a_story_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.observe.story.MOST_DETAIL_BYTES", 1_000_000)
    story = large_story(epochs=20, decisions=0)
    assert sum(event.size for event in story.details.values()) <= 1_000_000
    assert len(story.series) == 20


def test_a_story_goes_on_with_the_next_run() -> None:
    _, heard = small_run()
    story = Story()
    for event in [*heard, *heard]:
        story.add(event)
    assert story.runs == 2
    assert story.totals.epochs == EPOCHS
    assert isinstance(story.started, RunStarted)


def test_stories_are_told_while_events_come() -> None:
    run, heard = small_run()
    page = page_of_run(run)
    try:
        connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
        connection.request(
            "GET", "/api/stream?after=-1", headers={"Authorization": f"Bearer {page.access.token}"}
        )
        answer = connection.getresponse()
        assert answer.getheader("content-type", "").startswith("text/event-stream")
        line = answer.readline()
        assert line.startswith(b"data: ")
        first = json.loads(line[6:])
        assert len(first["series"]) == EPOCHS
        page.story.add(heard[-1])
        line = next(one for one in iter(answer.readline, b"") if one.startswith(b"data: "))
        later = json.loads(line[6:])
        assert later["version"] > first["version"]
        assert later["series"] == []
        connection.close()
    finally:
        page.close()
