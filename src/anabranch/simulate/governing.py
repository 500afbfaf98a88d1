"""The controllers that experiments compare: Flux's as published, and ours that tunes itself."""

from __future__ import annotations

from anabranch.adapt.arbiter import Arbiter, Limits
from anabranch.adapt.controller import POLICIES, Controller
from anabranch.adapt.tuning import by_itself, fixed

LEAST, MOST = 0.01, 2.0
"""Seconds of the shortest collection, as in Flux, and of the longest when tuned by itself."""


def as_published(policy: str = "load", least: float = LEAST) -> Controller:
    """Flux's thresholds 1.2 and 0.9, the given δ_min, and nothing that keeps partitions from returning."""
    return Controller((POLICIES[policy],), fixed(least), Arbiter(Limits(settle=0, remember=0)))


def self_tuning(policy: str = "load") -> Controller:
    """Told nothing but between which lengths a collection may be."""
    return Controller((POLICIES[policy],), by_itself(LEAST, MOST))
