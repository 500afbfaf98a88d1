"""Drivers of one checkpoint without a lock: claims, commits, clearing, crashes, and someone who reads.

Every operation of each on the place can come before or after every one of the others. A driver may sleep
before any of them for as long as it likes, crash and start again, and not hear that an entry was put.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from anabranch.errors import StateError
from anabranch.state.entry import Delta, decode
from anabranch.state.line import FOLDER, read_newest
from anabranch.state.manifest import Manifest
from anabranch.testing.explore.driver import (
    AT_REST,
    Driver,
    disturbed,
    gone_on,
    history,
    read_whole,
    result_name,
    started_again,
)
from anabranch.testing.explore.explorer import Broken, Happening
from anabranch.testing.explore.paper_place import Asked, Files, Reply, lose_answer, perform, still

INVARIANTS = (
    "whoever reads the line at any moment finds whole manifests, one of each number, without a gap",
    "every entry that can be gone on from is there, with every file that it names",
    "the entries are one history: each builds on all claims and epochs before it",
    "what a driver was told has happened stays so: nobody commits after another's claim",
    "an epoch is counted once, and results are to be seen of the attempt that counts alone",
    "a driver fails only because another was first, or was not told whether its entry is there",
)


class Disk:
    """The files of a place. Equal ones are the same object."""

    def __init__(self, files: Files) -> None:
        self.files = files


@dataclass(frozen=True)
class Rivalry:
    """Who drives, and what else may happen."""

    name: str
    what: str
    depth: int
    drivers: str
    """A letter for each."""
    epochs: int
    """That each commits from a start."""
    goals: tuple[str, ...]
    starts: tuple[int, ...] = (1, 1, 1)
    """How often each may start."""
    keep: int = 1
    unheard: int = 0
    """Puts whose answer may get lost."""
    failing: int = 0
    """Epochs whose tasks may fail."""
    reader: bool = False


@dataclass(frozen=True)
class State:
    """Where all drivers are, and what may still go wrong."""

    disk: Disk
    drivers: tuple[Driver, ...]
    unheard: int
    failing: int


class Fencing:
    """The drivers of a rivalry, as a model to explore."""

    invariants: tuple[str, ...] = INVARIANTS

    def __init__(self, rivalry: Rivalry) -> None:
        self.name, self.what, self.depth = rivalry.name, rivalry.what, rivalry.depth
        self.goals = rivalry.goals
        self._rivalry = rivalry
        self._disks: dict[frozenset[tuple[str, bytes]], Disk] = {}
        self._drivers: dict[tuple[Any, ...], Driver] = {}
        self._went: dict[tuple[Driver, Reply], Driver] = {}
        self._lines: dict[Disk, list[Manifest]] = {}
        self._right: set[tuple[Driver, Disk]] = set()

    def start(self) -> State:
        rivalry = self._rivalry
        drivers = [Driver(who, rivalry.keep, rivalry.epochs) for who in rivalry.drivers]
        drivers += [Driver("reader", 1, 0)] if rivalry.reader else []
        begun = tuple(self._same(gone_on(driver)) for driver in drivers)
        return State(self._disk({}), begun, rivalry.unheard, rivalry.failing)

    # -- what can happen ----------------------------------------------------------------------------

    def steps(self, state: State) -> Iterator[Happening]:
        for number, driver in enumerate(state.drivers):
            if number and not driver.begun and not state.drivers[number - 1].begun:
                continue  # which of those that have done nothing begins makes no difference
            if driver.asked is not None:
                yield from self._operations(state, number, driver, driver.asked)
            starts = 1 if driver.who == "reader" else self._rivalry.starts[number]
            if driver.begun and driver.start < starts:
                again = self._same(started_again(driver))
                how = "starts again" if driver.phase in AT_REST else "crashes and starts again"
                yield Happening(f"{driver.token} {how}", self._with(state, number, again))
            if state.failing and driver.phase == "write":
                after = self._same(disturbed(driver))
                left = replace(self._with(state, number, after), failing=state.failing - 1)
                yield Happening(f"the tasks of {driver.token} fail", left)

    def _operations(
        self, state: State, number: int, driver: Driver, asked: Asked
    ) -> Iterator[Happening]:
        answer, files = perform(state.disk.files, asked)
        after = self._answered(driver, answer)
        yield Happening(
            _words(driver, asked, answer, after),
            self._with(state, number, after, files),
            tuple(_goals(state, driver, asked, answer, after)),
        )
        if state.unheard and asked.kind == "put" and asked.name.startswith(FOLDER):
            lost, files = lose_answer(state.disk.files, asked)
            after = self._answered(driver, lost)
            left = replace(self._with(state, number, after, files), unheard=state.unheard - 1)
            goal = ("an entry counts although its driver was not told",) if answer.value else ()
            yield Happening(f"{driver.token} does {asked} and is not told", left, goal)

    def _with(self, state: State, number: int, driver: Driver, files: Files | None = None) -> State:
        drivers = (*state.drivers[:number], driver, *state.drivers[number + 1 :])
        disk = state.disk if files is None or files is state.disk.files else self._disk(files)
        return State(disk, drivers, state.unheard, state.failing)

    def _answered(self, driver: Driver, answer: Reply) -> Driver:
        if (driver, answer) not in self._went:
            heard = replace(driver, answers=(*driver.answers, answer))
            try:
                after = gone_on(heard)
            except Broken as broken:
                words = f"{driver.token} ({driver.phase}): {driver.asked}"
                raise Broken(str(broken), words) from broken
            self._went[driver, answer] = self._same(after)
        return self._went[driver, answer]

    def _same(self, driver: Driver) -> Driver:
        return self._drivers.setdefault(driver.key, driver)

    def _disk(self, files: Files) -> Disk:
        return self._disks.setdefault(frozenset(files.items()), Disk(files))

    # -- what must hold -----------------------------------------------------------------------------

    def check(self, state: State) -> None:
        if state.disk not in self._lines:
            self._lines[state.disk] = _checked_line(state.disk.files)
        line = self._lines[state.disk]
        for driver in state.drivers:
            if (driver, state.disk) not in self._right:
                _check_driver(driver, line)
                self._right.add((driver, state.disk))


def _checked_line(files: Files) -> list[Manifest]:
    """The entries of a checkpoint; Broken if anything is wrong with what lies there."""
    line = read_whole(dict(files))
    try:
        newest = read_newest(still(files))
    except StateError as error:
        raise Broken(f"a reader would be told: {error}") from error
    if newest is None:
        return []
    deeds = history(newest)
    by_number = {manifest.serial: manifest for manifest in line}
    for serial in range(newest.oldest, newest.serial + 1):
        if serial not in by_number:
            raise Broken(f"entry {serial} can be gone on from, but is not there")
        kept = by_number[serial]
        missing = sorted(kept.files() - files.keys())
        if missing:
            raise Broken(f"entry {serial} names {missing[0]}, which is not there")
        if history(kept) != deeds[: len(history(kept))]:
            raise Broken(f"entry {serial} has the history {history(kept)}, the newest {deeds}")
    epochs = [deed for deed in deeds if ":" in deed]
    numbers = [int(deed.partition(":")[2]) for deed in epochs]
    if numbers != [*range(newest.epoch + 1)]:
        raise Broken(f"the newest entry is of epoch {newest.epoch}, after the epochs {numbers}")
    counted = {result_name(n, deed.partition(":")[0]) for n, deed in enumerate(epochs)}
    seen = {name for name in files if name.startswith("results/") and not name.endswith(".tmp")}
    if seen - counted:
        raise Broken(f"{sorted(seen - counted)[0]} is to be seen, but that attempt does not count")
    return line


def _check_driver(driver: Driver, line: list[Manifest]) -> None:
    """Whatever a driver has read or was told to have happened is in the line's history."""
    if driver.last is None:
        return
    stands = history(driver.last)
    deeds = history(line[-1]) if line else []
    if stands != deeds[: len(stands)]:
        raise Broken(
            f"{driver.token} stands on the history {stands}, but that of the checkpoint is {deeds}"
        )


