"""Late rows as DuckDB SQL for the oracle: which of them an operator still had a place for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from anabranch.language.lateness import meets_late
from anabranch.language.node import Node
from anabranch.testing.sql_expression import EPOCH, SEQ, quote
from anabranch.testing.sql_unfolding import time_sql


@dataclass
class Punctual:
    """Leaves out what came too late, where late rows are left out of closed windows only."""

    clock: Callable[[Collection[str]], Sequence[int | None]]
    """The watermark of some streams by themselves after each epoch."""
    add: Callable[[str], str]
    """A table of what a select gives."""
    left_out: list[str] = field(default_factory=list)
    """Selects over the tables, each for the numbers of rows that an operator had no place for."""
    _inputs: dict[int, str] = field(default_factory=dict)

    def rows(self, below: Node, rows: str, due: str) -> str:
        """Those rows of a node that were not due yet when they came, by the watermark of its streams."""
        if not meets_late(below) or below.ordered is None:
            return rows
        before = enumerate(self.clock(below.streams)[:-1], start=1)
        marks = [(epoch, below.ordered.watermark(source)) for epoch, source in before]
        cases = [f"WHEN {epoch} THEN {due} > {mark}" for epoch, mark in marks if mark is not None]
        if not cases:
            return rows
        kept = self.add(f"SELECT * FROM {rows} WHERE CASE {EPOCH} {' '.join(cases)} ELSE TRUE END")
        self.left_out.append(f"(SELECT {SEQ} FROM {rows} EXCEPT SELECT {SEQ} FROM {kept})")
        return kept

    def of_input(self, node: Node, rows: str) -> str:
        """The same for the input of a join, which takes what is not older than its own watermark."""
        if node.ordered is None:
            return rows
        if id(node) not in self._inputs:
            time = time_sql(quote(node.ordered.column), node.schema[node.ordered.column])
            self._inputs[id(node)] = self.rows(node, rows, f"{time} + 1")
        return self._inputs[id(node)]
