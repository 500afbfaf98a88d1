"""The webhook of the examples, against a real server on loopback that fails now and then."""

from __future__ import annotations

import io
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest
from shelf import rows_of, run
from test_tables import frames

from anabranch.errors import RunError

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from webhook import webhook


def test_epochs_are_posted_with_a_key() -> None:
    got: dict[str, pl.DataFrame] = {}
    answers = [503, 200, 200, 500, 500, 200, 400]

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = answers.pop(0) if answers else 200
            if answer == 200:
                got[self.headers["Idempotency-Key"]] = pl.read_ndjson(io.BytesIO(body))
            self.send_response(answer)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address, given = f"http://127.0.0.1:{server.server_port}/", frames(3)
        queries: dict[str, tuple[str, str | None]] = {"q": ("SELECT time, k, v FROM t", None)}
        run(given, queries, {"q": webhook(address, "q", wait=0.0)})
        assert sorted(got) == ["q-0", "q-1", "q-2"]
        assert rows_of(pl.concat(got.values())) == rows_of(pl.concat(given))
        with pytest.raises(RunError, match=r"function of the sink of query 'q' failed.*400"):
            run(given[:1], queries, {"q": webhook(address, "q", wait=0.0)})
    finally:
        server.shutdown()
        server.server_close()
