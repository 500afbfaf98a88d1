"""The FROM clause: streams, queries and sub-queries under the names they have there, and joins of them.

An inner join takes its conditions from ON, USING and WHERE alike; what is left of WHERE stays a filter. An
outer join takes them from ON or USING alone, for there WHERE means something else. Conditions on one input
alone become a filter of that input, wherever that means the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from anabranch.errors import LanguageError, suggest
from anabranch.language.bounds import all_of
from anabranch.language.builder import Query
from anabranch.language.expression import Call, Column, Expression, columns_of, substitute
from anabranch.language.join import FILTERING, JOINS, Join
from anabranch.language.sql.dialect import Inputs, Scope
from anabranch.language.sql.expression import translate
from anabranch.language.sql.join_scope import JoinScope, Pair, conjuncts
from anabranch.language.sql.refuse import refuse_input
from anabranch.language.temporal import as_of


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
        return Scope(scope.text, self.query.node.schema, scope.where, inputs)

    def read(self, tree: exp.Select) -> None:
        source = tree.args.get("from_")
        if source is None:
            raise self.reader.scope.error("FROM is missing: name a stream or a query.", tree)
        name, self.query = self._input(source.this)
        self.tables[name] = {column: column for column in self.query.node.schema}
        joins = tree.args.get("joins") or []
        plain = all(self._kind(join) in ("inner", *FILTERING) for join in joins)
        # What WHERE drops counts among the last rows of an input all the same
        plain &= not any(self._within_rows(conjuncts(join.args.get("on")))[0] for join in joins)
        if joins and plain:
            for part in self._taken_from_where(name, alone=True):
                self.query = self.query.where(translate(part, self.scope))
        for number, join in enumerate(joins):
            filled = any(self._kind(later) in ("right", "full") for later in joins[number + 1 :])
            self._join(join, filled, plain)

    def _input(self, tree: exp.Expr) -> tuple[str, Query]:
        """An input and its name."""
        refuse_input(tree, self.reader.scope, joined=bool(self.tables))
        name = tree.alias_or_name
        if name in self.tables:
            raise self.reader.scope.error(
                f"two inputs are called '{name}': give one another name with AS.", tree
            )
        if isinstance(tree, exp.Subquery):
            around = tree.find_ancestor(exp.Select)
            if not name and (self.tables or (around and around.args.get("joins"))):
                raise self.reader.scope.error(
                    "a sub-query beside others needs a name: (…) AS x.", tree
                )
            return name, self.reader.query(tree.this)
        known = self.reader.known
        if tree.name not in known:
            raise self.reader.scope.error(
                f"there is no stream or query '{tree.name}'.{suggest(tree.name, known)}", tree
            )
        return name, known[tree.name]

    # -- joins ------------------------------------------------------------------------------------

    def _join(self, tree: exp.Join, filled: bool, plain: bool) -> None:
        """Joins one more input; with `filled`, a later join may put NULL in place of all there is so far.

        With `plain`, no join puts NULL anywhere, nor counts rows.
        """
        kind = self._kind(tree)
        before = self.scope
        name, right = self._input(tree.this)
        joining = JoinScope.of(before, name, right.node.schema)
        pairs = [self._using(column, kind, joining) for column in tree.args.get("using") or ()]
        if tree.this.args.get("version"):
            self._as_of(tree, kind, joining, right, pairs)
            return
        rows, conditions = self._within_rows(conjuncts(tree.args.get("on")))
        conditions = [part for part in conditions if not _always(part)]
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
                Join(parts, kind, keys, all_of(rest), (name,), rows, self._written())
            )
        if kind in FILTERING:
            self.tables = known
            self.asked.add(name)

    def _as_of(
        self, tree: exp.Join, kind: str, joining: JoinScope, right: Query, pairs: list[Pair]
    ) -> None:
        """Joins the newest row by key of an input, as of the time of the rows there are so far."""
        before, version = joining.before, tree.this.args["version"]
        time = self.query.node.ordered
        asked = version.args.get("expression")
        told = translate(asked, before) if isinstance(asked, exp.Expr) else None
        if time is None or not isinstance(told, Column) or told.name != time.column:
            name = time.column if time else "the ordered attribute"
            raise before.error(
                f"FOR SYSTEM_TIME AS OF takes the time of the rows that are joined, {name}.",
                version,
            )
        for part in conjuncts(tree.args.get("on")):
            pair = joining.pair(part)
            if pair is None:
                raise before.error(
                    "FOR SYSTEM_TIME AS OF joins by equalities; put other conditions into WHERE.",
                    part,
                )
            pairs.append(pair)
        if not pairs:
            raise before.error("FOR SYSTEM_TIME AS OF needs ON with an equality: the key.", tree)
        with before.placed(tree.this):
            self.query = Query(as_of(self.query.node, right.node, pairs, joining.names, kind))
        self.tables = {**self.tables, joining.name: joining.names}

    def _written(self) -> dict[str, str]:
        """How columns of all inputs can be written without doubt."""
        return {
            shown: f"{table}.{own}"
            for table, columns in self.tables.items()
            for own, shown in columns.items()
        }

    def _within_rows(self, conditions: list[exp.Expr]) -> tuple[int | None, list[exp.Expr]]:
        """The number of WITHIN_ROWS(n) among the conditions, and the others."""
        found = [
            part
            for part in conditions
            if isinstance(part, exp.Anonymous) and str(part.this).upper() == "WITHIN_ROWS"
        ]
        for part in found:
            size = part.expressions[0] if len(part.expressions) == 1 else None
            if not isinstance(size, exp.Literal) or not str(size.this).isdigit() or size.is_string:
                raise self.reader.scope.error(
                    "WITHIN_ROWS takes one number: how many of the other input's last rows a row meets.",
                    part,
                )
            return int(size.this), [other for other in conditions if other not in found]
        return None, conditions

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


def _always(condition: exp.Expr) -> bool:
    """Whether this is ON TRUE, which says nothing."""
    return isinstance(condition, exp.Boolean) and bool(condition.this)
