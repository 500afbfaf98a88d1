"""The FROM clause: streams, queries and sub-queries under the names they have there, and joins of them.

An inner join takes its conditions from ON, USING and WHERE alike; what is left of WHERE stays a filter. An
outer join takes them from ON or USING alone, for there WHERE means something else. Conditions on one input
alone become a filter of that input, wherever that means the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from anabranch.errors import LanguageError, suggest
from anabranch.language.bounds import all_of
from anabranch.language.builder import Query
from anabranch.language.expression import Call, Column, Expression, columns_of, substitute
from anabranch.language.join import FILTERING, JOINS
from anabranch.language.lookup import join_of
from anabranch.language.sql.dialect import Inputs, Scope
from anabranch.language.sql.expression import translate
from anabranch.language.sql.join_scope import JoinScope, Pair, conjuncts, within_rows
from anabranch.language.sql.refuse import refuse_clauses, refuse_input
from anabranch.language.sql.table_function import SIZES, function_of, input_of, windowed
from anabranch.language.sql.temporal_join import is_asof, joined_as_of, takes_versions
from anabranch.language.sql.unnesting import gives_elements, unnested


class QueryReader(Protocol):
    """What reads a whole query; FROM asks it for sub-queries."""

    scope: Scope
    known: dict[str, Query]

    def query(self, tree: exp.Expr) -> Query: ...


@dataclass
class From:
    """The inputs of one SELECT, joined from the first on."""

    reader: QueryReader
    where: list[exp.Expr]
    """The parts of WHERE that hold together; a join takes its equalities out."""
    query: Query = field(init=False)
    tables: dict[str, Mapping[str, str]] = field(default_factory=dict)
    merged: dict[str, Expression] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    @property
    def scope(self) -> Scope:
        scope = self.reader.scope
        inputs = Inputs(dict(self.tables), dict(self.merged), frozenset(self.asked))
        return replace(scope, schema=self.query.node.schema, inputs=inputs)

    def read(self, tree: exp.Select) -> None:
        source = tree.args.get("from_")
        if source is None:
            raise self.reader.scope.error("FROM is missing: name a stream or a query.", tree)
        name, self.query = self._input(source.this)
        self.tables[name] = {column: column for column in self.query.node.schema}
        joins = tree.args.get("joins") or []
        beside = [join for join in joins if not gives_elements(join.this)]
        plain = len(beside) == len(joins) and all(
            self._kind(join) in ("inner", *FILTERING) for join in joins
        )
        # What WHERE drops counts among the last rows of an input all the same
        plain &= not any(
            within_rows(conjuncts(join.args.get("on")), self.reader.scope)[0] for join in joins
        )
        if joins and plain:
            for part in self._taken_from_where(name, alone=True):
                self.query = self.query.where(translate(part, self.scope))
        for number, join in enumerate(joins):
            later_joins = [later for later in joins[number + 1 :] if later in beside]
            filled = any(self._kind(later) in ("right", "full") for later in later_joins)
            self._join(join, filled, plain)
        for lateral in tree.args.get("laterals") or ():
            self._unnest(lateral)

    def _unnest(self, tree: exp.Expr) -> None:
        """Makes a row of every element of a list."""
        called = tree.this if isinstance(tree, exp.Table) else tree
        if called is not tree:
            called.set("alias", tree.args.get("alias"))
        elements = unnested(called, self.query, self.scope)
        self.query = elements.query
        name = tree.alias if tree.args.get("alias") else "unnest"
        self._refuse_twice(name, tree)
        self.tables[name] = elements.columns

    def _input(self, tree: exp.Expr) -> tuple[str, Query]:
        """An input and its name."""
        call = function_of(tree)
        if call is not None and str(call.this).lower() in SIZES:
            return self._windowed(call, tree)
        refuse_input(tree, self.reader.scope, joined=bool(self.tables))
        name = tree.alias_or_name
        self._refuse_twice(name, tree)
        if isinstance(tree, exp.Subquery):
            around = tree.find_ancestor(exp.Select)
            if not name and (self.tables or (around and around.args.get("joins"))):
                raise self.reader.scope.error(
                    "a sub-query beside others needs a name: (…) AS x.", tree
                )
            return name, self.reader.query(tree.this)
        return name, self._named_input(tree.this, tree)[1]

    def _named_input(self, identifier: exp.Identifier, tree: exp.Expr) -> tuple[str, Query]:
        known, name = self.reader.known, identifier.name
        if name not in known:
            raise self.reader.scope.error(
                f"there is no stream or query '{name}'.{suggest(name, known)}", tree
            )
        return name, known[name]

    def _refuse_twice(self, name: str, tree: exp.Expr) -> None:
        if name in self.tables:
            raise self.reader.scope.error(
                f"two inputs are called '{name}': give one another name with AS.", tree
            )

    def _windowed(self, call: exp.Anonymous, tree: exp.Expr) -> tuple[str, Query]:
        """The rows of an input in windows; without a name of its own, under that of the input."""
        refuse_clauses(tree, self.reader.scope, ("this", "alias"))
        read, rest = input_of(call, self.reader.scope)
        if isinstance(read, exp.Column) and not read.table:
            name, query = self._named_input(exp.to_identifier(read.name), read)
        elif isinstance(read, (exp.Subquery, exp.Anonymous, exp.Select)):
            inner = read.this if isinstance(read, exp.Subquery) else read
            if isinstance(inner, exp.Anonymous):
                inner = exp.select("*").from_(exp.Table(this=inner))
            name, query = "", self.reader.query(inner)
        else:
            raise self.reader.scope.error(
                f"{str(call.this).upper()} reads a stream or query by its name, or a sub-query.",
                read,
            )
        name = tree.alias or name
        self._refuse_twice(name, tree)
        return name, windowed(call, query, rest, self.reader.scope)

    # -- joins ------------------------------------------------------------------------------------

    def _join(self, tree: exp.Join, filled: bool, plain: bool) -> None:
        """Joins one more input; with `filled`, a later join may put NULL in place of all there is so far.

        With `plain`, no join puts NULL anywhere, nor counts rows.
        """
        if gives_elements(tree.this):
            self._unnest(tree.this)
            return
        kind = self._kind(tree)
        before = self.scope
        name, right = self._input(tree.this)
        joining = JoinScope.of(before, name, right.node.schema)
        pairs = [self._using(column, kind, joining) for column in tree.args.get("using") or ()]
        if takes_versions(tree, right):
            self.query = joined_as_of(tree, kind, joining, (self.query, right), pairs)
            self.tables = {**self.tables, name: joining.names}
            return
        rows, conditions = within_rows(conjuncts(tree.args.get("on")), before)
        known = self.tables
        self.tables = {**known, name: joining.names}
        if kind == "inner":
            conditions += self._taken_from_where(name, keep=filled)
            if plain:
                conditions += self._taken_from_where(name, alone=True)
        rest: list[Expression] = []
        for part in conditions:
            if rows is not None:
                # All rows are counted, whatever their key and whatever else holds
                rest.append(translate(part, joining.both))
                continue
            pair = joining.pair(part)
            if pair:
                pairs.append(pair)
                continue
            condition = translate(part, joining.both)
            used = set(columns_of(condition))
            if used and used <= set(joining.names.values()) and kind not in ("right", "full"):
                own = {new: Column(old) for old, new in joining.names.items()}
                right = right.where(substitute(condition, own))
            elif used and used <= set(before.schema) and kind in ("inner", "right", "semi"):
                self.query = self.query.where(condition)
            else:
                rest.append(condition)
        told = [part for part in rest if any(columns_of(part))]
        if not pairs and not told and rows is None:
            raise self._crossing(tree, before, name, kind)
        if rows is not None:
            shown = {own: Column(new) for own, new in joining.names.items()}
            rest += [Call("=", (ours, substitute(theirs, shown))) for ours, theirs in pairs]
            pairs = []
        keys = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
        parts = self.query.node, right.node
        with before.placed(tree.this):
            self.query = Query(
                join_of(*parts, kind, keys, all_of(rest), name, rows, self._written())
            )
        if kind in FILTERING:
            self.tables = known
            self.asked.add(name)

    def _written(self) -> dict[str, str]:
        """How columns of all inputs can be written without doubt."""
        return {
            shown: f"{table}.{own}"
            for table, columns in self.tables.items()
            for own, shown in columns.items()
        }

    def _crossing(self, tree: exp.Join, before: Scope, name: str, kind: str) -> LanguageError:
        tables = before.inputs.tables
        others = " and ".join(repr(other) for other in tables)
        first, *_ = tables
        right = self.tables[name]
        common = [
            (table, own) for table, columns in tables.items() for own in columns if own in right
        ]
        # Times are seldom what is meant, unless there is nothing else
        table, column = next((pair for pair in common if pair[1] != "time"), (first, "time"))
        place = "ON" if kind != "inner" else "ON or WHERE"
        return before.error(
            f"nothing says which rows of '{name}' belong to which of {others}, so every row would meet "
            f"every row: add an equality between their columns to {place}, such as "
            f"{table}.{column} = {name}.{column}.",
            tree.this,
        )

    def _kind(self, tree: exp.Join) -> str:
        method, side, kind = (
            str(tree.args.get(part) or "").upper() for part in ("method", "side", "kind")
        )
        method = "" if is_asof(tree) else method
        if not method and kind in ("SEMI", "ANTI") and side in ("", "LEFT"):
            return kind.lower()
        if kind == "CROSS" and not method and not side:
            return "inner"  # what WHERE says is all that holds the two together
        if method or kind not in ("", "INNER", "OUTER"):
            what = (
                f"{side} {method} {kind}".strip()
                if kind in ("SEMI", "ANTI")
                else f"{method} {kind}"
            )
            instead = {
                "NATURAL": "name the columns with USING",
                "RIGHT  SEMI": "exchange the two inputs",
                "RIGHT  ANTI": "exchange the two inputs",
            }.get(what.strip(), f"there are {', '.join(f'{join.upper()} JOIN' for join in JOINS)}")
            raise self.reader.scope.error(
                f"{' '.join(what.split())} JOIN is not available: {instead}.", tree
            )
        return side.lower() or "inner"

    def _using(self, column: exp.Expr, kind: str, joining: JoinScope) -> Pair:
        name = column.name
        if name not in joining.right:
            known = suggest(name, joining.right)
            raise joining.before.error(
                f"USING: '{joining.name}' has no column '{name}'.{known}", column
            )
        ours, theirs = translate(exp.column(name), joining.before), Column(joining.names[name])
        joining.check((ours, Column(name)), column, (str(ours), f"{joining.name}.{name}"))
        merged: dict[str, Expression] = {"right": theirs, "full": Call("coalesce", (ours, theirs))}
        self.merged[name] = merged.get(kind, ours)
        return ours, Column(name)

    def _taken_from_where(
        self, name: str, *, alone: bool = False, keep: bool = False
    ) -> list[exp.Expr]:
        """The parts of WHERE about an input and those before it, or about it alone.

        Those that are kept are a filter too: it drops rows that a later join fills with NULL.
        """
        found: list[exp.Expr] = []
        for part in list(self.where):
            used: set[str] = set()
            for column in part.find_all(exp.Column):
                tables = self.scope.inputs.holding(column.name)
                used |= {column.table} if column.table else set(tables or ("",))
            about = used == {name} if alone else len(used) > 1 and name in used
            if about and used <= self.tables.keys():
                found.append(part)
                if not keep:
                    self.where.remove(part)
        return found
