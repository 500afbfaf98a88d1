"""Text on its way to a query: the SQL dialect that texts are written in, and where their faults stand.

What a parsed tree means is in `text.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import polars as pl
import sqlglot
from sqlglot import exp, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import TokenType

from anabranch.errors import LONGEST_SHOWN, LanguageError, shorten
from anabranch.language.expression import Expression
from anabranch.language.inference import typed_of
from anabranch.language.sql.limits import (
    refuse_bare_joins,
    refuse_deep,
    refuse_digits,
    refuse_half_letters,
)
from anabranch.language.sql.precedence import OrderedParser
from anabranch.language.sql.spelling import OURS, Spelling
from anabranch.language.typed import Typed
from anabranch.language.user_function import UserFunction


class TextDialect(Dialect):
    """SQL with hex numbers, `//`, and every function under the name it was written with."""

    NUMBERS_CAN_BE_UNDERSCORE_SEPARATED = True
    NULL_ORDERING = "nulls_are_last"

    class Tokenizer(tokens.Tokenizer):
        HEX_STRINGS: ClassVar = [("0x", ""), ("0X", "")]
        IDENTIFIERS: ClassVar = ['"', "`"]
        KEYWORDS: ClassVar = {**tokens.Tokenizer.KEYWORDS, "//": TokenType.DIV}

    class Parser(OrderedParser):
        FUNCTIONS: ClassVar = {}
        NO_PAREN_FUNCTIONS: ClassVar = {}
        FUNCTION_PARSERS: ClassVar = {
            name: OrderedParser.FUNCTION_PARSERS[name]
            for name in ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM")
        }

        def _parse_interval_span(
            self, this: exp.Expr, parse_function_unit: bool = True
        ) -> exp.Interval:
            if this.is_string and any(letter.isalpha() for letter in this.name):
                # Theirs would keep what it knows of '1 hour thirty' and drop the rest
                return self.expression(exp.Interval(this=this))
            return super()._parse_interval_span(this, parse_function_unit=parse_function_unit)

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        if isinstance(path, exp.Literal) and path.is_string and not path.name.startswith("$"):
            # Theirs would take the name 'a.b' for a way from a to b
            key = exp.JSONPathKey(this=path.name)
            return exp.JSONPath(expressions=[exp.JSONPathRoot(), key])
        return super().to_json_path(path)


class PlacedError(LanguageError):
    """An error that names its text already: `reason` without it, and where in it the fault is."""

    reason: str = ""
    offset: int | None = None


@dataclass(frozen=True)
class Inputs:
    """The inputs of a statement by the names they have in it: what `t.srcIP` refers to."""

    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For each input its columns: the name there, and the name among the columns of all inputs."""
    merged: Mapping[str, Expression] = field(default_factory=dict)
    """Columns that USING made one of two."""
    asked: Collection[str] = ()
    """Inputs of semi- and anti-joins, which have no columns in the result."""

    def holding(self, column: str) -> list[str]:
        """The inputs that have a column of that name."""
        return [name for name, columns in self.tables.items() if column in columns]


