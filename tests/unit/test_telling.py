"""What workers know: whatever they have missed, they hear what the orders say, and little of it twice."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from anabranch.engine import telling
from anabranch.engine.telling import Listener, Teller
from anabranch.routing.partition_map import PartitionMap, even_map
from anabranch.state.segment import SegmentRef
from anabranch.state.shelf import Shelf, ShelfChange


@dataclass(frozen=True)
class Told:
    """As much of orders as is told apart."""

    shelves: dict[str, Shelf] = field(default_factory=dict)
    maps: dict[str, PartitionMap] = field(default_factory=dict)


def ref(number: int) -> SegmentRef:
    return SegmentRef(
        file=f"state/q/{number}.arrow", batch=0, table="open", tier=0, rows=4, bytes=40, min_due=0, max_due=9,
        live=((0, 4),), along=(1, 1, 1, 1), born=(0, 0), checksum=0,
    )  # fmt: skip


def epochs(seed: int, count: int) -> list[Any]:
    """Orders of a run whose state and maps change at random."""
    chance, shelf, known, made = random.Random(seed), Shelf(), even_map(4, 2), 0
    orders = []
    for _ in range(count):
        gone = [(r.file, r.batch) for r in shelf if chance.random() < 0.3]
        coming = [ref(made + n) for n in range(chance.randint(0, 3))]
        made += len(coming)
        if chance.random() < 0.1:
            shelf = Shelf(
                shelf
            )  # another one with the same contents: nobody knows what it was made of
        shelf = shelf.after(ShelfChange(gone, coming))
        if chance.random() < 0.2:
            known = PartitionMap(tuple(chance.randint(0, 1) for _ in range(4)))
        orders.append(Told({"q": shelf, "none": Shelf()}, {"q": known}))
    return orders


@pytest.mark.parametrize("seed", range(20))
def test_workers_that_miss_epochs_hear_what_the_orders_say(seed: int) -> None:
    chance, teller = random.Random(seed), Teller()
    workers = [Listener() for _ in range(3)]
    for orders in epochs(seed, 150):
        fewer, news = teller.tell(orders)
        assert not fewer.shelves
        for worker in workers:
            if chance.random() < 0.6:
                heard = worker.hear(fewer, news, lambda: teller.beginning)
                assert heard.shelves["q"] == orders.shelves["q"]
                assert heard.maps == orders.maps
                assert len(heard.shelves["none"]) == 0


def test_a_worker_that_has_heard_all_asks_for_no_beginning() -> None:
    teller, worker, asked = Teller(), Listener(), []

    def beginning() -> bytes:
        asked.append(1)
        return teller.beginning

    told = epochs(1, 300)
    for orders in told:
        worker.hear(*teller.tell(orders), beginning)
    assert len(asked) <= 1 + len(told) // telling.MOST_WORDS


def test_what_is_told_is_bounded_and_follows_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "MOST_WORDS", 1000)
    shelf, teller, lengths = Shelf(ref(n) for n in range(2000)), Teller(), []
    for number in range(2000, 2400):
        _, news = teller.tell(Told({"q": shelf}, {}))
        lengths.append(sum(map(len, news.since)))
        assert lengths[-1] <= len(teller.beginning)
        shelf = shelf.after(ShelfChange([], [ref(number)]))
    steps = [b - a for a, b in itertools.pairwise(lengths)]
    assert max(steps) < len(teller.beginning) / 500


def test_runs_are_kept_apart_and_old_ones_forgotten() -> None:
    worker = Listener()
    tellers = [Teller() for _ in range(telling.MOST_RUNS + 2)]
    for number, teller in enumerate(tellers):
        orders = Told({"q": Shelf([ref(number)])}, {})
        heard = worker.hear(*teller.tell(orders), lambda of=teller: of.beginning)
        assert heard.shelves["q"] == orders.shelves["q"]
    assert len(worker._runs) == telling.MOST_RUNS
