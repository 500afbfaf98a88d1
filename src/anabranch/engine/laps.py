"""Where the time of a task goes: a clock that is read at the end of each of its steps."""

from __future__ import annotations

import time


class Laps:
    """The seconds of each step of a task, in the order in which they first ended."""

    def __init__(self) -> None:
        self.started = time.time()
        """The time of day, by which tasks of one machine can be laid side by side."""
        self.seconds: dict[str, float] = {}
        self.began = self._at = time.perf_counter()

    def ended(self, step: str) -> None:
        """Counts the time since the last step to this one."""
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._at
        self._at = now

    @property
    def total(self) -> float:
        """The seconds until the last step ended."""
        return self._at - self.began
