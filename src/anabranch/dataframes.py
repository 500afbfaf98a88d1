"""Queries that are given as streaming DataFrames: their plans are read, and their sources become streams.

Folders of Parquet files are read by our own tasks. Everything else below a watermark, and what has none, is
read by Spark itself and lands (`sources/spark.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.builder import Query
from anabranch.language.dataframe.catalyst import SparkNode, parse_plan
from anabranch.language.dataframe.read import PlanReader
from anabranch.language.dataframe.rows import output_of
from anabranch.settings import CLOSED_WINDOWS
from anabranch.sources.formats import infer_schema
from anabranch.sources.watching import list_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TIME = "anabranch_time"
"""The time of streams without a watermark: the same for all rows."""
MODES = {"append": "final", "update": "update"}
"""What aggregates give in each of Spark's output modes."""
FAST_OPTIONS = {"path", "maxfilespertrigger"}
"""Options of a file source that our own reading knows; others are left to Spark."""
Register = Callable[..., Query]
"""`Registry.stream`."""


def read_dataframe(name: str, frame: DataFrame, mode: str, register: Register) -> Query:
    """The query that a streaming DataFrame stands for; its inputs are registered as streams."""
    if not hasattr(frame, "_jdf"):
        raise LanguageError(
            f"Query '{name}': the DataFrame is one of Spark Connect, whose plans cannot be looked into from "
            "here. Use a classic session: SparkSession.builder.master(…)."
        )
    if not frame.isStreaming:
        raise LanguageError(
            f"Query '{name}': the DataFrame is not a streaming one. Read its input with spark.readStream."
        )
    if mode not in MODES:
        raise LanguageError(
            f"Query '{name}': the output mode is {mode!r}; expected 'append' or 'update'. All results anew "
            "in each epoch ('complete') are not given here."
        )
    analysed = frame._jdf.queryExecution().analyzed()
    plan = parse_plan(analysed.toJSON())
    inputs = _Inputs(name, frame, analysed, register)
    return PlanReader(inputs.stream, MODES[mode]).read(plan)


@dataclass
class _Inputs:
    """The inputs of one DataFrame as streams of a session."""

    name: str
    frame: DataFrame
    analysed: Any
    register: Register
    count: int = 0

    def stream(self, part: SparkNode, watermark: SparkNode | None) -> Query:
        """The stream of the rows that a part of the plan gives."""
        self.count += 1
        stream = f"{self.name}_input{self.count}"
        if watermark is None:
            from_spark = self._rows_of(part)
            timed = from_spark.selectExpr("*", f"CAST(0 AS BIGINT) AS {TIME}")
            return self.register(stream, timed, ordered=TIME)
        # Spark leaves late rows out of windows that have closed, and keeps them where each row is alone
        order: dict[str, Any] = {
            "ordered": watermark.expression("eventTime").name,
            "lateness": self._delay(watermark),
            "late": CLOSED_WINDOWS,
        }
        path = self._own_folder(part)
        if path is None:
            return self.register(stream, self._rows_of(part), **order)
        schema = _schema(
            path, {column.name: column.fields["dataType"] for column in output_of(part)}
        )
        return self.register(stream, path=path, format="parquet", schema=schema, **order)

    def _delay(self, watermark: SparkNode) -> int | str:
        plans = self._jvm.org.apache.spark.sql.catalyst.plans.logical
        milliseconds = plans.EventTimeWatermark.getDelayMs(self._node(watermark).delay())
        return f"{milliseconds} milliseconds" if milliseconds else 0

    @property
    def _jvm(self) -> Any:
        return self.frame.sparkSession._jvm

    def _node(self, part: SparkNode) -> Any:
        """The node of Spark's own plan."""
        node = self.analysed
        for child in part.place:
            node = node.children().apply(child)
        return node

    def _rows_of(self, part: SparkNode) -> DataFrame:
        rows = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(
            self.frame._jdf.sparkSession(), self._node(part)
        )
        return type(self.frame)(rows, self.frame.sparkSession)

    def _own_folder(self, part: SparkNode) -> str | None:
        """The folder of a source that our own tasks read as Spark would; None if Spark is to read it."""
        if part.kind != "StreamingRelation":
            return None
        source = self._node(part).dataSource()
        options = {pair._1().lower(): pair._2() for pair in _pairs(source.options())}
        address = urlparse(options.get("path", ""))
        if str(source.className()).lower() != "parquet" or not options.keys() <= FAST_OPTIONS:
            return None
        if address.scheme not in ("", "file") or not address.path:
            return None
        path = unquote(address.path) if address.scheme else options["path"]
        if not os.path.isdir(path) or any(entry.is_dir() for entry in os.scandir(path)):
            return None  # patterns, and folders that are columns
        return path if list_files(path) else None


def _pairs(options: Any) -> list[Any]:
    """The pairs of one of Scala's maps."""
    found, each = [], options.iterator()
    while each.hasNext():
        found.append(each.next())
    return found


_TYPES: Mapping[str, pl.DataType] = {
    "byte": pl.Int8(), "short": pl.Int16(), "integer": pl.Int32(), "long": pl.Int64(),
    "float": pl.Float32(), "double": pl.Float64(), "string": pl.String(), "binary": pl.Binary(),
    "boolean": pl.Boolean(), "date": pl.Date(), "timestamp": pl.Datetime("us", "UTC"),
    "timestamp_ntz": pl.Datetime("us"),
}  # fmt: skip


def _schema(path: str, types: Mapping[str, Any]) -> pl.Schema:
    """The columns of a DataFrame, of the types that its first file has where Spark reads those as its own."""
    first = infer_schema(list_files(path)[0].path, "parquet")
    schema = pl.Schema()
    for name, kind in types.items():
        known = _TYPES.get(kind) if isinstance(kind, str) else None
        if known is None:
            known = first.get(name)
        if known is None:
            raise LanguageError(
                f"Column '{name}' is of Spark's type {kind}, which queries cannot work with. Leave it out "
                "with select(…) before the watermark."
            )
        written = first.get(name)
        plain = isinstance(known, pl.Datetime) and isinstance(written, pl.Datetime)
        schema[name] = written if plain and written is not None else known
    return schema
