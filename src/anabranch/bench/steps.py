"""Where a long benchmark is: told to whoever listens, a live line on a terminal in the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Listener = Callable[[str, int, int], None]


@dataclass
class Steps:
    """Counts the steps of a benchmark; the listener hears (what begins, steps done, steps in all)."""

    listener: Listener
    total: int = 0
    done: int = -1

    def expect(self, total: int) -> None:
        """So many steps will come, besides those already expected."""
        self.total += total

    def begin(self, what: object) -> None:
        """The next step begins, the one before has ended."""
        self.done += 1
        self.listener(str(what), self.done, max(self.total, self.done + 1))


def silent() -> Steps:
    """Steps that nobody hears."""
    return Steps(lambda what, done, total: None)
