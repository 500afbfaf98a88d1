"""A driver that has rivals, as a program: `python rival.py FOLDER CHECKPOINT [STEP EPOCH]`.

Runs the query of a `Stage` to the end of its input. At the step of the epoch, if one is given, it stops
itself with SIGSTOP; "link" is the moment at which its manifest is whole but not in place. Prints the error
that ended it, or "done".
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import obstore

from anabranch.errors import AnabranchError
from helpers import Stage


def stop() -> None:
    # The signal is this thread's own: of one for the process another thread may hear first
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def stopping_before_link(epoch: int) -> None:
    """Makes the process stop when it is about to put the manifest of an epoch in place."""
    link = os.link

    def slow(source: Any, target: Any, **options: Any) -> None:
        if f'"epoch": {epoch},'.encode() in Path(source).read_bytes():
            stop()
        link(source, target, **options)

    os.link = slow
    create = obstore.put

    def slow_put(store: Any, key: Any, data: Any, **options: Any) -> Any:
        if options.get("mode") == "create" and f'"epoch": {epoch},'.encode() in data:
            stop()
        return create(store, key, data, **options)

    obstore.put = slow_put


def main(folder: str, checkpoint: str, step: str = "", at: str = "-1") -> None:
    stage = Stage(Path(folder))
    if step == "link":
        stopping_before_link(int(at))

    def hook(name: str, epoch: int) -> None:
        if (name, epoch) == (step, int(at)):
            stop()

    try:
        stage.finish(
            stage.session(on_late="dead-letter"), checkpoint=checkpoint, on_step=hook,
            dead_letter=stage.dead,
        )  # fmt: skip
        print("done", flush=True)
    except AnabranchError as error:
        print(error, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
