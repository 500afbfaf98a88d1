"""The form of a stream's files, where it is not the usual one: separators, marks of NULL, names, encodings.

What of it users may say is read and checked here; what it means is in `opening.py`, `text_files.py` and
`text_values.py`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import polars as pl

from anabranch.errors import SourceError, suggest
from anabranch.language.checked import shown_value

COLUMN = re.compile(r"\s*(\S+)\s+([^,(]+(?:\([^)]*\))?)\s*(?:,|$)")
"""A column and its type, where several are written as one text."""


@dataclass(frozen=True)
class FileForm:
    """How values stand in the files of a stream."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    header: bool = True
    """Whether the first line of a CSV file has the names of its columns."""
    nulls: tuple[str, ...] = ("",)
    """Fields of CSV files that are NULL, if they stand without quotes."""
    comment: str | None = None
    """What lines of CSV files begin with that are passed over."""
    decimal: str = "."
    time_format: tuple[str, ...] = ()
    """How times and dates of text files are written, as strftime has it; none: by ISO 8601."""
    encoding: str = "utf-8"
    missing: str = "stop"
    """What a column is that a file does not have: a fault, or NULL."""
    rename: tuple[tuple[str, str], ...] = ()
    """Columns by their name in the files, and as queries call them."""

    def in_files(self, column: str) -> str:
        """What a column is called in the files."""
        return next((there for there, here in self.rename if here == column), column)

    def here(self, column: str) -> str:
        """What a column of the files is called in queries."""
        return dict(self.rename).get(column, column)

    @property
    def plain_rows(self) -> FileForm:
        """The same values in a CSV text as Arrow writes it: what is NULL there is an empty field."""
        return replace(
            self, delimiter=",", quote='"', escape=None, header=True, comment=None,
            encoding="utf-8", nulls=(*self.nulls, ""),
        )  # fmt: skip


USUAL = FileForm()
OTHER_DELIMITERS = ";\t|"
TEXT_ONLY = {"encoding", "time_format"}
ANY_FORMAT = {"missing", "rename"}
OPTIONS = (*(one.name for one in fields(FileForm)), "types")
"""What a stream of files may be told about them, besides format and schema."""


def suggest_delimiter(names: Collection[str]) -> str:
    """What to add to a fault of a CSV file whose names of columns stand in one piece."""
    lone = next(iter(names)) if len(names) == 1 else ""
    sign = max(OTHER_DELIMITERS, key=lone.count)
    if sign not in lone:
        return ""
    return f" Its columns seem to be parted by {sign!r}: give the stream delimiter={sign!r}."


def read_form(stream: str, options: Mapping[str, Any]) -> FileForm:
    """The form that a user asks for; raises SourceError for what there is not."""
    given: dict[str, Any] = {}
    for name, value in options.items():
        if name not in OPTIONS:
            raise SourceError(
                f"Stream '{stream}': files have no option '{name}'.{suggest(name, OPTIONS)}"
            )
        if name != "types":
            given[name] = _READ.get(name, _text)(stream, name, value)
    form = FileForm(**given)
    if form.decimal == form.delimiter:
        raise SourceError(
            f"Stream '{stream}': decimal and delimiter are both {form.decimal!r}. Give the delimiter that "
            "stands between the fields, as delimiter=';'."
        )
    return form


def check_form(stream: str, form: FileForm, format: str) -> None:
    """Refuses what says nothing about files of this format."""
    allowed = ANY_FORMAT | {"csv": set(OPTIONS), "json": TEXT_ONLY}.get(format, set())
    for one in fields(FileForm):
        if one.name not in allowed and getattr(form, one.name) != one.default:
            kind = "CSV or JSON" if one.name in TEXT_ONLY else "CSV"
            raise SourceError(
                f"Stream '{stream}': {one.name}= is for {kind} files; these are {format}."
            )


def read_types(stream: str, types: object) -> dict[str, str]:
    """Types of some columns: a mapping, or a text such as 'ts timestamp, price decimal(10, 2)'."""
    if isinstance(types, str):
        columns = list(COLUMN.finditer(types))
        if "".join(column.group() for column in columns) == types:
            return {column[1]: column[2].strip() for column in columns}
    elif isinstance(types, Mapping):
        return {str(column): str(kind) for column, kind in types.items()}
    raise SourceError(
        f"Stream '{stream}': types is {shown_value(types)}; expected columns with their types, as "
        "{'ts': 'timestamp'} or 'ts timestamp, price decimal(10, 2)'."
    )


def _text(stream: str, name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise SourceError(f"Stream '{stream}': {name} is {shown_value(value)}; expected a text.")
    return value


def _character(stream: str, name: str, value: object) -> str | None:
    if value is None and name in ("quote", "escape"):
        return None
    value = "\t" if value in ("\\t", "tab") else value
    if not isinstance(value, str) or len(value.encode()) != 1 or value in "\r\n":
        raise SourceError(
            f"Stream '{stream}': {name} is {shown_value(value)}; expected one character, as ';'."
        )
    return value


def _flag(stream: str, name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SourceError(
            f"Stream '{stream}': {name} is {shown_value(value)}; expected true or false."
        )
    return value


def _texts(stream: str, name: str, value: object) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise SourceError(
            f"Stream '{stream}': {name} is {shown_value(value)}; expected a text or several."
        )
    return tuple(texts)


def _nulls(stream: str, name: str, value: object) -> tuple[str, ...]:
    """An empty field stays NULL beside any other mark."""
    return tuple(dict.fromkeys(("", *_texts(stream, name, value))))


def _time_formats(stream: str, name: str, value: object) -> tuple[str, ...]:
    formats = _texts(stream, name, value)
    for format in formats:
        try:
            pl.select(pl.lit("").str.to_datetime(format, strict=False))
        except pl.exceptions.PolarsError as error:
            raise SourceError(
                f"Stream '{stream}': {name} has {format!r}, which is no format of times: "
                f"{str(error).splitlines()[0]} Expected one as '%d.%m.%Y %H:%M'."
            ) from error
    return formats


def _encoding(stream: str, name: str, value: object) -> str:
    try:
        return codecs.lookup(_text(stream, name, value)).name
    except LookupError as error:
        raise SourceError(
            f"Stream '{stream}': there is no encoding {value!r}; expected one as 'latin-1'."
        ) from error


def _missing(stream: str, name: str, value: object) -> str:
    if value not in ("stop", "null"):
        raise SourceError(
            f"Stream '{stream}': missing is {shown_value(value)}; expected 'stop' or 'null'."
        )
    return str(value)


def _rename(stream: str, name: str, value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping):
        raise SourceError(
            f"Stream '{stream}': rename is {shown_value(value)}; expected names in the files and what "
            "queries call them, as {'Arr Delay': 'arr_delay'}."
        )
    pairs = tuple((str(there), str(here)) for there, here in value.items())
    twice = {here for _, here in pairs if [new for _, new in pairs].count(here) > 1}
    if twice:
        raise SourceError(f"Stream '{stream}': rename calls several columns '{min(twice)}'.")
    return pairs


_READ: dict[str, Any] = {
    "delimiter": _character, "quote": _character, "escape": _character, "decimal": _character,
    "header": _flag, "nulls": _nulls, "time_format": _time_formats, "encoding": _encoding,
    "missing": _missing, "rename": _rename,
}  # fmt: skip
