"""What a checkpoint has kept, whether it is whole, and copies of it to go on from later.

Manifests and the files they name never change, so a copy of them is a savepoint, also while a run goes on.
One that is no longer kept is gone for good: `keep_manifests` says how many are.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from anabranch.errors import StateError
from anabranch.state.checksum import Damaged, check_file
from anabranch.state.entry import encode
from anabranch.state.folders import explained
from anabranch.state.line import FOLDER, SUFFIX, entry_name, read_line
from anabranch.state.manifest import Manifest
from anabranch.state.place import Place

FIRST = entry_name(0)
TRIES = 3
"""How often a copy is begun anew because the run has cleared away what it was made of."""


@dataclass(frozen=True)
class BadFile:
    """A file that is not what was written."""

    file: str
    reason: str


@dataclass(frozen=True)
class Verified:
    """What was looked at, and what is wrong."""

    manifests: int
    files: int
    bytes: int
    damaged: tuple[BadFile, ...]


def kept(place: Place) -> list[tuple[str, Manifest | BadFile]]:
    """The manifests that a run can go on from, by the names of their files, oldest first."""
    line = read_line(place)
    if not line:
        raise StateError(
            f"There is no checkpoint in '{place}': it has no manifests. Expected the folder or the URI "
            "that a run was given as its checkpoint."
        )
    oldest = max(
        (one.manifest.oldest for one in line if isinstance(one.manifest, Manifest)), default=0
    )
    return [
        (one.name, one.manifest)
        if isinstance(one.manifest, Manifest)
        else (one.name, BadFile(one.name, str(one.manifest)))
        for one in line
        # Those before it are there only for what builds on them
        if not isinstance(one.manifest, Manifest) or one.manifest.serial >= oldest
    ]


def chosen(place: Place, epoch: int | None) -> Manifest:
    """The manifest of an epoch, or the newest one."""
    whole = [one for _, one in kept(place) if isinstance(one, Manifest) and one.epoch >= 0]
    fitting = [one for one in whole if epoch is None or one.epoch == epoch]
    if not fitting:
        wanted = "a whole manifest" if epoch is None else f"the manifest of epoch {epoch}"
        there = ", ".join(dict.fromkeys(str(one.epoch) for one in whole)) or "none"
        raise StateError(
            f"The checkpoint '{place}' does not have {wanted}. Kept are the epochs: {there}."
        )
    return fitting[-1]


def verify(place: Place) -> Verified:
    """Reads every byte that the kept manifests name, and compares the checksums."""
    entries = kept(place)
    damaged = [one for _, one in entries if isinstance(one, BadFile)]
    looked_at: dict[str, int] = {}
    for manifest in (one for _, one in entries if isinstance(one, Manifest)):
        for file, checksum in _named(manifest):
            if file in looked_at:
                continue
            looked_at[file] = 0
            try:
                path = place.local(file)
                check_file(path, checksum)
                looked_at[file] = path.stat().st_size
            except (OSError, Damaged) as error:
                damaged.append(BadFile(file, str(error)))
    return Verified(len(entries), len(looked_at), sum(looked_at.values()), tuple(damaged))


def copy(source: Place, target: Place, epoch: int | None = None) -> Manifest:
    """Copies what a manifest names to an empty place, from which runs go on as from the source then."""
    with explained(target):
        if target.names(FOLDER, SUFFIX):
            raise StateError(f"'{target}' already is a checkpoint: copy to an empty folder.")
        folder = target.folder
        if folder is not None and folder.exists() and any(folder.iterdir()):
            raise StateError(f"'{target}' is not empty: copy to an empty folder.")
    if target.address.startswith(f"{source.address}/"):
        raise StateError(f"'{target}' is in the checkpoint itself: copy to a folder outside of it.")
    for again in reversed(range(TRIES)):
        manifest = chosen(source, epoch)
        newer = chosen(source, None).epoch > manifest.epoch
        try:
            for file, checksum in _named(manifest):
                _copy_file(source, target, file)
                check_file(target.local(file), checksum)
            for file in _results(source, manifest):
                _copy_file(source, target, file)
            break
        except FileNotFoundError as error:
            if not again or epoch is not None:
                raise StateError(
                    f"The checkpoint '{source}' no longer has '{error.filename}': a run clears away what "
                    "it no longer needs. Copy its newest epoch, or set a larger keep_manifests."
                ) from error
        except (OSError, Damaged) as error:
            raise StateError(
                f"Cannot copy the checkpoint '{source}' to '{target}': {error}. "
                "`anabranch checkpoint verify` says what of it is damaged."
            ) from error
    with explained(target):
        target.put(FIRST, encode(_as_first(manifest, newer)), fsync=True)
    return manifest


def _as_first(manifest: Manifest, newer: bool) -> Manifest:
    """The manifest as the first of a line; if the run has gone on since, its results have been published."""
    first = replace(manifest, serial=0, oldest=0, dead_letter=None)
    return replace(first, results={}) if newer else first


def _copy_file(source: Place, target: Place, file: str) -> None:
    # Opened first: what goes wrong after that is the target's fault
    with (
        open(source.local(file), "rb") as contents,
        explained(target),
        target.writing(file, fsync=True) as path,
        open(path, "wb") as copied,
    ):
        shutil.copyfileobj(contents, copied)


def _named(manifest: Manifest) -> Iterator[tuple[str, int]]:
    """The files that a manifest needs, with their checksums."""
    for record in manifest.subqueries.values():
        yield from {(ref.file, ref.checksum) for ref in record.shelf}
    yield from ((ref.file, ref.checksum) for ref in manifest.held)
    yield from ((table.file, table.checksum) for table in manifest.tables.values())
    for stream in manifest.streams.values():
        if isinstance(stream.offset, dict):
            yield from stream.offset.get("logs", ())


def _results(place: Place, manifest: Manifest) -> list[str]:
    """What tells whether the results of the epoch are where they belong, or waits to go there."""
    return [name for name in place.names("results", "") if manifest.attempt in name]
