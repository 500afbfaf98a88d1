"""How often an epoch has to ask the JVM: every call is a part of what a small epoch takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark import Broadcast
from pyspark.sql import SparkSession

from anabranch.engine.rdds import Rdds

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Told:
    words: Broadcast[bytes]

    def __call__(self, task: int, nothing: Iterable[Any]) -> Iterator[bytes]:
        yield self.words.value


def test_few_calls_make_a_stage(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rdds, told = Rdds(spark.sparkContext), spark.sparkContext.broadcast(b"words")
    calls: list[str] = []
    send = ClientServerConnection.send_command

    def counted(self: ClientServerConnection, command: str) -> Any:
        # What lets go of objects in the JVM comes when it comes
        calls.extend([command] if not command.startswith("m\n") else [])
        return send(self, command)

    def stage() -> None:
        rdds.shuffled(rdds.tasks(rdds.empty(2), Told(told), False, [told]), 1)

    stage()  # what stays the same is made once
    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    stage()
    assert len(calls) == 6, calls
    calls.clear()
    rdds.jobs()
    assert len(calls) == 1, calls
    told.destroy()
