"""A wire between client and S3 server on which answers to conditional puts get lost."""

from __future__ import annotations

from collections import Counter

from anabranch.testing.wire import Request, Wire


class LosingAnswers(Wire):
    """Passes everything on, but keeps the first `each` answers to every conditional put to itself."""

    def __init__(self, server: int, each: int) -> None:
        super().__init__(server, self._loses)
        self._each = each
        self._times: Counter[str] = Counter()

    @property
    def lost(self) -> int:
        return self.faults["lost"]

    def _loses(self, request: Request) -> str | None:
        if not request.conditional:
            return None
        self._times[request.target] += 1
        return "lost" if self._times[request.target] <= self._each else None
