"""The SELECT list with GROUP BY and HAVING: what is computed from the rows of FROM and WHERE.

The windows of GROUP BY are in `window.py`, OVER is in `over.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import polars as pl
from sqlglot import exp

from anabranch.errors import suggest
from anabranch.language.aggregate import NamedAggregate
from anabranch.language.builder import Query
from anabranch.language.expression import Expression, Named, columns_of, type_of
from anabranch.language.kinds import type_words
from anabranch.language.sql.aggregate import aggregates_in, translate_aggregate
from anabranch.language.sql.bounded import few_of_each, first_of_each
from anabranch.language.sql.column import resolved
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.expression import translate
from anabranch.language.sql.group_names import with_keys
from anabranch.language.sql.over import Item, is_history, read_histories
from anabranch.language.sql.over_rows import read_over, windows_in, within_window
from anabranch.language.sql.refuse import CLAUSES, refuse_clauses
from anabranch.language.sql.unnesting import elements_in, unnested
from anabranch.language.sql.window import WINDOWS, read_window
from anabranch.language.sql.window_border import with_borders
from anabranch.language.window import END, START
from anabranch.language.window_key import WindowKey

_SETS = {"rollup": exp.Rollup, "cube": exp.Cube, "grouping_sets": exp.GroupingSets}


@dataclass
class SelectReader:
    """One SELECT over its inputs: plain, grouped, or with histories."""

    tree: exp.Select
    query: Query
    scope: Scope
    emit: str
    aggregates: dict[str, NamedAggregate] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    """The names that GROUP BY gives with AS: above it they hide columns of the same name."""
    window: exp.Anonymous | None = None
    """The window of GROUP BY as it is written, and what it is called."""
    window_name: str = ""

    def finish(self) -> Query:
        """The rows of the SELECT; of each window only those that DISTINCT and LIMIT leave."""
        return few_of_each(self.tree, self._selected(), self.scope, self.emit)

    def _selected(self) -> Query:
        items = [self._element(item, name) for item, name in self._items()]
        group = self.tree.args.get("group")
        having = self.tree.args.get("having")
        conditions = self._conditions(items)
        windows = windows_in([*(item for item, _ in items), *conditions])
        if conditions and not windows:
            raise self.scope.error("QUALIFY needs OVER: filter with WHERE or HAVING.", self.tree)
        if windows:
            if group or any(aggregates_in(item) for item, _ in items):
                raise self.scope.error(
                    "OVER and grouped aggregates cannot meet in one SELECT: use a sub-query.",
                    windows[0],
                )
            plain = all(
                is_history(window) and not within_window(window, self.query, self.scope)
                for window in windows
            )
            plain = plain and len({window.args["spec"] for window in windows}) == 1
            if plain and not conditions:
                return read_histories(items, windows, self.query, self.scope)
            query, items, conditions, after = read_over(items, conditions, self.query, self.scope)
            for condition in conditions:
                query = query.where(translate(condition, after))
            return query.select(*(Named(name, translate(item, after)) for item, name in items))
        if not group and not having and not any(aggregates_in(item) for item, _ in items):
            return self.query.select(
                *(Named(name, translate(item, self.scope)) for item, name in items)
            )
        return self._grouped(items, group, having)

    def _conditions(self, items: list[Item]) -> list[exp.Expr]:
        """What rows have to meet once OVER is known: QUALIFY, and DISTINCT ON."""
        found = [self.tree.args["qualify"].this] if self.tree.args.get("qualify") else []
        once = self.tree.args.get("distinct")
        if once is not None and once.args.get("on"):
            found.append(first_of_each(self.tree, once.args["on"], self.query))
        return [self._spelled_out(tree, items) for tree in found]

    def _element(self, item: exp.Expr, name: str) -> Item:
        """A column of SELECT; the elements of a list become rows, and the column that they are in."""
        call = elements_in(item)
        if call is None:
            return item, name
        free = name if name not in self.query.node.schema else f"{name}_unnest"
        call = call.copy()
        call.set("alias", exp.TableAlias(this=exp.to_identifier(free)))
        elements = unnested(call, self.query, self.scope)
        self.query = elements.query
        self.scope = replace(self.scope, schema=self.query.node.schema)
        return resolved(elements.columns[free]), name

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
        if not items:
            raise self.scope.error("EXCEPT leaves no column: keep one or more.", self.tree)
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
        above = self._above(query)
        if having and condition is not None:
            kept = self._after(condition, above, named)
            kind = type_of(kept, query.node.schema, self.scope.where)
            if kind not in (pl.Boolean, pl.Null):
                raise self.scope.error(
                    f"HAVING needs a condition, but {kept} is {type_words(kind)}.", having
                )
            query = query.where(kept)
        return query.select(
            *(Named(name, self._after(item, above, named)) for item, name in computed)
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
        if name:
            self.given.add(name)
        if isinstance(inner, exp.Column) and not inner.table and not self._is_column(inner.name):
            chosen = next((item for item, other in items if other == inner.name), None)
            if chosen is not None and not aggregates_in(chosen):
                inner, name = chosen, inner.name
        if isinstance(inner, exp.Anonymous) and str(inner.this).lower() in WINDOWS:
            # As Spark calls them: window.start, session_window.start
            usual = "session_window" if str(inner.this).lower() == "session_window" else "window"
            self.window, self.window_name = inner, name or usual
            return read_window(inner, self.query, self.scope)
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

    def _replace(self, tree: exp.Expr) -> exp.Expr:
        """The tree with a column in place of every aggregate, which is noted down."""
        tree = with_borders(tree, self.window, self.window_name, self.scope)
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

    def _above(self, query: Query) -> Scope:
        """The scope of what is computed from groups."""
        schema = pl.Schema({**self.scope.schema, **query.node.schema})
        return replace(
            self.scope, schema=schema, own=set(query.node.schema), window=self.window_name
        )

    def _after(self, tree: exp.Expr, above: Scope, keys: list[Named]) -> Expression:
        """An expression over the groups: key expressions become the keys' columns."""
        expression = with_keys(translate(tree, above), keys, self.given)
        for column in columns_of(expression):
            if column not in above.own:
                grouped = ", ".join(key.name for key in keys) or "only a window"
                raise self.scope.error(
                    f"column '{column}' is neither grouped by nor inside an aggregate. "
                    f"GROUP BY has {grouped}; {START} and {END} name a window's borders.",
                    tree,
                )
        return expression
