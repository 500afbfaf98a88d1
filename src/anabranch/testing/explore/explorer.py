"""An explicit-state explorer: every state that a model can come to, nearest first, each looked at once.

A model says how it begins, which steps lead on from a state and what is wrong with one. States that are
equal are one state, so all orders of steps are covered at the cost of the states they lead to. What is
found first is found by the fewest steps: the trace of a failure is as short as there is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from anabranch.errors import AnabranchError

TELL_EVERY = 5_000
"""States after which whoever listens is told how many there are."""


class Broken(Exception):
    """What must never be, and is; if a step was not to go so, with its words."""

    def __init__(self, what: str, step: str = "") -> None:
        super().__init__(what)
        self.step = step


@dataclass(frozen=True)
class Happening:
    """What can happen in a state, in words, and the state that it leads to."""

    words: str
    state: Hashable
    goals: tuple[str, ...] = ()
    """What has been shown to happen if this does."""


class PaperWorld(Protocol):
    """Real objects with what is around them on paper: copied for every step, told apart by a key."""

    goals: tuple[str, ...]
    """What has been shown in the step that led here."""

    def copy(self) -> Any:
        """The same, for a step to change."""

    def key(self) -> Hashable:
        """The state as a value."""


class WorldState:
    """A state that is a world; that is kept until the steps from it have been made."""

    def __init__(self, world: PaperWorld) -> None:
        self.world: Any = world
        self.key = world.key()

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorldState) and self.key == other.key


Event = tuple[str, Callable[[Any], None]]
"""What may happen, in words, and what does it to a world."""


def steps_from(
    state: WorldState, events: Iterable[Event], goals: Mapping[str, str]
) -> Iterator[Happening]:
    """Where these events lead; if one fails, that is what must never be."""
    for words, change in events:
        after = state.world.copy()
        try:
            change(after)
        except (AnabranchError, AssertionError) as error:
            raise Broken(f"it fails: {error}", words) from error
        except Broken as broken:
            raise Broken(str(broken), words) from broken
        yield Happening(words, WorldState(after), tuple(goals[goal] for goal in after.goals))
    state.world = None


class Model(Protocol):
    """Something that can be explored."""

    name: str
    what: str
    """What is explored, in a sentence."""
    depth: int
    """How many steps are explored by default."""
    invariants: tuple[str, ...]
    goals: tuple[str, ...]
    """What must be shown to happen."""

    def start(self) -> Hashable:
        """The state in which all begins."""

    def steps(self, state: Any) -> Iterator[Happening]:
        """All that can happen in a state; raises Broken where the product does what it must not."""

    def check(self, state: Any) -> None:
        """Raises Broken if something is wrong in a state."""


@dataclass(frozen=True)
class Failure:
    """An invariant that does not hold, and the fewest steps after which it does not."""

    broken: str
    trace: tuple[str, ...]

    def text(self) -> str:
        steps = [f"{number:3}. {words}" for number, words in enumerate(self.trace, 1)]
        return "\n".join([*steps, f"Then: {self.broken}"])


@dataclass
class Explored:
    """What was explored of a model."""

    model: Model
    states: int = 0
    steps: int = 0
    depth: int = 0
    """The steps after which the last state was reached."""
    complete: bool = False
    """Whether there is no state beyond the depth."""
    seconds: float = 0.0
    reached: dict[str, int] = field(default_factory=dict)
    """Each goal, with the fewest steps to it."""
    failure: Failure | None = None

    @property
    def missed(self) -> list[str]:
        """Goals that were not reached."""
        return [goal for goal in self.model.goals if goal not in self.reached]

    @property
    def good(self) -> bool:
        return self.failure is None and not self.missed

    def plain(self) -> dict[str, Any]:
        """What was explored, for programs."""
        model, failure = self.model, self.failure
        return {
            "model": model.name, "what": model.what, "states": self.states, "steps": self.steps,
            "depth": self.depth, "complete": self.complete, "seconds": round(self.seconds, 1),
            "invariants": list(model.invariants), "reached": self.reached, "missed": self.missed,
            "broken": failure.broken if failure else None,
            "trace": list(failure.trace) if failure else None,
        }  # fmt: skip


def explore(
    model: Model, depth: int | None = None, tell: Callable[[int, int], None] | None = None
) -> Explored:
    """Explores a model up to a depth, or until an invariant does not hold.

    `tell` hears now and then how many states and steps deep it is.
    """
    began = time.perf_counter()
    limit = model.depth if depth is None else depth
    explored = Explored(model)
    first = model.start()
    came: dict[Hashable, tuple[Hashable, str] | None] = {first: None}
    here: Hashable = first
    try:
        model.check(first)
        nearest = [first]
        for depth_now in range(1, limit + 1):
            farther: list[Hashable] = []
            for here in nearest:
                for step in model.steps(here):
                    explored.steps += 1
                    for goal in step.goals:
                        explored.reached.setdefault(goal, depth_now)
                    if step.state in came:
                        continue
                    came[step.state] = here, step.words
                    farther.append(step.state)
                    try:
                        model.check(step.state)
                    except Broken as broken:
                        raise Broken(str(broken), step.words) from broken
                    if tell is not None and len(came) % TELL_EVERY == 0:
                        tell(len(came), depth_now)
            if not farther:
                explored.complete = True
                break
            explored.depth, nearest = depth_now, farther
    except Broken as broken:
        last = [broken.step] if broken.step else []
        explored.failure = Failure(str(broken), (*_way(here, came), *last))
        explored.depth = len(explored.failure.trace)
    explored.states = len(came)
    explored.seconds = time.perf_counter() - began
    return explored


def _way(state: Hashable, came: dict[Hashable, tuple[Hashable, str] | None]) -> Iterable[str]:
    """The steps that led to a state."""
    words = []
    while (before := came[state]) is not None:
        state, step = before
        words.append(step)
    return reversed(words)
