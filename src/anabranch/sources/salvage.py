"""The good rows of a text file with bad lines: ever smaller blocks are read until the bad ones are alone."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv

from anabranch.sources.base import Bad
from anabranch.sources.form import USUAL, FileForm
from anabranch.sources.json_array import in_lines
from anabranch.sources.opening import TextPart, open_stream, open_text
from anabranch.sources.quotes import ends_in_quotes
from anabranch.sources.text_files import (
    OPEN_QUOTE,
    csv_header,
    csv_values,
    empty_table,
    json_names,
    parse_csv,
    parse_csv_text,
    parse_json,
    require_names,
)

MAX_BAD_LINES = 1000
"""Lines of one file kept aside at most; the count goes on, and the whole file is kept instead."""
_PLACE = re.compile(r"^In CSV column #\d+: |Row #\d+: | in row \d+$")
"""Where in its block a parser stood: of no use once the row is alone."""
FAULTS = (Exception, pl.exceptions.PanicException)
"""Whatever is raised while one file is read is that file's fault; panics of Polars are no Exception."""
Lines = dict[int, tuple[str, str]]
"""Bad lines by their number in the file: the reason and the text."""


def salvage_csv(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str], form: FileForm = USUAL,
    span: TextPart | None = None,
) -> tuple[pa.Table, Lines]:  # fmt: skip
    """The rows of a CSV file that fit, and the lines that do not."""
    text = open_text(path, form, span)
    header = csv_header(text, form, schema)
    require_names(header, where, {name: schema[name] for name in columns}, form)
    present = [name for name in columns if name in header]
    bad: Lines = {}

    def skip(row: Any) -> str:
        bad[row.number] = (
            f"expected {row.expected_columns} fields, got {row.actual_columns}",
            row.text,
        )
        return "skip"

    # As bytes, so that a row that is not UTF-8 costs that row only
    as_bytes = csv_values(form, column_types=dict.fromkeys(header, pa.binary()))
    raw = parse_csv_text(text, form, header, as_bytes, invalid_row_handler=skip)
    first = 2 if form.header else 1
    last = raw.num_rows + len(bad) + first - 1
    cut_off = ends_in_quotes(text, form)
    if cut_off and last < first:
        raise ValueError(OPEN_QUOTE)

    def parse(start: int, end: int) -> pa.Table:
        target = pa.BufferOutputStream()
        pa.csv.write_csv(raw.slice(start, end - start), target)
        return parse_csv(target.getvalue(), schema, present, header, form.plain_rows)

    swallowing = cut_off and last not in bad
    good, misfits = sift(parse, raw.num_rows - swallowing)
    if swallowing:
        misfits.append((raw.num_rows - 1, OPEN_QUOTE))
    numbers = [n for n in range(first, last + 1) if n not in bad]
    for at, reason in misfits:
        fields = [value for (value,) in raw.slice(at, 1).to_pydict().values()]
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(
            "" if value is None else value.decode("utf-8", "replace") for value in fields
        )
        bad[numbers[at]] = (reason, line.getvalue())
    return pa.concat_tables([empty_table(schema, present), *good]), bad


def salvage_json(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str], form: FileForm = USUAL,
    span: TextPart | None = None,
) -> tuple[pa.Table, Lines]:  # fmt: skip
    """The rows of JSON lines that fit, and the lines that do not."""
    with open_stream(in_lines(open_text(path, form, span))) as file:
        lines = {number: line for number, line in enumerate(file, start=1) if line.strip()}
    numbers, texts = list(lines), list(lines.values())
    wanted = pl.Schema({name: schema[name] for name in columns})
    with open_stream(path) if span is not None else contextlib.nullcontext(texts) as known:
        require_names(json_names(known, where, wanted, salvage=True), where, wanted, form)

    def parse(start: int, end: int) -> pa.Table:
        return parse_json(pa.py_buffer(b"".join(texts[start:end])), schema, columns, form)

    good, misfits = sift(parse, len(texts))
    bad = {
        numbers[at]: (reason, texts[at].decode("utf-8", "replace").rstrip("\r\n"))
        for at, reason in misfits
    }
    return pa.concat_tables([empty_table(schema, columns), *good]), bad


def sift(
    parse: Callable[[int, int], pa.Table], count: int
) -> tuple[list[pa.Table], list[tuple[int, str]]]:
    """What `parse(start, end)` makes of rows 0 … count, and the rows it refuses, with the reason.

    Halves whatever is refused. The parser is the one whole files are read with, so a good row means
    the same whatever stands beside it.
    """
    good: list[pa.Table] = []
    bad: list[tuple[int, str]] = []
    waiting = [(0, count)] if count else []
    while waiting:
        start, end = waiting.pop()
        try:
            good.append(parse(start, end))
        except FAULTS as error:
            if end - start == 1:
                bad.append((start, _PLACE.sub("", " ".join(str(error).split()))))
            else:
                middle = (start + end) // 2
                waiting += [(middle, end), (start, middle)]
    return good, bad


def bad_lines(stream: str, path: str, where: str, lines: Lines) -> list[Bad]:
    """What is told of the bad lines of a file."""
    if not lines:
        return []
    kept = sorted(lines.items())[:MAX_BAD_LINES]
    texts = tuple(json.dumps({"row": n, "reason": why, "line": text}) for n, (why, text) in kept)
    first, (why, _) = kept[0]
    reason = f"{where}: {len(lines)} bad line(s), the first is row {first}: {why}"
    return [Bad(stream, path, reason, texts, len(lines))]
