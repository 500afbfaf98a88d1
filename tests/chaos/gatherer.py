"""A run that gathers its results, as a program to be killed: `python gatherer.py FOLDER FILES`."""

from __future__ import annotations

import sys
from pathlib import Path

from anabranch import Session


def main(folder: Path) -> None:
    session = Session.in_process(2, {"fsync": False, "max_files_per_epoch": 1})
    session.stream("t", path=str(folder / "in"), ordered="time", file_order="name")
    session.query("q", "SELECT time, v FROM t")
    sink = {"path": folder / "out", "gather": "50 milliseconds", "target_bytes": 30_000}
    session.start(sinks={"q": sink}, checkpoint=folder / "ckpt").await_termination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
