"""A wire between client and S3 server: it counts the requests, and does to them what it is told.

A fault is what becomes of a request: `error` (answered with a 500, the server never hears of it), `lost` (the
server does it, the answer never comes), `silent` (neither is passed on, and the connection stays open), `cut`
(half of the answer comes).
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

FAULTS = ("error", "lost", "silent", "cut")
ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"


@dataclass(frozen=True)
class Request:
    """A request as the wire sees it."""

    method: str
    target: str
    """The path and the query."""
    conditional: bool
    """Whether it puts an object only if it is absent."""

    @property
    def kind(self) -> str:
        """What a store charges for: a listing is more than a read."""
        if self.method == "GET" and "list-type=" in self.target:
            return "LIST"
        return self.method


Fault = Callable[[Request], str | None]


def seeded_faults(seed: int, share: float, kinds: tuple[str, ...] = FAULTS) -> Fault:
    """A share of all requests gets one of these faults, by a seed; never the same request twice running."""
    drawn, last, changing = random.Random(seed), Counter[str](), threading.Lock()

    def fault(request: Request) -> str | None:
        line = f"{request.method} {request.target}"
        with changing:
            if last[line] or drawn.random() >= share:
                last[line] = 0
                return None
            last[line] = 1
            return drawn.choice(kinds)

    return fault


class Wire:
    """Passes on what comes to its port, one request of a connection after another."""

    def __init__(self, server: int, fault: Fault = lambda request: None) -> None:
        self._server = server
        self._fault = fault
        self._changing = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.requests: list[Request] = []
        self.faults: Counter[str] = Counter()

    def __enter__(self) -> Wire:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._server)) as server:
            asking, answering = client.makefile("rb"), server.makefile("rb")
            with contextlib.suppress(OSError):
                while message := read_message(asking):
                    request = _request(message)
                    fault = self._fault(request)
                    with self._changing:
                        self.requests.append(request)
                        if fault is not None:
                            self.faults[fault] += 1
                    if fault == "error":
                        client.sendall(ERROR)
                        continue
                    if fault == "silent":
                        asking.read(1)  # until the client has had enough
                        return
                    server.sendall(message)
                    answer = read_message(answering, bodiless=request.method == "HEAD")
                    if fault == "lost":
                        return
                    if fault == "cut":
                        client.sendall(answer[: len(answer) // 2])
                        return
                    client.sendall(answer)


def _request(message: bytes) -> Request:
    head = message.split(b"\r\n\r\n", 1)[0]
    method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
    return Request(method, target, b"\r\nif-none-match: *" in head.lower())


def read_message(file: Any, bodiless: bool = False) -> bytes:
    """The next request or answer, whole; empty at the end."""
    lines = []
    length, chunked = 0, False
    while line := file.readline():
        lines.append(line)
        name, _, value = line.decode("latin-1").partition(":")
        length = int(value) if name.lower() == "content-length" else length
        chunked = chunked or (name.lower() == "transfer-encoding" and "chunked" in value)
        if line == b"\r\n":
            break
    if bodiless:
        return b"".join(lines)
    while chunked:
        size = file.readline()
        lines += [size, file.read(int(size, 16) + 2)]
        chunked = int(size, 16) > 0
    return b"".join([*lines, file.read(length)])
