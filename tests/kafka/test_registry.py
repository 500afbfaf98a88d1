"""Messages whose schemas a registry knows, on a real HTTP server that speaks the registry's API."""

from __future__ import annotations

import json

import pytest
from schema_server import Server, framed
from test_source import ALL, AVRO, avro, of, refused
from topics import Topics, as_json

from anabranch.errors import SourceError
from helpers import Stage, source_metrics

LOGIN = "reader:open sesame"
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


def test_json_with_its_schema_number_tells_its_columns(
    stage: Stage, topics: Topics, registry: Server
) -> None:
    topic = topics.make()
    number = registry.register(f"{topic}-value", {"type": "object"}, "JSON")
    topics.send(topic, [b"plain", *(framed(number, value) for value in as_json(ALL))])
    options = of(topics, topic, registry=registry.url, schema=None)
    stage.finish(stage.session(**options, on_bad="dead-letter"), dead_letter=stage.dead)
    assert stage.results() == stage.expected(ALL)


def test_a_registry_that_learns_of_a_schema_after_its_messages(
    stage: Stage, topics: Topics, registry: Server
) -> None:
    topic = topics.make()
    number = registry.register(f"{topic}-value", {"type": "object"}, "JSON")
    topics.send(topic, [framed(number, value) for value in as_json(ALL)])
    registry.late = 2
    session = stage.session(**of(topics, topic, registry=registry.url), on_bad="dead-letter")
    run = stage.finish(session, dead_letter=stage.dead)
    assert source_metrics(run)["badRowsTotal"] == 0
    assert stage.results() == stage.expected(ALL)


@pytest.mark.parametrize(
    "given",
    [{}, {"format": "avro", "value_schema": json.dumps(AVRO)}, {"format": "avro", "schema": None}],
)
def test_an_address_that_is_no_registry(
    topics: Topics, registry: Server, given: dict[str, object]
) -> None:
    """Its 404 does not say that there is no such schema."""
    told = refused(topics, "t", registry=f"{registry.url}/elsewhere", **given)
    assert "answered 404, and not as a schema registry does" in told


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
    assert "could not be asked" in refused(topics, topic, **given), "though nothing is to be told"
    registry.broken = False
    session = stage.session(**of(topics, topic, **given), on_bad="dead-letter")
    registry.broken = True
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
