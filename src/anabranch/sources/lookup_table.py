"""Tables that streams are joined with: files, a Delta table, or rows that are given as they are.

A table has a version, which is cheap to ask for, and rows. Files have to be replaced whole (write elsewhere,
then rename), as those of streams.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from anabranch.errors import SourceError
from anabranch.language.kinds import is_supported
from anabranch.sources.files import FileSource
from anabranch.sources.formats import polars_schema
from anabranch.sources.make import make_files
from anabranch.sources.tables.needs import needed
from anabranch.sources.watching import list_files

ATTEMPTS = 5
"""How often a table is read that changes meanwhile."""


@dataclass(frozen=True)
class LookupTable:
    """Where the rows of a table come from."""

    name: str
    described: str
    schema: pl.Schema
    version: Callable[[], str]
    """What tells its contents of now from others."""
    rows: Callable[[], pl.DataFrame]

    def read(self) -> tuple[str, pl.DataFrame]:
        """All rows and the version that they are of."""
        before = self.version()
        for _ in range(ATTEMPTS):
            fault: SourceError | None = None
            try:
                rows = self.rows()
            except SourceError as error:
                fault = error
            after = self.version()
            if after == before:
                if fault is not None:
                    raise fault
                return after, rows
            before = after
        raise SourceError(
            f"Table '{self.name}': {self.described} changed whenever it was read. Replace its files by "
            "renaming new ones, not by writing into them."
        )


def lookup_table(
    name: str, given: Any, path: str | Path | None, delta: str | Path | None, format: str | None,
    schema: Mapping[str, str] | pl.Schema | None, options: Mapping[str, Any],
) -> LookupTable:  # fmt: skip
    """A table from what a user may give for one."""
    inputs = {"rows": given, "path": path, "delta": delta}
    if sum(value is not None for value in inputs.values()) != 1:
        raise SourceError(
            f"Table '{name}' needs one input: path= (files), delta= (a folder), or its rows as a DataFrame "
            "of Polars or Spark, or an Arrow table."
        )
    if path is not None:
        files = make_files(name, str(path), format, schema, "name", options)
        assert isinstance(files, FileSource)
        return _of_files(name, files)
    if options or schema is not None or format is not None:
        option = next(iter(options), "schema" if schema is not None else "format")
        raise SourceError(f"Table '{name}': '{option}' is for tables of files (path=).")
    made = _of_delta(name, os.path.abspath(delta)) if delta is not None else _of_rows(name, given)
    for column, kind in made.schema.items():
        if not is_supported(kind):
            raise SourceError(
                f"Table '{name}': column '{column}' is a {kind}, which is not known here."
            )
    return made


def _of_files(name: str, files: FileSource) -> LookupTable:
    # Read otherwise, the same files are other rows
    read_as = repr((files.path, files.format, files.schema, files.form))

    def version() -> str:
        listed = [(file.name, file.version, file.etag) for file in list_files(files.path)]
        return _hashed(f"{read_as} {listed}".encode(errors="replace"))

    def rows() -> pl.DataFrame:
        listed = list_files(files.path)
        if not listed:
            raise SourceError(
                f"Table '{name}': expected a file in '{files.path}', found none any more. Put one there and "
                "start again; one without rows is a table without rows."
            )
        parts = [pl.DataFrame(schema=files.schema)]
        for file in listed:
            # A file that has changed since is another version, which `read` notices
            piece = replace(files.cut(file, 0, 1)[0][0], version=None)
            reading = piece.read(files.schema.names(), False)
            for bad in reading.bad:
                raise SourceError(
                    f"{bad.reason.rstrip('.')}. Mend the table '{name}' and start again."
                )
            if reading.rows is not None:
                parts.append(reading.rows.select(files.schema.names()))
        return pl.concat(parts)

    return LookupTable(name, files.describe(), files.schema, version, rows)


def _of_delta(name: str, folder: str) -> LookupTable:
    with needed("delta", f"Table '{name}'"):
        import deltalake

    def table() -> Any:
        try:
            return deltalake.DeltaTable(folder)
        except (deltalake.exceptions.DeltaError, OSError) as error:
            raise SourceError(
                f"Table '{name}': there is no Delta table in '{folder}' that can be read: {error}."
            ) from error

    def version() -> str:
        # A table that was made anew in its place begins with version 0, too
        found = table()
        return f"{found.version()} of {found.metadata().id}"

    def rows() -> pl.DataFrame:
        found = pl.from_arrow(pa.table(table().to_pyarrow_table()))
        assert isinstance(found, pl.DataFrame)
        for column, kind in schema.items():
            if found.schema.get(column) != kind:
                raise SourceError(
                    f"Table '{name}': column '{column}' of {described} was {kind} when the session began and "
                    f"is {found.schema.get(column, 'not there')} now. Start with a new session."
                )
        return found.select(schema.names())

    schema = pl.Schema(polars_schema(pa.schema(table().schema().to_arrow())))
    described = f"the Delta table '{folder}'"
    return LookupTable(name, described, schema, version, rows)


def _of_rows(name: str, given: Any) -> LookupTable:
    """Rows that stay as they are for as long as the session."""
    if getattr(given, "isStreaming", False):
        raise SourceError(
            f"Table '{name}' is a streaming DataFrame: register it with session.stream()."
        )
    if hasattr(given, "toArrow"):
        given = given.toArrow()
    rows = pl.from_arrow(given) if isinstance(given, pa.Table) else given
    if not isinstance(rows, pl.DataFrame):
        raise SourceError(
            f"Table '{name}': expected a DataFrame of Polars or Spark, or an Arrow table, got "
            f"{type(given).__name__}."
        )
    contents = pa.BufferOutputStream()
    rows.rechunk().write_ipc(contents, compat_level=pl.CompatLevel.oldest())
    version = _hashed(contents.getvalue())
    return LookupTable(name, "rows that were given", rows.schema, lambda: version, lambda: rows)


def _hashed(contents: bytes | pa.Buffer) -> str:
    return hashlib.blake2b(contents, digest_size=16).hexdigest()
