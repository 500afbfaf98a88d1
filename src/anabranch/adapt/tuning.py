"""How long to collect figures, and when a difference is worth a move: fixed as in Flux, or tuned by itself.

Flux collects for as long as its last moves took, half as long after a round without moves, but never less
than δ_min, which the user has to find: too small a one makes it move on the strength of noise, too large a
one makes it slow. Tuning by itself (F10) compares what a round expected of every site with what was then
measured. While that is far off, figures are collected for longer and only larger differences count; when
it is met, both come down again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

LEAST_IMBALANCE, MOST_IMBALANCE = 1.02, 1.5
LEAST_MARGIN, MOST_MARGIN = 0.02, 0.5
UNKNOWN = 0.05
"""The error that is assumed before anything has been expected."""
TRUSTED = 0.015
"""An error of what was expected, relative to the utilisations, that does not matter."""
CHANGED = 0.5
"""An error that no noise explains: the world has changed, which says nothing about how to measure it."""
SLOWER, FASTER = 1.6, 0.8
"""Factors for the time of collection when expectations were wrong, and when they were met."""
RECENCY = 0.5
"""The weight of the newest round in the error."""


@dataclass(frozen=True)
class Tuning:
    """Thresholds in force, and the length of the next collection."""

    collect: float
    """Seconds to collect figures for (δ)."""
    least: float
    """The shortest collection (δ_min)."""
    most: float
    """The longest collection, for tuning by itself."""
    imbalance: float = 1.2
    """How much more a donor must be utilised than a receiver (th_imb)."""
    utilisation: float = 0.9
    """Sites utilised more than this receive nothing (th_util)."""
    begin: float = 1.0
    """How far a site must be from the mean for moves to begin."""
    margin: float = 0.0
    """The share of its own load by which a move must lower the busier of two sites."""
    error: float = 0.0
    """What expectations were off by lately."""
    itself: bool = False
    """Whether collection and thresholds are tuned here."""


def fixed(least: float, imbalance: float = 1.2, utilisation: float = 0.9) -> Tuning:
    """Flux's own rule, with its three parameters."""
    return Tuning(least, least, least, imbalance, utilisation)


def by_itself(least: float, most: float) -> Tuning:
    """Collection between two lengths and thresholds that follow the error of expectations."""
    return _trusting(Tuning(least, least, most, utilisation=1.0, itself=True), UNKNOWN, 2)


def after_round(tuning: Tuning, moving: float, error: float | None, sites: int) -> Tuning:
    """The tuning for the next round.

    `moving` is how long the moves of this round took, 0 if there were none; `error` how far the
    utilisations of this round were off from those that the last one expected, None in the first.
    """
    if not tuning.itself:
        collect = moving if moving > 0 else tuning.collect / 2
        return replace(tuning, collect=max(collect, tuning.least))
    if error is None or error > CHANGED:
        return tuning
    known = error if tuning.error == 0 else tuning.error + RECENCY * (error - tuning.error)
    factor = SLOWER if known > TRUSTED else FASTER
    collect = min(max(tuning.collect * factor, tuning.least), tuning.most)
    return _trusting(replace(tuning, collect=collect), known, sites)


def _trusting(tuning: Tuning, error: float, sites: int) -> Tuning:
    """The thresholds for expectations that are off by this much."""
    # Of so many sites that differ by chance alone, the extreme ones are this many deviations apart
    spread = 2 * error * math.sqrt(2 * math.log(max(2, sites)))
    imbalance = min(max(1 + spread, LEAST_IMBALANCE), MOST_IMBALANCE)
    return replace(
        tuning, error=error, imbalance=imbalance, begin=1 + 2 * (imbalance - 1),
        margin=min(max(error, LEAST_MARGIN), MOST_MARGIN),
    )  # fmt: skip


def surprise(expected: np.ndarray, measured: np.ndarray) -> float:
    """How far measured utilisations are off from expected ones, relative to their size.

    Only the shares count: that all sites have more or less to do is no error. Where one site has most of
    the work, its error counts, not what the others have beside it: so sizes are root mean squares.

    >>> surprise(np.array([1.0, 1.0]), np.array([0.5, 0.5]))
    0.0
    """
    if not expected.sum() or not measured.sum():
        return 0.0
    return _size(expected / _size(expected) - measured / _size(measured))


def _size(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values * values)))
