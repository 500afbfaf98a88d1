"""Rows of a group in the order of time: each with values of those before and after it.

Rows of the same time are told apart by their arrival, those of another query by their content, as in a
history.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.expression import Expression, Named, type_of
from anabranch.language.node import Node, require_distinct
from anabranch.language.order import Ordered
from anabranch.language.over import (
    CARRIED,
    PICKS,
    RUNNING,
    NamedRowCall,
    RowFrame,
    can_run,
    check_calls,
    kind_of_call,
)
from anabranch.language.updates import refuse_updates
from anabranch.language.window import require_length


@dataclass(frozen=True, eq=False)
class Timeline(Node):
    """Every row with values of the rows around it in its group, in the order of time."""

    input: Node
    keys: tuple[Named, ...]
    calls: tuple[NamedRowCall, ...]
    first: Expression | None = None
    """A number that tells rows of the same time apart, before their arrival does."""
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        refuse_updates("OVER", self.input.updates)
        if self.input.ordered is None:
            raise LanguageError(
                "Rows in the order of time need the ordered attribute of their input: keep it in the select."
            )
        own = self.input.schema
        check_calls(self.calls, own)
        require_distinct([*own, *(part.name for part in self.calls)], "OVER")
        for key in self.keys:
            type_of(key.expression, own, f"PARTITION BY {key}")
        for part in self.calls:
            self._check(part, own)
        if self.length and self.following:
            raise LanguageError(
                "RANGE with a length of time and rows that FOLLOW (or LEAD) cannot meet in one SELECT: "
                "compute one of them in a sub-query."
            )
        added = {part.name: kind_of_call(part.call, own) for part in self.calls}
        object.__setattr__(self, "schema", pl.Schema({**own, **added}))
        # A row that waits for the next one of its group may wait for ever
        object.__setattr__(self, "ordered", None if self.following else self.input.ordered)

    def _check(self, part: NamedRowCall, schema: pl.Schema) -> None:
        call, frame = part.call, part.call.frame
        if frame.after is None and (call.aggregate or call.function in PICKS):
            raise LanguageError(
                f"{part}: UNBOUNDED FOLLOWING never ends in an endless stream. Put a window of the ordered "
                "attribute into PARTITION BY, such as TUMBLE(time, 60)."
            )
        if frame.by_time and frame.before is not None:
            require_length(frame.before, "The length of RANGE")
        if call.aggregate is None or frame.before is not None:
            return
        if not can_run(call, schema):
            raise LanguageError(
                f"{part}: from UNBOUNDED PRECEDING on there are {', '.join(RUNNING)} of numbers, and MIN and "
                "MAX of times. Say how many rows (ROWS n PRECEDING) or which time (RANGE … PRECEDING) it "
                "covers, or put a window into PARTITION BY."
            )

    @property
    def frames(self) -> tuple[RowFrame, ...]:
        return tuple(
            part.call.frame
            for part in self.calls
            if part.call.aggregate is not None or part.call.function in PICKS
        )

    @property
    def following(self) -> int:
        """How many rows of its group a row waits for."""
        leads = [part.call.number for part in self.calls if part.call.function == "lead"]
        frames = [frame.after or 0 for frame in self.frames if not frame.by_time]
        return max((0, *leads, *frames))

    @property
    def preceding(self) -> int:
        """How many rows of its group before it a row looks at."""
        lags = [part.call.number for part in self.calls if part.call.function == "lag"]
        frames = [frame.before or 0 for frame in self.frames if not frame.by_time]
        # What has run up to a row in front of this one is asked of that
        runs = [-(frame.after or 0) for frame in self.frames if frame.before is None]
        return max((0, *lags, *frames, *runs))

    @property
    def length(self) -> int:
        """How far back in time it looks."""
        return max((frame.before or 0 for frame in self.frames if frame.by_time), default=0)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        first = "" if self.first is None else f" FIRST {self.first}"
        return (
            f"TIMELINE BY {', '.join(map(str, self.keys))}{first} "
            f"AGG {', '.join(map(str, self.calls))}"
        )


def runs_on(part: NamedRowCall) -> bool:
    """Whether its value goes on from row to row, from the first one of the group."""
    call = part.call
    if call.function in (CARRIED, "rank", "dense_rank"):
        return True
    framed = call.aggregate is not None or call.function in ("first_value", "nth_value")
    return framed and call.frame.before is None
