"""The names that a server of a run goes by.

A page from elsewhere whose name was rebound to this machine reaches our servers, but asks for its own name:
who answers to none but these tells it nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
WEB_PORT = 80
"""Browsers leave it out."""


def hosts_of(host: str, port: int, names: Iterable[str] = ()) -> frozenset[str]:
    """Host headers to answer to: loopback, the address that is listened on, and the names that were given."""
    own = {*LOOPBACK, in_address(host)}
    bare = own if port == WEB_PORT else set()
    return frozenset({f"{name}:{port}" for name in own} | bare | named(port, names))


def named(port: int, names: Iterable[str]) -> frozenset[str]:
    """Host headers for the names that were given: as they are, as a proxy passes them on, and with the port."""
    given = {in_address(name) for name in names}
    return frozenset(given | {f"{name}:{port}" for name in given if not _has_port(name)})


def in_address(host: str) -> str:
    """A name or an address as it stands in a URL."""
    return f"[{host}]".lower() if host.count(":") > 1 and host[0] != "[" else host.lower()


def _has_port(name: str) -> bool:
    return ":" in name.rpartition("]")[2]
