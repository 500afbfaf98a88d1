"""The tables of a run: which version the next epoch has, each written to the checkpoint once."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from anabranch.errors import StateError
from anabranch.routing.frame import to_table
from anabranch.sources.lookup_table import LookupTable
from anabranch.state.manifest import TableRecord
from anabranch.state.place import Place
from anabranch.state.segment import write_arrow


class Lookups:
    """Asks every table for its version before an epoch, and reads those that have changed."""

    def __init__(self, tables: Mapping[str, LookupTable], place: Place, fsync: bool) -> None:
        self._tables, self._place, self._fsync = tables, place, fsync
        self._written: dict[str, TableRecord] = {}
        """What was written for an epoch that has not been committed yet, maybe."""

    def versions(self, before: Mapping[str, TableRecord]) -> dict[str, TableRecord]:
        """The version of each table for the next epoch, given those of the last one."""
        found = {}
        for name, table in self._tables.items():
            version = table.version()
            known = [one for one in (self._written.get(name), before.get(name)) if one]
            same = next((one for one in known if one.version == version), None)
            found[name] = self._written[name] = same or self._write(name, table)
        return found

    def _write(self, name: str, table: LookupTable) -> TableRecord:
        version, rows = table.read()
        # What one run has written another, taken for dead, never overwrites
        file = f"state/table@{name}/{uuid.uuid4().hex[:12]}.arrow"
        contents = to_table(rows)
        try:
            total = write_arrow(self._place, file, contents.schema, [contents], self._fsync)
        except OSError as error:
            raise StateError(
                f"Table '{name}' cannot be written to '{self._place}/{file}': {error.strerror or error}. "
                "Free space or mend the folder and start again."
            ) from error
        return TableRecord(file=file, checksum=total, version=version, rows=rows.height)
