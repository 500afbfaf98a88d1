"""Means that follow a change at once must not follow noise as well; views without anything new."""

from __future__ import annotations

import numpy as np

from anabranch.adapt.collector import Collector, Sample, Traffic
from anabranch.adapt.smoothing import Smoothed
from anabranch.adapt.view import View
from anabranch.routing.partition_map import PartitionMap, even_map
from helpers import at_rest


def test_a_change_is_followed_at_once() -> None:
    known = Smoothed()
    for value in (1.0, 1.01, 0.99, 1.0):
        known.add(np.array([value, 1.0, 1.0]))
    known.add(np.array([2.3, 1.0, 1.0]))
    assert known.mean[0] == 2.3
    assert known.told_apart()[0] > 2.2
    known.add(np.array([1.0, 1.0, 1.0]))
    assert known.mean[0] == 1.0


def test_noise_larger_than_what_is_always_likely_is_smoothed() -> None:
    random, known = np.random.default_rng(0), Smoothed()
    means, drawn = [], []
    for _ in range(200):
        known.add(np.exp(random.normal(0, 0.3, 4)))
        means.append(known.mean.copy())
        drawn.append(known.told_apart())
    assert np.std(means[20:]) < 0.25  # of single values: 0.31
    assert np.ptp(drawn[20:], axis=1).mean() < 0.5 * np.ptp(means[20:], axis=1).mean()


def test_elements_that_are_not_known_keep_their_means() -> None:
    known = Smoothed()
    known.add(np.array([1.0, 2.0]))
    known.add(np.array([9.0, 2.0]), np.array([False, True]))
    assert known.mean.tolist() == [1.0, 2.0]


def test_a_view_without_new_epochs_is_the_last_one_again() -> None:
    """However often it is asked for: nothing is counted twice, nothing is lost."""
    known = even_map(4, 2)
    standing = at_rest("x", known, 2)
    collector = Collector(2, smooth=True)
    rows = np.array([10, 20, 30, 40])
    for busy in ([0.3, 0.7], [0.3, 0.9]):
        traffic = Traffic(rows, rows, np.zeros(4, dtype=np.int64), sum(busy), rows / 2)
        sample = Sample(
            max(busy), np.array(busy), np.zeros(2), np.array([30.0, 70.0]), {"x": traffic}
        )
        collector.add(sample, {"x": known}, 1)
        first = collector.view(standing)
    for _ in range(3):
        again = collector.view(standing)
        assert again.partitions.work.tolist() == first.partitions.work.tolist()
        assert again.partitions.rows_in.tolist() == rows.tolist()
        assert again.sites.busy.tolist() == first.sites.busy.tolist()
        assert again.sites.slowness.tolist() == first.sites.slowness.tolist()


def test_an_epoch_may_end_after_the_view_that_gave_its_exchange_cells() -> None:
    """A user evens out the load while an epoch runs: a hot key is scattered, and the epoch knows no cells."""
    before = even_map(4, 2, slots=16)
    after = before.with_cells([0, 1])
    collector = Collector(2, smooth=True)
    rows = np.array([10.0, 20, 30, 40])

    def epoch(number: int) -> None:
        traffic = Traffic(rows, rows, np.zeros(4, dtype=np.int64), 1.0)
        busy = np.array([0.3, 0.7])
        sample = Sample(0.7, busy, np.zeros(2), np.array([30.0, 70.0]), {"x": traffic})
        collector.add(sample, {"x": before}, number)

    def view(known: PartitionMap) -> View:
        return collector.view(at_rest("x", known, 2))

    epoch(0)
    view(before)
    first = view(after)  # asked for while epoch 1 runs
    assert first.partitions.rows_in.tolist() == [10, 20, 30, 40, 0, 0]
    epoch(1)
    second = view(after)
    assert second.partitions.rows_in.tolist() == [10, 20, 30, 40, 0, 0]
    assert second.partitions.work.tolist() == first.partitions.work.tolist()
