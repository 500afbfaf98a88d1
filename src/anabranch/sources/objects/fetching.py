"""Objects as files of this machine for as long as they are read: the same code then reads both.

Of a Parquet object only the footer and the columns and row groups that are wanted are fetched, into a file
with holes. A request names the version that the listing has shown, so that parts of two versions never meet.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO, TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.errors import SourceError
from anabranch.sources.base import Bad, Reading
from anabranch.sources.formats import read_file
from anabranch.state.bucket import Bucket, ObjectChanged, ObjectVersion
from anabranch.state.folders import cache_folder
from anabranch.state.uris import bucket_of

if TYPE_CHECKING:
    from anabranch.sources.pieces import FilePiece

GAP = 1 << 20
"""Bytes between two wanted spans that are fetched with them rather than asked for apart."""
TAIL = 64 << 10
"""Bytes at the end of a Parquet object that its footer is expected in."""

Span = tuple[int, int]


@contextlib.contextmanager
def fetched(uri: str, version: ObjectVersion | None = None) -> Iterator[str]:
    """The path of a file with the contents of an object; it goes when the block ends."""
    bucket, key = bucket_of(uri)
    with _temporary(key) as file:
        bucket.fetch(key, file, None, version)
        file.flush()
        yield file.name


@contextlib.contextmanager
def fetched_footer(uri: str, version: ObjectVersion) -> Iterator[str]:
    """The path of a file that has the footer of a Parquet object where the object has it."""
    bucket, key = bucket_of(uri)
    with _temporary(key) as file:
        _fetch_footer(bucket, key, file, version.size, version)
        yield file.name


def read_object(piece: FilePiece, columns: Sequence[str], salvage: bool) -> Reading:
    """The rows of a piece of an object, or what is wrong with the object.

    What is wrong with the store, or the way to it, is nobody's bad input: it is raised as SourceError.
    """
    where = f"Stream '{piece.stream}', object '{piece.path}'"
    try:
        with _part(piece, columns) as path:
            reading = read_file(
                piece.stream, path, piece.format, piece.schema, columns, piece.row_groups, salvage,
                None, piece.form,
            )  # fmt: skip
    except FileNotFoundError:
        reason = f"{where}: is gone since it was listed; was it deleted before it was read?"
        return Reading(None, [Bad(piece.stream, piece.path, reason)])
    except ObjectChanged as error:
        raise SourceError(
            f"{where}: was changed since it was listed. Nothing of this epoch is counted; the next start "
            "reads it as it is now. Put changed contents under a new name."
        ) from error
    except OSError as error:
        raise SourceError(
            f"{where}: cannot be fetched: {error.strerror or error}. Nothing of this epoch is counted: "
            "mend that and start again."
        ) from error
    named = f"Stream '{piece.stream}', file '{path}'"
    reading.bad = [
        replace(bad, file=piece.path, reason=bad.reason.replace(named, where))
        for bad in reading.bad
    ]
    return reading


@contextlib.contextmanager
def _part(piece: FilePiece, columns: Sequence[str]) -> Iterator[str]:
    """The path of a file that has what is to be read of an object where the object has it."""
    version = None
    if piece.version is not None:
        version = ObjectVersion(piece.version[0], piece.version[1], piece.etag)
    if piece.format != "parquet" or piece.is_small_object:
        with fetched(piece.path, version) as path:
            yield path
        return
    bucket, key = bucket_of(piece.path)
    with _temporary(key) as file:
        begin = _fetch_footer(bucket, key, file, piece.total, version)
        with contextlib.suppress(pa.ArrowException):
            wanted = [piece.form.in_files(name) for name in columns]
            footer = pq.read_metadata(file.name)
            for start, end in joined(spans(footer, wanted, piece.row_groups)):
                if start < begin:
                    file.seek(start)
                    bucket.fetch(key, file, (start, min(end, begin)), version)
            file.flush()
        yield file.name


def spans(
    footer: pq.FileMetaData, columns: Sequence[str], groups: Sequence[int] | None
) -> list[Span]:
    """Where the chunks of some columns lie, in some row groups."""
    found: list[Span] = []
    for group in range(footer.num_row_groups) if groups is None else groups:
        about = footer.row_group(group)
        for number in range(about.num_columns):
            chunk = about.column(number)
            if chunk.path_in_schema.split(".", 1)[0] in columns:
                dictionary = chunk.dictionary_page_offset
                start = chunk.data_page_offset if dictionary is None else dictionary
                start = min(start, chunk.data_page_offset)
                found.append((start, start + chunk.total_compressed_size))
    return sorted(found)


def joined(wanted: Sequence[Span]) -> list[Span]:
    """Spans with those joined that lie near each other.

    >>> joined([(0, 10), (20, 30), (9_000_000, 9_000_010)])
    [(0, 30), (9000000, 9000010)]
    """
    if not wanted:
        return []
    result = [wanted[0]]
    for start, end in itertools.islice(wanted, 1, None):
        first, last = result[-1]
        if start - last <= GAP:
            result[-1] = first, max(last, end)
        else:
            result.append((start, end))
    return result


def _fetch_footer(
    bucket: Bucket, key: str, file: IO[bytes], size: int, version: ObjectVersion | None
) -> int:
    """Puts the end of an object where the object has it; where that begins."""
    begin = max(0, size - TAIL)
    file.truncate(size)
    file.seek(begin)
    bucket.fetch(key, file, (begin, size), version)
    file.seek(size - 8)
    length = int.from_bytes(file.read(4), "little")
    needed = max(0, size - 8 - length)
    if needed < begin and file.read(4) == b"PAR1":
        file.seek(needed)
        bucket.fetch(key, file, (needed, begin), version)
        begin = needed
    file.flush()
    file.seek(0, io.SEEK_SET)
    return begin


def _temporary(key: str) -> IO[bytes]:
    """A file of this user's own; its name ends like that of the object."""
    ending = key.rpartition("/")[2].partition(".")[2]
    made = tempfile.NamedTemporaryFile(  # noqa: SIM115 - the caller closes it
        dir=cache_folder(), prefix="object-", suffix=f".{ending[-16:]}"
    )
    return cast(IO[bytes], made)
