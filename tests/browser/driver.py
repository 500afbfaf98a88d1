"""A real browser without a window, driven by WebDriver BiDi: Firefox speaks it itself, Chromium has a driver.

Nothing is clicked by coordinates: elements are scrolled to the middle of the window and clicked by script,
keys are pressed as a keyboard does. Waiting is for conditions, with a long limit.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets.sync.client import connect

PATIENCE = 90.0
"""Seconds to wait for anything: machines that test are busy."""
CHROMIUM_OPTIONS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--mute-audio",
    "--force-color-profile=srgb", "--hide-scrollbars",
]  # fmt: skip
KEYS = {"ArrowRight": "\ue014", "ArrowLeft": "\ue012", "Tab": "\ue004", "Enter": "\ue007"}


class Browser:
    """One window of one browser."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._numbers = itertools.count(1)
        self._home = Path(tempfile.mkdtemp(prefix="anabranch-browser-"))
        self._log = open(self._home / "log", "wb")  # noqa: SIM115
        self._open = contextlib.ExitStack()
        self.errors: list[str] = []
        """What scripts of the page have complained of."""
        try:
            address = self._chromium() if name == "chromium" else self._firefox()
            self._socket = self._open.enter_context(
                connect(
                    address,
                    max_size=None,
                    open_timeout=PATIENCE,
                    ping_interval=None,
                    compression=None,
                )
            )
            if name == "firefox":
                self.send("session.new", capabilities={})
            self.send("session.subscribe", events=["log.entryAdded"])
            tree = self.send("browsingContext.getTree")
            self._context = tree["contexts"][0]["context"]
        except BaseException:
            self.close()
            raise

    def _start(self, *command: str) -> None:
        self._process = subprocess.Popen(
            command, stdout=self._log, stderr=self._log, start_new_session=True,
            env={**os.environ, "HOME": str(self._home), "MOZ_REMOTE_SETTINGS_DEVTOOLS": "1"},
        )  # fmt: skip

    def _told(self, pattern: str) -> str:
        """What the process has said about where it can be reached."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found = re.search(pattern, (self._home / "log").read_text(errors="replace"))
            if found:
                return found[1]
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(
            f"{self.name} did not start: {(self._home / 'log').read_text()[-2000:]}"
        )

    def _firefox(self) -> str:
        profile = self._home / "profile"
        profile.mkdir()
        (profile / "user.js").write_text('user_pref("app.update.enabled", false);\n')
        self._start(
            "firefox-esr", "--headless", "--no-remote", "--profile", str(profile),
            "--remote-debugging-port", "0",
        )  # fmt: skip
        return self._told(r"WebDriver BiDi listening on (ws://\S+)") + "/session"

    def _chromium(self) -> str:
        self._start("chromedriver", "--port=0")
        port = self._told(r"started successfully on port (\d+)")
        options = {"args": [*CHROMIUM_OPTIONS, f"--user-data-dir={self._home / 'profile'}"]}
        wanted = {"webSocketUrl": True, "goog:chromeOptions": options}
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/session",
            json.dumps({"capabilities": {"alwaysMatch": wanted}}).encode(),
            {"content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                return str(json.load(answer)["value"]["capabilities"]["webSocketUrl"])
        except urllib.error.HTTPError as error:
            raise AssertionError(
                f"Chromium did not start: {error.read().decode()[:2000]}"
            ) from error

    def send(self, method: str, **parameters: Any) -> Any:
        """One command, and its answer."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            told = json.loads(self._socket.recv(timeout=PATIENCE))
            if told.get("type") == "event":
                entry = told["params"]
                if entry.get("level") == "error":
                    self.errors.append(str(entry.get("text")))
            elif told.get("id") == number:
                assert told["type"] == "success", f"{method}: {told}"
                return told["result"]

    def open(self, url: str) -> None:
        self.send("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def size(self, width: int, height: int) -> None:
        viewport = {"width": width, "height": height}
        self.send("browsingContext.setViewport", context=self._context, viewport=viewport)

    def script(self, expression: str) -> Any:
        """The value of an expression, through JSON; promises are waited for."""
        told = self.send(
            "script.evaluate", expression=f"(async () => JSON.stringify(await ({expression})))()",
            target={"context": self._context}, awaitPromise=True,
        )  # fmt: skip
        assert told["type"] == "success", told
        value = told["result"].get("value")
        return None if value is None else json.loads(value)

    def wait(self, condition: str, what: str = "") -> Any:
        """Waits until an expression is true; gives its value."""
        until = time.monotonic() + PATIENCE
        while True:
            found = self.script(condition)
            if found:
                return found
            if time.monotonic() > until:
                raise AssertionError(
                    f"{self.name} has waited in vain for {what or condition}; {self.errors}"
                )
            time.sleep(0.1)

    def click(self, selector: str) -> None:
        """Clicks an element by script, in the middle of the window."""
        chosen = json.dumps(selector)
        self.wait(f"document.querySelector({chosen}) !== null", selector)
        self.script(
            f"(() => {{ const one = document.querySelector({chosen}); "
            "one.scrollIntoView({block: 'center'}); one.click(); return true; })()"
        )

    def text(self, selector: str) -> str:
        return str(self.script(f"document.querySelector({json.dumps(selector)}).textContent"))

    def press(self, *keys: str) -> None:
        """Presses keys where the focus is."""
        actions = [
            {"type": kind, "value": KEYS.get(key, key)}
            for key in keys
            for kind in ("keyDown", "keyUp")
        ]
        self.send(
            "input.performActions", context=self._context,
            actions=[{"type": "key", "id": "keyboard", "actions": actions}],
        )  # fmt: skip

    def picture(self, path: Path, whole: bool = False) -> None:
        """Saves what the window shows, or the whole document."""
        told = self.send(
            "browsingContext.captureScreenshot", context=self._context,
            origin="document" if whole else "viewport",
        )  # fmt: skip
        path.write_bytes(base64.b64decode(told["data"]))

    def close(self) -> None:
        """Ends the browser and all its processes."""
        self._open.close()
        if hasattr(self, "_process"):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE)
        self._log.close()
        shutil.rmtree(self._home, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
