"""CREATE QUERY and CREATE VIEW: a SELECT whose faults are told at their places in the file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from anabranch.errors import LanguageError
from anabranch.session import Session
from anabranch.spec.place import Place
from anabranch.spec.spec import Need, tables_of
from anabranch.spec.sql_tokens import Spot

_FAULT = re.compile(r"(?:, at (?:line (\d+), )?character (\d+))?: ")
"""What follows the text of the statement in the language's messages (`Scope.error`)."""


@dataclass(frozen=True)
class SqlQuery:
    """A query of a SQL file."""

    name: str
    text: str
    emit: str | None
    start: Spot
    place: Spot

    def names(self) -> dict[str, Place]:
        return {self.name: self.place}

    def define(self, session: Session, need: Need) -> None:
        try:
            for table, offset in tables_of(self.text, self.name):
                need(table, self._spot(offset))
            session.query(self.name, self.text, self.emit)
        except LanguageError as error:
            raise self._in_file(error) from error

    def _spot(self, offset: int) -> Spot:
        return Spot(self.start.file, self.start.text, self.start.offset + offset)

    def _in_file(self, error: LanguageError) -> LanguageError:
        """The error without the statement's text, and with the place in the file."""
        begin, message = f"Query '{self.name}' '{self.text}'", str(error)
        found = _FAULT.match(message, len(begin)) if message.startswith(begin) else None
        if found is None:
            return error
        line, character = int(found[1] or 1), int(found[2] or 1)
        above = sum(len(text) + 1 for text in self.text.split("\n")[: line - 1])
        spot = self._spot(above + character - 1)
        return LanguageError(f"{spot}: query '{self.name}': {message[found.end() :]}")
