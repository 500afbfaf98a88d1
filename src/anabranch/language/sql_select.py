"""The SELECT list with GROUP BY, HAVING and OVER: what is computed from the rows of FROM and WHERE.

Windows of GROUP BY are TUMBLE, HOP, SESSION, COUNT_WINDOW and Spark's window().
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import polars as pl
from sqlglot import exp

from anabranch.errors import suggest
from anabranch.language import aggregate
from anabranch.language.aggregate import AggregateCall, NamedAggregate
from anabranch.language.builder import Query, WindowKey
from anabranch.language.dialect import Scope
from anabranch.language.expression import (
    Call,
    Column,
    Expression,
    Literal,
    Named,
    columns_of,
    type_of,
)
from anabranch.language.sql_refuse import CLAUSES, refuse_clauses
from anabranch.language.text import resolved, translate
from anabranch.language.text_aggregate import (
    aggregates_in,
    outside_queries,
    translate_aggregate,
)
from anabranch.language.text_function import apply_function
from anabranch.language.window import END, START

WINDOWS = {"tumble": 1, "hop": 2, "session": 1, "count_window": 2, "window": 2}
"""The window functions of GROUP BY and the most sizes each takes."""

_SETS = {"rollup": exp.Rollup, "cube": exp.Cube, "grouping_sets": exp.GroupingSets}

Item = tuple[exp.Expr, str]
"""A column of the SELECT list and its name."""


@dataclass
class Select:
    """One SELECT over its inputs: plain, grouped, or with histories."""

    tree: exp.Select
    query: Query
    scope: Scope
    emit: str
    aggregates: dict[str, NamedAggregate] = field(default_factory=dict)

    def finish(self) -> Query:
        items = self._items()
        group = self.tree.args.get("group")
        having = self.tree.args.get("having")
        windows = [
            node
            for item, _ in items
            for node in outside_queries(item)
            if isinstance(node, exp.Window)
        ]
        if windows:
            return self._histories(items, windows)
        if not group and not having and not any(aggregates_in(item) for item, _ in items):
            return self.query.select(
                *(Named(name, translate(item, self.scope)) for item, name in items)
            )
        return self._grouped(items, group, having)

    def _items(self) -> list[Item]:
        """The expressions of the SELECT list with the names of their columns."""
        items: list[Item] = []
        for tree in self.tree.expressions:
            star = tree.this if isinstance(tree, exp.Column) else tree
            if isinstance(star, exp.Star):
                items += self._all(star, tree.table if isinstance(tree, exp.Column) else "")
            elif isinstance(tree, exp.Alias):
                items.append((tree.this, tree.alias))
            elif isinstance(tree, exp.Column):
                taken = {name for _, name in items}
                name = tree.name
                # S1.cnt, S2.cnt: as a join calls them
                items.append(
                    (tree, f"{name}_{tree.table}" if name in taken and tree.table else name)
                )
            else:
                items.append((tree, self._written(tree)))
        return items

    def _all(self, star: exp.Star, table: str) -> list[Item]:
        """All columns, of one input or of all, but for those that EXCEPT names."""
        refuse_clauses(star, self.scope, ("except_",))
        tables, merged = self.scope.inputs.tables, self.scope.inputs.merged
        if table and table not in tables:
            raise self.scope.error(
                f"there is no input '{table}' here.{suggest(table, tables)}", self.tree
            )
        left_out = {column.name for column in star.args.get("except_") or ()}
        unknown = left_out - {name for columns in tables.values() for name in columns}
        if unknown:
            raise self.scope.error(
                f"EXCEPT: column '{min(unknown)}' is not found."
                f"{suggest(min(unknown), self.scope.schema)}",
                star,
            )
        items: dict[str, exp.Expr] = {}
        for name in (table,) if table else tables:
            for column, shown in tables[name].items():
                if column in left_out:
                    continue
                if column in merged and not table:
                    items.setdefault(column, exp.column(column))
                else:
                    items[shown] = resolved(shown)
        return [(tree, name) for name, tree in items.items()]

    def _written(self, tree: exp.Expr) -> str:
        found = aggregates_in(tree)
        if found and found[0] is tree:
            call = translate_aggregate(tree, self.scope)
            inner = "_".join(str(argument) for argument in call.arguments)
            return f"{call.function}_{inner}" if inner else call.function
        return tree.sql(dialect="")

    def _grouped(
        self, items: list[Item], group: exp.Group | None, having: exp.Having | None
    ) -> Query:
        keys = [self._key(tree, items) for tree in self._group(group, items)]
        for item, name in items:
            # Aggregates that are columns give their names to those inside of expressions
            if item in aggregates_in(item)[:1]:
                self._note(item, name)
        computed = [(self._replace(item), name) for item, name in items]
        condition = self._replace(self._spelled_out(having.this, items)) if having else None
        query = self.query.group_by(*keys).agg(*self.aggregates.values(), emit=self.emit)
        named = [key for key in keys if isinstance(key, Named)]
        if having and condition is not None:
            kept = self._after(condition, query, named)
            kind = type_of(kept, query.node.schema, self.scope.where)
            if kind not in (pl.Boolean, pl.Null):
                raise self.scope.error(f"HAVING needs a condition, but {kept} is {kind}.", having)
            query = query.where(kept)
        return query.select(
            *(Named(name, self._after(item, query, named)) for item, name in computed)
        )

    def _spelled_out(self, having: exp.Expr, items: list[Item]) -> exp.Expr:
        """HAVING with the expressions of the SELECT list in place of the names that are no columns."""
        computed = {name: item for item, name in items if not isinstance(item, exp.Column)}
        # As a child of something, so that a name that is all of HAVING can be replaced too
        whole = exp.Paren(this=having.copy())
        for column in list(whole.find_all(exp.Column)):
            if not column.table and column.name in computed and not self._is_column(column.name):
                column.replace(exp.Paren(this=computed[column.name].copy()))
        return whole

    def _group(self, group: exp.Group | None, items: list[Item]) -> list[exp.Expr]:
        """The expressions of GROUP BY; a number stands for that column of the SELECT list."""
        if group is None:
            return []
        refuse_clauses(group, self.scope, ("expressions",))
        found: list[exp.Expr] = []
        for tree in group.expressions:
            for clause, kinds in _SETS.items():
                called = tree.name.lower() if isinstance(tree, (exp.Anonymous, exp.Aliases)) else ""
                if isinstance(tree, kinds) or called == clause:
                    raise self.scope.error(f"{CLAUSES[clause]}.", tree)
            if isinstance(tree, exp.Tuple):
                raise self.scope.error("GROUP BY takes a list without parentheses.", tree)
            if isinstance(tree, exp.Column) and tree.name.upper() == "ALL" and not tree.table:
                found += [item for item, _ in items if not aggregates_in(item)]
            elif isinstance(tree, exp.Literal) and not tree.is_string:
                found.append(self._numbered(tree, items))
            else:
                found.append(tree)
        return found

    def _numbered(self, tree: exp.Literal, items: list[Item]) -> exp.Expr:
        number = int(tree.this) if str(tree.this).isdigit() else 0
        if not 1 <= number <= len(items):
            raise self.scope.error(
                f"GROUP BY {tree.this}: the SELECT list has columns 1 to {len(items)}.", tree
            )
        item, name = items[number - 1]
        if aggregates_in(item):
            raise self.scope.error(
                f"GROUP BY {number}: column {number}, '{name}', is computed from an aggregate.",
                tree,
            )
        return item

    def _key(self, tree: exp.Expr, items: list[Item]) -> Named | WindowKey:
        inner, name = (tree.this, tree.alias) if isinstance(tree, exp.Alias) else (tree, "")
        if isinstance(inner, exp.Anonymous) and str(inner.this).lower() in WINDOWS:
            return self._window(inner)
        if isinstance(inner, exp.Column) and not inner.table and not self._is_column(inner.name):
            chosen = next((item for item, other in items if other == inner.name), None)
            if chosen is not None and not aggregates_in(chosen):
                inner, name = chosen, inner.name
        for found in aggregates_in(inner):
            raise self.scope.error(
                "GROUP BY of an aggregate: compute it in a sub-query and group by its name.", found
            )
        expression = translate(inner, self.scope)
        if not name:
            name = next((other for item, other in items if item == inner), str(expression))
        return Named(name, expression)

    def _is_column(self, name: str) -> bool:
        inputs = self.scope.inputs
        return name in inputs.merged or bool(inputs.holding(name))

    def _window(self, tree: exp.Anonymous) -> WindowKey:
        kind = str(tree.this).lower()
        parts = list(tree.expressions)
        ordered = self.query.node.ordered
        if parts and isinstance(parts[0], exp.Column) and kind != "count_window":
            if not self._is_ordered(parts[0]):
                known = f"'{ordered.column}'" if ordered else "nothing"
                raise self.scope.error(
                    f"{kind.upper()} needs the ordered attribute, which is {known}.", tree
                )
            parts = parts[1:]
        sizes = [translate(part, self.scope) for part in parts]
        values = [size.value for size in sizes if isinstance(size, Literal)]
        lengths = [value for value in values if isinstance(value, (int, str))]
        if not 1 <= len(lengths) <= WINDOWS[kind] or len(lengths) < len(parts):
            raise self.scope.error(
                f"{kind.upper()} takes the ordered attribute and up to {WINDOWS[kind]} constant "
                "size(s), e.g. TUMBLE(time, 60), HOP(ts, '1 minute', '10 seconds').", tree,
            )  # fmt: skip
        if kind == "window":
            kind = "hop" if len(lengths) == 2 else "tumble"
        if kind == "count_window":
            kind, lengths = "rows", lengths if len(lengths) == 2 else lengths * 2
        if kind == "hop" and len(lengths) == 1:
            raise self.scope.error("HOP needs a size and a slide: HOP(time, 60, 10).", tree)
        return WindowKey(kind, tuple(lengths))

    def _is_ordered(self, tree: exp.Expr) -> bool:
        """Whether this is the ordered attribute of the input."""
        ordered = self.query.node.ordered
        if ordered is None or not isinstance(tree, exp.Column):
            return False
        found = translate(tree, self.scope)
        return isinstance(found, Column) and found.name == ordered.column

    def _replace(self, tree: exp.Expr) -> exp.Expr:
        """The tree with a column in place of every aggregate, which is noted down."""
        found = aggregates_in(tree)
        if found and found[0] is tree:
            return resolved(self._note(tree, ""))
        copy = tree.copy()
        for node in aggregates_in(copy):
            node.replace(resolved(self._note(node, "")))
        return copy

    def _note(self, tree: exp.Expr, name: str) -> str:
        call = translate_aggregate(tree, self.scope)
        # Under the name of an input's column it could be taken for that
        free = name if name and name not in self.scope.schema else str(call)
        return self.aggregates.setdefault(str(call), NamedAggregate(free, call)).name

    def _after(self, tree: exp.Expr, query: Query, keys: list[Named]) -> Expression:
        """An expression over the groups: key expressions become the keys' columns."""
        schema = pl.Schema({**self.scope.schema, **query.node.schema})
        inner = replace(self.scope, schema=schema, own=set(query.node.schema))
        expression = _with_keys(translate(tree, inner), keys)
        for column in columns_of(expression):
            if column not in query.node.schema:
                grouped = ", ".join(key.name for key in keys) or "nothing"
                raise self.scope.error(
                    f"column '{column}' is neither grouped by nor inside an aggregate. "
                    f"GROUP BY has {grouped}; {START} and {END} name a window's borders.",
                    tree,
                )
        return expression

    def _histories(self, items: list[Item], windows: list[exp.Window]) -> Query:
        """Aggregates OVER (PARTITION BY keys ORDER BY time ROWS n PRECEDING): one history of all."""
        if self.tree.args.get("group") or any(aggregates_in(item) for item, _ in items):
            raise self.scope.error(
                "OVER and grouped aggregates cannot meet in one SELECT: use a sub-query.",
                windows[0],
            )
        frames = {self._frame(window) for window in windows}
        partitions = {_listed(window.args.get("partition_by")) for window in windows}
        if len(frames) > 1 or len(partitions) > 1:
            raise self.scope.error(
                "all OVER clauses of a SELECT must have the same PARTITION BY and ROWS.", windows[1]
            )
        calls: dict[str, NamedAggregate] = {}
        computed = []
        for item, name in items:
            copy = item.copy()
            for window in (
                [copy] if isinstance(copy, exp.Window) else list(copy.find_all(exp.Window))
            ):
                call = self._over(window)
                noted = calls.setdefault(str(call), NamedAggregate(f"{call} OVER", call))
                column = resolved(noted.name)
                if window is copy:
                    copy = column
                else:
                    window.replace(column)
            computed.append((copy, name))
        keys = tuple(windows[0].args.get("partition_by") or ())
        named = [Named(f"key{at}", translate(key, self.scope)) for at, key in enumerate(keys)]
        query = self.query.history(*named, rows=frames.pop()).agg(*calls.values())
        scope = replace(self.scope, schema=query.node.schema)
        return query.select(*(Named(name, translate(item, scope)) for item, name in computed))

    def _over(self, window: exp.Window) -> AggregateCall:
        called = str(window.this.this).lower() if isinstance(window.this, exp.Anonymous) else ""
        if called and aggregate.known_as(called) is None:
            # Not there at all, or there is something to write instead
            apply_function(called, [], window, self.scope)
        return translate_aggregate(window.this, self.scope)

    def _frame(self, window: exp.Window) -> int:
        """The number of rows an OVER clause covers, the current one included."""
        ordered = self.query.node.ordered
        called = window.this
        if isinstance(called, exp.Anonymous) and aggregate.known_as(str(called.this)) is None:
            self._over(window)
        order = window.args.get("order")
        by = list(order.expressions) if order else []
        if len(by) != 1 or not self._is_ordered(by[0].this) or by[0].args.get("desc"):
            name = ordered.column if ordered else "the ordered attribute"
            raise self.scope.error(f"OVER needs ORDER BY {name}, ascending.", window)
        spec = window.args.get("spec")
        start = spec.args.get("start") if spec else None
        fits = (
            spec is not None
            and spec.args.get("kind") == "ROWS"
            and spec.args.get("start_side") == "PRECEDING"
            and spec.args.get("end") in (None, "CURRENT ROW")
            and isinstance(start, exp.Literal)
        )
        if not fits:
            raise self.scope.error(
                "OVER needs a number of rows: ROWS n PRECEDING (up to the current row). A stretch of time "
                "is a window of GROUP BY, such as HOP.",
                window,
            )
        assert isinstance(start, exp.Literal)
        return int(start.this) + 1


def _listed(parts: list[exp.Expr] | None) -> str:
    return ", ".join(part.sql() for part in parts or ())


def _with_keys(expression: Expression, keys: list[Named]) -> Expression:
    for key in keys:
        if str(key.expression) == str(expression):
            return Column(key.name)
    if isinstance(expression, Call):
        return Call(
            expression.function, tuple(_with_keys(part, keys) for part in expression.arguments)
        )
    return expression
