"""Where results go; `anabranch.sinks.spark.SparkSink` for any Spark writer."""

from anabranch.sinks.driver import ConsoleSink, ForeachSink, MemorySink
from anabranch.sinks.files import FileSink
from anabranch.sinks.tables.delta import DeltaSink
from anabranch.sinks.tables.iceberg import IcebergSink
from anabranch.sinks.tables.postgres import PostgresSink

__all__ = [
    "ConsoleSink",
    "DeltaSink",
    "FileSink",
    "ForeachSink",
    "IcebergSink",
    "MemorySink",
    "PostgresSink",
]
