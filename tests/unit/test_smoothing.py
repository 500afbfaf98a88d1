"""Means that follow a change at once must not follow noise as well."""

from __future__ import annotations

import numpy as np

from anabranch.adapt.smoothing import Smoothed


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
