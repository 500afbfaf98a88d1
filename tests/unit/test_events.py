"""The events of a run: what they say is what happened, and they outlive it without being in its way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anabranch import Session, col, count
from anabranch.engine.run import Run
from anabranch.errors import SettingsError
from anabranch.events import journal
from anabranch.events.event import (
    ASIDE,
    PINNED,
    DecisionTaken,
    EffectMeasured,
    EpochHappened,
    RunEnded,
    RunEvent,
    RunStarted,
    SitesChanged,
    Warned,
)
from anabranch.events.history import EventHistory
from anabranch.events.journal import Journal
from anabranch.events.stream import EventStream
from anabranch.state.place import place
from anabranch.testing.faults import Schedule, slow

EPOCHS = 12


def session_of(rows: int = 24_000, **settings: Any) -> Session:
    limits = {"max_rows_per_epoch": 2_000, **settings}
    session = Session.in_process(sites=3, settings=limits)
    session.stream("tcp", generator="packets", rows=rows, ordered="time")
    flows = session.from_stream("tcp").group_by((col("time") // 60).alias("tb"), "srcIP")
    session.query("flows", flows.agg(count().alias("cnt")))
    return session


def whole(session: Session, **options: Any) -> tuple[Run, list[RunEvent]]:
    """A run to its end, and what was heard of it."""
    heard: list[RunEvent] = []
    session.listen(heard.append)
    run = session.start(sinks={"flows": "memory"}, **options)
    run.await_termination()
    return run, heard


def epochs(events: list[Any]) -> list[EpochHappened]:
    return [event for event in events if isinstance(event, EpochHappened)]


def test_a_listener_hears_a_run_from_its_start_to_its_end() -> None:
    run, heard = whole(session_of())
    assert isinstance(heard[0], RunStarted)
    assert heard[0].run == run.run_id
    assert [one["name"] for one in heard[0].plan["streams"]] == ["tcp"]
    assert isinstance(heard[-1], RunEnded)
    assert heard[-1].error is None
    assert [event.epoch for event in epochs(heard)] == list(range(EPOCHS))


def test_the_report_of_an_epoch_is_the_one_in_its_event() -> None:
    run, heard = whole(session_of())
    assert [event.progress for event in epochs(heard)] == run.recent_progress


def test_figures_of_partitions_are_those_of_the_manifest() -> None:
    run, heard = whole(session_of())
    last = epochs(heard)[-1]
    figures = last.exchanges["flows@1"]
    known = run.partition_map("flows@1")
    assert figures.column("starts").tolist() == list(known.starts)
    assert figures.column("sites").tolist() == list(known.sites)
    received = last.progress["stateOperators"][0]["customMetrics"]
    assert figures.column("rows").sum() == received["rowsReceived"]
    size = last.progress["stateOperators"][0]["memoryUsedBytes"]
    np.testing.assert_allclose(figures.column("size").sum(), size, rtol=1e-3)


def test_every_decision_is_an_event_and_so_is_its_effect() -> None:
    session = session_of(
        60_000, policy="load", least_gain_seconds=0.0, most_collection_seconds=0.02
    )
    run, heard = whole(session, burdens=Schedule([slow(0, seconds_per_row=0.00005)]))
    taken = [event for event in heard if isinstance(event, DecisionTaken)]
    known = run.history()
    assert [(one.action, one.accepted, one.reason) for one in taken] == [
        (one["action"], one["accepted"], one["reason"]) for one in known
    ]
    assert any(one.what == "move" and one.accepted for one in taken)
    effects = {e.number: e.imbalance for e in heard if isinstance(e, EffectMeasured)}
    measured = {number: known[number - 1]["effect"]["imbalanceAfter"] for number in effects}
    assert effects == measured
    assert effects


def test_marks_tell_what_is_pinned_and_what_is_put_aside() -> None:
    session = session_of()
    heard: list[RunEvent] = []
    session.listen(heard.append)
    done = threading.Event()

    def by_hand(step: str, epoch: int) -> None:
        if (step, epoch) == ("begin", 4):
            run = started[0]
            starts = run.partition_map("flows@1").starts
            threading.Thread(target=lambda: (run.pin("flows@1", starts[5], 2), done.set())).start()
            assert done.wait(60)
            done.clear()
            spill = lambda: (run.spill("flows@1", starts[9]), done.set())  # noqa: E731
            threading.Thread(target=spill).start()
            assert done.wait(60)

    started: list[Run] = []
    ready = threading.Event()

    def hook(step: str, epoch: int) -> None:
        assert ready.wait(60)
        by_hand(step, epoch)

    started.append(session.start(sinks={"flows": "memory"}, on_step=hook))
    ready.set()
    started[0].await_termination()
    marks = {event.epoch: event.exchanges["flows@1"].column("marks") for event in epochs(heard)}
    assert not marks[3].any()
    assert marks[6][5] & PINNED
    assert any(seen[9] & ASIDE for epoch, seen in marks.items() if epoch > 4)


def test_another_number_of_sites_is_an_event() -> None:
    session = session_of()
    heard: list[RunEvent] = []
    session.listen(heard.append)
    runs: list[Run] = []
    ready = threading.Event()

    def resize(step: str, epoch: int) -> None:
        assert ready.wait(60)
        if (step, epoch) == ("begin", 3):
            threading.Thread(target=runs[0].set_sites, args=(2,)).start()
        if (step, epoch) == ("before-tasks", 5):
            assert runs[0].sites == 2

    runs.append(session.start(sinks={"flows": "memory"}, on_step=resize))
    ready.set()
    runs[0].await_termination()
    changes = [event for event in heard if isinstance(event, SitesChanged)]
    assert [(one.sites, one.gone) for one in changes] == [(2, [])]


def test_history_is_beside_the_checkpoint_and_grows_with_every_run(tmp_path: Path) -> None:
    _, first = whole(session_of(), checkpoint=tmp_path / "ck")
    history = EventHistory(place(str(tmp_path / "ck")))
    assert [event.epoch for event in epochs(history.look())] == list(range(EPOCHS))
    assert history.look() == []
    longer = session_of(48_000)
    _, second = whole(longer, checkpoint=tmp_path / "ck")
    assert [event.epoch for event in epochs(history.look())] == list(range(EPOCHS, 24))
    everything = EventHistory(place(str(tmp_path / "ck"))).look()
    assert everything == first + second


def test_a_failed_run_says_why_in_its_history(tmp_path: Path) -> None:
    def fail(step: str, epoch: int) -> None:
        if (step, epoch) == ("before-commit", 2):
            raise OSError("the disk is on fire")

    run = session_of().start(sinks={"flows": "memory"}, checkpoint=tmp_path / "ck", on_step=fail)
    with pytest.raises(Exception, match="on fire"):
        run.await_termination()
    last = EventHistory(place(str(tmp_path / "ck"))).look()[-1]
    assert isinstance(last, RunEnded)
    assert "on fire" in str(last.error)


def test_no_history_where_none_is_wanted(tmp_path: Path) -> None:
    whole(session_of(event_history_bytes=0), checkpoint=tmp_path / "ck")
    assert not (tmp_path / "ck" / "events").exists()


def test_files_are_cut_and_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "FILE_BYTES", 2_000)
    written = Journal(place(str(tmp_path)), "a-run-of-mine", 1.0, 10_000)
    rng = np.random.default_rng(1)
    for number in range(60):
        text = rng.bytes(300).hex()
        written.write([Warned(at=1.0, epoch=number, text=text)])
    files = sorted((tmp_path / "events").iterdir())
    assert 2 <= len(files) <= 6
    assert sum(path.stat().st_size for path in files) < 15_000
    kept = [event.epoch for event in EventHistory(place(str(tmp_path))).look()]
    assert kept == list(range(kept[0], 60))
    assert 0 < kept[0] < 55


def test_a_reader_beside_a_writer_gets_every_event_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "FILE_BYTES", 1_000)
    written, history = (
        Journal(place(str(tmp_path)), "run", 1.0, 10**9),
        EventHistory(place(str(tmp_path))),
    )
    seen: list[int] = []
    for number in range(50):
        text = np.random.default_rng(number).bytes(60).hex()
        written.write([Warned(at=1.0, epoch=number, text=text)])
        if number % 3:
            seen += [event.epoch for event in history.look()]
    seen += [event.epoch for event in history.look()]
    assert seen == list(range(50))


def test_a_damaged_file_is_told_of_and_the_others_are_read(tmp_path: Path) -> None:
    for run in ("first", "second"):
        Journal(place(str(tmp_path)), run, 1.0, 10**9).write([Warned(at=1.0, epoch=1, text=run)])
    damaged = next(path for path in (tmp_path / "events").iterdir() if "first" in path.name)
    data = bytearray(damaged.read_bytes())
    data[len(journal.MAGIC) + 12] ^= 0xFF
    damaged.write_bytes(bytes(data))
    texts = [
        event.text
        for event in EventHistory(place(str(tmp_path))).look()
        if isinstance(event, Warned)
    ]
    assert texts[1:] == ["second"]
    assert damaged.name in texts[0]


def test_a_listener_that_raises_is_left_out_and_the_run_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    session, calls = session_of(), []

    def broken(event: RunEvent) -> None:
        calls.append(event)
        raise ValueError("not my day")

    session.listen(broken)
    run, heard = whole(session)
    assert run.exception() is None
    assert len(calls) == 1
    assert any(isinstance(event, Warned) and "not my day" in event.text for event in heard)
    assert "not my day" in capsys.readouterr().err


def test_a_journal_that_cannot_be_written_does_not_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck" / "events").write_text("not a folder")
    run, _ = whole(session_of(), checkpoint=tmp_path / "ck")
    assert run.exception() is None
    assert len(run.recent_progress) == EPOCHS


def test_who_comes_later_hears_what_was(tmp_path: Path) -> None:
    run, heard = whole(session_of())
    late: list[RunEvent] = []
    run.listen(late.append, recent=True)
    assert late == heard


def test_listening_can_end() -> None:
    session = session_of()
    heard: list[RunEvent] = []
    end = session.listen(heard.append)
    end()
    session.start(sinks={"flows": "memory"}).await_termination()
    assert heard == []


def test_only_functions_can_listen() -> None:
    with pytest.raises(SettingsError, match="function of an event"):
        session_of().listen("nobody")  # type: ignore[arg-type]


def test_telling_does_not_wait_for_a_slow_listener() -> None:
    stream, may_go, got = EventStream(None), threading.Event(), []

    def slow_one(event: RunEvent) -> None:
        assert may_go.wait(60)
        got.append(event.epoch)

    stream.listen(slow_one)
    for number in range(100):
        stream.tell(Warned(at=0.0, epoch=number, text=""))
    assert got == []
    may_go.set()
    stream.close()
    assert got == list(range(100))


def test_notebooks_draw_sessions_and_runs() -> None:
    assert "without queries" in Session.in_process()._repr_html_()
    session = session_of()
    assert session._repr_html_().startswith("<svg")
    run = session.start(sinks={"flows": "memory"}, name="<b>")
    run.await_termination()
    told = run._repr_html_()
    assert told.startswith("<p><b>&lt;b&gt;</b>: Stopped</p><svg")
    assert "flows" in told
