"""What is said of a run that has waited long: for how long, and where its input should come from."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

FIRST_SECONDS = 10.0
"""After so long without an epoch a new user wonders whether anything happens."""
LATER_SECONDS = 600.0
"""The same once there has been input: between files, silence is usual."""


class Silence:
    """How long a run has waited for input, in words that stay the same, to be told once."""

    def __init__(
        self, reads: Mapping[str, str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reads = "; ".join(f"{name} from {place}" for name, place in reads.items())
        self._clock = clock
        self._since, self._patience = clock(), FIRST_SECONDS

    def broken(self) -> None:
        """There was an epoch."""
        self._since, self._patience = self._clock(), LATER_SECONDS

    def told(self, status: Mapping[str, Any]) -> str:
        """What to say of a run with this status; empty as long as it works, or waits only shortly."""
        if status["isDataAvailable"] or not status["message"].startswith("Waiting"):
            self._since = self._clock()
        if self._clock() - self._since < self._patience:
            return ""
        return (
            f"{status['message']}: nothing new for {self._patience:.0f} s. Read are {self._reads}. Ctrl-C "
            "ends the run."
        )
