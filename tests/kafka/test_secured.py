"""A broker that asks who comes: TLS with certificates made here, SASL by PLAIN and by SCRAM.

Whatever happens, the passwords are nowhere: not in the checkpoint with its manifests and journal, not in
events, not on the page, not in messages or logs.
"""

from __future__ import annotations

import http.client
import logging
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from test_source import ALL, of, refused
from topics import Topics, as_json

from anabranch.errors import RunError, SourceError
from anabranch.events.event import RunEvent
from anabranch.observe.page.opening import page_of_run
from anabranch.testing.broker import free_port
from helpers import Stage
from kafka_broker import serving

PASSWORD, WRONG = "open-sesame-4711", "shut-sesame-1147"
SECURED = """
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}},SASL_SSL://127.0.0.1:{port}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},SASL_SSL://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule \
required user_reader="{password}";
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.location={folder}/server.pem
"""


class Secured(NamedTuple):
    """A broker with a second door: for tests to look through the first, without a guard."""

    topics: Topics
    servers: str
    folder: Path

    def login(self, mechanism: str = "SCRAM-SHA-512", ca: str = "ca.crt") -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.username": "reader",
            "sasl.password": "env:KAFKA_PASSWORD", "ssl.ca.location": str(self.folder / ca),
        }  # fmt: skip


def make_certificates(folder: Path) -> None:
    """A certificate authority, a server of this machine, and an authority that nobody knows."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    for name in ("ca", "other"):
        openssl(
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-keyout", f"{name}.key", "-out", f"{name}.crt",
        )  # fmt: skip
    openssl(
        "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-keyout", "server.key",
        "-out", "server.csr",
    )  # fmt: skip
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl(
        "x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
        "-days", "2", "-extfile", "names", "-out", "server.crt",
    )  # fmt: skip
    both = (folder / "server.key").read_text() + (folder / "server.crt").read_text()
    (folder / "server.pem").write_text(both)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    make_certificates(folder)
    port = free_port()
    more = SECURED.format(port=port, folder=folder, password=PASSWORD)
    with serving(folder, more) as broker:
        admin = AdminClient({"bootstrap.servers": broker.servers})
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        wanted = UserScramCredentialUpsertion("reader", credential, PASSWORD.encode())
        admin.alter_user_scram_credentials([wanted])["reader"].result()
        yield Secured(Topics(broker.servers), f"127.0.0.1:{port}", folder)


def nowhere(secret: str, folder: Path, *texts: str) -> None:
    """Refuses a secret in any file of a folder, and in these texts."""
    for file in folder.rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file
    for text in texts:
        assert secret not in text


def page_of(run: Any) -> str:
    page = page_of_run(run)
    try:
        connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
        headers = {"Authorization": f"Bearer {page.access.token}"}
        connection.request("GET", "/api/state", headers=headers)
        return connection.getresponse().read().decode()
    finally:
        page.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_from_topic_to_topic(
    secured: Secured, stage: Stage, mechanism: str, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    monkeypatch.setattr(logging.getLogger("anabranch.kafka"), "propagate", True)
    caplog.set_level(logging.DEBUG)
    topics, login = secured.topics, secured.login(mechanism)
    source, target = topics.make(2), topics.make()
    for number in range(2):
        topics.send(source, as_json(ALL[number::2]), number)
    options = of(topics, source, kafka=secured.servers, kafka_options=login, lateness=1000)
    session = stage.session(**options)
    heard: list[RunEvent] = []
    session.listen(heard.append)
    sink = {"kafka": secured.servers, "topic": target, "kafka_options": login}
    run = stage.finish(session, sinks={"sums": sink})
    found = sorted((tuple(row.values()) for row in topics.rows(target)), key=repr)
    assert found == stage.expected(ALL)
    told = [repr(heard), repr(run.status), repr(run.recent_progress), run.explain(verbose=True)]
    assert heard
    nowhere(PASSWORD, stage.root, page_of(run), caplog.text, *told, *capfd.readouterr())


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password(
    secured: Secured, stage: Stage, mechanism: str, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """It is said at once, by the stream and by the sink, and not what it was."""
    monkeypatch.setenv("KAFKA_PASSWORD", WRONG)
    monkeypatch.setattr(logging.getLogger("anabranch.kafka"), "propagate", True)
    caplog.set_level(logging.DEBUG)
    topics = secured.topics
    source = topics.make()
    topics.send(source, as_json(ALL))
    given = {"kafka": secured.servers, "kafka_options": secured.login(mechanism)}
    at_look = refused(topics, source, schema=None, **given)
    at_start = stage.refused(SourceError, stage.session(**of(topics, source, **given)))
    stage.write(0)
    sink = {**given, "topic": source, "kafka_timeout": 3}
    at_sink = stage.refused(RunError, sinks={"sums": sink})
    for told in (at_look, at_start, at_sink):
        assert "Authentication failed" in told or "SASL authentication error" in told
        assert "kafka_options" in told
    nowhere(WRONG, stage.root, at_look, at_start, at_sink, caplog.text, *capfd.readouterr())


def test_an_unknown_authority(
    secured: Secured, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    given = {"kafka": secured.servers, "kafka_options": secured.login(ca="other.crt")}
    told = stage.refused(SourceError, stage.session(**of(secured.topics, "t", **given)))
    assert "certificate" in told
    assert PASSWORD not in told
