"""What a stream is said to come partitioned by already."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.errors import SourceError
from anabranch.language.expression import Expression
from anabranch.language.node import Stream
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.written import read_set
from anabranch.sources.base import Source
from anabranch.sources.files import FileSource
from anabranch.sources.kafka.source import KafkaSource


def given_terms(node: Stream, source: Source, terms: Sequence[str | Expression]) -> PartitioningSet:
    """The expressions, checked against the stream and where it comes from."""
    if not terms:
        return PartitioningSet()
    if isinstance(terms, str) or not isinstance(source, (FileSource, KafkaSource)):
        raise SourceError(
            f"Stream '{node.name}': partitioned_by= takes a list of expressions, and the input "
            "must be a folder of files (path=) with a folder for each part, or a topic (kafka=)."
        )
    if isinstance(source, FileSource) and not source.has_folders:
        raise SourceError(
            f"Stream '{node.name}' is said to come partitioned, so its path must be a folder with a "
            f"folder for each part; '{source.path}' is none."
        )
    return read_set(node, terms)
