"""A SQL file cut into its statements, read with the quotes of the dialect that it sets."""

from __future__ import annotations

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from anabranch.errors import SettingsError
from anabranch.language.sql.dialect import QuotingDialect, StatementDialect
from anabranch.language.sql.spelling import spelling_named
from anabranch.settings import DIALECTS
from anabranch.spec.sql_tokens import Spot, Statement


def statements(file: str, text: str) -> list[Statement]:
    """The statements of a file, which `;` parts."""
    return [Statement(file, text, tokens) for tokens in _parted(_tokens(file, text)) if tokens]


def _parted(tokens: list[Token]) -> list[list[Token]]:
    found: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            found.append([])
        else:
            found[-1].append(token)
    return found


def _tokens(file: str, text: str) -> list[Token]:
    # SET dialect may stand behind texts that only that dialect can read
    quoting = _read(QuotingDialect, text)
    if quoting is not None and _sets_quoting(quoting):
        return quoting
    plain = _read(StatementDialect, text)
    if plain is None:
        raise _left_open(file, text)
    return plain


def _read(dialect: type[Dialect], text: str) -> list[Token] | None:
    try:
        return Dialect.get_or_raise(dialect).tokenize(text)
    except SqlglotError:
        return None


def _sets_quoting(tokens: list[Token]) -> bool:
    """Whether a file that is read like this sets a dialect with such quotes."""
    for words in _parted(tokens):
        written = [word.text for word in words]
        if [word.lower() for word in written[:3]] == ["set", "dialect", "="] and len(written) == 4:
            return written[3] in DIALECTS and spelling_named(written[3]).double_quotes_text
    return False


def _left_open(file: str, text: str) -> SettingsError:
    # sqlglot names the place where the text ends; what is left open begins at the last quote
    # before which everything is whole.
    for offset in reversed(range(len(text))):
        begins = text[offset] in "'\"" or text[offset : offset + 2] == "/*"
        if begins and _read(StatementDialect, text[:offset]) is not None:
            opened = "comment" if text[offset] == "/" else "quote"
            escaped = (
                " A quote within a text is written twice, 'it''s'; \\' is read with SET dialect = 'spark'."
                if "\\'" in text
                else ""
            )
            return Spot(file, text, offset).error(
                f"the {opened} that begins here is not closed, or one before it.{escaped}"
            )
    return SettingsError(f"{file}, line 1: not SQL.")
