"""The names that a server of a run goes by.

A page from elsewhere whose name was rebound to this machine reaches our servers, but asks for its own name:
who answers to none but these tells it nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from anabranch.errors import SettingsError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
EVERYWHERE = ("0.0.0.0", "::")
WEB_PORT = 80
"""Browsers leave it out."""
_NAME = re.compile(r"([\w.-]+|\[[\da-f:.]+\])(:\d{1,5})?", re.ASCII)


def checked_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names that were given, as they stand in a URL; raises SettingsError for what is none."""
    found = tuple(in_address(name) for name in names)
    for name in found:
        if not _NAME.fullmatch(name):
            raise SettingsError(
                "Expected the name of a machine, with a port or without, such as db1.example; got "
                f"{name!r:.100}."
            )
    return found


def hosts_of(host: str, port: int, names: Iterable[str] = ()) -> frozenset[str]:
    """Host headers to answer to: loopback, the address that is listened on, and names that were given."""
    own = {*LOOPBACK, in_address(host)}
    bare = own if port == WEB_PORT else set()
    return frozenset({f"{name}:{port}" for name in own} | bare | named(port, names))


def named(port: int, names: Iterable[str]) -> frozenset[str]:
    """Host headers for names that were given: as they are, as a proxy passes them on, and with the port."""
    given = set(names)
    return frozenset(given | {f"{name}:{port}" for name in given if not has_port(name)})


def in_address(host: str) -> str:
    """A name or an address as it stands in a URL."""
    return f"[{host}]".lower() if host.count(":") > 1 and host[0] != "[" else host.lower()


def has_port(name: str) -> bool:
    return ":" in name.rpartition("]")[2]
