"""A wire between client and S3 server on which answers to conditional puts get lost."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any


class LosingAnswers:
    """Passes everything on, but keeps the first `each` answers to every conditional put to itself."""

    def __init__(self, server: int, each: int) -> None:
        self._server = server
        self._each = each
        self._times: dict[bytes, int] = {}
        self._changing = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.lost = 0

    def __enter__(self) -> LosingAnswers:
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
        """Passes on requests of one connection, one after another, until an answer is lost."""
        with client, socket.create_connection(("127.0.0.1", self._server)) as server:
            asking, answering = client.makefile("rb"), server.makefile("rb")
            with contextlib.suppress(OSError):
                while request := _message(asking):
                    server.sendall(request)
                    answer = _message(answering, bodiless=request.startswith(b"HEAD"))
                    if self._loses(request):
                        return
                    client.sendall(answer)

    def _loses(self, request: bytes) -> bool:
        head = request.split(b"\r\n\r\n", 1)[0]
        if b"\r\nif-none-match: *" not in head.lower():
            return False
        with self._changing:
            line = head.split(b"\r\n", 1)[0]
            self._times[line] = self._times.get(line, 0) + 1
            losing = self._times[line] <= self._each
            self.lost += losing
        return losing


def _message(file: Any, bodiless: bool = False) -> bytes:
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
