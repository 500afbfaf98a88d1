"""Everything that is explored, one model after another, and the bugs that this must find."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from anabranch.errors import SettingsError, suggest
from anabranch.testing.bug import Bug
from anabranch.testing.explore.bugs import BUGS
from anabranch.testing.explore.explorer import Explored, Failure, Model, explore
from anabranch.testing.explore.fencing import Fencing, Rivalry
from anabranch.testing.explore.moving import MovesAndHolds
from anabranch.testing.explore.putting_aside import PuttingAside
from anabranch.testing.explore.reshaping import Reshaping
from anabranch.testing.planted import planting

TAKEN_OVER = (
    "a driver takes a checkpoint over from another",
    "a driver loses its claim",
    "a driver loses its commit",
    "a driver loses its clear",
    "a driver makes the results of another to be seen",
    "sweeping removes what another attempt has left",
    "a sleeper's unfinished file is swept away",
    "a sleeper puts an entry whose number was cleared away",
)
GONE_ON = (
    "an entry says only what has changed",
    "clearing removes an entry that is no longer needed",
    "clearing removes a file that is no longer needed",
)
RIVALRIES = (
    Rivalry(
        "two drivers", "Two drivers without a lock, two epochs from each start, two entries kept.",
        62, "AB", 2, (*TAKEN_OVER, *GONE_ON), keep=2,
    ),
    Rivalry(
        "crashes", "Two drivers, one of which may crash at any operation and start again; tasks of an epoch "
        "may fail, and the answer to a put may get lost.",
        40, "AB", 1, (*TAKEN_OVER, "an entry counts although its driver was not told"), (2, 1, 1), 2, 1, 1,
    ),
    Rivalry(
        "three drivers", "Three drivers, an epoch from each start, one entry kept.",
        27, "ABC", 1, TAKEN_OVER,
    ),
    Rivalry(
        "a reader", "Two drivers, two epochs from each start, and someone who reads the line meanwhile.",
        32, "AB", 2, (*TAKEN_OVER, *GONE_ON, "a reader finds an entry cleared away, and looks again"),
        reader=True,
    ),
)  # fmt: skip
MODELS: dict[str, Callable[[], Model]] = {
    **{rivalry.name: partial(Fencing, rivalry) for rivalry in RIVALRIES},
    "far moves": partial(MovesAndHolds, "far moves", True, 3, 7),
    "near moves": partial(MovesAndHolds, "near moves", False, 3, 6),
    "state aside": partial(PuttingAside, "state aside", False, 5, 7),
    "joins that change their shape": partial(Reshaping, 3, 6),
    "rows that wait for state": partial(PuttingAside, "rows that wait for state", True, 5, 7),
}
"""What makes each model, by its name: a model remembers what it has seen, so each look needs a new one."""
LOOKED_FOR = {
    "put-overwrites": "two drivers",
    "lead-not-looked-at": "two drivers",
    "one-kept-too-few": "two drivers",
    "overtaken-entry-removed": "two drivers",
    "installed-before-drain": "far moves",
    "hold-not-released": "far moves",
    "second-file-forgotten": "far moves",
    "earlier-cut-forgotten": "state aside",
    "together-and-aside": "state aside",
    "owed-time-told": "state aside",
    "old-rows-overlooked": "joins that change their shape",
    "cut-late": "joins that change their shape",
    "broken-track-ended": "joins that change their shape",
}
"""The model in which each planted bug must be found."""


@dataclass(frozen=True)
class Finding:
    """What became of a planted bug."""

    bug: Bug
    model: str
    states: int
    failure: Failure | None

    def plain(self) -> dict[str, Any]:
        failure = self.failure
        return {
            "bug": self.bug.name, "what": self.bug.what, "model": self.model, "states": self.states,
            "caught": failure is not None, "broken": failure.broken if failure else None,
            "trace": list(failure.trace) if failure else None,
        }  # fmt: skip


@dataclass
class Exploration:
    """What was explored in all."""

    models: list[Explored] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether every invariant holds, every goal was reached and every planted bug was found."""
        return all(one.good for one in self.models) and all(one.failure for one in self.findings)

    def plain(self) -> dict[str, Any]:
        """The exploration for programs; `depth` is that to which every model was explored."""
        return {
            "states": sum(one.states for one in self.models),
            "depth": min(one.depth for one in self.models),
            "seconds": round(self.seconds, 1),
            "good": self.good,
            "models": [one.plain() for one in self.models],
            "planted": [one.plain() for one in self.findings],
        }

    def text(self) -> str:
        """The exploration in a few lines."""
        lines = []
        for one in self.models:
            end = ", which is all there is" if one.complete else ""
            lines.append(f"{one.model.name}: {one.states:,} states, {one.depth} steps deep{end}.")
            if one.failure:
                lines += [
                    "",
                    "What must not be comes about by these steps:",
                    one.failure.text(),
                    "",
                ]
            lines += [f"  NOT reached: {goal}" for goal in one.missed]
        for finding in self.findings:
            caught = (
                f"found after {len(finding.failure.trace)} steps"
                if finding.failure
                else "NOT found"
            )
            lines.append(f"planted '{finding.bug.name}': {caught}. {finding.bug.what}")
        states = sum(one.states for one in self.models)
        lines.append(f"{states:,} states in {self.seconds:.1f} s.")
        return "\n".join(lines)


Listener = Callable[[str, int, int], None]
"""Hears what is explored, and now and then how many states there are and how deep."""


def explore_all(
    names: list[str] | None = None, depth: int | None = None, tell: Listener | None = None
) -> Exploration:
    """Explores the models of these names, or all; then plants what must be found in them."""
    began = time.perf_counter()
    exploration, chosen = Exploration(), names or list(MODELS)
    for name in chosen:
        if name not in MODELS:
            raise SettingsError(f"There is no model '{name}'.{suggest(name, MODELS)}")
    for name in chosen:
        exploration.models.append(explore(MODELS[name](), depth, _listening(tell, name)))
    for bug in BUGS:
        if LOOKED_FOR[bug.name] in chosen:
            exploration.findings.append(hunt(bug, tell))
    exploration.seconds = time.perf_counter() - began
    return exploration


def hunt(bug: Bug, tell: Listener | None = None) -> Finding:
    """Explores the model in which a bug must show, with it in the product, to its own depth."""
    name = LOOKED_FOR[bug.name]
    with planting(bug):
        explored = explore(MODELS[name](), None, _listening(tell, bug.name))
    return Finding(bug, name, explored.states, explored.failure)


def _listening(tell: Listener | None, name: str) -> Callable[[int, int], None] | None:
    if tell is None:
        return None
    tell(name, 0, 0)
    return lambda states, depth: tell(name, states, depth)
