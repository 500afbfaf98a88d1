"""Results as messages of Kafka: their keys, and how large they are. No broker is needed."""

from __future__ import annotations

import polars as pl
import pytest

from anabranch.errors import PlanningError
from anabranch.sinks.kafka.messages import ARROW_BYTES, NO_VALUE, to_messages
from anabranch.sinks.kafka.transactions import transaction_seconds
from anabranch.sinks.make import make_sinks
from anabranch.sources.kafka.connection import Connection


@pytest.mark.parametrize(
    ("groups", "keys"),
    [
        ([True, False, None], [b"true", b"false", NO_VALUE]),
        (["", "null", None, "\x00"], [b"", b"null", NO_VALUE, b"\x00"]),
        ([0, 1, None], [b"0", b"1", NO_VALUE]),
    ],
)
def test_null_has_a_key_of_its_own(groups: list[object], keys: list[bytes]) -> None:
    """Else a group would replace another one, or a tombstone would say nothing."""
    rows = pl.DataFrame({"k": groups, "gone": [True] * len(groups)})
    assert [message["key"] for message in to_messages(rows, "json", ["k"], True)] == keys
    with pytest.raises(UnicodeDecodeError):
        NO_VALUE.decode()


def test_null_among_several_key_columns() -> None:
    rows = pl.DataFrame({"k": [True, False, None], "n": [1, None, None]})
    keys = [message["key"] for message in to_messages(rows, "json", ["k", "n"], False)]
    assert keys == [b'{"k":true,"n":1}', b'{"k":false,"n":null}', b'{"k":null,"n":null}']


def test_two_queries_in_one_topic_are_refused() -> None:
    """Their keys would replace each other's rows."""
    to = {"kafka": "one:9092, two:9092", "topic": "sums"}
    with pytest.raises(PlanningError, match="'a' and 'b' have the same topic 'sums'"):
        make_sinks({"a": to, "b": {**to, "delivery": "at-least-once"}})
    with pytest.raises(PlanningError, match="'a' and 'b' have the same topic 'sums'"):
        make_sinks({"a": to, "b": {**to, "kafka": "two:9092,three:9092"}})
    made = make_sinks({"a": to, "b": {**to, "topic": "other"}, "c": {**to, "kafka": "four:9092"}})
    assert len(made) == 3


def test_arrow_messages_are_cut_by_their_bytes() -> None:
    """Brokers take about a megabyte by default, however many rows that is."""
    rows = pl.DataFrame({"n": range(300), "text": [f"{n:010d}" * 2_000 for n in range(300)]})
    values = [message["value"] or b"" for message in to_messages(rows, "arrow", [], False)]
    assert max(map(len, values)) <= ARROW_BYTES
    assert pl.concat(map(pl.read_ipc_stream, values)).equals(rows)
    assert len(values) < 50


def test_a_transaction_may_last_as_long_as_it_is_waited_for() -> None:
    connection = Connection("one:9092")
    assert transaction_seconds(connection, 60.0) == 600
    assert transaction_seconds(connection, 700.0) == 700
    # More than brokers allow by default would be refused
    assert transaction_seconds(connection, 5_000.0) == 900
    given = Connection("one:9092", (("transaction.timeout.ms", "30000"),))
    assert transaction_seconds(given, 60.0) == 30
