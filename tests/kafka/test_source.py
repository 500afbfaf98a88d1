"""A topic as a stream: every message once, in any form, whatever happens to the topic meanwhile."""

from __future__ import annotations

import datetime as dt
import io
import json
import time
from pathlib import Path
from typing import Any

import fastavro
import polars as pl
import pytest
from confluent_kafka import Producer
from topics import LONGEST, Topics, as_json

from anabranch import Session
from anabranch.errors import SettingsError, SourceError, StateError
from anabranch.spec.file import read_spec
from helpers import SCHEMA, Stage, plain, sample, source_metrics

ROWS = [sample(number) for number in range(4)]
ALL = pl.concat(ROWS)
AVRO = {
    "type": "record", "name": "row", "fields": [
        {"name": "time", "type": "long"},
        {"name": "k", "type": ["null", "string"]},
        {"name": "v", "type": "long"},
    ],
}  # fmt: skip


def of(topics: Topics, topic: str, **more: Any) -> dict[str, Any]:
    """Options of a stream over a topic, for a stage."""
    return {"path": None, "kafka": topics.servers, "topic": topic, "format": "json", **more}


def avro(row: dict[str, Any], schema: dict[str, Any] = AVRO) -> bytes:
    target = io.BytesIO()
    fastavro.schemaless_writer(target, schema, row)
    return target.getvalue()


def arrow(rows: pl.DataFrame) -> bytes:
    target = io.BytesIO()
    rows.write_ipc_stream(target)
    return target.getvalue()


