"""A plan that Spark has analysed, as a query: from its sources up, node by node.

What a source is, and how rows get from it into a stream, is for the caller to say: of each part of the plan
below a watermark, and of each without one. What has no equal here is refused by the name of the node.
"""

from __future__ import annotations

from collections.abc import Callable

from anabranch.language.aggregate import first
from anabranch.language.builder import Query
from anabranch.language.dataframe.aggregate import read_aggregate
from anabranch.language.dataframe.catalyst import SparkNode, parse
from anabranch.language.dataframe.expression import translate
from anabranch.language.dataframe.join import read_join
from anabranch.language.dataframe.rows import Rows, output_of, unused
from anabranch.language.dataframe.values import SparkColumns, refused
from anabranch.language.dataframe.window import window_of
from anabranch.language.tree import Column, Expression, Named
from anabranch.language.unnest import Unnest

SOURCES = ("StreamingRelation", "StreamingRelationV2")
StreamOf = Callable[[SparkNode, "SparkNode | None"], Query]
"""The stream of the rows of a part of the plan, and the watermark above it, if it has one."""


class PlanReader:
    """Reads a plan from its root; `emit` is what aggregates give, as `Grouped.agg` has it."""

    def __init__(self, stream_of: StreamOf, emit: str) -> None:
        self._stream_of = stream_of
        self._emit = emit

    def read(self, plan: SparkNode) -> Query:
        """The whole query, with its columns called as in Spark."""
        rows = self._rows(plan)
        output: list[Named] = []
        for name, column in self._output(plan, rows):
            if name in (named.name for named in output):
                raise refused(plan, f"two columns called '{name}'; give one of them another name")
            output.append(Named(name, Column(column)))
        return rows.query.select(*output)

    def _output(self, part: SparkNode, rows: Rows) -> list[tuple[str, str]]:
        """The columns of the plan in their order: their names in Spark, and here."""
        found: list[tuple[str, str]] = []
        for attribute in output_of(part):
            if attribute.id in rows.scope.windows:
                # A structure of two times is two columns here
                start, end = rows.scope.windows[attribute.id]
                found += [(f"{attribute.name}_start", start), (f"{attribute.name}_end", end)]
            else:
                found.append((attribute.name, rows.scope.columns[attribute.id]))
        return found

    def _rows(self, part: SparkNode) -> Rows:
        if part.kind == "EventTimeWatermark":
            return self._stream(part.children[0], part)
        if part.kind in SOURCES:
            return self._stream(part, None)
        reader = {
            "Project": self._project, "Filter": self._filter, "SubqueryAlias": self._alias,
            "View": self._alias, "Generate": self._generate, "Aggregate": self._aggregate,
            "Expand": self._expand, "Join": self._join, "Union": self._union,
            "Deduplicate": self._deduplicate,
        }.get(part.kind)  # fmt: skip
        if reader is None:
            raise refused(part)
        return reader(part)

    def _stream(self, part: SparkNode, watermark: SparkNode | None) -> Rows:
        query = self._stream_of(part, watermark)
        columns = {attribute.id: attribute.name for attribute in output_of(part)}
        return Rows(query, SparkColumns(columns), {})

    def _alias(self, part: SparkNode) -> Rows:
        return self._rows(part.children[0])

    def _project(self, part: SparkNode) -> Rows:
        below = self._rows(part.children[0])
        return self._projected(below, part.expressions("projectList"))

    def _projected(self, below: Rows, parts: list[SparkNode]) -> Rows:
        scope, windows = SparkColumns(), dict(below.windows)
        columns: list[Named] = []

        def add(name: str, value: Expression) -> str:
            unique = unused(name, [column.name for column in columns])
            columns.append(Named(unique, value))
            return unique

        for part in parts:
            found = window_of(part.children[0]) if part.kind == "Alias" else None
            if found is not None:
                windows[part.id] = found
            elif part.kind == "AttributeReference" and part.id in below.windows:
                continue
            elif part.kind == "AttributeReference" and part.id in below.scope.windows:
                scope.windows[part.id] = self._kept(part.name, below.scope.windows[part.id], add)
            elif part.kind == "Alias":
                scope.columns[part.id] = add(part.name, translate(part.children[0], below.scope))
            else:
                scope.columns[part.id] = add(part.name, translate(part, below.scope))
        return Rows(below.query.select(*columns), scope, windows)

    @staticmethod
    def _kept(
        name: str, window: tuple[str, str], add: Callable[[str, Expression], str]
    ) -> tuple[str, str]:
        start, end = window
        return add(f"{name}_start", Column(start)), add(f"{name}_end", Column(end))

    def _filter(self, part: SparkNode) -> Rows:
        below = self._rows(part.children[0])
        condition = part.expression("condition")
        if condition.kind == "IsNotNull" and below.query.node.ordered is not None:
            # Spark's own, below a window: a row without a time is in none. Here it is in no stream
            column = condition.children[0]
            time = below.query.node.ordered.column
            if column.kind == "AttributeReference" and below.scope.columns.get(column.id) == time:
                return below
        return Rows(
            below.query.where(translate(condition, below.scope)), below.scope, below.windows
        )

    def _expand(self, part: SparkNode) -> Rows:
        """The rows of a hopping window, which Spark repeats for each window that a row is in."""
        below = self._rows(part.children[0])
        found = window_of(parse(part.fields["projections"][0][0]))
        if found is None:
            raise refused(part)
        below.windows[part.expressions("output")[0].id] = found
        return below

    def _generate(self, part: SparkNode) -> Rows:
        """Every row once for each element of a list."""
        below, generator = self._rows(part.children[0]), part.expression("generator")
        if generator.kind != "Explode":
            raise refused(generator)
        if below.windows:
            raise refused(part, "rows for each element, of rows that have a window already")
        (element,) = part.expressions("generatorOutput")
        name = unused(element.name, list(below.query.node.schema))
        elements = translate(generator.children[0], below.scope)
        outer = bool(part.fields["outer"])
        scope = SparkColumns({**below.scope.columns, element.id: name}, below.scope.windows)
        return Rows(Query(Unnest(below.query.node, elements, name, outer)), scope, {})

    def _aggregate(self, part: SparkNode) -> Rows:
        return read_aggregate(part, self._rows(part.children[0]), self._emit)

    def _deduplicate(self, part: SparkNode) -> Rows:
        """Of the rows with the same keys the one that came first, as soon as it is there."""
        below = self._rows(part.children[0])
        if below.windows or below.scope.windows:
            raise refused(part, "rows without duplicates, of rows that have a window already")
        columns, time = list(below.query.node.schema), below.query.node.ordered
        keys = [below.scope.columns[key.id] for key in part.expressions("keys")]
        if time is None or time.column not in keys:
            raise refused(
                part,
                "every key would be remembered for ever. Add the column of the watermark to those that tell "
                "duplicates, dropDuplicates([…])",
            )
        others = [first(name).alias(name) for name in columns if name not in keys]
        once = below.query.group_by(*keys).agg(*others, emit="once")
        return Rows(once.select(*columns), below.scope, {})

    def _join(self, part: SparkNode) -> Rows:
        left, right = (self._rows(child) for child in part.children)
        return read_join(part, left, right)

    def _union(self, part: SparkNode) -> Rows:
        first, *others = [(self._rows(child), output_of(child)) for child in part.children]
        rows, output = first
        if any(each.windows or each.scope.windows for each, _ in (first, *others)):
            raise refused(part, "windows in what is put together")
        columns = [
            Named(attribute.name, Column(rows.scope.columns[attribute.id])) for attribute in output
        ]
        queries = [rows.query.select(*columns)]
        for each, theirs in others:
            queries.append(
                each.query.select(
                    *(
                        Named(column.name, Column(each.scope.columns[attribute.id]))
                        for column, attribute in zip(columns, theirs, strict=True)
                    )
                )
            )
        scope = SparkColumns(
            {attribute.id: column.name for attribute, column in zip(output, columns, strict=True)}
        )
        return Rows(queries[0].union(*queries[1:]), scope, {})
