"""Where a Structured Streaming program has its checkpoint, and what is said if it has none."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from anabranch import accelerate
from anabranch.accelerating import CHECKPOINTS, StreamWriter


def writer(**conf: str) -> StreamWriter:
    def get(key: str, default: Any) -> Any:
        return conf.get("of_all", default) if key == CHECKPOINTS else default

    frame: Any = SimpleNamespace(
        isStreaming=True, sparkSession=SimpleNamespace(conf=SimpleNamespace(get=get))
    )
    return accelerate(frame).writeStream


def checkpoint_of(one: StreamWriter) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return one._checkpoint()


def test_the_checkpoint_is_where_spark_has_it() -> None:
    assert checkpoint_of(writer().option("checkpointLocation", "ckpt")) == "ckpt"
    assert checkpoint_of(writer(of_all="all").queryName("counts")) == "all/counts"
    both = writer(of_all="all").queryName("counts").option("checkpointLocation", "ckpt")
    assert checkpoint_of(both) == "ckpt"


def test_what_cannot_go_on_after_a_restart_is_warned_of() -> None:
    for one in (
        writer(),
        writer(of_all="all"),  # for a query without a name Spark takes a new folder at every start
        writer().queryName("counts"),
        writer().foreachBatch(lambda frame, epoch: None),
    ):
        with pytest.warns(UserWarning, match="The next start reads everything once more"):
            assert one._checkpoint() is None


def test_what_is_only_looked_at_needs_none() -> None:
    for format in ("console", "memory"):
        assert checkpoint_of(writer().format(format)) is None
