"""The page as an attacker meets it: every way in that was thought of, each tried over real HTTP."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from anabranch import Session, col, count
from anabranch.engine.run import Run
from anabranch.errors import SettingsError
from anabranch.observe.page import access, connections
from anabranch.observe.page.opening import page_of_run
from anabranch.observe.page.server import Page

Answer = tuple[int, dict[str, str], str]


@pytest.fixture(scope="module")
def run() -> Run:
    session = Session.in_process(sites=2, settings={"max_rows_per_epoch": 1_000})
    session.stream("tcp", generator="packets", rows=5_000, ordered="time")
    flows = session.from_stream("tcp").group_by((col("time") // 60).alias("tb"), "srcIP")
    session.query("flows", flows.agg(count().alias("cnt")))
    started = session.start(sinks={"flows": "memory"})
    started.await_termination()
    return started


@pytest.fixture
def page(run: Run) -> Iterator[Page]:
    opened = page_of_run(run)
    yield opened
    opened.close()


@pytest.fixture
def steered(run: Run) -> Iterator[Page]:
    opened = page_of_run(run, control=True)
    yield opened
    opened.close()


def ask(
    page: Page, path: str = "/api/state", method: str = "GET", body: bytes | None = None,
    token: str | None = "", **headers: str | None,
) -> Answer:  # fmt: skip
    """One request; by default with the token and as our own page would send it."""
    known = {"Host": f"127.0.0.1:{page.port}"}
    if token is not None:
        known["Cookie"] = f"{page.access.cookie}={token or page.access.token}"
    for name, value in headers.items():
        known[name.replace("_", "-")] = value  # type: ignore[assignment]
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in known.items():
            if value is not None:
                connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, text
    finally:
        connection.close()


def post(page: Page, path: str, value: Any, **headers: str | None) -> Answer:
    ours: dict[str, str | None] = {"Origin": f"http://127.0.0.1:{page.port}"}
    ours |= {"Content_Type": "application/json"}
    return ask(page, path, "POST", json.dumps(value).encode(), **{**ours, **headers})


def test_with_its_token_the_page_answers(page: Page) -> None:
    status, _, text = ask(page)
    assert status == 200
    assert json.loads(text)["status"]["epochs"] == 5


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api/state",
        "/api/stream",
        "/api/epoch/1",
        "/api/results/flows",
        "/static/main.js",
        "/no",
    ],
)
def test_nothing_is_told_without_a_token(page: Page, path: str) -> None:
    status, _, text = ask(page, path, token=None)
    assert status == 401
    assert "token" in text
    assert page.access.token not in text


def test_a_wrong_token_is_refused_whatever_its_length(page: Page) -> None:
    token = page.access.token
    for wrong in (token[:-1], token + "x", token.swapcase(), "x", "é"):
        assert ask(page, token=None, Authorization=f"Bearer {wrong}")[0] == 401


def test_tokens_are_compared_in_constant_time(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    real = access.hmac.compare_digest
    monkeypatch.setattr(
        access.hmac, "compare_digest", lambda a, b: compared.append(1) or real(a, b)
    )
    ask(page, token="wrong")
    assert compared


def test_guessing_tokens_is_slowed_down_and_does_not_lock_out_the_owner(page: Page) -> None:
    now = page.access.clock()
    page.access.clock = lambda: now
    answers = [ask(page, token=f"guess-{number}")[0] for number in range(access.TRIES + 3)]
    assert answers[: access.TRIES] == [401] * access.TRIES
    assert answers[access.TRIES :] == [429] * 3
    assert ask(page)[0] == 200
    # Nor out of opening it for the first time
    assert ask(page, f"/?token={page.access.token}", token="stale")[0] == 303
    assert ask(page, "/?token=wrong", token=None)[0] == 429


def test_a_flood_without_the_token_does_not_slow_down_the_owner(page: Page) -> None:
    now = page.access.clock()
    page.access.clock = lambda: now
    answers = [ask(page, token=None)[0] for _ in range(int(access.BURST) + 5)]
    assert answers.count(429) == 5
    assert ask(page)[0] == 200
    assert ask(page, f"/?token={page.access.token}", token=None)[0] == 303


def test_the_first_address_gives_a_cookie_and_leaves_no_secret_in_the_second(page: Page) -> None:
    status, headers, _ = ask(page, f"/?token={page.access.token}", token=None)
    assert status == 303
    assert headers["location"] == "/"
    cookie = headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert headers["referrer-policy"] == "no-referrer"


def test_a_token_in_the_address_opens_nothing_but_the_page(page: Page) -> None:
    assert ask(page, f"/api/state?token={page.access.token}", token=None)[0] == 401


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1.evil.example:{port}",
        "",
    ],
)
def test_a_name_rebound_to_loopback_is_not_ours(page: Page, host: str) -> None:
    assert ask(page, Host=host.format(port=page.port))[0] == 421


def test_two_hosts_or_none_are_refused(page: Page) -> None:
    assert ask(page, Host=None)[0] in (400, 421)
    with socket.create_connection(("127.0.0.1", page.port), 30) as sent:
        host = f"Host: 127.0.0.1:{page.port}\r\n"
        sent.sendall(
            f"GET / HTTP/1.1\r\n{host}Host: evil.example\r\nConnection: close\r\n\r\n".encode()
        )
        assert sent.recv(100).split()[1] in (b"400", b"421")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"]
)
def test_other_origins_are_refused(page: Page, steered: Page, origin: str) -> None:
    assert ask(page, Origin=origin.format(port=page.port))[0] == 403
    asked = {"command": "rebalance", "arguments": {}}
    assert post(steered, "/api/try", asked, Origin=origin.format(port=steered.port))[0] == 403


@pytest.fixture
def elsewhere(run: Run) -> Iterator[Page]:
    """One for other machines, by a name and behind a proxy with TLS."""
    opened = page_of_run(
        run, control=True, host="0.0.0.0", names=["Db1.example", "proxy.example:8443"]
    )
    yield opened
    opened.close()


def test_other_machines_call_it_by_the_names_that_were_given(elsewhere: Page) -> None:
    port = elsewhere.port
    assert elsewhere.url.startswith(f"http://db1.example:{port}/?token=")
    for host in (f"db1.example:{port}", "DB1.example", "proxy.example:8443", f"localhost:{port}"):
        assert ask(elsewhere, Host=host)[0] == 200, host
    for host in ("evil.example", f"evil.example:{port}", "proxy.example", "db1.example:1"):
        assert ask(elsewhere, Host=host)[0] == 421, host
    for host in (f"db1.example:{port}", "db1.example"):
        assert ask(elsewhere, Host=host, Origin=f"http://{host}")[0] == 200, host


@pytest.mark.parametrize("host", ["db1.example", "proxy.example:8443", "127.0.0.1:{port}"])
def test_a_proxy_with_tls_may_stand_before_it(elsewhere: Page, host: str) -> None:
    """Whether it passes the Host of the browser on, or its own."""
    host, asked = host.format(port=elsewhere.port), {"command": "rebalance", "arguments": {}}
    for origin in ("https://db1.example", "https://Proxy.example:8443"):
        assert ask(elsewhere, Host=host, Origin=origin)[0] == 200, origin
        told = post(elsewhere, "/api/try", asked, Host=host, Origin=origin)
        assert told[0] == 409, "it is let in, and hears that the run has ended"
    for origin in (
        "https://evil.example",
        "https://proxy.example",
        f"https://127.0.0.1:{elsewhere.port}",
        "ftp://db1.example",
        "https://",
        "db1.example",
    ):
        assert ask(elsewhere, Host=host, Origin=origin)[0] == 403, origin
        told = post(elsewhere, "/api/try", asked, Host=host, Origin=origin)
        assert told[0] == 403, origin


@pytest.mark.parametrize("name", ["", "a b", "http://db1.example", "db1.example/x", "*"])
def test_what_is_no_name_is_refused(run: Run, name: str) -> None:
    with pytest.raises(SettingsError, match="name of a machine"):
        page_of_run(run, names=[name])


def test_a_form_of_another_page_cannot_command(steered: Page) -> None:
    asked = {"command": "rebalance", "arguments": {}}
    assert post(steered, "/api/try", asked, Origin=None)[0] == 403
    assert post(steered, "/api/try", asked, Sec_Fetch_Site="cross-site")[0] == 403
    assert post(steered, "/api/try", asked, Content_Type="text/plain")[0] == 415


def test_other_pages_cannot_load_what_we_tell(page: Page) -> None:
    assert ask(page, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
    _, headers, _ = ask(page, Origin=f"http://127.0.0.1:{page.port}")
    assert not [name for name in headers if name.startswith("access-control")]
    assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"]
)
def test_other_methods_are_refused(page: Page, method: str) -> None:
    assert ask(page, method=method)[0] in (400, 405)


def test_looking_is_not_done_by_post_nor_commanding_by_get(steered: Page) -> None:
    assert post(steered, "/api/state", {})[0] == 405
    assert ask(steered, "/api/try")[0] == 405


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py", "/static/..%2fserver.py", "/static/%2e%2e/server.py", "//etc/passwd",
        "/static/%2Fetc%2Fpasswd", "/static/..\\server.py", "/api/results/../../etc/passwd",
        "/api/results/%2Fetc%2Fpasswd", "/api/results/SELECT%201", "/api/epoch/-1", "/api/epoch/1e9",
        "/static/main.js%00.css",
    ],
)  # fmt: skip
def test_no_address_is_a_path_or_a_query(page: Page, path: str) -> None:
    status, _, text = ask(page, path)
    assert status == 404
    assert "root:" not in text
    assert "import" not in text


def test_a_page_that_only_shows_takes_no_commands(page: Page) -> None:
    status, _, text = post(page, "/api/try", {"command": "rebalance", "arguments": {}})
    assert status == 403
    assert "--page-control" in text


@pytest.mark.parametrize(
    "asked",
    [
        {}, [], {"command": "stop", "arguments": {}}, {"command": "__init__", "arguments": {}},
        {"command": ["move"], "arguments": {}}, {"command": "set_sites", "arguments": {"sites": "3"}},
        {"command": "set_sites", "arguments": {"sites": True}},
        {"command": "set_sites", "arguments": {"sites": -1}},
        {"command": "move", "arguments": {"subquery": "x" * 300, "partition": 0, "site": 0}},
        {"command": "rebalance", "arguments": {"more": 1}},
    ],
)  # fmt: skip
def test_what_is_no_command_is_refused(steered: Page, asked: Any) -> None:
    status, _, text = post(steered, "/api/try", asked)
    assert status == 409
    assert "ended" not in text, "refused for what it is, not because the run has ended"


def test_bodies_that_are_no_json_or_too_long_are_refused(steered: Page) -> None:
    sent = {"Origin": f"http://127.0.0.1:{steered.port}", "Content_Type": "application/json"}
    assert ask(steered, "/api/try", "POST", b"{", **sent)[0] == 400
    assert ask(steered, "/api/try", "POST", b"[" * 5_000, **sent)[0] == 400
    assert ask(steered, "/api/try", "POST", b" " * 20_000, **sent)[0] == 413


def test_addresses_and_headers_that_are_too_long_are_refused(page: Page) -> None:
    assert ask(page, "/?x=" + "y" * 2_000)[0] == 414
    assert ask(page, "/api/results/" + "y" * 2_000)[0] == 414
    try:
        status = ask(page, X_Long="y" * 40_000)[0]
    except (ConnectionError, http.client.HTTPException):
        status = 400  # it was hung up on
    assert status in (400, 431)
    assert ask(page)[0] == 200


def test_a_flood_is_slowed_down(page: Page) -> None:
    now = page.access.clock()
    page.access.clock = lambda: now
    answers = [ask(page, "/static/icon.svg")[0] for _ in range(int(access.BURST) + 5)]
    assert answers.count(429) == 5
    page.access.clock = lambda: now + 1
    assert ask(page, "/static/icon.svg")[0] == 200


def test_clients_that_send_or_read_slowly_do_not_stop_others(page: Page) -> None:
    slow = []
    for _ in range(8):
        half = socket.create_connection(("127.0.0.1", page.port), 30)
        half.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        slow.append(half)
    reading = socket.create_connection(("127.0.0.1", page.port), 30)
    cookie = f"Cookie: {page.access.cookie}={page.access.token}\r\n"
    reading.sendall(
        f"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n{cookie}\r\n".encode()
    )
    assert ask(page)[0] == 200
    for one in [*slow, reading]:
        one.close()


def test_connections_that_never_ask_do_not_stop_others(page: Page) -> None:
    """More than there may be, silent or in the middle of their first request."""
    silent = []
    for number in range(2 * connections.MOST_WAITING):
        silent.append(socket.create_connection(("127.0.0.1", page.port), 30))
        if number % 2:
            silent[-1].sendall(b"GET / HTTP/1.1\r\n")
    assert ask(page)[0] == 200
    for number in range(2):
        with contextlib.suppress(ConnectionResetError):
            assert silent[number].recv(100) == b"", "the first to come have gone"
    for one in silent:
        one.close()


def test_who_does_not_ask_in_time_is_hung_up_on(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    for sent in (b"", b"GET / HTTP/1.1\r\nHost: 127"):
        with socket.create_connection(("127.0.0.1", page.port), 5) as slow:
            slow.sendall(sent)
            assert slow.recv(100) == b""
    whole = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", page.port), 5) as slow:
        slow.sendall(whole + b"GET / HTTP/1.1\r\nHost: 127")
        answer = b""
        while part := slow.recv(10_000):
            answer += part
        assert answer.startswith(b"HTTP/1.1 401"), "answered, and then hung up on"
    # A stream is an answer that goes on
    cookie = f"Cookie: {page.access.cookie}={page.access.token}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", page.port), 5) as reading:
        reading.sendall(whole.replace(b"GET /", b"GET /api/stream")[:-2] + cookie)
        assert reading.recv(10) == b"HTTP/1.1 2"
        time.sleep(1)
        reading.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            while part := reading.recv(100_000):
                pass
        assert page._streams == 1


def test_more_streams_than_there_may_be_are_refused(page: Page) -> None:
    page._streams = 10_000
    assert ask(page, "/api/stream")[0] == 503


def test_a_browser_may_load_and_run_nothing_but_our_files(page: Page) -> None:
    for path, token in (
        ("/", ""),
        ("/static/main.js", ""),
        ("/api/state", ""),
        ("/", None),
        ("/no", ""),
    ):
        _, headers, _ = ask(page, path, token=token)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_the_page_itself_has_nothing_inline_and_nothing_from_elsewhere(page: Page) -> None:
    text = ask(page, "/")[2]
    assert "<script>" not in text
    assert "style=" not in text
    assert " on" + "click=" not in text
    for name, data in page._files.items():
        foreign = data.decode().replace("http://www.w3.org/", "")
        assert "http://" not in foreign, name
        assert "https://" not in foreign, name
        assert "innerHTML" not in foreign, name
        assert "eval(" not in foreign, name


def test_a_command_is_tried_first_and_its_ticket_is_good_once() -> None:
    # Nothing but the page moves anything
    settings = {"max_rows_per_epoch": 1_000, "policy": "none"}
    session = Session.in_process(sites=2, settings=settings)
    session.stream("tcp", generator="packets", rows=10_000_000, ordered="time")
    flows = session.from_stream("tcp").group_by((col("time") // 60).alias("tb"), "srcIP")
    session.query("flows", flows.agg(count().alias("cnt")))
    run = session.start(sinks={"flows": "memory"}, trigger=0.05)
    opened = page_of_run(run, control=True)
    try:
        first = run.partition_map("flows@1")
        other = 1 - first.sites[3]
        asked = {"subquery": "flows@1", "partition": first.starts[3], "site": other}
        until = time.monotonic() + 60
        while opened.story.newest is None:
            assert time.monotonic() < until, "no epoch came"
            time.sleep(0.02)
        status, _, text = post(opened, "/api/try", {"command": "move", "arguments": asked})
        assert status == 200
        tried = json.loads(text)
        assert f"goes to site {other}" in tried["effect"]
        assert run.partition_map("flows@1").sites == first.sites, "only tried"
        assert post(opened, "/api/do", {"ticket": tried["ticket"]})[0] == 200
        assert run.partition_map("flows@1").sites[3] == other
        assert post(opened, "/api/do", {"ticket": tried["ticket"]})[0] == 409, "sent again"
        cancelled = json.loads(
            post(opened, "/api/try", {"command": "rebalance", "arguments": {}})[2]
        )
        assert post(opened, "/api/cancel", {"ticket": cancelled["ticket"]})[0] == 200
        assert post(opened, "/api/do", {"ticket": cancelled["ticket"]})[0] == 409
        late = json.loads(post(opened, "/api/try", {"command": "rebalance", "arguments": {}})[2])
        assert opened.control is not None
        opened.control._clock = lambda: time.monotonic() + 1_000
        assert post(opened, "/api/do", {"ticket": late["ticket"]})[0] == 409, "too late"
        for wrong in (None, 3, "", ["x"], "x" * 100):
            assert post(opened, "/api/do", {"ticket": wrong})[0] == 409
    finally:
        opened.close()
        run.stop()


def test_a_run_that_has_ended_takes_no_commands(steered: Page) -> None:
    status, _, text = post(steered, "/api/try", {"command": "rebalance", "arguments": {}})
    assert status == 409
    assert "ended" in text


def test_it_listens_on_loopback_unless_told_otherwise(page: Page) -> None:
    assert page._socket.getsockname()[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_told(run: Run, page: Page) -> None:
    with pytest.raises(SettingsError, match="another port"):
        page_of_run(run, port=page.port)


def test_after_the_end_nobody_listens(run: Run) -> None:
    opened = page_of_run(run)
    opened.close()
    # Not by connecting: the port is free for any other process now
    assert opened._socket.fileno() == -1
    assert not opened._thread.is_alive()
