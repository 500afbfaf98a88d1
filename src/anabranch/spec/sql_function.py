"""CREATE FUNCTION: a function of a Python module, with its types, for the queries of a file."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from anabranch.errors import LanguageError
from anabranch.session import Session
from anabranch.spec.sql_tokens import Spot, Statement
from anabranch.spec.sql_type import SQL_TYPES


@dataclass(frozen=True)
class SqlFunction:
    """A function of a SQL file."""

    name: str
    arguments: tuple[str, ...]
    result: str
    target: str
    place: Spot

    def define(self, session: Session) -> None:
        module, _, attribute = self.target.partition(":")
        try:
            body = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise self.place.error(
                f"the function '{self.target}' cannot be had: {error}. Expected 'module:function' of a "
                "module that can be imported."
            ) from error
        try:
            session.function(self.name, body, arguments=list(self.arguments), result=self.result)
        except LanguageError as error:
            raise self.place.error(str(error)) from error


def read_function(words: Statement, form: str) -> SqlFunction:
    """What follows CREATE FUNCTION: name(types) RETURNS type LANGUAGE PYTHON AS 'module:function'."""
    name = words.name(f"the name of the function: {form}")
    spot = words.spot()
    given = words.expressions()
    # A parameter may have a name before its type
    arguments = tuple(_type(part.split()[-1] if " " in part else part, spot) for part in given)
    _need(words, form, "RETURNS")
    result = _type(words.name(f"the type of its values: {form}"), spot)
    _need(words, form, "LANGUAGE")
    _need(words, form, "PYTHON")
    words.need("AS", f"AS and a function of a module: {form}")
    target = words.value("AS").value(str)
    words.end()
    if str(target).count(":") != 1:
        raise spot.error(f"'{target}' is no 'module:function': {form}.")
    return SqlFunction(name, arguments, result, str(target), spot)


def _need(words: Statement, form: str, word: str) -> None:
    words.need(word, f"{word}: {form}")


def _type(written: str, spot: Spot) -> str:
    kind = SQL_TYPES.get(written.upper())
    if kind is None:
        raise spot.error(f"there is no type {written.upper()} for a function.")
    return kind
