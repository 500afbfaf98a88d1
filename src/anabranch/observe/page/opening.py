"""Opens a page: on a run of this process, or on the history of a checkpoint."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from anabranch.engine.run import Run
from anabranch.observe.hosts import LOOPBACK
from anabranch.observe.page.control import Control
from anabranch.observe.page.server import Page
from anabranch.observe.samples import Samples
from anabranch.observe.story import Story, story_of

LOOK_SECONDS = 1.0


def page_of_run(
    run: Run,
    port: int = 0,
    control: bool = False,
    host: str = LOOPBACK[0],
    names: Iterable[str] = (),
) -> Page:
    """A page on a run, from its first event that is remembered on."""
    story, kept = Story(), Samples()

    def samples(query: str) -> dict[str, Any] | None:
        sink = run.sinks.get(query)
        return None if sink is None else kept.newest(sink)

    page = Page(
        story, samples, live=True, control=Control(run, story) if control else None, host=host,
        port=port, names=names,
    )  # fmt: skip
    page.when_closed(run.listen(story.add, recent=True))
    return page


def page_of_checkpoint(
    checkpoint: str, port: int = 0, host: str = LOOPBACK[0], names: Iterable[str] = ()
) -> Page:
    """A page on a run of another process, or on one that has ended."""
    story, history = story_of(checkpoint)
    closing, kept = threading.Event(), Samples()

    def follow() -> None:
        while not closing.wait(LOOK_SECONDS):
            for event in history.look():
                story.add(event)

    def samples(query: str) -> dict[str, Any] | None:
        outputs = story.started.plan["outputs"] if story.started else ()
        known = {one["query"]: one["sink"] for one in outputs}
        return kept.newest(known[query]) if query in known else None

    page = Page(story, samples, live=False, host=host, port=port, names=names)
    page.when_closed(closing.set)
    threading.Thread(target=follow, name="anabranch-history", daemon=True).start()
    return page
