"""What calls over the rows around a row need of each: arguments, defaults, partial aggregates by frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from anabranch.language.aggregate import NamedAggregate
from anabranch.language.expression import Column, Expression, Named
from anabranch.language.over import NamedRowCall, RowFrame
from anabranch.operators.functions import partials_for
from anabranch.operators.partials import Partial
from anabranch.operators.running import columns_of
from anabranch.operators.stateless import compute

Framed = tuple[list[Partial], list[NamedRowCall]]


class RowArguments:
    """Calls and the columns that their arguments are in."""

    def __init__(
        self, calls: Sequence[NamedRowCall], schema: pl.Schema,
        runs: Callable[[NamedRowCall], bool] = lambda part: False,
    ) -> None:  # fmt: skip
        self._computed: dict[str, Named] = {}
        self._schema = schema
        self.names = [self._of(part, runs(part)) for part in calls]
        """For each call the column of its value and that of its second argument, if there are any."""
        by_frame: dict[RowFrame, list[NamedRowCall]] = {}
        for part in calls:
            if part.call.aggregate is not None and not runs(part):
                by_frame.setdefault(part.call.frame, []).append(part)
        self.frames: dict[RowFrame, Framed] = {}
        for number, (frame, some) in enumerate(by_frame.items()):
            named = [
                NamedAggregate(part.name, part.call.aggregate)
                for part in some
                if part.call.aggregate
            ]
            partials = partials_for(named, schema)
            for partial in partials:
                partial.argument = partial.argument and f"__f{number}{partial.argument}"
            self.frames[frame] = partials, some

    def _of(self, part: NamedRowCall, runs: bool) -> tuple[str | None, str | None]:
        arguments = part.call.arguments
        if part.call.aggregate is not None and runs:
            arguments = part.call.aggregate.arguments
        found: list[str | None] = [self._name(value) for value in arguments]
        first, second, *_ = [*found, None, None]
        return first, second

    def _name(self, value: Expression) -> str:
        if isinstance(value, Column):
            return value.name
        return self._computed.setdefault(str(value), Named(f"__v{len(self._computed)}", value)).name

    @property
    def columns(self) -> list[str]:
        """The columns that rows have for the calls, beside those of the input."""
        found = [named.name for named in self._computed.values()]
        for partials, _ in self.frames.values():
            found += [partial.argument for partial in partials if partial.argument]
        return list(dict.fromkeys(found))

    def run_kinds(
        self, running: Sequence[tuple[int, NamedRowCall]], rows: pl.DataFrame
    ) -> dict[str, pl.DataType]:
        """The types of what runs from row to row, over rows that have the arguments."""
        found: dict[str, pl.DataType] = {}
        for number, named in running:
            value = self.names[number][0]
            own = pl.Int64() if value is None else rows.schema[value]
            if named.call.function in ("sum", "avg"):
                own = pl.Int64() if own.is_integer() else pl.Float64()
            if named.call.function in ("count", "rank", "dense_rank"):
                own = pl.Int64()
            sums, *counts = columns_of(number, named)
            found |= {sums: own, **dict.fromkeys(counts, pl.Int64())}
        return found

    def arguments(self, rows: pl.DataFrame) -> list[pl.Series]:
        """Those columns."""
        found = compute(rows, self._computed.values()).get_columns() if self._computed else []
        known: dict[str, pl.Series] = {}
        for partials, _ in self.frames.values():
            for partial in partials:
                if partial.argument and partial.argument not in known:
                    values = compute(rows, [Named("value", partial.call.arguments[0])])["value"]
                    known[partial.argument] = partial.prepare(values).alias(partial.argument)
        return [*found, *known.values()]
