"""Which operator binds how strongly in a text: as in DuckDB, and refused where engines do not agree.

The parser marks what it reads, and `unclear` tells what needs parentheses. Different bit operators
beside each other are refused where they are translated.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp
from sqlglot.parser import IsPredicatePrecedence, binary_range_parser
from sqlglot.parser import Parser as SqlParser
from sqlglot.tokenizer_core import TokenType

_UNCLEAR, _PREFIX, _WRITTEN = "unclear", "prefix", "written"
"""Marks of nodes: what to say of one that needs parentheses, NOT before an operand, written parentheses."""

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_NULL_SAFE = (exp.NullSafeEQ, exp.NullSafeNEQ)
_RANGES = (exp.Between, exp.In, exp.Like, exp.ILike)
_AFTER_OPERAND = (
    *SqlParser.TERM, *SqlParser.FACTOR, *SqlParser.BITWISE, TokenType.DPIPE, TokenType.LT, TokenType.GT,
)  # fmt: skip


class OrderedParser(SqlParser):
    """IS below comparisons, as in DuckDB and Postgres; marks what is read in several ways elsewhere."""

    IS_PREDICATE_PRECEDENCE: ClassVar = IsPredicatePrecedence.LOW
    UNARY_PARSERS: ClassVar = {
        **SqlParser.UNARY_PARSERS,
        TokenType.TILDE: lambda self: self._parse_tilde(),
        TokenType.NOT: lambda self: self._parse_not(),
    }

    RANGE_PARSERS: ClassVar = {
        **SqlParser.RANGE_PARSERS,
        TokenType.TILDE: binary_range_parser(exp.RegexpLike),
    }

    def _parse_tilde(self) -> exp.Expr:
        inverted = self.expression(exp.BitwiseNot(this=self._parse_unary()))
        sign = self._curr.token_type
        shift = self._next.token_type is sign
        if sign in _AFTER_OPERAND and (sign not in (TokenType.LT, TokenType.GT) or shift):
            inverted.meta[_UNCLEAR] = (
                "~ before an operator is read in two ways: say with parentheses what it inverts, "
                "(~x) + 1 or ~(x + 1)"
            )
        return inverted

    def _parse_not(self) -> exp.Expr:
        negated = self.expression(exp.Not(this=self._parse_equality()))
        negated.meta[_PREFIX] = True
        return negated

    def _parse_paren(self) -> exp.Expr | None:
        enclosed = super()._parse_paren()
        if enclosed is not None:
            enclosed.meta[_WRITTEN] = True
        return enclosed

    def _build_predicate(
        self,
        klass: type[exp.Binary],
        this: exp.Expr | None,
        expression: exp.Expr | None,
        comments: list[str] | None = None,
        negate: bool = False,
    ) -> exp.Expr:
        alike = next((signs for signs in (_COMPARISONS, _NULL_SAFE) if klass in signs), ())
        chained = type(this) in alike or type(expression) in alike
        predicate = super()._build_predicate(klass, this, expression, comments, negate)
        if chained:
            predicate.meta[_UNCLEAR] = (
                "comparisons cannot be chained: join two of them with AND, as in a < b AND b < c, or say "
                "with parentheses which comes first"
            )
        return predicate


def unclear(tree: exp.Expr) -> str | None:
    """What to say of a node that needs parentheses, if it does."""
    if _UNCLEAR in tree.meta:
        return str(tree.meta[_UNCLEAR])
    if isinstance(tree, _RANGES):
        below = _bare(tree.this)
        below = below.this if isinstance(below, exp.Not) else below
        if isinstance(below, (*_RANGES, exp.Is)):
            return f"{tree.key.upper()} follows another condition: put that into parentheses"
    above = isinstance(tree, exp.Binary) and not isinstance(tree, (exp.Connector, *_COMPARISONS))
    if above and any(_PREFIX in _bare(side).meta for side in (tree.this, tree.expression)):
        return "NOT is an operand: put it and what it negates into parentheses"
    return None


def _bare(tree: exp.Expr) -> exp.Expr:
    """A node without the parentheses that the parser put around it by itself."""
    while isinstance(tree, exp.Paren) and _WRITTEN not in tree.meta:
        tree = tree.this
    return tree
