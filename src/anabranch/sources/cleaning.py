"""Files that a stream has read and no longer needs: deleted, or moved to an archive.

That happens once the epoch that read them is committed and its results are visible. What a crash has left in
between is cleaned at the next start: the stream knows the names of what it has read.
"""

from __future__ import annotations

import os
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import SourceError
from anabranch.sources.paths import HIDDEN, fixed_part, is_pattern, object_root
from anabranch.state.uris import bucket_of, is_object, split_uri

CHOICES = ("off", "delete", "archive")


@dataclass(frozen=True)
class Cleaning:
    """What becomes of files that were read."""

    archive: str | None
    """The folder that they are moved to, under the names that they had; None: they are deleted."""

    def clean(self, stream: str, path: str, name: str) -> None:
        """Takes one file away; if that fails it stays, and the user is told."""
        try:
            if is_object(path):
                self._clean_object(path, name)
                return
            if self.archive is None:
                os.unlink(path)
                return
            target = os.path.join(self.archive, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.move(path, target)
        except FileNotFoundError:
            return  # somebody else was faster
        except OSError as error:
            warnings.warn(
                f"Stream '{stream}': the file '{path}' was read and could not be "
                f"{'deleted' if self.archive is None else 'archived'}: {error.strerror or error}.",
                stacklevel=2,
            )

    def _clean_object(self, path: str, name: str) -> None:
        """An archive of objects is in the same bucket, for the store to copy them."""
        bucket, key = bucket_of(path)
        if self.archive is not None:
            bucket.copy(key, f"{bucket_of(self.archive)[1]}/{name}")
        bucket.delete([key])


def read_cleaning(
    stream: str, path: str, clean_source: str, archive: str | Path | None
) -> Cleaning | None:
    """What a user may say of it; SourceError if the archive would be read again."""
    if clean_source not in CHOICES:
        raise SourceError(
            f"Stream '{stream}': clean_source is {clean_source!r:.100}; expected one of "
            f"{', '.join(CHOICES)}."
        )
    if (archive is not None) != (clean_source == "archive"):
        raise SourceError(
            f"Stream '{stream}': clean_source='archive' and archive='folder' belong together; got "
            f"clean_source={clean_source!r} and archive={str(archive)!r}."
        )
    if clean_source == "off":
        return None
    if archive is None:
        return Cleaning(None)
    if is_object(path):
        return Cleaning(_object_archive(stream, path, str(archive)))
    folder = os.path.realpath(archive)
    root = os.path.realpath(fixed_part(path) if is_pattern(path) else path)
    if os.path.commonpath([folder, root]) == root:
        below = Path(folder).relative_to(root).parts
        if not any(part.startswith(HIDDEN) for part in below):
            raise SourceError(
                f"Stream '{stream}': the archive '{folder}' is inside '{root}', so the stream would read its "
                "files again. Choose a folder outside, or one that begins with '_'."
            )
    return Cleaning(folder)


def _object_archive(stream: str, path: str, archive: str) -> str:
    """The folder for objects that were read; SourceError if it is elsewhere, or would be read again."""
    root = object_root(path)[0]
    try:
        inside = is_object(archive) and split_uri(archive)[:2] == split_uri(root)[:2]
    except ValueError:
        inside = False
    below = archive.removeprefix(f"{root}/") if archive.startswith(f"{root}/") else None
    hidden = below is not None and any(part.startswith(HIDDEN) for part in below.split("/"))
    if not inside or archive.rstrip("/") == root or (below is not None and not hidden):
        raise SourceError(
            f"Stream '{stream}': the archive of '{path}' is '{archive}'; expected a folder of the same "
            "bucket outside of what the stream reads, or one that begins with '_'."
        )
    return archive.rstrip("/")
