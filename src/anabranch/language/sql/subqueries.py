"""Sub-queries in conditions as joins: IN and EXISTS become semi-joins, NOT EXISTS and NOT IN anti-joins.

A sub-query that gives one value for each row, an aggregate whose WHERE names equalities with the rows around
it, becomes a left join with its groups. How far apart in time rows may be is said in the WHERE of the
sub-query, as it is in the ON of a join.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from anabranch.language.builder import Query
from anabranch.language.sql.aggregate import aggregates_in, outside_queries
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.empty_groups import apart
from anabranch.language.sql.join_scope import conjuncts
from anabranch.language.sql.qualifying import inputs, never_null, qualified, tables

SHAPED = ("group", "having", "distinct", "qualify", "limit", "joins", "order", "with_")
"""Clauses of a sub-query whose rows cannot be told by those of its one input."""


class SubqueryReader(Protocol):
    """What reads a whole query; asked for the columns that a sub-query can name."""

    scope: Scope
    known: dict[str, Query]

    def query(self, tree: exp.Expr) -> Query: ...


def with_joins_for_subqueries(tree: exp.Select, reader: SubqueryReader) -> exp.Select:
    """The SELECT with joins in place of the sub-queries of its conditions and of its list."""
    where = tree.args.get("where")
    if not any(_subqueries(part) for part in (*tree.expressions, where) if part is not None):
        return tree
    return _Unnesting(tree.copy(), reader).done()


def _subqueries(tree: exp.Expr) -> list[exp.Expr]:
    return [node for node in outside_queries(tree) if isinstance(node, (exp.Query, exp.Exists))]


@dataclass
class _Unnesting:
    tree: exp.Select
    reader: SubqueryReader
    names: int = 0
    joins: list[exp.Join] = field(default_factory=list)

    def done(self) -> exp.Select:
        where = self.tree.args.get("where")
        kept: list[exp.Expr] = []
        parts = conjuncts(where and where.this)
        for part in parts:
            if not self._semi(part, parts):
                kept.append(self._valued(part))
        if where is not None:
            self.tree.set("where", exp.Where(this=exp.and_(*kept, copy=False)) if kept else None)
        for item in list(self.tree.expressions):
            changed = self._valued(item.this if isinstance(item, exp.Alias) else item)
            if isinstance(item, exp.Alias):
                item.set("this", changed)
            elif changed is not item:
                item.replace(changed)
        self.tree.set("joins", [*(self.tree.args.get("joins") or ()), *self.joins])
        return self.tree

    # -- IN and EXISTS ------------------------------------------------------------------------------

    def _semi(self, part: exp.Expr, beside: list[exp.Expr]) -> bool:
        """Takes a condition for a join, if it is IN or EXISTS with a sub-query."""
        negated = isinstance(part, exp.Not)
        inner = part.this.unnest() if isinstance(part, exp.Not) else part
        kind = "ANTI" if negated else "SEMI"
        if isinstance(inner, exp.Exists):
            select = inner.this.this if isinstance(inner.this, exp.Subquery) else inner.this
            table, on, _ = self._table(select, inner)
            if not on:
                raise self._error(
                    "EXISTS needs a condition between the sub-query and the rows around it, in its WHERE: an "
                    "equality, and how far apart in time they may be.",
                    inner,
                )
            self.joins.append(exp.Join(this=table, kind=kind, on=exp.and_(*on)))
            return True
        if not isinstance(inner, exp.In) or inner.args.get("query") is None:
            return False
        select = inner.args["query"]
        select = select.this if isinstance(select, exp.Subquery) else select
        table, on, item = self._table(select, inner)
        if item is None:
            raise self._error("IN (SELECT …) takes one column.", inner)
        value = self._outer(inner.this)
        equal: exp.Expr = exp.EQ(this=value, expression=item.copy())
        if negated:
            equal = self._not_in(inner.this, item, on, select, beside, inner)
        self.joins.append(exp.Join(this=table, kind=kind, on=exp.and_(equal, *on)))
        return True

    def _not_in(
        self, value: exp.Expr, item: exp.Expr, on: list[exp.Expr], select: exp.Expr,
        beside: list[exp.Expr], at: exp.Expr,
    ) -> exp.Expr:  # fmt: skip
        """What keeps a row from the results of NOT IN: a NULL on either side does, too."""
        outer = self._outer(value)
        equal = exp.EQ(this=outer, expression=item.copy())
        within = conjuncts(select.args["where"].this) if select.args.get("where") else []
        told = never_null(value, beside) and never_null(select.expressions[0], within)
        if told:
            return equal
        if any(isinstance(part, exp.EQ) for part in on):
            nulls = [exp.Is(this=side.copy(), expression=exp.Null()) for side in (outer, item)]
            return exp.Paren(this=exp.or_(equal, *nulls))
        raise self._error(
            "NOT IN (SELECT …) is never true where a NULL is among the values, so a row would need to meet "
            f"every other. Add {value.sql()} IS NOT NULL to WHERE and {select.expressions[0].sql()} IS NOT "
            "NULL to the WHERE of the sub-query, or write NOT EXISTS.",
            at,
        )

    # -- one value ----------------------------------------------------------------------------------

    def _valued(self, tree: exp.Expr) -> exp.Expr:
        """An expression with columns of joins in place of its sub-queries."""
        whole = exp.Paren(this=tree.copy())
        for node in _subqueries(whole):
            among = isinstance(node.parent, exp.In) and node.arg_key == "query"
            if among or isinstance(node, exp.Exists) or isinstance(node.parent, (exp.Any, exp.All)):
                raise self._error(
                    "IN and EXISTS with a sub-query stand in WHERE, alone or joined to others by AND; ANY "
                    "and ALL are not available.",
                    node,
                )
            if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
                node.replace(self._value(node.this, node))
        inner = whole.this
        assert isinstance(inner, exp.Expr)
        return inner.pop()

    def _value(self, select: exp.Select, at: exp.Expr) -> exp.Expr:
        shaped = any(select.args.get(part) for part in SHAPED)
        found = aggregates_in(select.expressions[0]) if len(select.expressions) == 1 else []
        if shaped or not found:
            raise self._error(
                "a sub-query in the place of a value is one aggregate over one input, with equalities of its "
                "columns and those of the rows around it in WHERE, one of them of a window.",
                at,
            )
        table, on, asked = self._table(select, at)
        name, alias = table.alias_or_name, self._name("value")
        keys: list[exp.Expr] = []
        conditions = []
        for number, part in enumerate(on):
            sides = (part.this, part.expression) if isinstance(part, exp.EQ) else ()
            own = [side for side in sides if tables(side) == {name}]
            others = [side for side in sides if name not in tables(side)]
            if len(own) != 1 or len(others) != 1:
                raise self._error(
                    "a sub-query in the place of a value meets the rows around it by equalities only.",
                    part,
                )
            keys.append(exp.alias_(own[0].copy(), f"sub_key{number}"))
            conditions.append(
                exp.EQ(
                    this=others[0].copy(), expression=exp.column(f"sub_key{number}", table=alias)
                )
            )
        if not keys:
            raise self._error(
                "a sub-query in the place of a value needs an equality with the rows around it: the value of "
                "all rows there are is never known. Say which window, as in WHERE u.time/60 = t.time/60.",
                at,
            )
        assert asked is not None
        aggregates, value = apart(asked, alias)
        bare = next((c for c in value.find_all(exp.Column) if c.table == name), None)
        if bare is not None:
            raise self._error(f"{bare.name} stands in no aggregate of the sub-query.", at)
        grouped = exp.Select(
            expressions=[*aggregates, *keys],
            from_=exp.From(this=table),
            group=exp.Group(expressions=[key.this.copy() for key in keys]),
        )
        joined = exp.Subquery(this=grouped, alias=exp.TableAlias(this=exp.to_identifier(alias)))
        self.joins.append(exp.Join(this=joined, side="LEFT", on=exp.and_(*conditions)))
        return self._outer(value)

    # -- the input of a sub-query --------------------------------------------------------------------

    def _table(
        self, select: exp.Expr, at: exp.Expr
    ) -> tuple[exp.Expr, list[exp.Expr], exp.Expr | None]:
        """What a sub-query reads, its conditions on the rows around it, and its one column."""
        if not isinstance(select, exp.Select):
            raise self._error("expected (SELECT …) here.", at)
        single = len(select.expressions) == 1
        item = select.expressions[0] if single else None
        item = item.this if isinstance(item, exp.Alias) else item
        own_values = any(
            aggregates_in(part) or part.find(exp.Window) for part in select.expressions
        )
        value = isinstance(at, exp.Subquery)
        if (own_values and not value) or any(select.args.get(part) for part in SHAPED):
            return self._derived(select, at)
        source = select.args["from_"].this if select.args.get("from_") else None
        if source is None:
            raise self._error("the sub-query has no FROM.", at)
        name = self._name(source.alias_or_name)
        columns = self._columns(source)
        inner: list[exp.Expr] = []
        on: list[exp.Expr] = []
        for part in conjuncts(select.args["where"].this) if select.args.get("where") else []:
            told = qualified(part, columns, name, source.alias_or_name)
            told = self._outer(told)
            (inner if tables(told) <= {name} else on).append(told)
        source = source.copy()
        source.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
        if inner:
            rows = exp.Select(
                expressions=[exp.Star()], from_=exp.From(this=source),
                where=exp.Where(this=exp.and_(*inner)),
            )  # fmt: skip
            source = exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier(name)))
        asked = (
            qualified(item, columns, name, select.args["from_"].this.alias_or_name)
            if item
            else None
        )
        return source, on, asked

    def _derived(
        self, select: exp.Select, at: exp.Expr
    ) -> tuple[exp.Expr, list[exp.Expr], exp.Expr | None]:
        """A sub-query with groups of its own: it stands by itself and can only be compared with."""
        if len(select.expressions) != 1:
            raise self._error("IN (SELECT …) takes one column.", at)
        name = self._name("among")
        copied = select.copy()
        item = copied.expressions[0]
        if not isinstance(item, exp.Alias) and not isinstance(item, exp.Column):
            item.replace(exp.alias_(item.copy(), "value"))
        shown = copied.expressions[0].alias_or_name
        table = exp.Subquery(this=copied, alias=exp.TableAlias(this=exp.to_identifier(name)))
        return table, [], exp.column(shown, table=name)

    def _outer(self, tree: exp.Expr) -> exp.Expr:
        """An expression whose columns of the rows around a sub-query say which input they are of."""
        whole = exp.Paren(this=tree.copy())
        for column in whole.find_all(exp.Column):
            holding = [
                source.alias_or_name
                for source in inputs(self.tree)
                if column.name in self._columns(source)
            ]
            if not column.table and holding:
                column.set("table", exp.to_identifier(holding[0]))
        inner = whole.this
        assert isinstance(inner, exp.Expr)
        return inner.pop()

    def _columns(self, source: exp.Expr) -> Collection[str]:
        """The columns of an input."""
        if isinstance(source, exp.Subquery):
            return list(self.reader.query(source.this).node.schema)
        known = self.reader.known.get(source.name)
        return () if known is None else list(known.node.schema)

    def _name(self, wanted: str) -> str:
        """A name for an input that the SELECT has not got yet."""
        taken = {table.alias_or_name for table in self.tree.find_all(exp.Table, exp.Subquery)}
        taken |= {join.this.alias_or_name for join in self.joins}
        outer = {table.alias_or_name for table in inputs(self.tree)}
        self.names += 1
        if (
            wanted
            and wanted not in outer
            and wanted not in {j.this.alias_or_name for j in self.joins}
        ):
            return wanted
        return next(
            name for number in range(2, 1000) if (name := f"{wanted}_{number}") not in taken
        )

    def _error(self, message: str, at: exp.Expr) -> Exception:
        return self.reader.scope.error(message, at)
