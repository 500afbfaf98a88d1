"""A real PostgreSQL server on loopback for tests, in a folder of its own, never as root."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from s3_server import SCRIPTS, free_port

PASSWORD = "secret-of-the-tests"
LONGEST = 120
"""Seconds the server may take to start, also on a machine that has much else to do."""
OTHERS = ("postgres", "nobody")
"""As whom it is started where the tests are root, which the server refuses to be."""


class PortTaken(Exception):
    """Somebody else was faster."""


@dataclass
class Server:
    """A server with its data; it can be killed and started again."""

    programs: Path
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"postgresql://tests:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        user: dict[str, Any] = {}
        if os.getuid() == 0:
            known = pwd.getpwnam(next(name for name in OTHERS if _exists(name)))
            user = {"user": known.pw_uid, "group": known.pw_gid, "extra_groups": []}
        with open(self.folder / "log", "ab") as log:
            return subprocess.Popen(
                [str(self.programs / program), *arguments], cwd=self.folder, stdout=log,
                stderr=subprocess.STDOUT, env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
                start_new_session=True, **user,
            )  # fmt: skip

    def make(self) -> None:
        (self.folder / "password").write_text(PASSWORD)
        for path in (self.folder, self.folder / "password"):
            if os.getuid() == 0:
                shutil.chown(path, next(name for name in OTHERS if _exists(name)))
        making = self.run("initdb", "-D", f"{self.folder}/data", "-U", "tests", "-A", "scram-sha-256",
                          "--pwfile", f"{self.folder}/password", "--no-sync")  # fmt: skip
        assert making.wait(LONGEST) == 0, (self.folder / "log").read_text()[-3000:]

    def start(self) -> None:
        self.process = self.run(
            "postgres", "-D", f"{self.folder}/data", "-h", "127.0.0.1", "-p", str(self.port),
            "-k", str(self.folder), "-F", "-c", "max_connections=40",
        )  # fmt: skip
        ends = time.monotonic() + LONGEST
        while True:
            ready = self.run("pg_isready", "-h", "127.0.0.1", "-p", str(self.port)).wait()
            if ready == 0:
                return
            assert time.monotonic() < ends, (self.folder / "log").read_text()[-3000:]
            if self.process.poll() is not None:
                raise PortTaken((self.folder / "log").read_text()[-3000:])
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)  # a fast shutdown
            self.process.wait(LONGEST)
            self.process = None


def _exists(name: str) -> bool:
    with contextlib.suppress(KeyError):
        pwd.getpwnam(name)
        return True
    return False


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """Starts a server; raises if it cannot be installed or started."""
    done = subprocess.run([str(SCRIPTS / "ensure-postgres.sh")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Not below pytest's own folders, which nobody but their owner can enter; sockets have short names
    with tempfile.TemporaryDirectory(prefix="anabranch-pg-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        server = Server(Path(done.stdout.strip()), Path(folder), free_port())
        server.make()
        for _ in range(5):
            with contextlib.suppress(PortTaken):
                server.start()
                break
            server.port = free_port()
        try:
            yield server
        finally:
            server.stop()