@dataclass(frozen=True)
class Scope:
    """What a text may refer to, and what to call the text in messages."""

    text: str
    schema: Mapping[str, pl.DataType]
    where: str = "expression"
    inputs: Inputs = Inputs()
    own: Collection[str] = ()
    """Columns that a name without an input means first: those that GROUP BY made."""
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    """The user's functions, by names in small letters."""
    spelling: Spelling = OURS
    """The dialect that the text is written in."""
    window: str = ""
    """What the window of GROUP BY is called, if there is one: `window.start` is its beginning."""

    def error(self, message: str, at: exp.Expr | int | None = None) -> PlacedError:
        """The error to raise, with the position of the node (or the offset) in the text."""
        offset = offset_of(at) if isinstance(at, exp.Expr) else at
        place = "" if offset is None else f", at {position_of(self.text, offset)}"
        error = PlacedError(f"{self.where}{place}: {message} In: {self._shown(offset)}")
        error.reason, error.offset = message, offset
        return error

    def _shown(self, offset: int | None) -> str:
        """The text, or what of a long one is around the fault."""
        if len(self.text) <= LONGEST_SHOWN:
            return self.text
        begin = max(0, (offset or 0) - LONGEST_SHOWN // 2)
        cut = shorten(self.text[begin:])
        return f"… {cut}" if begin else cut

    @contextlib.contextmanager
    def placed(self, at: exp.Expr) -> Iterator[None]:
        """Gives errors that know no text the name of this one and a position."""
        try:
            yield
        except PlacedError:
            raise
        except LanguageError as error:
            raise self.error(error.in_sql or str(error), at) from error

    def kind(self, expression: Expression) -> pl.DataType:
        """The type of an expression over the columns there are."""
        return self.typed(expression).kind

    def typed(self, expression: Expression) -> Typed:
        """The type of an expression over the columns there are, and its value if it is a constant."""
        try:
            return typed_of(expression, self.schema)
        except LanguageError as error:
            raise self.error(str(error)) from error


class StatementDialect(TextDialect):
    """The same with whole statements: GROUP BY may name its expressions, and `window` is a function."""

    class Tokenizer(TextDialect.Tokenizer):
        KEYWORDS: ClassVar = {
            word: kind
            for word, kind in TextDialect.Tokenizer.KEYWORDS.items()
            if word not in ("WINDOW", "SESSION")
        }

    def tokenize(self, sql: str, dialect: Any = None) -> list[Any]:
        """The words, with the one that begins WINDOW w AS (…) told apart from the function."""
        found = super().tokenize(sql, dialect)
        for word, name, alias in zip(found, found[1:], found[2:], strict=False):
            named = word.text.upper() == "WINDOW" and alias.token_type == TokenType.ALIAS
            if named and name.token_type == TokenType.VAR:
                word.token_type = TokenType.WINDOW
        return found

    class Parser(TextDialect.Parser):
        def _parse_primary(self) -> exp.Expr | None:
            # TABLE t, the argument of a function in FROM
            named = self._curr and self._curr.token_type == TokenType.TABLE and self._next
            if named and self._next.token_type != TokenType.L_PAREN:
                self._advance()
                return self._parse_column()
            return super()._parse_primary()

        def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
            if not skip_group_by_token and not self._match(TokenType.GROUP_BY):
                return None
            if self._curr and self._curr.token_type in _SETS:
                # Theirs knows them, and then they can be refused by name
                return super()._parse_group(skip_group_by_token=True)
            return self.expression(exp.Group(expressions=self._parse_csv(self._parse_expression)))


class NullsSmall(StatementDialect):
    """The same with NULL below all other values where ORDER BY does not say, as Flink has it."""

    NULL_ORDERING = "nulls_are_small"


class NullsLarge(StatementDialect):
    """The same with NULL above all other values where ORDER BY does not say, as PostgreSQL has it."""

    NULL_ORDERING = "nulls_are_large"


class QuotingDialect(NullsSmall):
    """The same with texts in double quotes too, as Spark has them, and what a backslash says in them."""

    UNESCAPED_SEQUENCES = {  # noqa: RUF012
        "\\0": "\0", "\\Z": "\x1a", "\\%": "\\%", "\\_": "\\_", "\\a": "a", "\\f": "f", "\\v": "v",
    }  # fmt: skip

    class Tokenizer(StatementDialect.Tokenizer):
        IDENTIFIERS: ClassVar = ["`"]
        QUOTES: ClassVar = ["'", '"']
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']
        DROP_UNKNOWN_ESCAPES = True
        STRING_ESCAPES_ALLOWED_IN_RAW_STRINGS = False
        RAW_STRINGS: ClassVar = [(sign + quote, quote) for quote in "'\"" for sign in "rR"]


BEGINNING = 500
"""Letters in which the first word of a text is looked for."""
_SETS = (TokenType.ROLLUP, TokenType.CUBE, TokenType.GROUPING_SETS)

_HINTS = {
    "TOP": " TOP has no meaning in an endless stream: filter with WHERE or HAVING.",
    "GROUPING": " GROUPING SETS are not available: write a query for each grouping.",
}
"""What to say where the parser gives up at a word, or right after it."""


def parse(scope: Scope, dialect: type[Dialect] = TextDialect) -> exp.Expr:
    """The text as sqlglot's tree."""
    if not scope.text.strip():
        raise scope.error("expected an expression, but the text is empty.")
    refuse_half_letters(scope)
    refuse_deep(scope)
    refuse_bare_joins(scope, dialect)
    refuse_digits(scope, dialect)
    try:
        return sqlglot.parse_one(scope.text, dialect=dialect)
    except ParseError as error:
        first: dict[str, Any] = error.errors[0] if error.errors else {}
        near, line = str(first.get("highlight") or ""), int(first.get("line") or 1)
        above = sum(len(text) + 1 for text in scope.text.split("\n")[: line - 1])
        offset = above + int(first.get("col") or 0) - len(near)
        before = scope.text[:offset].split()
        words = [*before[-1:], *near.split()[:1]]
        hint = next((_HINTS[word.upper()] for word in words if word.upper() in _HINTS), "")
        hint = hint or _open_bracket(scope.text[:offset], dialect)
        raise scope.error(f"cannot be understood near '{near}'.{hint}", offset) from error
    except SqlglotError as error:
        raise scope.error("cannot be understood: is a quote left open?") from error


def _open_bracket(text: str, dialect: type[Dialect]) -> str:
    """A sentence about the last bracket that is open where a text ends, if there is one."""
    begins: list[int] = []
    with contextlib.suppress(SqlglotError):
        for token in dialect().tokenize(text):
            if token.token_type == TokenType.L_PAREN:
                begins.append(token.start)
            elif token.token_type == TokenType.R_PAREN and begins:
                begins.pop()
    if not begins:
        return ""
    return f" A bracket is open there: {shorten(text[begins[-1] :].strip(), 60)}"


def dialect_of(scope: Scope) -> type[Dialect]:
    """The dialect that sqlglot reads a statement in."""
    if scope.spelling.double_quotes_text:
        return QuotingDialect
    return {"small": NullsSmall, "large": NullsLarge}.get(scope.spelling.nulls, StatementDialect)


def offset_of(tree: exp.Expr) -> int | None:
    """Where the node, or the first of its parts that knows, stands in the text."""
    starts = [node.meta["start"] for node in tree.walk() if "start" in node.meta]
    return min(starts, default=None)


def first_word(scope: Scope) -> str:
    """The word a text begins with, comments aside, in capitals."""
    dialect = dialect_of(scope)()
    # Of a long text the beginning is enough, unless it ends in the midst of a comment or a quote
    with contextlib.suppress(SqlglotError):
        found = dialect.tokenize(scope.text[:BEGINNING])
        if len(found) > 1:
            return str(found[0].text).upper()
    try:
        found = dialect.tokenize(scope.text)
    except SqlglotError as error:
        raise scope.error("cannot be understood: is a quote left open?") from error
    return str(found[0].text).upper() if found else ""


def position_of(text: str, offset: int) -> str:
    """`character 7`, with the line where there are several."""
    before = text[:offset]
    line, column = before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
    return f"line {line}, character {column}" if "\n" in text.strip() else f"character {offset + 1}"
