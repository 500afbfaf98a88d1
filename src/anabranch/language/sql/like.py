"""LIKE and ILIKE in texts."""

from __future__ import annotations

import re
from collections.abc import Callable

import polars as pl
from sqlglot import exp

from anabranch.language.expression import Call, Expression, Literal
from anabranch.language.kinds import type_words
from anabranch.language.sql.dialect import Scope

Translate = Callable[[exp.Expr, Scope], Expression]


def like(tree: exp.Expr, scope: Scope, translate: Translate) -> Expression:
    """A text compared with a pattern: `%` is any text, `_` one character, ESCAPE makes them plain."""
    escape = "\\" if scope.spelling.like_escapes else ""
    if isinstance(tree, exp.Escape):
        sign = translate(tree.expression, scope)
        escape = sign.value if isinstance(sign, Literal) and isinstance(sign.value, str) else "  "
        if len(escape) > 1:
            raise scope.error("ESCAPE takes one sign, as in LIKE '50!%' ESCAPE '!'.", tree)
        tree = tree.this
    value, pattern = translate(tree.this, scope), translate(tree.expression, scope)
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise scope.error(
            f"{tree.key.upper()} needs a constant pattern such as 'a%'; for a text from a column use "
            "CONTAINS, STARTS_WITH or ENDS_WITH.",
            tree,
        )
    if scope.kind(value) not in (pl.String, pl.Null):
        raise scope.error(
            f"{tree.key.upper()} needs a text, but {value} is {type_words(scope.kind(value))}.",
            tree,
        )
    if escape and escape in pattern.value:
        signs = "(?si)" if isinstance(tree, exp.ILike) else "(?s)"
        written = f"{signs}^{_escaped(pattern.value, escape, tree, scope)}$"
        found = Call("regexp_matches", (value, Literal(written)))
        return ~found if tree.args.get("negate") else found
    if isinstance(tree, exp.ILike):
        value, pattern = Call("lower", (value,)), Literal(pattern.value.lower())
    found = Call("like", (value, pattern))
    return ~found if tree.args.get("negate") else found


def _escaped(pattern: str, escape: str, tree: exp.Expr, scope: Scope) -> str:
    """The regular expression of a pattern in which a sign takes the meaning of the next one away."""
    parts: list[str] = []
    signs = iter(pattern)
    for sign in signs:
        if sign == escape:
            plain = next(signs, None)
            if plain is None:
                raise scope.error(
                    f"the pattern '{pattern}' ends with {escape}, which escapes nothing.", tree
                )
            parts.append(re.escape(plain))
        else:
            parts.append({"%": ".*", "_": "."}.get(sign) or re.escape(sign))
    return "".join(parts)
