"""The line of a checkpoint's entries, read: each as the manifest that it stands for.

A whole manifest stands for itself; a difference for what it makes of the one before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from anabranch.errors import StateError
from anabranch.state.entry import Delta, Entry, applied, decode
from anabranch.state.folders import explained
from anabranch.state.manifest import Manifest
from anabranch.state.place import Place
from anabranch.state.validity import refuse_impossible

FOLDER, SUFFIX = "manifests", ".json"
TRIES = 200
"""How often entries are read again because there is a newer one."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class Read:
    """An entry as it was read: its file, and the manifest it stands for or what is wrong with it."""

    name: str
    manifest: Manifest | StateError
    whole: bool = True


def read_line(place: Place) -> list[Read]:
    """All entries of a checkpoint, oldest first; a run may be writing on in the meantime."""
    return _at_rest(place, _line) or []


def read_newest(place: Place) -> Manifest | None:
    """The newest manifest of a checkpoint; a run may be writing on in the meantime."""
    newest = _at_rest(place, _newest)
    if isinstance(newest, StateError):
        raise newest
    return newest


def _at_rest(place: Place, read: Callable[[Place, list[str]], Result]) -> Result | None:
    """What is read of the entries there are, if the newest is the same one before and after; or again.

    As long as it is the newest, what it builds on is not cleared away. Afterwards it may be, and a run that
    has slept may put an entry of its own under a number that was cleared away, for a moment.
    """
    names = entry_names(place)
    for _ in range(TRIES):
        if not names:
            return None
        result = read(place, names)
        now = entry_names(place)
        if now[-1:] == names[-1:]:
            return result
        names = now
    raise StateError(
        f"The checkpoint '{place}' changes faster than it can be read: {TRIES} times there was a newer epoch "
        "when one had been read. Try again, or wait until its run has ended."
    )


def _line(place: Place, names: list[str]) -> list[Read]:
    entries, gone = [], ""
    for name in names:
        try:
            entries.append((name, _entry(place, name)))
        except FileNotFoundError:
            # Cleared away since it was listed, and what is before it with it
            entries, gone = [], name
    line = _followed(place, entries)
    newest = line[-1].manifest if line else None
    if gone and not (isinstance(newest, Manifest) and gone < entry_name(newest.oldest)):
        return [Read(gone, _unopened(f"{place}/{gone}"))]
    return line


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


def _newest(place: Place, names: list[str]) -> Manifest | StateError:
    changes: list[tuple[str, Delta]] = []
    for name in reversed(names):
        try:
            entry = _entry(place, name)
            if isinstance(entry, Delta):
                changes.append((name, entry))
                continue
            for later, change in reversed(changes):
                if isinstance(entry, Manifest):
                    entry = _next(entry, change, f"{place}/{later}")
        except FileNotFoundError:
            return _unopened(f"{place}/{name}")
        except StateError as error:
            return error
        return entry
    return StateError(
        f"The manifest '{place}/{changes[0][0]}' only says what has changed since others that are not "
        "there. Restore them from a copy, or start with a new checkpoint folder."
    )


def _next(before: Manifest, change: Delta, where: str) -> Manifest:
    """The manifest that follows another; StateError if it does not."""
    state = change.state
    if state.serial > before.serial + 1:
        missing = entry_name(before.serial + 1).rpartition("/")[2]
        raise StateError(
            f"The manifest '{where}' says what has changed since '{missing}', which is not there. Restore it "
            "from a copy, or start with a new checkpoint folder."
        )
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
