"""Golden files: streams, queries, the plan, input and expected rows of one example, in one readable file.

A file is SQL with comments. Its first lines say what it shows; then come sections, each begun by a directive
(`--` and a word without a space between). Lines of a section that is not SQL begin with `--` and a space.

    -- What the file shows.
    --stream tcp: time int64, srcIP int64, len int64; ordered by time; lateness 5; late closed-windows
    --table rates: cur string, rate int64         (a table that streams are joined with, and its rows)
    -- cur | rate
    -- EUR | 2
    --function hundredfold                        (a function of users, one of FUNCTIONS)
    --set allow_unbounded_state=true            (settings of the session, if any)
    --query flows                               (or: --query flows emit=update dialect=flink)
    SELECT …
    --plan                                      (with strategy="query"; rewritten by refresh.py)
    -- flows@1: …
    --input tcp
    -- time | srcIP | len
    -- 1 | 10 | 100
    -- ~                                        (the epoch ends)
    -- 61 | 10 | 100
    --expect flows                              (never rewritten)
    -- tb int64 | srcIP int64 | cnt int64
    -- 0 | 10 | 1
    --duckdb flows                              (SQL that gives the same rows; `same`: the query itself)
    SELECT …

Files in `rules/` have the draft `--before` and `--after` the rule that they are called after, those in
`papers/` the `--partitioning` that is chosen and its `--plan`; there are no rows, so rates are assumed.
`--given tcp: destIP` says how a stream comes partitioned, `--permit tcp: srcIP, destIP` what may be chosen.

`--epochs matter` says that another cut into epochs gives other rows, `--no oracle: reason` that the oracle
cannot check the file, `--fail= text` (in files that must fail) what the error must contain.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.compute as pc

from anabranch import Query, Session
from anabranch.language.expression import type_named
from anabranch.testing.sources import EpochSource

FOLDER = Path(__file__).parent
EPOCH_ENDS = "~"
FUNCTIONS: dict[str, tuple[Any, list[str], str]] = {
    "hundredfold": (lambda numbers: pc.multiply(numbers, 100), ["int64"], "int64"),
    "both": (lambda a, b: pc.binary_join_element_wise(a, b, "-"), ["string", "string"], "string"),
}
"""The functions of users that files may have: of Arrow columns, their arguments and result."""
_LISTED = re.compile(r",(?![^(]*\))")
"""A comma between columns, not within `decimal(10,2)`."""


def named_type(name: str) -> pl.DataType:
    kind = type_named(name)
    assert kind is not None, f"there is no type {name}"
    return kind


@dataclass
class GoldenFile:
    """One example, as it was read."""

    path: Path
    about: str = ""
    schemas: dict[str, dict[str, pl.DataType]] = field(default_factory=dict)
    ordered: dict[str, str] = field(default_factory=dict)
    lateness: dict[str, int | str] = field(default_factory=dict)
    late: dict[str, str] = field(default_factory=dict)
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    emit: dict[str, str] = field(default_factory=dict)
    dialect: dict[str, str] = field(default_factory=dict)
    plan: str | None = None
    before: str = ""
    after: str = ""
    partitioning: str = ""
    given: dict[str, list[str]] = field(default_factory=dict)
    permitted: list[dict[str, list[str]]] = field(default_factory=list)
    inputs: dict[str, list[str]] = field(default_factory=dict)
    expected: dict[str, list[str]] = field(default_factory=dict)
    duckdb: dict[str, str] = field(default_factory=dict)
    epochs_matter: bool = False
    no_oracle: str = ""
    fail: list[str] = field(default_factory=list)

    def frames(self, stream: str) -> list[pl.DataFrame]:
        """The input of a stream, one frame for each epoch."""
        epochs: list[list[str]] = [[]]
        header, *lines = self.inputs.get(stream) or [" | ".join(self.schemas[stream])]
        for line in lines:
            if line == EPOCH_ENDS:
                epochs.append([])
            else:
                epochs[-1].append(line)
        schema = self.schemas[stream]
        names = [name.strip() for name in header.split("|")]
        assert names == list(schema), f"{self.path.name}: input {stream} has the columns {names}"
        return [rows_of(lines, schema) for lines in epochs]

    def results(self, query: str) -> pl.DataFrame:
        """The rows that are expected."""
        header, *lines = self.expected[query]
        schema = {}
        for part in header.split("|"):
            name, kind = part.strip().split(" ", 1) if "(" in part else part.strip().rsplit(" ", 1)
            schema[name] = named_type(kind)
        return rows_of(lines, schema)

    def session(
        self, sites: int, strategy: str, frames: dict[str, list[pl.DataFrame]]
    ) -> tuple[Session, dict[str, Query]]:
        """A session with the streams and the queries of the file."""
        settings = {"fsync": False, "partitions_per_site": 4, "strategy": strategy, **self.settings}
        session = Session.in_process(sites=sites, settings=settings)
        for name, ordered in self.ordered.items():
            source = EpochSource(frames[name])
            lateness, late = self.lateness.get(name, 0), self.late.get(name)
            session.stream(name, source, ordered=ordered, lateness=lateness, late=late)
        for name, rows in self.tables.items():
            session.table(name, rows)
        for name in self.functions:
            made, arguments, result = FUNCTIONS[name]
            session.function(name, made, arguments=arguments, result=result)
        return session, self._ask(session)

    def planned(self, folder: Path) -> Session:
        """A session to be planned with, not to be run: its streams have no rows."""
        session = Session.in_process(sites=4, settings={"partitions_per_site": 4, **self.settings})
        for name, ordered in self.ordered.items():
            session.stream(
                name, path=folder, format="parquet", schema=pl.Schema(self.schemas[name]),
                ordered=ordered, partitioned_by=self.given.get(name, ()),
            )  # fmt: skip
        self._ask(session)
        if self.permitted:
            session.permit(*self.permitted)
        return session

    def _ask(self, session: Session) -> dict[str, Query]:
        return {
            name: session.query(
                name, text, emit=self.emit.get(name), dialect=self.dialect.get(name)
            )
            for name, text in self.queries.items()
        }


def read(path: Path) -> GoldenFile:
    """The file, or an AssertionError that says which line is not understood."""
    golden = GoldenFile(path)
    section, argument, body = "about", "", []
    for line in [*path.read_text().splitlines(), "--end"]:
        directive = re.match(r"--([a-z]\S*)\s*(.*)$", line)
        if directive is None:
            body.append(line)
            continue
        _take(golden, section, argument, body)
        section, argument, body = directive[1], directive[2].strip(), []
    return golden


def _take(golden: GoldenFile, section: str, argument: str, body: list[str]) -> None:
    where = f"{golden.path.name}: --{section} {argument}"
    text = "\n".join(body).strip()
    lines = [line.removeprefix("--").strip() for line in body if line.strip()]
    match section:
        case "about":
            golden.about = " ".join(lines)
        case "stream":
            _take_stream(golden, argument)
        case "table":
            name, _, columns = argument.partition(":")
            schema = _columns(columns)
            names = [part.strip() for part in lines[0].split("|")]
            assert names == list(schema), f"{where}: the header is {names}"
            golden.tables[name] = rows_of(lines[1:], schema)
        case "function":
            golden.functions.append(argument)
        case "set":
            name, value = argument.split("=")
            golden.settings[name] = {"true": True, "false": False}.get(value, value)
        case "query":
            name, *options = argument.split()
            golden.queries[name] = text.rstrip(";")
            for option in options:
                what, _, value = option.partition("=")
                {"emit": golden.emit, "dialect": golden.dialect}[what][name] = value
        case "plan" | "before" | "after":
            setattr(golden, section, "\n".join(lines))
        case "partitioning":
            golden.partitioning = argument
        case "given" | "permit":
            name, _, terms = argument.partition(":")
            given = {name: [term.strip() for term in terms.split(",")]}
            if section == "given":
                golden.given |= given
            else:
                golden.permitted.append(given)
        case "input":
            golden.inputs[argument] = lines
        case "expect":
            golden.expected[argument] = lines
        case "duckdb":
            golden.duckdb[argument] = text
        case "epochs":
            golden.epochs_matter = argument == "matter"
        case "no":
            golden.no_oracle = argument
        case "fail=":
            golden.fail.append(argument)
        case _:
            raise AssertionError(f"{where}: there is no such section.")


def _take_stream(golden: GoldenFile, text: str) -> None:
    name, _, rest = text.partition(":")
    columns, *options = (part.strip() for part in rest.split(";"))
    golden.schemas[name] = _columns(columns)
    for option in options:
        if option.startswith("ordered by "):
            golden.ordered[name] = option.removeprefix("ordered by ")
        elif option.startswith("late "):
            golden.late[name] = option.removeprefix("late ")
        else:
            value = option.removeprefix("lateness ")
            golden.lateness[name] = int(value) if value.isdigit() else value


def _columns(text: str) -> dict[str, pl.DataType]:
    pairs = (part.strip().split(" ", 1) for part in _LISTED.split(text))
    return {column: named_type(kind) for column, kind in pairs}


def rows_of(lines: list[str], schema: dict[str, pl.DataType]) -> pl.DataFrame:
    """Lines `1 | 'a b' | NULL` as rows."""
    rows = [
        [
            value_of(cell.strip(), kind)
            for cell, kind in zip(_cells(line), schema.values(), strict=True)
        ]
        for line in lines
    ]
    return pl.DataFrame(rows, schema=pl.Schema(schema), orient="row")


def _cells(line: str) -> list[str]:
    """The cells of a line; a text in quotes may hold a bar."""
    return [cell.strip() for cell in re.findall(r"(?:^|\|)((?:[^|']|'(?:[^']|'')*')*)", line)]


def value_of(cell: str, kind: pl.DataType) -> Any:
    """A cell as a value of its column; texts need quotes if they are empty or have spaces around."""
    if cell == "NULL":
        return None
    if kind == pl.String:
        return cell[1:-1].replace("''", "'").replace("\\n", "\n") if cell.startswith("'") else cell
    if kind.is_nested():
        return json.loads(cell)
    if kind == pl.Boolean:
        return {"true": True, "false": False}[cell]
    if kind == pl.Date:
        return dt.date.fromisoformat(cell)
    if isinstance(kind, pl.Datetime):
        return dt.datetime.fromisoformat(cell)
    if kind.is_decimal():
        return decimal.Decimal(cell)
    return float(cell) if kind.is_float() else int(cell)


def text_of(value: Any) -> str:
    """A value as a cell."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, dict)):
        return json.dumps(value, default=str)
    if isinstance(value, str):
        plain = value and value == value.strip() and not re.search(r"[|'\n~]|^NULL$", value)
        return value if plain else "'" + value.replace("'", "''").replace("\n", "\\n") + "'"
    return str(value)


def with_plan(text: str, plan: str, section: str = "plan") -> str:
    """The text of a file with another plan in it."""
    lines = "".join(f"-- {line}\n" for line in plan.splitlines())
    return re.sub(rf"(?m)^--{section}\n(?:-- .*\n)*", lambda _: f"--{section}\n{lines}", text)
