"""How a run was asked to go, and how that is written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from anabranch.engine.evolution import Evolution
from anabranch.engine.faults import Faults
from anabranch.errors import LanguageError, SettingsError, nearest
from anabranch.language.window import duration
from anabranch.settings import FINITE, Settings
from anabranch.sources.ahead import Ahead
from anabranch.sources.lookup_table import LookupTable
from anabranch.state.manifest import QueryRecord

TRIGGERS = ("available-now", "continuous")
ENDS = KEEP, CLOSE = ("keep", "close")


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
    queries: Mapping[str, QueryRecord] = field(default_factory=dict)
    """What the checkpoint remembers of each query."""
    evolution: Evolution | None = None
    """What becomes of the queries of the checkpoint, if it had others."""
    tables: Mapping[str, LookupTable] = field(default_factory=dict)
    """What rows are joined with that is no stream."""
    temporary: bool = False
    """Whether the checkpoint goes away with the run."""
    faults: Faults = field(default_factory=Faults)
    """What is done to it on purpose: by tests and benchmarks."""


def interval_of(trigger: str | float) -> float:
    """The least seconds from one epoch to the next."""
    if trigger in TRIGGERS:
        return 0.0
    try:
        seconds = (
            trigger if not isinstance(trigger, str) else duration(trigger, True, "trigger") / 1e6
        )
    except LanguageError:
        seconds = math.nan
    if not 0 <= seconds <= FINITE:
        raise SettingsError(
            f"trigger is {trigger!r}; expected {', '.join(TRIGGERS)}, a number of seconds from 0 on, or a "
            f'length of time such as "10 seconds".{nearest(trigger, TRIGGERS)}'
        )
    return float(seconds)
