"""The Python way to ask for rows among others: `query.over("item", window=60, by=[desc("price")])`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.errors import LanguageError
from anabranch.language.expression import Column, Expression, Named
from anabranch.language.node import Node
from anabranch.language.over import NamedRowCall, Sort
from anabranch.language.ranked import Ranked
from anabranch.language.timeline import Timeline
from anabranch.language.window import duration


@dataclass(frozen=True)
class Among:
    """Rows with the others of their group, waiting for what is asked of these."""

    node: Node
    keys: tuple[Named, ...]
    window: int | str | None = None
    by: tuple[Sort, ...] = ()

    def asked(self, calls: Sequence[NamedRowCall]) -> Node:
        """The rows with these values added."""
        for call in calls:
            if not isinstance(call, NamedRowCall):
                raise LanguageError(
                    f"add() takes values with a name, such as rank().alias('r'), not '{call}'."
                )
        time = self.node.ordered
        if self.window is None:
            if self.by:
                raise LanguageError(
                    "over(by=…) needs a window, such as window=60: without one, rows come in the order of "
                    "time, and any other order is never complete."
                )
            return Timeline(self.node, self.keys, tuple(calls))
        size = duration(self.window, bool(time and time.timestamps), "the window of over()")
        if size < 1:
            raise LanguageError(f"over(window={self.window}): expected a length above 0.")
        return Ranked(self.node, size, self.keys, self.by, tuple(calls))


def sorts(by: Sequence[str | Expression | Sort] | str | Expression | Sort) -> tuple[Sort, ...]:
    """What rows are ordered by, as it may be given."""
    given = [by] if isinstance(by, (str, Expression, Sort)) else list(by)
    found = []
    for part in given:
        if isinstance(part, Sort):
            found.append(part)
        elif isinstance(part, (str, Expression)):
            found.append(Sort(Column(part) if isinstance(part, str) else part))
        else:
            raise LanguageError(
                f"by= takes columns, expressions or desc(…), not {type(part).__name__}."
            )
    return tuple(found)
