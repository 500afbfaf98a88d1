"""A topic as a sink: who reads committed messages sees each epoch once, and whole, whatever happened."""

from __future__ import annotations

import json
import shutil
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer
from topics import LONGEST, Topics, as_json

from anabranch import Session
from anabranch.errors import RunError, SettingsError, StateError
from anabranch.sinks.kafka.messages import NO_VALUE
from helpers import SUMS, Stage, sample
from helpers import sums as sums_query

GOOD = [sample(number) for number in range(4)]


@pytest.fixture
def stage(stage: Stage) -> Stage:
    for number in range(4):
        stage.write(number)
    return stage


def to(topics: Topics, topic: str, **more: Any) -> dict[str, Any]:
    return {"sums": {"kafka": topics.servers, "topic": topic, **more}}


def sums(topics: Topics, topic: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in topics.rows(topic)), key=repr)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_results(stage: Stage, topics: Topics, delivery: str) -> None:
    topic = topics.make(3)
    stage.finish(sinks=to(topics, topic, key="k", delivery=delivery))
    assert sums(topics, topic) == stage.expected(*GOOD)
    messages = topics.committed(topic)
    for message in messages:
        key = json.loads(message.value())["k"]
        assert message.key() == (NO_VALUE if key is None else key.encode())
    told = {value for message in messages for _, value in message.headers() or ()}
    if delivery == "at-least-once":
        assert {b"1", b"2", b"3", b"4", stage.manifest().run_id.encode()} == told
    else:
        assert told == set()
    places = {(message.key(), message.partition()) for message in messages}
    assert len(places) == 5, "a key has its partition"
    assert not list((stage.checkpoint / "results").rglob("*.arrow"))


def test_arrow(stage: Stage, topics: Topics) -> None:
    topic = topics.make()
    stage.finish(sinks=to(topics, topic, format="arrow"))
    rows = pl.concat(pl.read_ipc_stream(message.value()) for message in topics.committed(topic))
    assert sorted(rows.rows(), key=repr) == stage.expected(*GOOD)


@pytest.mark.parametrize("step", ["before-commit", "after-commit", "after-publish"])
def test_a_run_that_fails_at_a_step_goes_on(stage: Stage, topics: Topics, step: str) -> None:
    """Also between the commit of the manifest and that of the transaction, and right after it."""
    topic = topics.make(2)
    for number in range(1, 4):

        def fail(at: str, epoch: int, number: int = number) -> None:
            if (at, epoch) == (step, number):
                raise RunError("on purpose")

        told = stage.refused(RunError, at_end="close", sinks=to(topics, topic), on_step=fail)
        assert "on purpose" in told
    stage.finish(sinks=to(topics, topic))
    assert sums(topics, topic) == stage.expected(*GOOD)


def test_an_epoch_is_visible_whole_or_not_at_all(stage: Stage, topics: Topics) -> None:
    """Someone looks on after every step: what is committed in Kafka is whole epochs."""
    topic = topics.make(2)
    seen: list[tuple[str, int, int]] = []

    def look(step: str, epoch: int) -> None:
        if epoch in (2, 4) and step in ("before-commit", "after-commit", "after-publish"):
            seen.append((step, epoch, len(topics.rows(topic))))

    stage.finish(sinks=to(topics, topic), on_step=look)
    counts = {(step, epoch): count for step, epoch, count in seen}
    for epoch in (2, 4):
        before = counts["before-commit", epoch]
        assert counts["after-commit", epoch] == before
        assert counts["after-publish", epoch] > before


def cut_short(stage: Stage, session: Session, sinks: dict[str, Any], how: str) -> None:
    """A run whose third epoch is committed or not, sent or not, with its note or without."""

    def fail(at: str, epoch: int) -> None:
        if (at, epoch) == ("after-publish" if how == "without-note" else how, 2):
            raise RunError("on purpose")

    assert "on purpose" in stage.refused(RunError, session, sinks=sinks, on_step=fail)
    if how == "without-note":
        # As if the driver had died right after the commit of the transaction
        (noted,) = stage.checkpoint.glob("results/published-000000000002-*")
        noted.unlink()


@pytest.mark.parametrize("how", ["before-commit", "after-commit", "without-note", "after-publish"])
def test_a_renamed_query_goes_on_in_its_topic(stage: Stage, topics: Topics, how: str) -> None:
    topic = topics.make(2)
    cut_short(stage, stage.session(), to(topics, topic), how)
    session, rows = stage.stream()
    session.query("totals", sums_query(rows))
    run = stage.finish(session, sinks={"totals": to(topics, topic)["sums"]}, changed="keep-same")
    assert run.evolution is not None
    assert run.evolution.renamed == {"totals": "sums"}
    assert sums(topics, topic) == stage.expected(*GOOD)


COUNTS = "SELECT tb, k, COUNT(*) AS n FROM rows GROUP BY time // 10 AS tb, k"


