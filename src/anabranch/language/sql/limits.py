"""Texts that cannot be read, or not in time, and are refused before they are parsed."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from anabranch.language.deep import MOST_NESTED
from anabranch.language.naming import half_letter

if TYPE_CHECKING:
    from anabranch.language.sql.dialect import Scope

MOST_BARE_JOINS = 8
"""Joins whose conditions may all stand behind the last of them."""
MOST_DIGITS = 1_000
"""Digits of a number: no type has nearly as many, and Python makes no integers of more than 4,300."""


def refuse_deep(scope: Scope) -> None:
    """Refuses a text with more parentheses within each other than can be read, before it is tried."""
    if scope.text.count("(") <= MOST_NESTED:
        return
    depth = 0
    for offset, letter in enumerate(scope.text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth > MOST_NESTED:
            raise scope.error(
                f"there are more than {MOST_NESTED:,} parentheses within each other, which is the most "
                "that can be read. Compute some of it in a query of its own and read that.",
                offset,
            )


def refuse_half_letters(scope: Scope) -> None:
    """Refuses what is no Unicode: names and constants are kept in files."""
    offset = half_letter(scope.text)
    if offset is not None:
        letter = f"\\u{ord(scope.text[offset]):04x}"
        text = scope.text.encode(errors="replace").decode()
        raise replace(scope, text=text).error(f"{letter} is half of a letter, no Unicode.", offset)


def refuse_bare_joins(scope: Scope, dialect: type[Dialect]) -> None:
    """Refuses many joins in a row without a condition: each doubles the time that the parser takes."""
    if scope.text.upper().count("JOIN") <= MOST_BARE_JOINS:
        return
    waiting = [0]
    with contextlib.suppress(SqlglotError):
        for token in dialect().tokenize(scope.text):
            match token.token_type:
                case TokenType.L_PAREN:
                    waiting.append(0)
                case TokenType.R_PAREN if len(waiting) > 1:
                    waiting.pop()
                case TokenType.SELECT:
                    waiting[-1] = 0
                case TokenType.JOIN:
                    waiting[-1] += 1
                case TokenType.ON | TokenType.USING:
                    waiting[-1] = max(0, waiting[-1] - 1)
            if waiting[-1] > MOST_BARE_JOINS:
                raise scope.error(
                    f"more than {MOST_BARE_JOINS} JOINs in a row have no ON: give each its condition.",
                    token.start,
                )


def refuse_digits(scope: Scope, dialect: type[Dialect]) -> None:
    """Refuses numbers of more digits than can be made a number of."""
    if not re.search(rf"\d{{{MOST_DIGITS + 1}}}", scope.text):
        return
    with contextlib.suppress(SqlglotError):
        for token in dialect().tokenize(scope.text):
            if token.token_type == TokenType.NUMBER and len(token.text) > MOST_DIGITS:
                raise scope.error(
                    f"a number of {len(token.text):,} digits does not fit 64 bits.", token.start
                )
