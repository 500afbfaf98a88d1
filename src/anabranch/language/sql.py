"""Continuous queries written in SQL, parsed by sqlglot into the query graph.

Covered: SELECT over a stream, a query or a sub-query; WHERE; GROUP BY with names (`time/60 AS tb`) and
the windows TUMBLE, HOP, SESSION, COUNT_WINDOW and Spark's window(); aggregates inside expressions; HAVING;
aggregates OVER the last rows of a group; UNION ALL; WITH. Joins are not there yet. What is not
supported is refused by name, with its position and what can be written instead.

>>> import polars as pl
>>> from anabranch.language.graph import Ordered, Stream
>>> tcp = Query(Stream("tcp", pl.Schema({"time": pl.Int64, "srcIP": pl.Int64, "len": pl.Int64}),
...                    Ordered("time", timestamps=False)))
>>> flows = read_query("SELECT tb, srcIP, SUM(len) / COUNT(*) AS mean FROM tcp "
...                    "GROUP BY time/60 AS tb, srcIP HAVING COUNT(*) > 1", {"tcp": tcp})
>>> list(flows.node.schema)
['tb', 'srcIP', 'mean']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl
from sqlglot import exp

from anabranch.errors import suggest
from anabranch.language import aggregate
from anabranch.language.aggregate import NamedAggregate
from anabranch.language.builder import Query, WindowKey
from anabranch.language.dialect import Scope, StatementDialect, parse
from anabranch.language.expression import Call, Column, Expression, Literal, Named, columns_of
from anabranch.language.text import translate
from anabranch.language.text_aggregate import translate_aggregate
from anabranch.language.window import END, START

WINDOWS = {"tumble": 1, "hop": 2, "session": 1, "count_window": 2, "window": 2}
"""The window functions of GROUP BY and the most sizes each takes."""

REFUSED = {
    "joins": "Joins are not available yet",
    "order": "ORDER BY has no meaning in an endless stream: order the rows where you read them",
    "limit": "LIMIT has no meaning in an endless stream: filter with WHERE or HAVING",
    "distinct": "SELECT DISTINCT is not available: GROUP BY the columns and a window instead",
    "qualify": "QUALIFY is not available: name the value in a sub-query and filter with WHERE",
    "laterals": "LATERAL is not available",
}


def read_query(
    text: str, known: Mapping[str, Query], name: str = "query", emit: str = "final"
) -> Query:
    """The query a SELECT stands for; `known` are the streams and queries it may read."""
    scope = Scope(text, {}, f"Query '{name}'")
    return _Reader(scope, dict(known), emit).query(parse(scope, StatementDialect))


@dataclass
class _Reader:
    scope: Scope
    known: dict[str, Query]
    emit: str

    def query(self, tree: exp.Expr) -> Query:
        for cte in tree.ctes if isinstance(tree, exp.Query) else ():
            self.known[cte.alias] = self.query(cte.this)
        match tree:
            case exp.Select():
                return self.select(tree)
            case exp.Union():
                if tree.args.get("distinct"):
                    raise self.scope.error(
                        "UNION would have to remember every row: write UNION ALL.", tree
                    )
                return self.query(tree.this).union(self.query(tree.expression))
            case exp.Subquery():
                return self.query(tree.this)
        raise self.scope.error(f"expected a SELECT, but this is {tree.key.upper()}.", tree)

    def select(self, tree: exp.Select) -> Query:
        for part, reason in REFUSED.items():
            found = tree.args.get(part)
            if found:
                at = found[0] if isinstance(found, list) else found
                raise self.scope.error(f"{reason}.", at if isinstance(at, exp.Expr) else tree)
        query = self._source(tree)
        where = tree.args.get("where")
        if where:
            query = query.where(translate(where.this, self._over(query)))
        return _Select(self, tree, query).finish()

    def _source(self, tree: exp.Select) -> Query:
        source = tree.args.get("from_")
        if source is None:
            raise self.scope.error("FROM is missing: name a stream or a query.", tree)
        origin = source.this
        if isinstance(origin, exp.Subquery):
            return self.query(origin.this)
        if origin.name not in self.known:
            raise self.scope.error(
                f"there is no stream or query '{origin.name}'.{suggest(origin.name, self.known)}",
                origin,
            )
        return self.known[origin.name]

    def _over(self, query: Query) -> Scope:
        return Scope(self.scope.text, query.node.schema, self.scope.where)


@dataclass
class _Select:
    """One SELECT over one input: plain, grouped, or with histories."""

    reader: _Reader
    tree: exp.Select
    query: Query
    aggregates: dict[str, NamedAggregate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scope = Scope(self.reader.scope.text, self.query.node.schema, self.reader.scope.where)

    def finish(self) -> Query:
        items = self._items()
        group = self.tree.args.get("group")
        having = self.tree.args.get("having")
        windows = [node for item, _ in items for node in item.find_all(exp.Window)]
        if windows:
            return self._histories(items, windows)
        if not group and not having and not any(_aggregates(item) for item, _ in items):
            return self.query.select(
                *(Named(name, translate(item, self.scope)) for item, name in items)
            )
        return self._grouped(items, list(group.expressions) if group else [], having)

    def _items(self) -> list[tuple[exp.Expr, str]]:
        """The expressions of the SELECT list with the names of their columns."""
        items: list[tuple[exp.Expr, str]] = []
        for tree in self.tree.expressions:
            if isinstance(tree, exp.Star):
                items += [(exp.column(name), name) for name in self.query.node.schema]
            elif isinstance(tree, exp.Alias):
                items.append((tree.this, tree.alias))
            else:
                items.append(
                    (tree, tree.name if isinstance(tree, exp.Column) else self._written(tree))
                )
        return items

    def _written(self, tree: exp.Expr) -> str:
        found = _aggregates(tree)
        if found and found[0] is tree:
            call = translate_aggregate(tree, self.scope)
            inner = "_".join(str(argument) for argument in call.arguments)
            return f"{call.function}_{inner}" if inner else call.function
        return tree.sql(dialect="")

    def _grouped(
        self, items: list[tuple[exp.Expr, str]], group: list[exp.Expr], having: exp.Having | None
    ) -> Query:
        aliases = {name: item for item, name in items}
        keys = [self._key(tree, aliases) for tree in group]
        computed = [(self._replace(item, name), name) for item, name in items]
        condition = self._replace(having.this) if having else None
        query = self.query.group_by(*keys).agg(*self.aggregates.values(), emit=self.reader.emit)
        named = [key for key in keys if isinstance(key, Named)]
        if condition is not None:
            query = query.where(self._after(condition, query, named))
        return query.select(
            *(Named(name, self._after(item, query, named)) for item, name in computed)
        )

    def _key(self, tree: exp.Expr, aliases: Mapping[str, exp.Expr]) -> Named | WindowKey:
        inner, name = (tree.this, tree.alias) if isinstance(tree, exp.Alias) else (tree, "")
        if isinstance(inner, exp.Anonymous) and str(inner.this).lower() in WINDOWS:
            return self._window(inner)
        if isinstance(inner, exp.Column) and inner.name not in self.scope.schema:
            chosen = aliases.get(inner.name)
            if chosen is not None and not _aggregates(chosen):
                inner, name = chosen, inner.name
        expression = translate(inner, self.scope)
        if not name:
            name = next(
                (other for other, item in aliases.items() if item == inner), str(expression)
            )
        return Named(name, expression)

    def _window(self, tree: exp.Anonymous) -> WindowKey:
        kind = str(tree.this).lower()
        parts = list(tree.expressions)
        ordered = self.query.node.ordered
        if parts and isinstance(parts[0], exp.Column) and kind != "count_window":
            if ordered is None or parts[0].name != ordered.column:
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

    def _replace(self, tree: exp.Expr, name: str = "") -> exp.Expr:
        """The tree with a column in place of every aggregate, which is noted down."""
        found = _aggregates(tree)
        if found and found[0] is tree:
            return exp.column(self._note(tree, name))
        copy = tree.copy()
        for node in _aggregates(copy):
            node.replace(exp.column(self._note(node, "")))
        return copy

    def _note(self, tree: exp.Expr, name: str) -> str:
        call = translate_aggregate(tree, self.scope)
        known = self.aggregates.get(str(call))
        if known is None or (name and known.name != name and known.name == str(call)):
            known = self.aggregates[str(call)] = NamedAggregate(name or str(call), call)
        return known.name

    def _after(self, tree: exp.Expr, query: Query, keys: list[Named]) -> Expression:
        """An expression over the groups: key expressions become the keys' columns."""
        schema = pl.Schema({**self.scope.schema, **query.node.schema})
        inner = Scope(self.scope.text, schema, self.scope.where)
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

    def _histories(self, items: list[tuple[exp.Expr, str]], windows: list[exp.Window]) -> Query:
        """Aggregates OVER (PARTITION BY keys ORDER BY time ROWS n PRECEDING): one history of all."""
        if self.tree.args.get("group"):
            raise self.scope.error("OVER and GROUP BY cannot meet in one SELECT: use a sub-query.",
                                   windows[0])  # fmt: skip
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
                call = translate_aggregate(window.this, self.scope)
                noted = calls.setdefault(str(call), NamedAggregate(f"{call} OVER", call))
                column = exp.column(noted.name)
                if window is copy:
                    copy = column
                else:
                    window.replace(column)
            computed.append((copy, name))
        keys = tuple(windows[0].args.get("partition_by") or ())
        named = [Named(f"key{at}", translate(key, self.scope)) for at, key in enumerate(keys)]
        query = self.query.history(*named, rows=frames.pop()).agg(*calls.values())
        scope = Scope(self.scope.text, query.node.schema, self.scope.where)
        return query.select(*(Named(name, translate(item, scope)) for item, name in computed))

    def _frame(self, window: exp.Window) -> int:
        """The number of rows an OVER clause covers, the current one included."""
        ordered = self.query.node.ordered
        order = window.args.get("order")
        by = [part.this.name for part in order.expressions] if order else []
        if ordered is None or by != [ordered.column]:
            name = ordered.column if ordered else "the ordered attribute"
            raise self.scope.error(f"OVER needs ORDER BY {name}.", window)
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
                "OVER needs a number of rows: ROWS n PRECEDING (up to the current row).", window
            )
        assert isinstance(start, exp.Literal)
        return int(start.this) + 1


def _aggregates(tree: exp.Expr) -> list[exp.Expr]:
    """The aggregate calls in a tree, outermost first."""
    return [
        node
        for node in tree.find_all(exp.Anonymous)
        if str(node.this).lower() in aggregate.FUNCTIONS and not isinstance(node.parent, exp.Window)
    ]


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
