"""What is needed of a file before it is read, wherever it lies: its footer, or a file of this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow.parquet as pq

from anabranch.errors import SourceError
from anabranch.sources.listing import ListedFile
from anabranch.sources.opening import open_bytes
from anabranch.state.uris import is_object


def footer_of(file: ListedFile) -> pq.FileMetaData:
    """The footer of a Parquet file."""
    if is_object(file.path):
        from anabranch.sources.objects.fetching import fetched_footer
        from anabranch.state.bucket import ObjectVersion

        version = ObjectVersion(file.size, file.modified, file.etag)
        with fetched_footer(file.path, version) as path:
            return pq.read_metadata(path)
    with open_bytes(file.path) as source:
        return pq.read_metadata(source)


@contextlib.contextmanager
def as_file(path: str) -> Iterator[str]:
    """The path of a file of this machine with the same contents; raises SourceError if it cannot be had."""
    if not is_object(path):
        yield path
        return
    from anabranch.sources.objects.fetching import fetched

    try:
        with fetched(path) as copy:
            yield copy
    except OSError as error:
        raise SourceError(f"'{path}' cannot be fetched: {error.strerror or error}.") from error
