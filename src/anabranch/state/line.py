"""The line of a checkpoint's entries, read: each as the manifest that it stands for.

A whole manifest stands for itself; a difference for what it makes of the one before it.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.errors import StateError
from anabranch.state.entry import Delta, Entry, applied, decode
from anabranch.state.folders import explained
from anabranch.state.manifest import Manifest
from anabranch.state.place import Place
from anabranch.state.validity import refuse_impossible

FOLDER, SUFFIX = "manifests", ".json"


@dataclass(frozen=True)
class Read:
    """An entry as it was read: its file, and the manifest it stands for or what is wrong with it."""

    name: str
    manifest: Manifest | StateError
    whole: bool = True


def read_line(place: Place) -> list[Read]:
    """All entries of a checkpoint, oldest first; a run may be writing on in the meantime."""
    names: list[str] = []
    while (found := entry_names(place)) != names:
        names = found
        try:
            return _followed(place, [(name, _entry(place, name)) for name in names])
        except FileNotFoundError:
            continue  # cleared away by the run since it was listed
    return [Read(name, _unopened(f"{place}/{name}")) for name in names[-1:]]


def _followed(place: Place, entries: list[tuple[str, Entry | StateError]]) -> list[Read]:
    """Each entry as the manifest that it stands for, given those before it."""
    line: list[Read] = []
    last = max(
        (n for n, (_, entry) in enumerate(entries) if isinstance(entry, Manifest)), default=0
    )
    before: Manifest | StateError | None = None
    for number, (name, entry) in enumerate(entries):
        if isinstance(entry, Delta) and before is None:
            continue  # what it follows has been cleared away, and it would have been the next
        if isinstance(entry, Delta) and isinstance(before, StateError):
            before = StateError(
                f"The manifest '{place}/{name}' only says what has changed since the one before it, which "
                "cannot be read."
            )
        elif isinstance(entry, Delta):
            assert isinstance(before, Manifest)
            try:
                before = _next(before, entry, f"{place}/{name}")
            except StateError as error:
                before = error
        else:
            before = entry
        if isinstance(entry, StateError) and number < last:
            before = StateError(f"{entry} It is not the newest one: it may also be deleted.")
        line.append(Read(name, before, not isinstance(entry, Delta)))
    return line


def read_newest(place: Place) -> Manifest | None:
    """The newest manifest of a checkpoint; a run may be writing on in the meantime."""
    names: list[str] = []
    while (found := entry_names(place)) != names:
        names = found
        try:
            return _newest(place, names)
        except FileNotFoundError:
            continue  # cleared away by the run since it was listed: there is a newer one
    if names:
        raise _unopened(f"{place}/{names[-1]}")
    return None


def _newest(place: Place, names: list[str]) -> Manifest | None:
    changes: list[tuple[str, Delta]] = []
    for name in reversed(names):
        entry = _entry(place, name)
        if isinstance(entry, StateError):
            raise entry
        if isinstance(entry, Delta):
            changes.append((name, entry))
            continue
        for later, change in reversed(changes):
            entry = _next(entry, change, f"{place}/{later}")
        return entry
    if changes:
        raise StateError(
            f"The manifest '{place}/{changes[0][0]}' only says what has changed since others that are not "
            "there. Restore them from a copy, or start with a new checkpoint folder."
        )
    return None


def _next(before: Manifest, change: Delta, where: str) -> Manifest:
    """The manifest that follows another; StateError if it does not."""
    state = change.state
    if (state.serial, state.token) != (before.serial + 1, before.token):
        raise StateError(
            f"The manifest '{where}' is number {state.serial} of its line and says what has changed since "
            f"the one before it, but that is number {before.serial}, or of another run. Were files of "
            "several checkpoints mixed? Restore them from a copy, or start with a new checkpoint folder."
        )
    try:
        after = applied(before, change)
    except (KeyError, IndexError, ValueError) as error:
        raise StateError(
            f"The manifest '{where}' does not fit the one before it: {error!r}. Restore both from a copy, "
            "or start with a new checkpoint folder."
        ) from error
    refuse_impossible(after, where)
    return after


def _entry(place: Place, name: str) -> Entry | StateError:
    """One entry, or what is wrong with it; raises FileNotFoundError if it is gone."""
    where = f"{place}/{name}"
    try:
        entry = decode(place.read(name), where)
    except FileNotFoundError:
        raise
    except StateError as error:
        return error
    except OSError as error:
        return StateError(
            f"The manifest '{where}' cannot be read: {error.strerror or error}. Restore it from a copy, or "
            "start with a new checkpoint folder."
        )
    serial = entry.serial if isinstance(entry, Manifest) else entry.state.serial
    if name != entry_name(serial):
        return StateError(
            f"The manifest '{where}' is number {serial} of its line. Was it renamed or copied? Give it its "
            "name back, or start with a new checkpoint folder."
        )
    return entry


def _unopened(where: str) -> StateError:
    return StateError(
        f"The manifest '{where}' is listed but cannot be opened: is it a link to what is not there? Restore "
        "it from a copy, or start with a new checkpoint folder."
    )


def entry_names(place: Place) -> list[str]:
    """The files of all entries, oldest first."""
    with explained(place):
        return place.names(FOLDER, SUFFIX)


def entry_name(serial: int) -> str:
    return f"{FOLDER}/{serial:012d}{SUFFIX}"
