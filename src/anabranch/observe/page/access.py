"""Who may ask the page what: every request passes here before anything else looks at it.

In this order: the Host is one of ours (a name rebound to loopback is not), the method is allowed, the Origin
is ours, the token is right, the client is not too fast. Whoever has the token shares no budget with strangers
of the same address, who else could keep the owner out. Answers carry headers that allow a browser nothing
but our own files. What may be asked for at all is in `server.py`.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = ("GET", "HEAD", "POST")
LONGEST_QUERY = 512
LONGEST_BODY, LONGEST_HEADERS = 8 * 1024, 16 * 1024
RATE, BURST = 40.0, 160.0
"""Requests of one client in a second, and at once."""
TRIES, TRY_SECONDS = 10, 60.0
"""Wrong tokens of one client, and for how long they count."""
MOST_CLIENTS = 1_000
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


@dataclass
class Access:
    """The token of a page, the names it goes by, and how often its clients have asked."""

    hosts: frozenset[str]
    """Host headers that are ours, with the port."""
    cookie: str
    named: frozenset[str] = frozenset()
    """Those of them that were given: a proxy with TLS may stand before them."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    clock: Callable[[], float] = time.monotonic
    _asked: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _failed: OrderedDict[str, list[float]] = field(default_factory=OrderedDict)

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def refusal(self, scope: Scope) -> Response | None:
        """What to answer instead; None if the request may go on."""
        headers = Headers(scope=scope)
        if len(headers.getlist("host")) != 1 or headers["host"].lower() not in self.hosts:
            return PlainTextResponse("This page goes by another name.", 421)
        if scope["method"] not in METHODS:
            return PlainTextResponse("This is not allowed.", 405, {"allow": ", ".join(METHODS)})
        if not self._same_origin(headers, scope["method"]):
            return PlainTextResponse("Only this page itself may ask.", 403)
        if len(scope["query_string"]) > LONGEST_QUERY or len(scope["raw_path"]) > LONGEST_QUERY:
            return PlainTextResponse("The address is too long.", 414)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > LONGEST_HEADERS:
            return PlainTextResponse("The headers are too long.", 431)
        client = scope["client"][0] if scope.get("client") else ""
        opened = self._opened(scope)
        given = self._given(headers)
        known = opened is not None or (given is not None and self.is_token(given))
        if not self._slow_enough(f"known {client}" if known else client):
            return PlainTextResponse("Too many requests.", 429, {"retry-after": "2"})
        return opened if known else self._stranger(scope, given, client)

    def _same_origin(self, headers: Headers, method: str) -> bool:
        """Whether a browser says that our own page asks; programs say nothing, and may only look."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is None:
            told = method != "POST" or headers.get("authorization") is not None
        else:
            scheme, _, host = origin.lower().partition("://")
            # A proxy with TLS may pass on the browser's Host or its own
            proxied = scheme == "https" and host in self.named
            told = proxied or (scheme == "http" and host == headers["host"].lower())
        # A link from elsewhere may open the page, but nothing may be loaded into other pages
        opened = site == "cross-site" and headers.get("sec-fetch-mode") == "navigate"
        return told and (site in (None, "same-origin", "none") or (opened and method == "GET"))

    def _slow_enough(self, client: str) -> bool:
        now = self.clock()
        left, then = self._asked.pop(client, (BURST, now))
        left = min(BURST, left + (now - then) * RATE)
        self._asked[client] = (max(0.0, left - 1), now)
        while len(self._asked) > MOST_CLIENTS:
            self._asked.popitem(last=False)
        return left >= 1

    def _opened(self, scope: Scope) -> Response | None:
        """The answer to the first address, which has the token; None for all others."""
        query = _query(scope)
        first = query.get("token", [""])[0]
        asked = first and scope["path"] == "/" and scope["method"] == "GET"
        if not asked or not self.is_token(first):
            return None
        # From here on the token is in a cookie that no script reads, and in no address
        rest = urlencode({name: some[0] for name, some in query.items() if name != "token"})
        answer = RedirectResponse(f"/?{rest}" if rest else "/", 303)
        answer.set_cookie(
            self.cookie, self.token, httponly=True, samesite="strict", path="/", max_age=86_400
        )
        return answer

    def _stranger(self, scope: Scope, given: str | None, client: str) -> Response:
        """What those hear who do not have the token."""
        if self._barred(client):
            return PlainTextResponse("Too many wrong tokens.", 429, {"retry-after": "60"})
        if given is not None or _query(scope).get("token", [""])[0]:
            self._fail(client)
        return PlainTextResponse(
            "This page wants its token: open the address that the run has printed.", 401
        )

    def _given(self, headers: Headers) -> str | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return token.strip()
        try:
            known = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return None
        return None if known is None else known.value

    def _fail(self, client: str) -> None:
        self._failed.setdefault(client, []).append(self.clock())
        while len(self._failed) > MOST_CLIENTS:
            self._failed.popitem(last=False)

    def _barred(self, client: str) -> bool:
        since = self.clock() - TRY_SECONDS
        recent = [then for then in self._failed.get(client, ()) if then > since][-TRIES:]
        if recent:
            self._failed[client] = recent
        else:
            self._failed.pop(client, None)
        return len(recent) >= TRIES


def _query(scope: Scope) -> dict[str, list[str]]:
    return parse_qs(scope["query_string"].decode("latin-1"))


class Guarded:
    """An application behind an `Access`."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here is asked for through sockets

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = with_headers(message["headers"])
            await send(message)

        refused = self._access.refusal(scope)
        await (refused or self._app)(scope, receive, guarded)


def with_headers(given: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Headers with those that allow a browser nothing but our own files."""
    kept = [(name, value) for name, value in given if name.decode().lower() not in HEADERS]
    return kept + [(name.encode(), value.encode()) for name, value in HEADERS.items()]