@pytest.mark.parametrize(
    ("now", "crashed"),
    [
        ({"a": "b", "b": "a"}, False),
        ({"a": "b", "b": "a"}, True),
        ({"a": "c", "b": "a"}, True),
        ({"a": "b", "b": "d", "c": "a"}, True),
    ],
)
def test_names_that_others_had(
    stage: Stage, topics: Topics, now: dict[str, str], crashed: bool
) -> None:
    """Two queries change their names, also when one has sent its last epoch and the other has not.

    A name that was given away may go to a new query, which begins with a note of its own."""
    session, rows = stage.stream()
    session.query("a", sums_query(rows))
    session.query("b", COUNTS)
    sinks = {name: to(topics, topics.make())["sums"] for name in "abc"}

    def take_over(step: str, epoch: int) -> None:
        if (step, epoch) == ("after-commit", 2):
            id = f"anabranch-{stage.manifest().run_id}-b"
            rival = Producer({"bootstrap.servers": topics.servers, "transactional.id": id})
            rival.init_transactions(LONGEST)

    first = {name: sinks[name] for name in "ab"}
    if crashed:
        assert "taken over" in stage.refused(RunError, session, sinks=first, on_step=take_over)
    else:
        stage.path(3).rename(stage.root / "later")
        stage.run(session, sinks=first)
        (stage.root / "later").rename(stage.path(3))
    session, rows = stage.stream()
    for old, new in now.items():
        if old == "c":
            session.query(new, "SELECT tb, k, MAX(v) AS most FROM rows GROUP BY time // 5 AS tb, k")
        else:
            session.query(new, sums_query(rows) if old == "a" else COUNTS)
    stage.finish(session, sinks={new: sinks[old] for old, new in now.items()}, changed="keep-same")
    wanted = {"a": SUMS, "b": "SELECT time // 10 AS tb, k, COUNT(*) AS n FROM rows GROUP BY ALL"}
    for name, sql in wanted.items():
        assert sums(topics, sinks[name]["topic"]) == stage.expected(*GOOD, sql=sql), name


def test_who_comes_later_shuts_out_who_was_before(stage: Stage, topics: Topics) -> None:
    """A driver that was thought dead cannot send an epoch once another one has taken over."""
    topic = topics.make()

    def take_over(step: str, epoch: int) -> None:
        if (step, epoch) == ("after-commit", 2):
            id = f"anabranch-{stage.manifest().run_id}-sums"
            rival = Producer({"bootstrap.servers": topics.servers, "transactional.id": id})
            rival.init_transactions(LONGEST)

    told = stage.refused(RunError, at_end="close", sinks=to(topics, topic), on_step=take_over)
    assert "another run has taken over the topic" in told
    stage.finish(sinks=to(topics, topic))
    assert sums(topics, topic) == stage.expected(*GOOD)


def test_an_older_copy_of_the_checkpoint_is_refused(stage: Stage, topics: Topics) -> None:
    topic = topics.make()
    stage.path(3).rename(stage.root / "later")
    stage.run(sinks=to(topics, topic))
    shutil.copytree(stage.checkpoint, stage.root / "copy")
    (stage.root / "later").rename(stage.path(3))
    stage.finish(sinks=to(topics, topic))
    stage.checkpoint = stage.root / "copy"
    told = stage.refused(StateError, sinks=to(topics, topic))
    assert "up to epoch 4, but the checkpoint has only come to 2" in told


def test_without_its_note_a_doubtful_epoch_is_refused(stage: Stage, topics: Topics) -> None:
    topic = topics.make()

    def fail(step: str, epoch: int) -> None:
        if (step, epoch) == ("after-commit", 2):
            raise RunError("on purpose")

    sink = to(topics, topic, epochs_topic=f"{topic}-epochs")
    stage.refused(RunError, sinks=sink, on_step=fail)
    topics.delete(f"{topic}-epochs")
    told = stage.refused(StateError, sinks=sink)
    assert f"has no number under 'anabranch-{stage.manifest().run_id}-sums'" in told
    assert "under this key 2 if it has them, else 1" in told


def test_updates_are_upserts_and_tombstones(topics: Topics) -> None:
    """A group that leaves the results is told by its key alone."""
    source, topic = topics.make(), topics.make(2)
    rows = [
        {"time": n, "k": f"key-{n % 3}", "v": (-1) ** (n // 12) * (n % 3 + 1)} for n in range(24)
    ]
    topics.send(source, as_json(pl.DataFrame(rows)))
    session = Session.in_process(2, {"max_rows_per_epoch": 5, "allow_unbounded_state": True})
    session.stream("rows", kafka=topics.servers, topic=source, ordered="time")
    text = "SELECT k, SUM(v) AS total FROM rows GROUP BY k HAVING SUM(v) > 3"
    session.query("sums", text, emit="update")
    with pytest.raises(SettingsError, match="which a topic tells by their key: use format='json'"):
        session.start(sinks=to(topics, topic, format="arrow"))
    with pytest.raises(
        SettingsError, match="'k', by which the query groups too, is not in the key"
    ):
        session.start(sinks=to(topics, topic, key="total"))
    assert session.start(sinks=to(topics, topic)).await_termination(LONGEST)
    newest: dict[bytes, bytes | None] = {}
    gone = 0
    for message in topics.committed(topic):
        newest[message.key()] = message.value()
        gone += message.value() is None
    assert set(newest) == {b"key-0", b"key-1", b"key-2"}
    # All sums are 0 in the end, so every group that was told has left
    assert set(newest.values()) == {None}
    assert gone == 3


def test_bad_sinks(stage: Stage, topics: Topics) -> None:
    def refused(**more: Any) -> str:
        sink = {**to(topics, "nowhere")["sums"], **more}
        return stage.refused(SettingsError, sinks={"sums": sink})

    assert "Make the topic first" in refused()
    assert "no option 'keys'" in refused(keys="k")
    assert "delivery is 'twice'" in refused(delivery="twice")
    assert "key column 'x' is not in the results" in refused(key="x")
    assert "it cannot have a key" in refused(key="k", format="arrow")
    assert "needs topic" in refused(topic="")
    secret = refused(kafka_options={"sasl.password": "sesame"})
    assert "sesame" not in secret
    away = stage.refused(RunError, sinks=to(topics, "t", kafka="127.0.0.1:1", kafka_timeout=1))
    assert "127.0.0.1:1, cannot be opened" in away
