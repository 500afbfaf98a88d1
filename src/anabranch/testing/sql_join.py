"""Joins as DuckDB SQL for the oracle: all combinations, what has met nothing, pairs within rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anabranch.language.join import Join
from anabranch.language.node import Node
from anabranch.language.order import Ordered
from anabranch.operators.base import END_OF_TIME
from anabranch.testing.quantiles import quantile_columns
from anabranch.testing.sql_expression import (
    EPOCH,
    SEQ,
    expression_sql,
    floor_divide,
    list_of,
    named,
    quote,
)
from anabranch.testing.sql_unfolding import time_sql


@dataclass(frozen=True)
class Joins:
    """Writes joins with the tables of their inputs."""

    table: Callable[[Node], str]
    """The table of a node's rows."""
    add: Callable[[str], str]
    """A table of what a select gives."""
    emitted: Callable[[str, Ordered | None], str]
    """The first epoch whose watermark reaches a time."""
    clock: Sequence[int | None]

    def select(self, node: Join) -> str:
        """All combinations, each in the epoch of its last row; then what has met nothing."""
        parts = [self._numbered(node, number) for number in range(len(node.parts))]
        if node.rows is not None:
            return self._counted(node, node.rows, parts)
        conditions = [*node.equalities, *([node.predicate] if node.predicate is not None else [])]
        where = " AND ".join(f"({expression_sql(part, node.joined)})" for part in conditions)
        pairs = self.add(f"SELECT * FROM {list_of(parts)} WHERE {where}")
        shown = [quote(name) for name in node.schema]
        last = f"greatest({list_of([f'__e{number}' for number in range(len(parts))])})"
        if node.kind == "semi":
            columns = [f"first({name}) AS {name}" for name in shown]
            return (
                f"SELECT {list_of(columns)}, min({last}) AS {EPOCH}, NULL AS {SEQ} FROM {pairs} "
                "GROUP BY __i0"
            )
        selects = []
        if node.kind != "anti":
            selects.append(
                f"SELECT {list_of(shown)}, {last} AS {EPOCH}, NULL AS {SEQ} FROM {pairs}"
            )
        for number in {"left": (0,), "anti": (0,), "right": (1,), "full": (0, 1)}.get(
            node.kind, ()
        ):
            selects.append(self._unmet(node, number, parts[number], pairs))
        return "\nUNION ALL ".join(selects)

    def _counted(self, node: Join, rows: int, parts: list[str]) -> str:
        """Pairs in which one row is among the last so many of its input before the other row."""
        order = "__t0 <= __t1"
        left, right = (
            self.add(
                f"SELECT *, row_number() OVER (ORDER BY __t{n}, __s{n}) - 1 AS __p{n} FROM {part}"
            )
            for n, part in enumerate(parts)
        )
        first = self.add(
            f"SELECT *, (SELECT count(*) FROM {right} WHERE NOT ({order})) AS __q0 FROM {left}"
        )
        second = self.add(
            f"SELECT *, (SELECT count(*) FROM {left} WHERE {order}) AS __q1 FROM {right}"
        )
        turns = [self.emitted(f"__t{n} + 1", part.ordered) for n, part in enumerate(node.parts)]
        conditions = [node.predicate] if node.predicate is not None else []
        where = " AND ".join(f"({expression_sql(part, node.joined)})" for part in conditions)
        near = (
            f"((__p1 < __q0 AND __p1 >= __q0 - {rows}) OR (__p0 < __q1 AND __p0 >= __q1 - {rows}))"
        )
        shown = list_of([quote(name) for name in node.schema])
        return (
            f"SELECT {shown}, greatest({turns[0]}, {turns[1]}) AS {EPOCH}, NULL AS {SEQ} "
            f"FROM {first}, {second} WHERE {near} AND {where} "
            f"AND ({turns[0]}) IS NOT NULL AND ({turns[1]}) IS NOT NULL"
        )

    def _numbered(self, node: Join, number: int) -> str:
        """An input under the names of the joined rows, its rows numbered, with stream time."""
        part, names = node.parts[number], node.names[number]
        columns = [f"{quote(own)} AS {quote(shown)}" for own, shown in names.items()]
        keys = [f"({expression_sql(key, part.schema)}) IS NULL" for key in node.keys[number]]
        ordered, time = part.ordered, "NULL"
        if ordered and ordered.unit:
            column = quote(ordered.column)
            time = f"{time_sql(column, part.schema[ordered.column])} * {ordered.unit}"
        columns += [
            f"{EPOCH} AS __e{number}", f"{SEQ} AS __s{number}", f"row_number() OVER () AS __i{number}",
            f"{time} AS __t{number}", f"{' OR '.join(keys) or 'FALSE'} AS __null{number}",
        ]  # fmt: skip
        return self.add(f"SELECT {list_of(columns)} FROM {self.table(part)}")

    def _unmet(self, node: Join, number: int, rows: str, pairs: str) -> str:
        """The rows of an input that are in no combination, in the epoch that makes that sure."""
        own, lists = set(node.names[number].values()), quantile_columns(node)
        columns = [
            quote(name) if name in own
            else f"NULL AS {quote(name)}" if name in lists
            else named("NULL", node.schema, name)
            for name in node.schema
        ]  # fmt: skip
        other = 1 - number
        most, ordered = node.bounds[number][other], node.parts[other].ordered
        if most is None or ordered is None or ordered.unit is None:
            ended = self.clock and self.clock[-1] == END_OF_TIME
            sure = str(len(self.clock) - 1) if ended else "NULL"
        else:
            due = f"{floor_divide(f'(__t{number} + {most})', ordered.unit)} + 1"
            sure = self.emitted(due, ordered)
        epoch = f"CASE WHEN __null{number} THEN __e{number} ELSE {sure} END"
        return (
            f"SELECT {list_of(columns)}, greatest(__e{number}, {epoch}) AS {EPOCH}, NULL AS {SEQ} "
            f"FROM {rows} WHERE ({epoch}) IS NOT NULL "
            f"AND __i{number} NOT IN (SELECT __i{number} FROM {pairs})"
        )
