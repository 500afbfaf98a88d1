"""Tests of PostgreSQL tables find the server that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import shelf

if TYPE_CHECKING:
    from postgres_server import Server


@pytest.fixture(autouse=True)
def _served(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "postgres" in request.node.nodeid:
        server: Server = request.getfixturevalue("postgres_server")
        monkeypatch.setattr(shelf, "POSTGRES", server.uri)
