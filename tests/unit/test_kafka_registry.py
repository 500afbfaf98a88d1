"""Who is told the login of a schema registry: the registry itself, over a connection nobody listens to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from anabranch.errors import SettingsError, SourceError
from anabranch.sources.kafka.registry import SchemaRegistry, read_registry


@contextmanager
def answering(code: int, to: str = "") -> Iterator[tuple[str, list[str]]]:
    """A server that answers so; its address, and the logins that it was told."""
    told: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.append(self.headers.get("Authorization", ""))
            self.send_response(code)
            if to:
                self.send_header("Location", f"{to}{self.path}")
            body = b'{"schema": "{}"}'
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *values: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", told
        finally:
            server.shutdown()
            serving.join()


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_the_login_goes_nowhere_else(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY", "reader:open sesame")
    with answering(200) as (other, heard), answering(code, to=other) as (url, asked):
        with pytest.raises(SourceError, match=f"answered {code}, a redirect") as caught:
            SchemaRegistry(url, "env:REGISTRY").latest("calls-value")
        assert "sesame" not in str(caught.value)
    assert len(asked) == 1
    assert heard == []


def test_a_login_that_others_could_hear_is_refused() -> None:
    for url in ("http://registry.example:8081", "http://127.0.0.1.example", "http://10.0.0.1:8081"):
        with pytest.raises(SettingsError, match="https"):
            read_registry("Stream 's'", url, "env:REGISTRY")
    for url in ("http://localhost:8081", "http://127.0.0.1:1", "http://[::1]:1", "https://a:1"):
        assert read_registry("Stream 's'", url, "env:REGISTRY") == SchemaRegistry(
            url, "env:REGISTRY"
        )
    assert read_registry("Stream 's'", "http://registry.example:8081", None) is not None
