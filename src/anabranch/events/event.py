"""What happens in a run, as values: everything that shows a run is made of these.

An event is told once, when it has happened, and never changes. Figures of partitions are columns, one element
for each partition, so that an epoch of 8,192 partitions is a few arrays and not 8,192 objects.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

PINNED, MOVING, PAUSED, ASIDE, HOT, BY_HAND = (1 << bit for bit in range(6))
"""The marks of a partition."""
MARKS = {
    "pinned": PINNED, "moving": MOVING, "paused": PAUSED, "aside": ASIDE, "hot": HOT, "by hand": BY_HAND,
}  # fmt: skip
"""Their names, for people."""


class RunEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=str.lower):
    """Something that has happened in a run."""

    at: float
    """Seconds since 1970."""
    epoch: int
    """The last one that was committed then; -1 before the first."""


class RunStarted(RunEvent, frozen=True, kw_only=True):
    """A run has claimed its checkpoint and begins."""

    run: str
    checkpoint: str
    """The id of the checkpoint: the same for all runs from it."""
    name: str
    place: str
    version: str
    sites: int
    settings: dict[str, Any]
    plan: dict[str, Any]
    """Streams, subqueries and outputs with what they read: see `explain/outline.py`."""


class ExchangeFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The partitions of an exchange in an epoch, in the order of their slots; each column as bytes."""

    slots: int
    starts: bytes
    """The first slot of each."""
    sites: bytes
    """Its owner."""
    rows: bytes
    """The rows that came for it."""
    rows_out: bytes
    """Its results."""
    size: bytes
    """The bytes of its state, in memory or not."""
    aside: bytes
    """Those of them that are put aside."""
    marks: bytes
    """What else there is to know of it: a sum of PINNED, MOVING and so on."""
    seconds: float = 0.0
    """What all sites together have spent on the exchange."""

    def column(self, name: str) -> np.ndarray:
        """One of the columns as an array."""
        found: np.ndarray = np.frombuffer(getattr(self, name), DTYPES[name])
        return found

    def __len__(self) -> int:
        return len(self.starts) // 4


DTYPES = {
    "starts": "<u4", "sites": "<u2", "rows": "<f4", "rows_out": "<f4", "size": "<f4", "aside": "<f4",
    "marks": "u1",
}  # fmt: skip
WIDTH = sum(np.dtype(kind).itemsize for kind in DTYPES.values())
"""The bytes of a partition."""


def columns(**arrays: Any) -> dict[str, bytes]:
    """Arrays as the fields of `ExchangeFigures`."""
    return {
        name: np.ascontiguousarray(array, DTYPES[name]).tobytes() for name, array in arrays.items()
    }


class EpochHappened(RunEvent, frozen=True, kw_only=True):
    """An epoch has happened."""

    progress: dict[str, Any]
    """Its report, as `run.last_progress` has it."""
    exchanges: dict[str, ExchangeFigures]

    @property
    def size(self) -> int:
        """The bytes of its columns."""
        return sum(len(one) * WIDTH for one in self.exchanges.values())


class DecisionTaken(RunEvent, frozen=True, kw_only=True):
    """Something was decided, or proposed and refused: a move, a split, a spill, a clean-up and so on."""

    number: int
    """Counts up within a run."""
    what: str
    """The kind of action."""
    action: str
    """The action in words."""
    exchange: str
    partition: int
    source: int | None
    target: int | None
    bytes: int
    cause: str
    accepted: bool
    reason: str
    origin: str
    seconds: float
    imbalance: float | None
    """The busiest site's time against the mean, when it was taken."""


class EffectMeasured(RunEvent, frozen=True, kw_only=True):
    """What came of a decision."""

    number: int
    """That of the decision."""
    imbalance: float | None
    given_up: str | None
    cost: float | None = None
    """For another shape of a join: the seconds a row takes since, against those before."""


class SitesChanged(RunEvent, frozen=True, kw_only=True):
    """There are other sites from now on, or some are gone, or back."""

    sites: int
    gone: list[int]


class Warned(RunEvent, frozen=True, kw_only=True):
    """Something that a person should know of."""

    text: str


class RunEnded(RunEvent, frozen=True, kw_only=True):
    """The run is over."""

    error: str | None


AnyEvent = (
    RunStarted | EpochHappened | DecisionTaken | EffectMeasured | SitesChanged | Warned | RunEnded
)
KINDS: dict[str, type[RunEvent]] = {
    kind.__name__: kind
    for kind in (
        RunStarted, EpochHappened, DecisionTaken, EffectMeasured, SitesChanged, Warned, RunEnded,
    )
}  # fmt: skip
