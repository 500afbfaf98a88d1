"""How a run was asked to go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from anabranch.engine.faults import Faults
from anabranch.settings import Settings
from anabranch.sources.ahead import Ahead


@dataclass(frozen=True)
class RunOptions:
    """What a session tells a run when it starts."""

    name: str
    root: str
    """The durable place: a folder or a URI."""
    checkpoint: Path
    """A local folder that belongs to it: the place itself, or its cache."""
    sites: int
    settings: Settings
    available_now: bool
    interval: float
    close_at_end: bool
    dead_letter: str | None
    on_bad: Mapping[str, str]
    on_late: Mapping[str, str]
    ahead: Mapping[str, Ahead] = field(default_factory=dict)
    """How far ahead of the clock rows may be, for streams that say so."""
    partitioning: list[str] | None = None
    """The axes chosen for the streams, to be remembered by the checkpoint."""
    temporary: bool = False
    """Whether the checkpoint goes away with the run."""
    faults: Faults = field(default_factory=Faults)
    """What is done to it on purpose: by tests and benchmarks."""
