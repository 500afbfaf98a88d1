"""CREATE QUERY and CREATE VIEW: a SELECT whose faults are told at their places in the file."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.errors import LanguageError
from anabranch.language.sql.dialect import PlacedError
from anabranch.session import Session
from anabranch.spec.place import FilePlace
from anabranch.spec.spec import Need, tables_of
from anabranch.spec.sql_tokens import Spot


@dataclass(frozen=True)
class SqlQuery:
    """A query of a SQL file."""

    name: str
    text: str
    emit: str | None
    start: Spot
    place: Spot

    def names(self) -> dict[str, FilePlace]:
        return {self.name: self.place}

    def define(self, session: Session, need: Need) -> None:
        try:
            for table, offset in tables_of(self.text, self.name, session.settings.dialect):
                need(table, self._spot(offset))
            session.query(self.name, self.text, self.emit)
        except LanguageError as error:
            raise self._in_file(error) from error

    def _spot(self, offset: int) -> Spot:
        return Spot(self.start.file, self.start.text, self.start.offset + offset)

    def _in_file(self, error: LanguageError) -> LanguageError:
        """The error without the statement's text, and with the place in the file."""
        if not isinstance(error, PlacedError):
            return error
        spot = self._spot(error.offset or 0)
        return LanguageError(f"{spot}: query '{self.name}': {error.reason}")
