"""Sources from what a user may give for one, and what is remembered of a registered stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import polars as pl

from anabranch.errors import LanguageError, SettingsError, SourceError, nearest, suggest
from anabranch.language.expression import type_named
from anabranch.language.kinds import (
    EXPECTED,
    is_supported,
    map_advice,
    suggest_type,
    type_words,
)
from anabranch.language.node import Stream
from anabranch.language.order import Ordered
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.sources.ahead import Ahead
from anabranch.sources.base import Source
from anabranch.sources.cleaning import read_cleaning
from anabranch.sources.files import file_source
from anabranch.sources.form import read_form, read_types, suggest_delimiter
from anabranch.sources.generate import Generator
from anabranch.sources.generator import GeneratorSource
from anabranch.sources.growing import STOP, read_rule


@dataclass(frozen=True)
class Registered:
    """A stream of a session: its node, where it comes from, and what to do with odd rows."""

    node: Stream
    source: Source
    lateness: int
    on_bad: str
    on_late: str
    given: PartitioningSet
    """How it comes partitioned already, in the terms of its columns."""
    ahead: Ahead | None = None

    def replayed(self, name: str) -> Registered:
        """A reading of its own of the same input, as a stream of this name."""
        source: Any = self.source
        if is_dataclass(source) and "stream" in {one.name for one in fields(source)}:
            source = replace(source, stream=name)  # type: ignore[type-var]
        given = PartitioningSet.of({name: self.given.terms(self.node.name)})
        return replace(self, node=replace(self.node, name=name), source=source, given=given)

    @property
    def whole(self) -> bool:
        """Whether every column must be read: what is kept aside is to be fed in again."""
        return "dead-letter" in (self.on_bad, self.on_late)


ON_BAD = ("stop", "dead-letter")
ON_LATE = ("count", "dead-letter")


def check_choice(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingsError(
            f"{what} is '{value}'; expected one of {', '.join(choices)}.{nearest(value, choices)}"
        )


def check_dead_letters(on_bad: str, on_late: str) -> None:
    """What becomes of bad and of late input must be one of a few things."""
    check_choice("on_bad", on_bad, ON_BAD)
    check_choice("on_late", on_late, ON_LATE)


def read_schema(stream: str, schema: Mapping[str, str] | pl.Schema | None) -> pl.Schema | None:
    if schema is None or isinstance(schema, pl.Schema):
        return schema
    types: dict[str, pl.DataType] = {}
    for column, name in schema.items():
        kind = type_named(str(name))
        if kind is None:
            raise SourceError(
                f"Stream '{stream}', column '{column}': there is no type '{name}'."
                f"{suggest_type(str(name))}"
            )
        types[column] = kind
    return pl.Schema(types)


CONVERT = "Leave the column out, for files with a schema= of the others, or convert it before."


def require_columns(stream: str, schema: Mapping[str, pl.DataType]) -> None:
    """Refuses columns of names and types that not everything here can work with."""
    for column, kind in schema.items():
        # Polars takes these for all columns, or for those that fit an expression
        if column in ("", "*") or (column.startswith("^") and column.endswith("$")):
            raise SourceError(
                f"Stream '{stream}': a column is called '{column}', which queries cannot name. Leave it out, "
                "for files with a schema= of the others, or rename it before."
            )
        if not is_supported(kind):
            raise SourceError(
                f"Stream '{stream}', column '{column}': its type is {kind}, which queries cannot work with; "
                f"{EXPECTED}. {map_advice(kind) or CONVERT}"
            )


def find_ordered(stream: str, column: str, schema: Mapping[str, pl.DataType]) -> Ordered:
    if column not in schema:
        raise LanguageError(
            f"Stream '{stream}': the ordered attribute '{column}' is not a column."
            f"{suggest(column, schema)}{suggest_delimiter(schema)}"
        )
    kind = schema[column]
    if isinstance(kind, pl.Datetime) and kind.time_unit == "ns":
        zone = kind.time_zone
        wanted = '"timestamp"' if zone is None else f"pl.Datetime('us', {zone!r}), in a pl.Schema,"
        raise LanguageError(
            f"Stream '{stream}': the ordered attribute '{column}' counts nanoseconds; time is kept in "
            f"microseconds here. If all its times are whole microseconds, give schema= with {wanted} for it; "
            "else round them before."
        )
    if kind == pl.Null:
        raise LanguageError(
            f"Stream '{stream}': no file has a value of the ordered attribute '{column}' that its type could "
            "be told from. Give schema= with the types of the columns."
        )
    if not (kind.is_integer() or kind == pl.Date or isinstance(kind, pl.Datetime)):
        raise LanguageError(
            f"Stream '{stream}': the ordered attribute '{column}' is {type_words(kind)}; expected an "
            f"integer, a date or a timestamp.{_how_to_read_texts(column) if kind == pl.String else ''}"
        )
    return Ordered(column, isinstance(kind, pl.Datetime))


def _how_to_read_texts(column: str) -> str:
    return (
        " If a CSV or JSON file has times in a form of its own, say which: "
        f"types={{'{column}': 'timestamp'}} and time_format='%d.%m.%Y %H:%M'; if it has marks for what is "
        "missing, nulls='NA'."
    )


def make_generator(
    stream: str, kind: str | Generator, options: Mapping[str, Any], rows: int | None,
    rate: int | None,
) -> Source:  # fmt: skip
    per_epoch = dict(options)
    extra = {k: per_epoch.pop(k) for k in ("rows_per_epoch",) if k in per_epoch}
    if isinstance(kind, str):
        known = Generator.__dataclass_fields__
        for option in per_epoch:
            if option not in known:
                raise SourceError(
                    f"Stream '{stream}': a generator has no option '{option}'."
                    f"{suggest(option, [*known, 'rows', 'rate', 'rows_per_epoch'])}"
                )
        kind = Generator(kind, **per_epoch)
    return GeneratorSource(kind, rows, rate, **extra)


def make_files(
    stream: str, path: str, format: str | None, schema: Mapping[str, str] | pl.Schema | None,
    order: str, options: Mapping[str, Any],
) -> Source:  # fmt: skip
    """A stream of files; options say how they are written, and what becomes of those that were read."""
    form = {
        name: value
        for name, value in options.items()
        if name not in ("clean_source", "archive", "growing")
    }
    types = read_schema(stream, read_types(stream, form.get("types", {})))
    files = file_source(
        stream, path, format, read_schema(stream, schema), order, read_form(stream, form), types
    )
    asked = options.get("clean_source", "off")
    cleaning = read_cleaning(stream, files.path, asked, options.get("archive"))
    growing = read_rule(
        stream, options.get("growing", STOP), files.format, files.path, cleaning is not None
    )
    return replace(files, cleaning=cleaning, growing=growing)
