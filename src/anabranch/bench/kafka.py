"""A topic of eight partitions through an aggregate on Spark: rows a second of JSON and Avro; latency.

Beside it Spark's own Kafka source over the same topics (`kafka_spark.py`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pyarrow as pa

from anabranch.bench.duck import connect
from anabranch.bench.kafka_spark import spark_epochs, spark_jars
from anabranch.bench.measure import load, machine, percentile
from anabranch.bench.result import Result
from anabranch.errors import RunError
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.session import Session
from anabranch.sources.generate import Generator
from anabranch.testing.broker import installed, serving

ROWS, PARTITIONS, EPOCHS = 5_000_000, 8, 5
FORMATS = ("json", "avro")
LOOKED_AT = 200
"""Messages whose latency is measured."""
WINDOW, LATENESS = 5, 1
"""Seconds. The rows are of a hundred seconds, and Spark tells only of windows that are closed."""
FLOWS = (
    "SELECT tb, srcIP, COUNT(*) AS cnt, SUM(len) AS bytes FROM packets "
    f"GROUP BY time/{WINDOW} AS tb, srcIP"
)
AVRO = json.dumps(
    {
        "type": "record",
        "name": "packet",
        "fields": [{"name": name, "type": "long"} for name in ("time", "srcIP", "destIP", "len")],
    }
)
NOTES = (
    "Anabranch on Spark with two cores, the broker on the same machine. rows_per_s leaves out the first of "
    f"{EPOCHS} epochs, in which workers start.",
    "latency is from handing a message to the producer to the call of a function with its result, one "
    "message "
    "at a time.",
    "spark is Structured Streaming with its own Kafka source over the same topics, as many messages a "
    "trigger, one after the other. It writes no window that is still open at the "
    "end: those it writes are compared.",
)


def run_kafka(quick: bool, steps: Steps) -> Result:
    """Each format once; with `quick`, a tenth of the rows."""
    rows = ROWS // 10 if quick else ROWS
    steps.expect(1 + 3 * len(FORMATS))
    spark_jars()  # before anything takes time
    before = load()
    java = f"{os.environ['JAVA_HOME']}/bin/java" if "JAVA_HOME" in os.environ else "java"
    figures: dict[str, Any] = {"quick": quick, "rows": rows, "partitions": PARTITIONS, "spark": {}}
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        place = Path(scratch)
        with serving(place, installed(), java) as broker:
            packets = (
                Generator("packets", keys=10_000)
                .rows(0, rows)
                .select(pl.col("time", "srcIP", "destIP", "len").cast(pl.Int64))
            )
            expected = _expected(packets)
            for format in FORMATS:
                steps.begin(f"Sending {rows:,} messages of {format}")
                _send(broker.servers, format, packets)
                steps.begin(f"Anabranch, {format}")
                figures[format] = _measured(broker.servers, format, rows, place / format, expected)
                steps.begin(f"Spark's own source, {format}")
                figures["spark"][format] = _beside(
                    broker.servers, format, rows, place / f"spark-{format}", packets
                )
            steps.begin("Latency")
            figures["latency_ms"] = _latency(broker.servers, place / "latency")
    figures["rows_per_s"] = {format: figures[format]["rows_per_s"] for format in FORMATS}
    figures["ratio"] = {
        format: round(figures[format]["rows_per_s"] / spark["rows_per_s"], 2)
        for format, spark in figures["spark"].items()
        if spark["rows_per_s"]
    }
    figures["equal"] = all(
        one["equal"] for side in (figures, figures["spark"]) for one in map(side.get, FORMATS)
    )
    # What could not be compared is not reached
    ratios = {format: figures["ratio"].get(format, 0.0) for format in FORMATS}
    bars = (
        *(Bar(f"times Spark's rows/s, {format}", ratios[format], ">=", 3) for format in FORMATS),
        Bar("latency p99 ms", figures["latency_ms"]["p99"], "<=", 1000),
    )
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("kafka", figures, bars, NOTES, figures["equal"], circumstances)


def kafka_lines(figures: dict[str, Any]) -> Iterator[str]:
    """What the figures say, for people."""
    for format in ("json", "avro"):
        spark, ratio = figures["spark"][format], figures["ratio"].get(format)
        beside = (
            f"{ratio:g} times as many as Spark's own source ({spark['rows_per_s']:,})"
            if ratio
            else f"Spark's own source failed: {spark['failed']}"
        )
        yield f"{format}: {figures[format]['rows_per_s']:,} rows/s, {beside}"
    latency = figures["latency_ms"]
    yield f"from the producer to a result: p50 {latency['p50']} ms, p99 {latency['p99']} ms"


def _expected(packets: pl.DataFrame) -> tuple[int, ...]:
    with connect() as duck:
        duck.register("packets", packets.to_arrow())
        return _digest(duck, f"({_flows()})")


def _flows() -> str:
    """The query as DuckDB writes it."""
    flows = FLOWS.replace("SELECT tb", f"SELECT time // {WINDOW} AS tb")
    return flows.replace(f"time/{WINDOW} AS tb, srcIP", "ALL")


def _digest(duck: Any, rows: str) -> tuple[int, ...]:
    told = duck.execute(
        "SELECT count(*), coalesce(sum(cnt), 0)::BIGINT, coalesce(sum(bytes), 0)::BIGINT, "
        "coalesce(sum(hash(tb::BIGINT, srcIP::BIGINT, cnt::BIGINT, bytes::BIGINT)::HUGEINT), 0) "
        f"FROM {rows}"
    ).fetchall()[0]
    return tuple(int(one) for one in told)


def _send(servers: str, format: str, packets: pl.DataFrame) -> None:
    """Makes the topic and fills it, the rows dealt out to its partitions in turn."""
    from confluent_kafka import Producer

    _make(servers, format, PARTITIONS)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for at in range(0, packets.height, 50_000):
        values = _values(format, packets[at : at + 50_000])
        messages = [
            {"value": value, "partition": number % PARTITIONS}
            for number, value in enumerate(values)
        ]
        if producer.produce_batch(format, messages) != len(messages) or producer.flush(120):
            raise RunError("The broker of the benchmark did not take the messages.")


def _values(format: str, rows: pl.DataFrame) -> list[bytes]:
    if format == "json":
        from anabranch.sinks.text import json_lines

        return json_lines(rows)
    from io import BytesIO

    import fastavro

    schema, values = fastavro.parse_schema(json.loads(AVRO)), []
    for row in rows.to_dicts():
        target = BytesIO()
        fastavro.schemaless_writer(target, schema, row)
        values.append(target.getvalue())
    return values


def _make(servers: str, topic: str, partitions: int) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()


def _measured(
    servers: str, format: str, rows: int, place: Path, expected: tuple[int, ...]
) -> dict[str, Any]:
    session = Session.local(
        cores=2,
        settings={
            "max_rows_per_epoch": -(-rows // EPOCHS), "max_bytes_per_epoch": 1 << 40,
            "recent_progress": 1000,
        },
    )  # fmt: skip
    try:
        given: dict[str, Any] = {"value_schema": AVRO} if format == "avro" else {}
        kinds = dict.fromkeys(("time", "srcIP", "destIP", "len"), "int64")
        session.stream(
            "packets", kafka=servers, topic=format, format=format, schema=kinds, ordered="time",
            lateness=LATENESS, **given,
        )  # fmt: skip
        session.query("flows", FLOWS)
        run = session.start(sinks={"flows": place / "out"}, checkpoint=place / "cp", at_end="close")
        run.await_termination()
        epochs = [
            (told["numInputRows"], told["durationMs"]["triggerExecution"] / 1000)
            for told in run.recent_progress
        ]
    finally:
        session.stop()
    with connect() as duck:
        found = _digest(
            duck, f"read_parquet('{place}/out/**/*.parquet', hive_partitioning = false)"
        )
    return {**_speed(epochs), "equal": found == expected}


def _speed(epochs: list[tuple[int, float]]) -> dict[str, Any]:
    """Rows a second without the first epoch, and those that had none."""
    steady = [epoch for epoch in epochs[1:] if epoch[0]]
    return {
        "rows_per_s": round(sum(count for count, _ in steady) / sum(took for _, took in steady)),
        "epoch_rows": [count for count, _ in epochs],
        "epoch_seconds": [round(took, 3) for _, took in epochs],
    }


def _beside(
    servers: str, format: str, rows: int, place: Path, packets: pl.DataFrame
) -> dict[str, Any]:
    """Spark's own source over the same topic."""
    place.mkdir()
    given = {
        "servers": servers, "format": format, "place": str(place), "value_schema": AVRO,
        "epoch_rows": -(-rows // EPOCHS), "window": WINDOW, "lateness": LATENESS,
    }  # fmt: skip
    try:
        epochs = spark_epochs(given)
    except RunError as error:
        # Its parts are of several releases; what is measured of us is worth having without it
        return {"rows_per_s": None, "failed": str(error), "equal": True}
    with connect() as duck:
        duck.register("packets", packets.to_arrow())
        written = f"read_parquet('{place}/out/*.parquet')"
        closed, last = duck.execute(
            f"SELECT count(DISTINCT tb), coalesce(max(tb), -1) FROM {written}"
        ).fetchall()[0]
        whole = f"({_flows()}) WHERE tb <= {last}"
        equal = _digest(duck, written) == _digest(duck, whole)
        return {**_speed(epochs), "windows": closed, "equal": equal}


def _latency(servers: str, place: Path) -> dict[str, float]:
    """From the producer to the function of a sink, one message after another."""
    from confluent_kafka import Producer

    _make(servers, "latency", 1)
    took: list[float] = []

    def take(rows: pa.Table, epoch: int) -> None:
        now = time.time_ns()
        took.extend((now - sent) / 1e6 for sent in rows["sent"].to_pylist())

    session = Session.local(cores=2)
    try:
        session.stream(
            "ticks", kafka=servers, topic="latency", schema={"sent": "int64"}, ordered="sent"
        )
        session.query("copy", "SELECT sent FROM ticks")
        run = session.start(sinks={"copy": take}, checkpoint=place, trigger="continuous")
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        for number in range(LOOKED_AT):
            producer.produce("latency", json.dumps({"sent": time.time_ns()}).encode())
            producer.flush(60)
            until = time.monotonic() + 120
            while len(took) <= number:
                if time.monotonic() > until or not run.is_active:
                    raise RunError(f"Message {number} did not come through: {run.exception()}")
                time.sleep(0.001)
        run.stop()
    finally:
        session.stop()
    steady = took[LOOKED_AT // 10 :]
    return {
        "p50": round(median(steady), 1), "p99": round(percentile(steady, 0.99), 1),
        "messages": len(steady),
    }  # fmt: skip
