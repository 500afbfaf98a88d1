"""Work in several processes: all of it is done, whatever becomes of one of them."""

from __future__ import annotations

import os
import time

from anabranch.testing.processes import LostItem, spread


def work(item: int) -> int:
    if item == 3:
        os._exit(1)
    if item == 5:
        time.sleep(600)
    return item * 10


def test_what_dies_or_hangs_is_told_and_the_rest_goes_on() -> None:
    results = dict(spread(work, range(8), jobs=2, longest=3.0))
    assert results.pop(3) == LostItem("the process died")
    assert results.pop(5) == LostItem("no end after 3 s")
    assert results == {item: item * 10 for item in range(8) if item not in (3, 5)}
