"""A schema registry for tests: a real HTTP server that speaks the registry's API."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from anabranch.sources.kafka.registry import forget


@dataclass
class Server:
    """A registry: schemas by number, the newest number of each subject, what it was asked."""

    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    compiled: dict[int, str] = field(default_factory=dict)
    """Of Protobuf, what is asked for as serialized."""
    newest: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    login: str = ""
    broken: bool = False
    late: int = 0
    """So many answers know of no schema: as a replica that learns of it after its messages."""
    texts_only: bool = False
    """As registries that give no compiled schemas."""
    url: str = ""

    def register(self, subject: str, schema: dict[str, Any], kind: str = "AVRO") -> int:
        number = len(self.schemas) + 1
        # As the real one: the kind is left out where it is Avro
        told = {} if kind == "AVRO" else {"schemaType": kind}
        self.schemas[number] = {"schema": json.dumps(schema), **told}
        self.newest[subject] = number
        return number

    def register_protobuf(
        self, subject: str, file: bytes, references: list[dict[str, Any]] | None = None
    ) -> int:
        """A compiled .proto file; its text is never read."""
        number = self.register(subject, {}, "PROTOBUF")
        self.schemas[number] |= {"schema": 'syntax = "proto3";', "references": references or []}
        self.compiled[number] = base64.b64encode(file).decode()
        return number

    def answer(self, path: str, login: str) -> tuple[int, dict[str, Any]]:
        self.asked.append(path)
        if self.broken:
            return 500, {"error_code": 50001}
        if self.login and login != f"Basic {base64.b64encode(self.login.encode()).decode()}":
            return 401, {"error_code": 401}
        path, _, query = path.partition("?")
        match path.strip("/").split("/"):
            case ["schemas", "ids", _] if self.late:
                self.late -= 1
            case ["schemas", "ids", number] if int(number) in self.schemas:
                return 200, self._told(int(number), query)
            case ["subjects", subject, "versions", "latest" | "1"] if subject in self.newest:
                number = self.newest[subject]
                told = self._told(number, query)
                return 200, {"subject": subject, "version": 1, "id": number, **told}
            case ["elsewhere", *_]:
                return 404, {"error_code": 404}
        return 404, {"error_code": 40403}

    def _told(self, number: int, query: str) -> dict[str, Any]:
        if query != "format=serialized" or self.texts_only:
            return self.schemas[number]
        return {**self.schemas[number], "schema": self.compiled[number]}


@contextmanager
def answering() -> Iterator[Server]:
    """A registry that nobody has asked anything yet."""
    registry = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, told = registry.answer(self.path, self.headers.get("Authorization", ""))
            body = json.dumps(told).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *values: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_port}"
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        forget()
        yield registry
        server.shutdown()
        serving.join()


def framed(number: int, value: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + value