FORMS: dict[str, list[bytes]] = {
    "json": as_json(ALL),
    "csv": [line.encode() for line in ALL.write_csv(include_header=False).splitlines()],
    "avro": [avro(row) for row in ALL.to_dicts()],
    # Any number of rows a message, none too
    "arrow": [arrow(ALL[:50]), arrow(ALL[50:50]), arrow(ALL[50:51]), arrow(ALL[51:])],
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(stage: Stage, topics: Topics, form: str) -> None:
    topic = topics.make()
    topics.send(topic, FORMS[form])
    more = {"value_schema": json.dumps(AVRO), "schema": None} if form == "avro" else {}
    stage.finish(stage.session(**of(topics, topic, format=form, **more)))
    assert stage.results() == stage.expected(ALL)


def test_columns_are_told_from_the_first_messages(stage: Stage, topics: Topics) -> None:
    for form in ("json", "arrow"):
        topic = topics.make()
        topics.send(topic, FORMS[form])
        _, rows = stage.stream(**of(topics, topic, format=form, schema=None))
        assert rows.node.schema == SCHEMA
    assert "has no message" in refused(topics, topics.make(), schema=None)


def refused(topics: Topics, topic: str, **more: Any) -> str:
    session = Session.in_process(1)
    with pytest.raises((SourceError, SettingsError)) as caught:
        session.stream("rows", ordered="time", **{**of(topics, topic, schema=SCHEMA), **more})
    return str(caught.value)


def test_partitions_are_lanes(stage: Stage, topics: Topics) -> None:
    """Each partition has a time of its own: one that is far behind loses nothing."""
    topic = topics.make(3)
    topics.send(topic, as_json(ALL[:40]), 0)
    topics.send(topic, as_json(ALL[40:]), 2)
    stage.settings = {"max_rows_per_epoch": 30}
    run = stage.finish(stage.session(**of(topics, topic)))
    assert stage.results() == stage.expected(ALL)
    assert source_metrics(run)["lateRowsTotal"] == 0
    assert stage.manifest().streams["rows"].offset["offsets"] == {"0": 40, "1": 0, "2": 120}
    assert set(source_metrics(run)["lanes"]) == {"0", "2"}


def test_a_run_goes_on_where_it_was(stage: Stage, topics: Topics) -> None:
    topic = topics.make(2)
    for rows in ROWS:
        topics.send(topic, as_json(rows[::2]), 0)
        topics.send(topic, as_json(rows[1::2]), 1)
        stage.run(stage.session(**of(topics, topic)))
    # A partition that came later is read from its first message
    topics.grow(topic, 3)
    later = sample(4)
    topics.send(topic, as_json(later), 2)
    stage.finish(stage.session(**of(topics, topic)))
    assert stage.results() == stage.expected(ALL, later)


def test_new_partitions_of_a_running_stream(stage: Stage, topics: Topics) -> None:
    topic = topics.make(1)
    topics.send(topic, as_json(ROWS[0]))
    run = stage.start(stage.session(**of(topics, topic)), trigger="continuous")
    await_rows(run, 40)
    topics.grow(topic, 2)
    topics.send(topic, as_json(ROWS[1]), 1)
    await_rows(run, 80)
    run.stop()
    stage.finish(stage.session(**of(topics, topic)))
    assert stage.results() == stage.expected(*ROWS[:2])


def await_rows(run: Any, count: int) -> None:
    """Waits until so many rows of the stream were read."""
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        assert run.is_active, run.exception()
        if run.last_progress and source_metrics(run)["rowsTotal"] >= count:
            return
        time.sleep(0.02)
    raise AssertionError(f"{count} rows were not read in time: {run.last_progress}")


def test_only_committed_messages_are_read(stage: Stage, topics: Topics) -> None:
    topic = topics.make()
    producer = Producer(
        {
            "bootstrap.servers": topics.servers, "transactional.id": topic,
            "transaction.timeout.ms": 600_000,
        }
    )  # fmt: skip
    producer.init_transactions(LONGEST)
    for number, rows in enumerate(ROWS):
        producer.begin_transaction()
        for value in as_json(rows):
            producer.produce(topic, value)
        if number % 2:
            producer.abort_transaction(LONGEST)
        else:
            producer.commit_transaction(LONGEST)
    producer.begin_transaction()
    producer.produce(topic, b"not committed yet")
    producer.flush(LONGEST)
    # The ends of transactions take offsets: ranges end, and begin, at any of them
    stage.settings = {"max_rows_per_epoch": 13}
    stage.run(stage.session(**of(topics, topic)))
    producer.abort_transaction(LONGEST)
    stage.finish(stage.session(**of(topics, topic)))
    assert stage.results() == stage.expected(ROWS[0], ROWS[2])


def test_what_stands_beside_the_value(topics: Topics) -> None:
    topic = topics.make(2)
    topics.send(
        topic, [b'{"v":1}', None, b'{"v":2}'], 1, key=b"a", timestamp=1_700_000_000_123,
        headers=[("trace", b"7"), ("trace", b'"8"')],
    )  # fmt: skip
    topics.send(topic, [b'{"v":3}'], 1, timestamp=1_700_000_000_456)
    session = Session.in_process(1)
    wanted = {
        "key": "who",
        "partition": "part",
        "offset": "at",
        "timestamp": "sent",
        "headers": "h",
    }
    session.stream(
        "rows", kafka=topics.servers, topic=topic, schema={"v": "int64"}, ordered="sent",
        message_columns=wanted,
    )  # fmt: skip
    session.query("copy", "SELECT v, who, part, at, sent, h FROM rows")
    run = session.start(sinks={"copy": "memory"})
    assert run.await_termination(LONGEST)
    sent = dt.datetime(2023, 11, 14, 22, 13, 20, 123_000)
    told = '[{"name":"trace","value":"7"},{"name":"trace","value":"\\"8\\""}]'
    # What has no value is no row: it says that a key is gone
    assert plain(run.results("copy")) == [
        (1, "a", 1, 0, sent, told),
        (2, "a", 1, 2, sent, told),
        (3, None, 1, 3, sent.replace(microsecond=456_000), None),
    ]


def test_names_beside_the_value_must_be_free(topics: Topics) -> None:
    assert "'k' in their values" in refused(topics, "t", message_columns={"key": "k"})
    assert "no 'kay'" in refused(topics, "t", message_columns=["kay"])


@pytest.mark.parametrize("start", ["latest", "time", "offsets"])
def test_starting_offsets(stage: Stage, topics: Topics, start: str) -> None:
    topic = topics.make(2)
    for number, rows in enumerate(ROWS):
        stamp = 1_700_000_000_000 + number * 60_000
        topics.send(topic, as_json(rows[:25]), 0, timestamp=stamp)
        topics.send(topic, as_json(rows[25:]), 1, timestamp=stamp)
    given: Any = {
        "latest": "latest", "time": "2023-11-14T22:15:00Z", "offsets": {0: 50, 1: 30},
    }[start]  # fmt: skip
    expected = ROWS[2:]
    if start == "latest":
        run = stage.start(stage.session(**of(topics, topic, start=given)), trigger="continuous")
        topics.send(topic, as_json(sample(4)), 0)
        expected = [sample(4)]
        await_rows(run, 40)
        run.stop()
    # The checkpoint knows better from then on
    stage.finish(stage.session(**of(topics, topic, start=given)))
    assert stage.results() == stage.expected(*expected)


def test_impossible_starts(stage: Stage, topics: Topics) -> None:
    assert "start= takes 'earliest'" in refused(topics, "t", start="tomorrow")
    topic = topics.make(2)
    missing = stage.refused(SourceError, stage.session(**of(topics, topic, start={0: 0})))
    assert "no offset for partition 1" in missing
    beyond = stage.refused(SourceError, stage.session(**of(topics, topic, start={0: 0, 1: 7})))
    assert "offset 7 for partition 1, which has only come to 0" in beyond


POISON = {
    "json": [b"", b" ", b"{", b'{"time":1}{"time":2}', b'{"time":"x"}', b"[1]", b"\xff", b'{"time":1.5}'],
    "csv": [b"", b"1", b'1,"a,2', b"1,a,2\n3,b,4", b"x,a,2", b"1,\xff,2", b"1,a,2,3"],
    "avro": [b"", avro(ALL.row(1, named=True))[:-1], avro(ALL.row(1, named=True)) + b"\0", b"\xff" * 20],
    "arrow": [b"", arrow(ALL[:3])[:-20], arrow(ALL[:3].with_columns(v=pl.lit("x"))), b"\xff" * 20],
}  # fmt: skip


@pytest.mark.parametrize("form", POISON)
def test_poison_messages(stage: Stage, topics: Topics, form: str) -> None:
    """Each goes to the dead letters with its partition and offset; all others count, those beside it too."""
    topic = topics.make(2)
    good, bad = FORMS[form], POISON[form]
    topics.send(topic, good[:1], 0)
    topics.send(topic, [m for pair in zip(bad, good[1:], strict=False) for m in pair], 1)
    topics.send(topic, [*good[1 + len(bad) :]], 1)
    # Two that together would be a good one
    if form in ("json", "avro"):
        whole = good[5]
        topics.send(topic, [whole[:3], whole[3:]], 0)
    rest = bad[len(good) - 1 :]
    topics.send(topic, rest, 0)
    more = {"value_schema": json.dumps(AVRO), "schema": None} if form == "avro" else {}
    options = of(topics, topic, format=form, lateness=1000, **more)
    told = stage.refused(SourceError, stage.session(**options))
    assert f"topic '{topic}', partition 1: " in told
    assert "the first is offset 0: " in told
    assert "on_bad='dead-letter'" in told
    session = stage.session(**options, on_bad="dead-letter")
    run = stage.finish(session, dead_letter=stage.dead)
    assert stage.results() == stage.expected(ALL)
    letters = [
        json.loads(line)
        for file in stage.dead.glob("bad/rows/epoch=*/*.lines.jsonl")
        for line in file.read_text().splitlines()
    ]
    places = {(letter["partition"], letter["offset"]) for letter in letters}
    beside = min(len(bad), len(good) - 1)
    apart = [(0, 1), (0, 2)] if form in ("json", "avro") else []
    apart += [(0, 1 + len(apart) + at) for at in range(len(rest))]
    assert places == {*((1, 2 * at) for at in range(beside)), *apart}
    assert len(letters) == len(places) == source_metrics(run)["badRowsTotal"]
    assert all(letter["reason"] and letter["topic"] == topic for letter in letters)


def test_lost_offsets(stage: Stage, topics: Topics) -> None:
    topic = topics.make()
    topics.send(topic, as_json(ROWS[0]))
    stage.run(stage.session(**of(topics, topic)))
    topics.send(topic, as_json(ROWS[1]))
    topics.send(topic, as_json(ROWS[2]))
    topics.expire(topic, 0, 80)
    told = stage.refused(SourceError, stage.session(**of(topics, topic)))
    for words in ("partition 0", "nothing before offset 80", "has come to 40", "on_gap='go-on'"):
        assert words in told
    with pytest.warns(UserWarning, match="40 offset"):
        run = stage.finish(stage.session(**of(topics, topic, on_gap="go-on")))
    assert stage.results() == stage.expected(ROWS[0], ROWS[2])
    assert stage.manifest().streams["rows"].offset["lost"] == 40
    assert run.recent_progress[0]["sources"][0]["customMetrics"]["offsetsLost"] == 40


def test_a_topic_made_anew(stage: Stage, topics: Topics) -> None:
    topic = topics.make()
    topics.send(topic, as_json(ROWS[0]))
    stage.run(stage.session(**of(topics, topic)))
    topics.delete(topic)
    options = of(topics, topic)
    assert f"there is no topic '{topic}'" in stage.refused(SourceError, stage.session(**options))
    topics.make(name=topic)
    topics.send(topic, as_json(pl.concat(ROWS[1:])))
    assert "was deleted and made anew" in stage.refused(SourceError, stage.session(**options))
    with pytest.warns(UserWarning, match="made anew"):
        stage.finish(stage.session(**options, on_gap="go-on"))
    assert stage.results() == stage.expected(ALL)


def test_another_topic_is_refused(stage: Stage, topics: Topics) -> None:
    topic, other = topics.make(), topics.make()
    topics.send(topic, as_json(ROWS[0]))
    stage.run(stage.session(**of(topics, topic)))
    told = stage.refused(StateError, stage.session(**of(topics, other)))
    assert f"'{topic}'" in told
    assert f"'{other}'" in told


def test_partitioned_by_key(stage: Stage, topics: Topics) -> None:
    """Rows stay where they come if keys say so, and rows that break the promise stop the run."""
    topic = topics.make(4)
    for number, (_, rows) in enumerate(ALL.group_by("k", maintain_order=True)):
        topics.send(topic, as_json(rows), number % 4)
    stage.finish(stage.session(**of(topics, topic, partitioned_by=["k"])))
    assert stage.results() == stage.expected(ALL)
    assert set(stage.manifest().streams["rows"].lanes) == {"0", "1", "2", "3"}
    broken = topics.make(2)
    for number in range(2):
        topics.send(broken, as_json(ALL), number)
    other = Stage(stage.root / "broken")
    session = other.session(**of(topics, broken, partitioned_by=["k"]))
    assert "is said to come partitioned by k" in other.refused(SourceError, session)


def test_no_broker(stage: Stage, topics: Topics) -> None:
    told = refused(topics, "t", kafka="127.0.0.1:1", schema=None, kafka_timeout=1)
    assert "127.0.0.1:1 does not answer" in told
    session = stage.session(**of(topics, "t", kafka="127.0.0.1:1", kafka_timeout=4))
    told = stage.refused(SourceError, session)
    assert "127.0.0.1:1 does not answer" in told
    assert "Connection refused" in told
    missing = stage.refused(SourceError, stage.session(**of(topics, "nowhere", kafka_timeout=4)))
    assert "there is no topic 'nowhere'" in missing


def test_credentials_are_told_by_their_place(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.password": "open sesame"}
    told = refused(topics, "t", kafka_options=given)
    assert "'env:NAME' or 'file:PATH'" in told
    assert "sesame" not in told
    told = refused(topics, "t", kafka="me:sesame@host:9092")
    assert "sesame" not in told
    told = refused(topics, "t", kafka_options={"sasl.kerberos.kinit.cmd": "rm"})
    assert "not a setting of the Kafka client that can be given here" in told
    monkeypatch.delenv("NOWHERE", raising=False)
    given["sasl.password"] = "env:NOWHERE"
    told = refused(topics, "t", kafka_options=given, schema=None)
    assert "env:NOWHERE, which is not set" in told


def test_unknown_options(topics: Topics) -> None:
    assert "no option 'topik'" in refused(topics, "t", topik="t")
    assert "no format 'xml'" in refused(topics, "t", format="xml")
    assert "on_gap is 'perhaps'" in refused(topics, "t", on_gap="perhaps")
    assert "needs topic=" in refused(topics, "")
    assert "give schema=" in refused(topics, "t", format="csv", schema=None)


def test_files(tmp_path: Path, topics: Topics) -> None:
    """A topic in SQL and in YAML, from end to end."""
    topic, out = topics.make(), topics.make()
    topics.send(topic, as_json(ALL))
    sql = tmp_path / "run.sql"
    sql.write_text(
        f"""CREATE STREAM rows (time BIGINT, k TEXT, v BIGINT) ORDERED BY time
          WITH (kafka = '{topics.servers}', topic = '{topic}', format = 'json', on_gap = 'go-on',
                message_columns = 'offset', kafka_options = 'client.id=test, fetch.wait.max.ms=100');
        CREATE QUERY sums AS SELECT tb, k, COUNT(*) AS n, SUM(v) AS total, MAX("offset") AS last
          FROM rows GROUP BY time // 10 AS tb, k;
        CREATE SINK sums TO KAFKA '{topics.servers}' WITH (topic = '{out}', key = 'k');
        SET checkpoint = '{tmp_path}/c1'; SET at_end = 'close';"""
    )
    yaml = tmp_path / "run.yaml"
    yaml.write_text(
        f"""
streams:
  rows: {{kafka: "{topics.servers}", topic: {topic}, schema: {{time: int64, k: string, v: int64}},
    ordered: time, start: earliest, message_columns: [offset]}}
queries:
  sums: {{from: rows, group_by: [time // 10 AS tb, k],
    aggregate: [count(*) AS n, sum(v) AS total, max(offset) AS last]}}
sinks:
  sums: {{kafka: "{topics.servers}", topic: {out}, key: [k]}}
run: {{checkpoint: {tmp_path}/c2, at_end: close}}
"""
    )
    for count, file in enumerate((sql, yaml), start=1):
        spec = read_spec(file)
        assert spec.start(spec.session(in_process=True)).await_termination(LONGEST)
        rows = topics.rows(out)
        assert sum(row["n"] for row in rows) == count * ALL.height
        assert max(row["last"] for row in rows) == ALL.height - 1
