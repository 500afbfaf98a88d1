"""How a governor goes about it: beside the epochs of a run, or in a simulation of Flux's cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Manner:
    """What depends on where a governor is at work. The defaults are those of a run."""

    far: bool = False
    """Whether new sites of partitions have to fetch their state."""
    in_turn: bool = False
    """Whether moves wait for their turn, and take a time in which nothing else is decided."""
    fetch_first: bool = True
    """Whether state is fetched before rows wait, and what has changed again after it."""
    warm_up: int = 1
    """Epochs at the beginning whose times are those of workers that start."""
    convinced: int = 2
    """Views in a row that must show a gain: one alone may be an accident."""
    least_gain: float = 0.03
    """The share of an epoch's time that must be won for anything to move."""
    doubt: float = 0.01
    """Seconds an epoch by which the times of sites differ for no reason, at least."""
    clock: Callable[[], float] = lambda: 0.0
    """Tells how long decisions take; nothing is decided by it."""
