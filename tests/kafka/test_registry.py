"""Messages whose schemas a registry knows, on a real HTTP server that speaks the registry's API."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from test_source import ALL, AVRO, avro, of, refused
from topics import Topics, as_json

from anabranch.errors import SourceError
from anabranch.sources.kafka.registry import schema_numbered
from helpers import Stage, source_metrics

LOGIN = "reader:open sesame"


@dataclass
class Server:
    """A registry: schemas by number, the newest number of each subject, what it was asked."""

    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    login: str = ""
    broken: bool = False
    url: str = ""

    def register(self, subject: str, schema: dict[str, Any], kind: str = "AVRO") -> int:
        number = len(self.schemas) + 1
        # As the real one: the kind is left out where it is Avro
        told = {} if kind == "AVRO" else {"schemaType": kind}
        self.schemas[number] = {"schema": json.dumps(schema), **told}
        self.newest[subject] = number
        return number

    def answer(self, path: str, login: str) -> tuple[int, dict[str, Any]]:
        self.asked.append(path)
        if self.broken:
            return 500, {"error_code": 50001}
        if self.login and login != f"Basic {base64.b64encode(self.login.encode()).decode()}":
            return 401, {"error_code": 401}
        match path.strip("/").split("/"):
            case ["schemas", "ids", number] if int(number) in self.schemas:
                return 200, self.schemas[int(number)]
            case ["subjects", subject, "versions", "latest"] if subject in self.newest:
                number = self.newest[subject]
                return 200, {"subject": subject, "version": 1, "id": number, **self.schemas[number]}
        return 404, {"error_code": 40403}


@pytest.fixture
def registry() -> Iterator[Server]:
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
        schema_numbered.cache_clear()
        yield registry
        server.shutdown()
        serving.join()


def framed(number: int, value: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + value


OLD = {**AVRO, "fields": [AVRO["fields"][0], AVRO["fields"][2]]}
"""The schema before there was a key."""


def test_avro_of_several_schemas(stage: Stage, topics: Topics, registry: Server) -> None:
    """Each message is read with the schema that it was written with; what one does not have is NULL."""
    topic = topics.make()
    old = registry.register(f"{topic}-value", OLD)
    new = registry.register(f"{topic}-value", AVRO)
    keyless = [at for at, key in enumerate(ALL["k"]) if key is None]
    messages = [
        framed(old, avro({"time": row["time"], "v": row["v"]}, OLD))
        if at in keyless
        else framed(new, avro(row))
        for at, row in enumerate(ALL.to_dicts())
    ]
    topics.send(topic, messages)
    options = of(topics, topic, format="avro", schema=None, registry=registry.url)
    stage.finish(stage.session(**options))
    assert stage.results() == stage.expected(ALL)
    assert registry.asked.count(f"/schemas/ids/{old}") == 1
    assert registry.asked.count(f"/schemas/ids/{new}") == 1


def test_json_with_its_schema_number(stage: Stage, topics: Topics, registry: Server) -> None:
    topic = topics.make()
    number = registry.register(f"{topic}-value", {"type": "object"}, "JSON")
    topics.send(topic, [framed(number, value) for value in as_json(ALL)])
    stage.finish(stage.session(**of(topics, topic, registry=registry.url)))
    assert stage.results() == stage.expected(ALL)


def test_messages_that_the_registry_does_not_know(
    stage: Stage, topics: Topics, registry: Server
) -> None:
    topic = topics.make()
    number = registry.register(f"{topic}-value", AVRO)
    json_schema = registry.register("another", {"type": "object"}, "JSON")
    wrong = {**AVRO, "fields": [*AVRO["fields"][:2], {"name": "v", "type": "string"}]}
    changed = registry.register(f"{topic}-value", wrong)
    registry.newest[f"{topic}-value"] = number
    good = [framed(number, avro(row)) for row in ALL.to_dicts()]
    bad = [
        framed(99, avro(ALL.row(0, named=True))), framed(json_schema, b"{}"), b"\0\0", b"plain",
        framed(changed, avro({"time": 1, "k": "a", "v": "text"}, wrong)),
    ]  # fmt: skip
    topics.send(topic, [*good[:20], *bad, *good[20:]])
    options = of(topics, topic, format="avro", schema=None, registry=registry.url)
    run = stage.finish(stage.session(**options, on_bad="dead-letter"), dead_letter=stage.dead)
    assert stage.results() == stage.expected(ALL)
    assert source_metrics(run)["badRowsTotal"] == len(bad)


def test_a_registry_that_does_not_answer(stage: Stage, topics: Topics, registry: Server) -> None:
    """That is no bad message: the epoch is not counted, and comes again."""
    topic = topics.make()
    number = registry.register(f"{topic}-value", AVRO)
    topics.send(topic, [framed(number, avro(row)) for row in ALL.to_dicts()])
    given = {"format": "avro", "schema": None, "registry": registry.url}
    registry.broken = True
    assert "could not be asked" in refused(topics, topic, **given)
    given |= {"value_schema": json.dumps(AVRO)}
    session = stage.session(**of(topics, topic, **given), on_bad="dead-letter")
    assert "answered 500" in stage.refused(SourceError, session, dead_letter=stage.dead)
    registry.broken = False
    stage.finish(stage.session(**of(topics, topic, **given)))
    assert stage.results() == stage.expected(ALL)


def test_the_login_is_told_by_its_place(
    topics: Topics, registry: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.login = LOGIN
    given = {"format": "avro", "schema": None, "registry": registry.url}
    assert "sesame" not in refused(topics, "t", **given, registry_login=LOGIN)
    assert "answered 401" in refused(topics, "t", **given)
    monkeypatch.setenv("REGISTRY", LOGIN)
    told = refused(topics, "t", **given, registry_login="env:REGISTRY")
    assert "has no subject 't-value'" in told
    assert "sesame" not in told
