"""What a trial is: the legs it is run in, what is done to it on the way, and what comes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from anabranch.engine.faults import Burdens
from anabranch.engine.run import Run
from anabranch.sinks.driver import MemorySink
from anabranch.state.manifest import Manifest
from anabranch.testing.intruders import EpochStep, Rival
from anabranch.testing.stage import Stage
from anabranch.testing.witness import Results


@dataclass(frozen=True)
class Leg:
    """A stretch of a trial in one session: on so many sites, until an epoch.

    `step` is "stop" for an orderly end after that epoch, a step of the epoch for a crash there, or
    "end" to run as far as the input goes.
    """

    sites: int
    step: str = "end"
    epoch: int = 0


@dataclass(frozen=True)
class Scene:
    """A run at one step of an epoch, as a watcher sees it."""

    run: Run
    step: str
    epoch: int
    folder: Path
    """Its checkpoint."""
    outcome: Outcome
    results: Results


Watcher = Callable[[Scene], None]


@dataclass(frozen=True)
class Trial:
    """How a case is to be run."""

    legs: Sequence[Leg] = (Leg(2),)
    settings: Mapping[str, Any] = field(default_factory=dict)
    moves: int | None = None
    """The seed of the partition maps, a new one each epoch; None to leave them."""
    close: bool = True
    """Whether all windows are closed in the end."""
    by_epoch: bool = True
    """Whether the results of every epoch are compared, or all together: rows that wait come later."""
    burdens: Burdens | None = None
    """What weighs on the sites, see `faults.py`."""
    watchers: Sequence[Watcher] = ()
    """Called at every step of every epoch, before a leg ends there: to meddle with the run or check it."""
    stage: Stage | None = None
    """What happens to the sites, with times that are computed; without it the plain twin runs."""
    far: bool = False
    """Whether the checkpoint is given as a URI, as if it were on another machine."""
    folders: bool = False
    """Whether results go to folders of files, not to memory."""
    letters: bool = False
    """Whether late rows are kept in a dead-letter folder."""
    quiet: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """The frames of streams, all of them empty, in whose epochs they offer nothing."""
    silences: Mapping[int, int] = field(default_factory=dict)
    """How often all streams offer nothing before a frame."""
    beside: EpochStep | None = None
    """When a second run of the same session begins."""
    rival: Rival | None = None
    """When a second driver comes to the checkpoint."""
    damage: int | None = None
    """The seed of a bit of the checkpoint that is flipped between two legs; None to leave all as they are."""


@dataclass
class Outcome:
    """What a trial gave: the rows of every epoch, and what was seen on the way."""

    sinks: Mapping[str, MemorySink] = field(default_factory=dict)
    progress: list[dict[str, Any]] = field(default_factory=list)
    manifests: list[Manifest] = field(default_factory=list)
    """One for each epoch that was committed, in order."""
    moved: int = 0
    """Slots that changed their site."""
    crashes: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    """The decisions of all legs."""
    fired: Counter[str] = field(default_factory=Counter)
    """What happened to the run, by its kind."""
    letters: dict[str, pl.DataFrame] = field(default_factory=dict)
    """The late rows that were kept aside."""
    beside: Mapping[str, MemorySink] = field(default_factory=dict)
    """What the second run of a session gave."""

    def tiers(self) -> set[int]:
        """The tiers of all segments there ever were; above 0 are those that compaction wrote."""
        records = (r for manifest in self.manifests for r in manifest.subqueries.values())
        return {ref.tier for record in records for ref in record.shelf}

    def combining(self) -> set[str]:
        """The subqueries whose input was sub-aggregated before the exchange."""
        return {name for told in self.progress for name in told["customMetrics"]["combining"]}
