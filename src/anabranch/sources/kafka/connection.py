"""How a Kafka cluster is reached: its servers, and those settings of the client that a user may give.

Credentials are never values here: they are given as `env:NAME` or `file:PATH` and looked up by the process
that connects. So they cannot get into manifests, orders, logs or messages. Settings that run programs,
load code or would change what is read are not on the list.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import SettingsError, suggest

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

SECRET = (
    "sasl.password", "sasl.oauthbearer.client.secret", "ssl.key.password", "ssl.keystore.password",
)  # fmt: skip
ALLOWED = (
    *SECRET, "security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username",
    "sasl.kerberos.service.name", "sasl.kerberos.principal", "sasl.kerberos.keytab",
    "sasl.oauthbearer.method", "sasl.oauthbearer.client.id", "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.extensions", "ssl.ca.location",
    "ssl.certificate.location", "ssl.key.location", "ssl.keystore.location", "ssl.cipher.suites",
    "ssl.endpoint.identification.algorithm", "enable.ssl.certificate.verification", "client.id",
    "client.rack", "client.dns.lookup", "broker.address.family", "socket.timeout.ms",
    "socket.keepalive.enable", "message.max.bytes", "fetch.max.bytes", "fetch.message.max.bytes",
    "fetch.min.bytes", "fetch.wait.max.ms", "queued.max.messages.kbytes", "compression.type",
    "linger.ms", "batch.size", "transaction.timeout.ms",
)  # fmt: skip
_LOG = logging.getLogger("anabranch.kafka")
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False


@dataclass(frozen=True)
class Connection:
    """The servers of a cluster, and how to log in. Equal ones may share clients."""

    servers: str
    options: tuple[tuple[str, str], ...] = ()

    def config(self, troubles: Troubles, **more: Any) -> dict[str, Any]:
        """What a client is made with, credentials included: for nobody else's eyes."""
        given = {
            key: looked_up(key, value) if key in SECRET else value for key, value in self.options
        }
        return {
            "bootstrap.servers": self.servers,
            "client.id": "anabranch",
            "error_cb": troubles.met,
            # What the library has to say goes to the log that a program may listen to, not to the terminal
            "logger": _LOG,
            **given,
            **more,
        }


class Troubles:
    """What a client has complained of lately: an answer that does not come does not say why."""

    def __init__(self) -> None:
        self._last: deque[str] = deque(maxlen=1)

    def met(self, error: KafkaError) -> None:
        # It follows on every cause, such as a wrong password, and says less
        if error.name() == "_ALL_BROKERS_DOWN" and self._last:
            return
        self._last.append(f"{error.name()}: {error.str()}")

    def words(self, error: BaseException) -> str:
        """An error in words, with what was met before it."""
        told = error.args[0] if error.args else error
        text = told.str() if hasattr(told, "str") else str(told)
        return "; ".join([text.rstrip("."), *(last.rstrip(".") for last in self._last)])


def read_connection(what: str, servers: Any, options: Mapping[str, Any] | str | None) -> Connection:
    """The connection that a user asks for; raises SettingsError for what is not allowed."""
    if not isinstance(servers, str) or not servers.strip() or "@" in servers or "://" in servers:
        given = isinstance(servers, str) and bool(servers)
        shown = "something with credentials or a scheme in it" if given else repr(servers)
        raise SettingsError(
            f"{what}: expected the servers of a Kafka cluster, as 'host:9092' or 'host1:9092,host2:9092', "
            "got "
            f"{shown}. Credentials go into kafka_options."
        )
    found: dict[str, str] = {}
    for key, value in _pairs(what, options).items():
        if key not in ALLOWED:
            raise SettingsError(
                f"{what}: '{key}' is not a setting of the Kafka client that can be given here."
                f"{suggest(key, ALLOWED)}"
            )
        if isinstance(value, bool):
            value = str(value).lower()
        if key in SECRET and not str(value).startswith(("env:", "file:")):
            # Not even shortened: it may be the password itself
            raise SettingsError(
                f"{what}: '{key}' must say where the credential is, 'env:NAME' or 'file:PATH', not what it "
                "is: each process that connects looks it up for itself."
            )
        found[key] = str(value)
    return Connection(servers.strip(), tuple(sorted(found.items())))


def _pairs(what: str, options: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """Settings as a mapping, or as a text: 'security.protocol=SASL_SSL, sasl.username=me'."""
    if options is None:
        return {}
    if isinstance(options, Mapping):
        return {str(key): value for key, value in options.items()}
    found = {}
    for part in filter(None, (one.strip() for one in options.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise SettingsError(
                f"{what}: kafka_options has a part without '='; expected name=value, name=value."
            )
        found[key.strip()] = value.strip()
    return found


def looked_up(key: str, value: str) -> str:
    """The credential that is where `value` says."""
    kind, _, where = value.partition(":")
    try:
        return os.environ[where] if kind == "env" else Path(where).read_text().rstrip("\n")
    except (KeyError, OSError) as error:
        missing = "is not set" if kind == "env" else f"cannot be read ({type(error).__name__})"
        raise SettingsError(
            f"The credential '{key}' should be in {value}, which {missing} in this process. "
            "Set it for the driver and, on a cluster, for the executors."
        ) from None


def import_client(what: str) -> Any:
    """The client library; raises SettingsError if it is not installed."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise SettingsError(
            f"{what} needs the Kafka client: pip install 'anabranch[kafka]'."
        ) from error
    return confluent_kafka
