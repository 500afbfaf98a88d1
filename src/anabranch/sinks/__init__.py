"""Where results go; `anabranch.sinks.spark.SparkSink` for any Spark writer."""

from anabranch.sinks.driver import ConsoleSink, ForeachSink, MemorySink
from anabranch.sinks.files import FileSink

__all__ = ["ConsoleSink", "FileSink", "ForeachSink", "MemorySink"]
