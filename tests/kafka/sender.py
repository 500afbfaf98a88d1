"""A process that runs an aggregate and a join from topics to topics, and may kill itself on the way.

    python sender.py '{"servers": …, "rows": …, "sums": …, "checkpoint": …, "kill": ["after-commit", 2]}'

Beside the steps of an epoch there are two within its publication: `in-transaction`, when all messages were
sent and none is committed, and `transaction-committed`, when they are and nothing else knows.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Producer

from anabranch import Session
from anabranch.sinks.kafka import transactions
from anabranch.sinks.kafka.messages import Message

LONGEST = 300.0
"""Seconds that a broker may take to come back on a busy machine."""
SUMS = "SELECT tb, k, COUNT(*) AS n, SUM(v) AS total FROM rows GROUP BY time // 10 AS tb, k"
PAIRS = (
    "SELECT a.time AS time, a.k AS k, a.v AS v, b.v AS w FROM rows a JOIN others b "
    "ON a.k = b.k AND b.time BETWEEN a.time - 1 AND a.time + 1"
)
STEPS = (
    "begin", "before-tasks", "before-commit", "after-commit", "in-transaction",
    "transaction-committed", "after-publish",
)  # fmt: skip


def session(spec: dict[str, Any]) -> Session:
    settings = {"max_rows_per_epoch": spec.get("rows_per_epoch", 40), "fsync": False}
    if "master" in spec:
        made = Session.cluster(spec["master"], settings=settings, conf=spec["conf"])
    else:
        made = Session.in_process(2, settings)
    kinds = {"time": "int64", "k": "string", "v": "int64"}
    for name in ("rows", "others"):
        made.stream(
            name, kafka=spec["servers"], topic=spec[name], schema=kinds, ordered="time", lateness=3,
            kafka_timeout=LONGEST,
        )  # fmt: skip
    made.query("sums", SUMS)
    made.query("pairs", PAIRS)
    return made


def sinks(spec: dict[str, Any]) -> dict[str, Any]:
    to = {"kafka": spec["servers"], "kafka_timeout": LONGEST}
    return {name: {**to, "topic": spec[name]} for name in ("sums", "pairs")}


def arm(step: str, epoch: int) -> None:
    """Kills this process at a point within the publication of an epoch."""
    commit, send = transactions.Transactions.commit, transactions.produce
    publishing: list[int] = []

    def produce(
        producer: Producer, topic: str, messages: Sequence[Message], timeout: float
    ) -> None:
        send(producer, topic, messages, timeout)
        if step == "in-transaction" and publishing[-1] >= epoch and messages:
            producer.flush(timeout)
            os.kill(os.getpid(), signal.SIGKILL)

    def committing(
        self: transactions.Transactions, messages: Sequence[Message], number: int
    ) -> None:
        publishing.append(number)
        commit(self, messages, number)
        if step == "transaction-committed" and number >= epoch and messages:
            os.kill(os.getpid(), signal.SIGKILL)

    transactions.produce = produce
    transactions.Transactions.commit = committing  # type: ignore[method-assign]


def main(spec: dict[str, Any]) -> None:
    step, epoch = spec.get("kill") or ("", -1)
    if step in ("in-transaction", "transaction-committed"):
        arm(step, epoch)

    def kill(at: str, number: int) -> None:
        print(at, number, flush=True)
        if at == step and number >= epoch:
            os.kill(os.getpid(), signal.SIGKILL)

    run = session(spec).start(
        sinks=sinks(spec), checkpoint=spec["checkpoint"], on_step=kill,
        **({"trigger": "continuous"} if spec.get("endless") else {"at_end": "close"}),
    )  # fmt: skip
    run.await_termination()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
