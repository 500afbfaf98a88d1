"""Result folders that keep their epochs for a while only."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from anabranch import Session
from anabranch.errors import AnabranchError
from anabranch.sinks.files import FileSink
from anabranch.testing.sources import EpochSource
from helpers import sample, visible_epochs


def run(root: Path, epochs: int, **options: object) -> None:
    session = Session.in_process(1, {"fsync": False})
    session.stream("t", EpochSource([sample(n) for n in range(epochs)]), ordered="time")
    session.query("q", "SELECT time, k FROM t")
    sink = {"path": root / "out", **options}
    session.start(sinks={"q": sink}, checkpoint=root / "ck").await_termination()


def test_old_epochs_go_and_the_newest_stays(tmp_path: Path) -> None:
    run(tmp_path, 4)
    assert visible_epochs(tmp_path / "out") == [0, 1, 2, 3]
    days_ago = time.time() - 3 * 86_400
    for epoch in (0, 1, 3):
        os.utime(tmp_path / "out" / f"epoch={epoch:012d}", (days_ago, days_ago))
    run(tmp_path, 4, retain="2 days")
    assert visible_epochs(tmp_path / "out") == [2, 3]
    assert list((tmp_path / "out").glob("_epoch=*")) == []
    # The newest of before goes with the next look
    run(tmp_path, 6)
    run(tmp_path, 6, retain="2 days")
    assert visible_epochs(tmp_path / "out") == [2, 4, 5]


def test_a_length_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AnabranchError, match="retain 'long' is not a length of time"):
        FileSink(tmp_path, retain="long")
