"""JOIN … FOR SYSTEM_TIME AS OF: the newest row by key of an input, as of the time of the rows before it."""

from __future__ import annotations

from sqlglot import exp

from anabranch.language.builder import Query
from anabranch.language.expression import Column
from anabranch.language.sql.expression import translate
from anabranch.language.sql.join_scope import JoinScope, Pair, conjuncts
from anabranch.language.temporal import as_of


def joined_as_of(
    tree: exp.Join, kind: str, joining: JoinScope, inputs: tuple[Query, Query], pairs: list[Pair]
) -> Query:
    """The rows there are so far, with the newest row of the other input beside each."""
    before, version = joining.before, tree.this.args["version"]
    rows, versions = inputs
    time = rows.node.ordered
    asked = version.args.get("expression")
    told = translate(asked, before) if isinstance(asked, exp.Expr) else None
    if time is None or not isinstance(told, Column) or told.name != time.column:
        name = time.column if time else "the ordered attribute"
        raise before.error(
            f"FOR SYSTEM_TIME AS OF takes the time of the rows that are joined, {name}.", version
        )
    for part in conjuncts(tree.args.get("on")):
        pair = joining.pair(part)
        if pair is None:
            raise before.error(
                "FOR SYSTEM_TIME AS OF joins by equalities; put other conditions into WHERE.", part
            )
        pairs.append(pair)
    if not pairs:
        raise before.error("FOR SYSTEM_TIME AS OF needs ON with an equality: the key.", tree)
    with before.placed(tree.this):
        return Query(as_of(rows.node, versions.node, pairs, joining.names, kind))
