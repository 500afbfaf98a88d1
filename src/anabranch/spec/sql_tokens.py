"""The words of a statement in a SQL file, with their places.

sqlglot's tokenizer knows strings, quoted names and comments; what the words mean is in `sql_file.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot.tokenizer_core import Token, TokenType

from anabranch.errors import SettingsError, suggest
from anabranch.language.window import UNITS
from anabranch.spec.misplaced import elsewhere
from anabranch.spec.place import FilePlace, PartPlace

_CONSTANTS = {TokenType.TRUE: True, TokenType.FALSE: False, TokenType.NULL: None}


@dataclass(frozen=True)
class Spot(FilePlace):
    """A character of a SQL file."""

    file: str
    text: str
    offset: int

    @property
    def within(self) -> str:
        """Where in the file it is."""
        before = self.text[: self.offset]
        line, column = before.count("\n") + 1, self.offset - (before.rfind("\n") + 1) + 1
        return f"line {line}, column {column}"

    def __str__(self) -> str:
        return f"{self.file}, {self.within}"


@dataclass(frozen=True)
class Value(PartPlace):
    """The value of an option, or what a clause of a statement stands for."""

    file: str
    key: str
    spot: Spot
    of: Any

    def __str__(self) -> str:
        return f"{self.spot}, {self.key}"

    def plain(self) -> Any:
        return self.of


class Statement:
    """The words of one statement, taken one after the other."""

    def __init__(self, file: str, text: str, tokens: list[Token]) -> None:
        self.file = file
        self.text = text
        self._tokens = tokens
        self._at = 0

    def spot(self) -> Spot:
        """The next word's place, or the end of the statement."""
        token = self.peek()
        last = self._tokens[-1].end + 1
        return Spot(self.file, self.text, token.start if token else last)

    def peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def shown(self) -> str:
        """The next word for messages."""
        token = self.peek()
        if token is None:
            return "the end of the statement"
        # A quote left open makes a word of half the file
        written = self.text[token.start : token.end + 1].split("\n")[0]
        return written if written.startswith("'") else f"'{written}'"

    def expected(self, what: str, known: Collection[str] = ()) -> SettingsError:
        """The error to raise; among `known` may be what the next word should have been."""
        hint = near(self.peek(), known)
        return self.spot().error(f"expected {what}, got {self.shown()}.{hint}")

    def next_is(self, *words: str) -> bool:
        """Whether these words, or signs, come next."""
        ahead = self._tokens[self._at : self._at + len(words)]
        return [_written(token) for token in ahead] == list(words)

    def take(self, *words: str) -> bool:
        """Takes these words if they come next."""
        found = self.next_is(*words)
        self._at += len(words) if found else 0
        return found

    def need(self, word: str, what: str) -> None:
        if not self.take(word):
            raise self.expected(what)

    def closes(self, opening: Spot, closing: str, where: str) -> bool:
        """Whether a bracket is closed here; else a comma must lead on."""
        if self.take(closing):
            return True
        if not self.take(","):
            raise self.spot().error(
                f"expected ',' or '{closing}' {where}, got {self.shown()}. The bracket that is open begins "
                f"in {opening.within}."
            )
        return False

    def name(self, what: str) -> str:
        """A name: a word of any kind (`time` and `rows` are names, too) or "quoted"."""
        token = self.peek()
        if token is None or not (
            token.token_type == TokenType.IDENTIFIER
            or (
                token.text.replace("_", "a").isalnum()
                and token.token_type
                not in (TokenType.NUMBER, TokenType.STRING, TokenType.HEX_STRING)
            )
        ):
            raise self.expected(what)
        self._at += 1
        return token.text

    def option_name(self, example: str) -> str:
        """The name of an option, in small letters."""
        token = self.peek()
        if token is not None and token.token_type == TokenType.STRING:
            raise self.spot().error(f"names of options stand without quotes: {example}.")
        return self.name(f"the name of an option: {example}").lower()

    def next_is_word(self) -> bool:
        """Whether a word comes next, and no text, number or sign."""
        token = self.peek()
        return (
            token is not None and token.token_type != TokenType.STRING and token.text.isidentifier()
        )

    def unit(self) -> str:
        """The next word if it is a unit of time; nothing is taken."""
        token = self.peek()
        written = token.text.lower() if token else ""
        return written if written.removesuffix("s") in UNITS else ""

    def value(self, key: str) -> Value:
        """A constant (a text in quotes, a number, TRUE, FALSE, NULL), a list or a map of them."""
        spot = self.spot()
        if self.next_is("ARRAY", "["):
            self.take("ARRAY")
        opening = self.spot()
        if self.take("["):
            return Value(self.file, key, spot, [of for (of,) in self._parts(key, opening, "]", 1)])
        if self.take("{"):
            return Value(self.file, key, spot, dict(self._parts(key, opening, "}", 2)))
        sign = -1 if self.take("-") else 1
        token = self.peek()
        kind = token.token_type if token else None
        of: Any
        if token and kind == TokenType.NUMBER and token.text.isascii():
            of = sign * _number(token.text, spot)
        elif token and kind == TokenType.HEX_STRING:
            of = sign * _number(token.text, spot, 16)
        elif token and kind == TokenType.STRING and sign == 1:
            of = token.text
        elif token and kind in _CONSTANTS and sign == 1:
            of = _CONSTANTS[kind]
        else:
            quotes = " Put a text in quotes: '...'." if token and token.text.isidentifier() else ""
            raise spot.error(
                f"'{key}' needs a text, a number, TRUE, FALSE or NULL, got {self.shown()}.{quotes}"
            )
        self._at += 1
        return Value(self.file, key, spot, of)

    def _parts(self, key: str, opening: Spot, closing: str, width: int) -> list[tuple[Any, ...]]:
        """What stands in a list, or with a width of two in a map: `'a': 1, 'b': 2`."""
        found: list[tuple[Any, ...]] = []
        closed = self.take(closing)
        while not closed:
            part = self.value(key).of
            if width == 1:
                found.append((part,))
            else:
                self.need(":", f"':' after a name in the value of '{key}'")
                found.append((part, self.value(key).of))
            closed = self.closes(opening, closing, f"in the value of '{key}'")
        return found

    def options(
        self, known: Collection[str], clauses: Mapping[str, str] | None = None
    ) -> dict[str, Value]:
        """`(key = value, ...)` with keys in small letters; `clauses` are written otherwise."""
        opening = self.spot()
        self.need("(", "'(' and options, e.g. WITH (format = 'csv')")
        found: dict[str, Value] = {}
        while True:
            spot, key = self.spot(), self.option_name("path = 'folder'")
            if clauses and key in clauses:
                raise spot.error(f"'{key}' is not an option in SQL: write {clauses[key]}.")
            if key not in known:
                raise spot.error(f"there is no option '{key}' here.{elsewhere(key, known)}")
            if key in found:
                raise spot.error(f"the option '{key}' appears twice.")
            self.need("=", f"'=' after '{key}'")
            found[key] = self.value(key)
            if self.closes(opening, ")", "after the option"):
                return found

    def expressions(self) -> list[str]:
        """`(expression, ...)` as they are written."""
        opening = self.spot()
        self.need("(", "'(' and a list of columns or expressions")
        found: list[str] = []
        begin, depth = self._at, 0
        while (token := self.peek()) is not None:
            sign = _written(token)
            if depth == 0 and sign in (",", ")"):
                if begin == self._at:
                    raise self.expected("a column or an expression")
                start, end = self._tokens[begin].start, self._tokens[self._at - 1].end
                found.append(self.text[start : end + 1])
                begin = self._at + 1
            depth += {"(": 1, ")": -1}.get(sign, 0)
            self._at += 1
            if depth < 0:
                return found
        raise opening.error("the bracket that begins here is not closed.")

    def rest(self) -> tuple[Spot, str]:
        """All that is left, as it is written."""
        spot, first = self.spot(), self.peek()
        for token in self._tokens[self._at :]:
            if token.token_type == TokenType.CREATE:
                here = Spot(self.file, self.text, token.start)
                raise here.error("expected ';' before the next statement, got 'CREATE'.")
        self._at = len(self._tokens)
        return spot, self.text[first.start : self._tokens[-1].end + 1] if first else ""

    def end(self) -> None:
        if self.peek() is not None:
            raise self.expected("';' at the end of the statement")


def _number(text: str, spot: Spot, base: int = 10) -> int | float:
    try:
        return int(text, base) if base == 16 or text.isdigit() else float(text)
    except ValueError as error:
        raise spot.error(f"'{text}' is not a number.") from error


def near(token: Token | None, known: Collection[str]) -> str:
    """` Did you mean 'CREATE'?`, if a word is much like one of these."""
    said = suggest(_written(token), known) if token and known else ""
    return said.split(" Existing")[0]


def _written(token: Token) -> str:
    """A word in capitals, for comparing; quoted ones are never keywords."""
    quoted = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
    return f"'{token.text}'" if quoted else token.text.upper()
