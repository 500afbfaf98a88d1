"""What the page may do to a run, if it may: each command is tried on paper first, then done by its ticket.

A ticket is good once and for a short time, so a request that is sent again does nothing.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from anabranch.amount import in_bytes, several
from anabranch.engine.run import Run
from anabranch.errors import RunError
from anabranch.observe.page.replanned import replanned
from anabranch.observe.story import Story

TICKET_SECONDS, MOST_TICKETS = 120.0, 64
COMMANDS: dict[str, tuple[str, ...]] = {
    "move": ("subquery", "partition", "site"), "pin": ("subquery", "partition", "site"),
    "unpin": ("subquery", "partition"), "pause": ("subquery", "partition"),
    "resume": ("subquery", "partition"), "spill": ("subquery", "partition"),
    "clean_up": ("subquery", "partition"), "rebalance": (), "set_sites": ("sites",),
    "replan": ("subquery", "shape", "partition"),
}  # fmt: skip
"""The commands, and what each wants to know."""
OPTIONAL = {("replan", "partition")}
"""What may be null: then it is for all."""
AFTER_MOVE = {"move", "pin"}


class Control:
    """The commands of a page for one run."""

    def __init__(self, run: Run, story: Story, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._story, self._clock = run, story, clock
        self._tickets: dict[str, tuple[float, str, dict[str, Any]]] = {}
        self.done: deque[dict[str, Any]] = deque(maxlen=50)
        """What was asked for, and what became of it."""

    def try_out(self, command: Any, given: Any) -> dict[str, Any]:
        """What a command would do, and a ticket to have it done; raises RunError if it cannot be."""
        known = COMMANDS.get(command) if isinstance(command, str) else None
        if known is None:
            raise RunError(f"There is no command {command!r}; there are {', '.join(COMMANDS)}.")
        if not isinstance(given, dict) or sorted(given) != sorted(known):
            raise RunError(f"'{command}' wants {', '.join(known) or 'nothing'}, and nothing else.")
        arguments = {
            name: None if value is None and (command, name) in OPTIONAL else _checked(name, value)
            for name, value in given.items()
        }
        if not self._run.is_active:
            raise RunError("This run has ended: there is nothing more to change.")
        effect = self._effect(command, arguments)
        now = self._clock()
        fresh = {key: one for key, one in self._tickets.items() if one[0] > now}
        self._tickets = dict(list(fresh.items())[-MOST_TICKETS + 1 :])
        ticket = secrets.token_urlsafe(12)
        self._tickets[ticket] = (now + TICKET_SECONDS, command, arguments)
        return {"ticket": ticket, "effect": effect}

    def do(self, ticket: Any) -> dict[str, Any]:
        """Has a command done that was tried out."""
        until, command, arguments = self._take(ticket)
        if until < self._clock():
            raise RunError("That was tried out too long ago: try it again.")
        getattr(self._run, command)(**arguments)
        told = {"command": command, "arguments": arguments, "at": time.time(), "state": "done"}
        self.done.append(told)
        return told

    def cancel(self, ticket: Any) -> None:
        """Forgets a command that was tried out."""
        self._take(ticket)

    def _take(self, ticket: Any) -> tuple[float, str, dict[str, Any]]:
        known = self._tickets.pop(ticket, None) if isinstance(ticket, str) else None
        if known is None:
            raise RunError("There is no such ticket, or it was used: try the command again.")
        return known

    def _effect(self, command: str, given: dict[str, Any]) -> str:
        """What is expected of a command, in a sentence."""
        if command == "rebalance":
            return "Load is evened out by what has been measured so far, from the next epoch on."
        if command == "set_sites":
            if given["sites"] < 1:
                raise RunError("A run needs at least one site.")
            return (
                f"The run goes on with {several(given['sites'], 'site')} in place of "
                f"{self._run.sites}, from the next epoch on; partitions are spread anew."
            )
        known = self._run.partition_map(given["subquery"])
        if given["partition"] is not None and given["partition"] not in known.starts:
            raise RunError(
                f"'{given['subquery']}' has no partition that begins at slot {given['partition']}."
            )
        if command in AFTER_MOVE and not 0 <= given["site"] < self._run.sites:
            raise RunError(
                f"There is no site {given['site']}: there are 0 to {self._run.sites - 1}."
            )
        if command == "replan":
            return replanned(self._run, self._story, **given)
        return self._of_partition(command, given)

    def _of_partition(self, command: str, given: dict[str, Any]) -> str:
        exchange = self._run.plan.subqueries[given["subquery"]].exchange
        newest = self._story.newest
        figures = newest.exchanges.get(exchange) if newest else None
        name = f"Partition {given['partition']} of '{given['subquery']}'"
        if figures is None:
            return f"{name}: nothing has been measured of it yet."
        at = int(np.searchsorted(figures.column("starts"), given["partition"], "right")) - 1
        rows, size = figures.column("rows").astype(float), float(figures.column("size")[at])
        share, owner = rows[at] / max(rows.sum(), 1.0), int(figures.column("sites")[at])
        about = f"{name} ({in_bytes(int(size))} of state, {share:.1%} of the rows, on site {owner})"
        if command in AFTER_MOVE:
            sites = figures.column("sites").astype(int)
            before = np.bincount(sites, rows, minlength=max(self._run.sites, given["site"] + 1))
            after = before.copy()
            after[owner] -= rows[at]
            after[given["site"]] += rows[at]
            mean = max(before.mean(), 1e-9)
            stays = ", and stays there" if command == "pin" else ""
            return (
                f"{about} goes to site {given['site']}{stays}. The busiest site would have "
                f"{after.max() / mean:.2f} times the mean rows of this exchange; it has "
                f"{before.max() / mean:.2f} now."
            )
        return f"{about} {EFFECTS[command]}"


EFFECTS = {
    "unpin": "may move again.",
    "pause": "gets no rows until it is resumed: they wait, and results of its groups come later.",
    "resume": "gets the rows that wait for it.",
    "spill": "gives its memory back: its state is put aside until a clean-up, or until its windows close.",
    "clean_up": "gets its state back, and gives what it owes.",
}


TEXTS = {"subquery": "the name of a subquery", "shape": "a shape, such as ((0,1),2)"}


def _checked(name: str, value: Any) -> Any:
    if name in TEXTS:
        if not isinstance(value, str) or len(value) > 200:
            raise RunError(f"Expected {TEXTS[name]}.")
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise RunError(f"Expected a whole number for {name}, got {value!r}.")
    return value