# -- what it is told by -----------------------------------------------------------------------------


def _words(driver: Driver, asked: Asked, answer: Reply, after: Driver) -> str:
    words = f"{driver.token} ({driver.phase}): {asked}"
    if answer.error is not None:
        words += ", which is not there"
    elif asked.kind == "put" and not answer.value:
        words += ", but there is one already"
    elif asked.kind == "list":
        words += f" gives {len(answer.value)}"
    if after.phase == "stopped" and driver.phase != "stopped":
        words += f"; it stops ({after.stopped})"
    return words


def _goals(
    state: State, driver: Driver, asked: Asked, answer: Reply, after: Driver
) -> Iterator[str]:
    ended = after.phase != driver.phase
    stopped = after.phase == "stopped" and "taken over" in after.stopped
    if ended and driver.phase == "claim" and not stopped and after.last is not None:
        runs = {deed[0] for deed in history(after.last) if ":" in deed}
        if runs - {driver.who}:
            yield "a driver takes a checkpoint over from another"
    if stopped:
        yield f"a driver loses its {driver.phase.removeprefix('first ')}"
    if asked.kind == "remove" and answer.value and driver.phase == "clear":
        file = "an entry" if asked.name.startswith(FOLDER) else "a file"
        yield f"clearing removes {file} that is no longer needed"
    if asked.kind == "remove" and answer.value and driver.phase in ("sweep", "discard"):
        yield "sweeping removes what another attempt has left"
    if asked.kind == "put" and answer.value and asked.name.startswith(FOLDER):
        if isinstance(decode(asked.data, asked.name), Delta):
            yield "an entry says only what has changed"
        if any(name > asked.name for name in state.disk.files if name.startswith(FOLDER)):
            yield "a sleeper puts an entry whose number was cleared away"
    if asked.kind == "put" and answer.value and driver.phase == "finish":
        yield "a driver makes the results of another to be seen"
    if asked.kind == "write" and answer.error is not None:
        yield "a sleeper's unfinished file is swept away"
    if asked.kind == "read" and answer.error is not None:
        yield "a reader finds an entry cleared away, and looks again"
