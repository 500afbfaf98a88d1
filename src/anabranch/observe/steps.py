"""Where long work is: steps told to whoever listens, a live line on a terminal in the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Listener = Callable[[str, int, int], None]


@dataclass
class Steps:
    """Counts the steps of some work; the listener hears (what begins, steps done, steps in all)."""

    listener: Listener
    total: int = 0
    done: int = -1

    def expect(self, total: int) -> None:
        """So many steps will come, besides those already expected."""
        self.total += total

    def begin(self, what: object) -> None:
        """The next step begins, the one before has ended."""
        self.done += 1
        self.listener(str(what), self.done, max(self.total, self.done + 1))


def silent() -> Steps:
    """Steps that nobody hears."""
    return Steps(lambda what, done, total: None)


@contextmanager
def live(name: str, quiet: bool = False) -> Iterator[Steps]:
    """A live line on the terminal; nothing where there is none, or where it is not wanted."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield silent()
        return
    columns = (
        TextColumn("[bold]" + name), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield Steps(
            lambda what, done, total: progress.update(
                task, description=what, completed=done, total=total
            )
        )
