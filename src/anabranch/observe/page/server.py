"""The page's server: a few addresses, none of which is a path, behind `access.py`, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from importlib import resources
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from anabranch.errors import AnabranchError, RunError, SettingsError
from anabranch.observe.hosts import EVERYWHERE, checked_names, has_port, hosts_of, in_address, named
from anabranch.observe.page.access import LONGEST_BODY, Access, Guarded
from anabranch.observe.page.connections import ImpatientProtocol
from anabranch.observe.page.control import Control
from anabranch.observe.page.telling import detail, older, since, whole
from anabranch.observe.story import Story

PAUSE = 0.25
"""Seconds between two messages to a page, at least."""
BYTES_PER_SECOND = 150_000
"""What a page is sent at most: figures of partitions come less often where there are many."""
HEARTBEAT = 10.0
SEND_SECONDS = 20.0
"""Who takes longer than this to read a message is dropped."""
MOST_STREAMS = 24
KINDS = {
    "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8", "svg": "image/svg+xml",
}  # fmt: skip
Samples = Callable[[str], dict[str, Any] | None]


class Page:
    """A page on one story; `url` is where to open it."""

    def __init__(
        self, story: Story, samples: Samples, *, live: bool, control: Control | None = None,
        host: str = "127.0.0.1", port: int = 0, names: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self.story, self.control = story, control
        given = checked_names(names)
        self._samples, self._live = samples, live
        self._socket = _listening(host, port)
        self.port = int(self._socket.getsockname()[1])
        self.access = Access(
            hosts_of(host, self.port, given), f"anabranch-{self.port}", named(self.port, given)
        )
        direct = (name for name in given if not has_port(name))
        self._shown = next(direct, "localhost") if host in EVERYWHERE else in_address(host)
        self._files = {
            path.name: path.read_bytes()
            for path in resources.files("anabranch.observe.page").joinpath("static").iterdir()
        }
        self._streams = 0
        config = uvicorn.Config(
            Guarded(self._app(), self.access), log_level="critical", access_log=False,
            server_header=False, lifespan="off", http=ImpatientProtocol, timeout_keep_alive=10,
            h11_max_incomplete_event_size=16_384, timeout_graceful_shutdown=1, ws="none",
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="anabranch-page", daemon=True
        )
        self._closing: list[Callable[[], None]] = []
        self._thread.start()

    @property
    def url(self) -> str:
        """The address to open, with the token."""
        return f"http://{self._shown}:{self.port}/?token={self.access.token}"

    def when_closed(self, function: Callable[[], None]) -> None:
        self._closing.append(function)

    def close(self) -> None:
        """Ends it."""
        self._server.should_exit = True
        self._thread.join(10)
        for function in self._closing:
            function()
        self._socket.close()

    def _app(self) -> Starlette:
        posts = [("/api/try", self._try), ("/api/do", self._do), ("/api/cancel", self._cancel)]
        return Starlette(
            routes=[
                Route("/", self._index),
                Route("/static/{name}", self._static),
                Route("/api/state", self._state),
                Route("/api/stream", self._stream),
                Route("/api/epoch/{number:int}", self._epoch),
                Route("/api/decisions", self._decisions),
                Route("/api/results/{query}", self._results),
                *(Route(path, function, methods=["POST"]) for path, function in posts),
            ]
        )

    def _file(self, name: str) -> Response:
        data = self._files.get(name)
        if data is None:
            return PlainTextResponse("There is no such file.", 404)
        return Response(data, media_type=KINDS.get(name.rsplit(".", 1)[-1], "text/plain"))

    async def _index(self, request: Request) -> Response:
        return self._file("index.html")

    async def _static(self, request: Request) -> Response:
        return self._file(request.path_params["name"])

    async def _state(self, request: Request) -> Response:
        return _json(
            await run_in_threadpool(whole, self.story, self.control is not None, self._live)
        )

    async def _epoch(self, request: Request) -> Response:
        with self.story.lock:
            known = self.story.details.get(request.path_params["number"])
        if known is None:
            return PlainTextResponse("Nothing is known of this epoch any more.", 404)
        return _json(await run_in_threadpool(detail, known))

    async def _decisions(self, request: Request) -> Response:
        try:
            before, count = (
                int(request.query_params.get(n, d)) for n, d in (("before", 2**53), ("count", 100))
            )
        except ValueError:
            return PlainTextResponse("Expected whole numbers.", 400)
        return _json(older(self.story, before, max(0, count)))

    async def _results(self, request: Request) -> Response:
        started, query = self.story.started, request.path_params["query"]
        outputs = started.plan["outputs"] if started is not None else ()
        if query not in {one["query"] for one in outputs}:
            return PlainTextResponse("There is no such query.", 404)
        return _json(await run_in_threadpool(self._samples, query))

    async def _stream(self, request: Request) -> Response:
        if self._streams >= MOST_STREAMS:
            return PlainTextResponse("Too many pages are open.", 503)
        try:
            version = int(request.query_params.get("after", "-1"))
        except ValueError:
            return PlainTextResponse("Expected a whole number.", 400)
        return _Events(self._messages(version), media_type="text/event-stream")

    async def _messages(self, version: int) -> AsyncIterator[bytes]:
        self._streams += 1
        try:
            spoken = time.monotonic()
            while not self._server.should_exit:
                if self.story.version != version:
                    version, message = await run_in_threadpool(self._news, version)
                    yield message
                    spoken = time.monotonic()
                    await asyncio.sleep(max(PAUSE, len(message) / BYTES_PER_SECOND))
                elif time.monotonic() - spoken > HEARTBEAT:
                    yield b": still here\n\n"
                    spoken = time.monotonic()
                else:
                    await asyncio.sleep(PAUSE)
        finally:
            self._streams -= 1

    def _news(self, version: int) -> tuple[int, bytes]:
        with self.story.lock:
            news, newest = since(self.story, version), self.story.newest
            if news["series"] and newest is not None:
                news["detail"] = detail(newest)
            if self.control is not None:
                news["commands"] = list(self.control.done)
        return news["version"], b"data: " + json.dumps(news).encode() + b"\n\n"

    async def _try(self, request: Request) -> Response:
        return await self._command(
            request,
            lambda control, asked: control.try_out(asked.get("command"), asked.get("arguments")),
        )

    async def _do(self, request: Request) -> Response:
        return await self._command(request, lambda control, asked: control.do(asked.get("ticket")))

    async def _cancel(self, request: Request) -> Response:
        return await self._command(
            request, lambda control, asked: control.cancel(asked.get("ticket"))
        )

    async def _command(
        self, request: Request, function: Callable[[Control, dict[str, Any]], Any]
    ) -> Response:
        if self.control is None:
            return PlainTextResponse("This page only shows: start it with --page-control.", 403)
        if request.headers.get("content-type", "").split(";")[0] != "application/json":
            return PlainTextResponse("Expected JSON.", 415)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LONGEST_BODY:
                return PlainTextResponse("That is too long.", 413)
        try:
            asked = json.loads(body)
            if not isinstance(asked, dict):
                raise RunError("Expected a JSON object.")
            done = await run_in_threadpool(functools.partial(function, self.control, asked))
        except (ValueError, RecursionError):
            return PlainTextResponse("This is no JSON.", 400)
        except AnabranchError as error:
            return JSONResponse({"error": str(error)}, 409)
        return _json(done)


class _Events(StreamingResponse):
    """A stream of messages that drops who does not read them."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def patient(message: Any) -> None:
            await asyncio.wait_for(send(message), SEND_SECONDS)

        with contextlib.suppress(TimeoutError):
            await super().__call__(scope, receive, patient)


def _json(value: Any) -> Response:
    return Response(json.dumps(value), media_type="application/json")


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)  # who comes before the server is ready waits
    except OSError as error:
        listening.close()
        raise SettingsError(
            f"The page cannot be opened on {host}, port {port}: {error.strerror}. Give another port, or 0 "
            "for any that is free."
        ) from error
    return listening
