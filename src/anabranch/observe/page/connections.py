"""Connections to the page: none may wait for long without asking, and those that wait take no one's place.

Uvicorn ends a connection that is silent after an answer, not one that never finishes its first request; its
limit of connections counts those too, and would answer 503 to everybody.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

REQUEST_SECONDS = 10.0
"""How long a request may take to come, from the beginning of a connection or the answer before it."""
MOST_WAITING = 64
"""Connections without a request; beyond that those go that have waited longest."""


class ImpatientProtocol(H11Protocol):
    """A connection that is ended if no request comes."""

    _ending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()
        known = [one for one in self.connections if isinstance(one, ImpatientProtocol)]
        waiting = sorted((one for one in known if one._waits()), key=ImpatientProtocol._since)
        for one in waiting[:-MOST_WAITING]:
            one.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._ending is not None:
            self._ending.cancel()

    def on_response_complete(self) -> None:
        self._await_request()
        super().on_response_complete()

    def _await_request(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
        self._ending = self.loop.call_later(REQUEST_SECONDS, self._end_if_waiting)

    def _end_if_waiting(self) -> None:
        if self._waits():
            self.transport.close()

    def _waits(self) -> bool:
        """Whether it is without a request that is being answered."""
        cycle: RequestResponseCycle | None = (
            self.cycle
        )  # declared without the None that it begins with
        return not self.transport.is_closing() and (cycle is None or cycle.response_complete)

    def _since(self) -> float:
        return 0.0 if self._ending is None else self._ending.when()
