"""Bugs on purpose: each replaces one real function of the product by a wrong one, while a test looks on.

A tester that has never caught anything says nothing. `anabranch chaos --planted all` plants one bug of
`bugs.py` after another and tells how many seeds it takes until one fails.

>>> catch = hunt("watermark-one-too-far")
>>> catch.caught, catch.tried <= 50
(True, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from anabranch.errors import SettingsError, suggest
from anabranch.testing.bug import Bug
from anabranch.testing.bugs import BUGS
from anabranch.testing.chaos import run_seed

SEEDS = range(50)
"""A bug that none of these finds is not caught."""


def planted(name: str) -> AbstractContextManager[Bug]:
    """The product with the bug of this name in it, for as long as the block lasts."""
    return planting(find_bug(name))


@contextmanager
def planting(bug: Bug) -> Iterator[Bug]:
    """The product with a bug in it, for as long as the block lasts; in this process alone."""
    right = [(owner, attribute, vars(owner)[attribute]) for owner, attribute in bug.places]
    for owner, attribute, function in right:
        setattr(owner, attribute, bug.wrong(function))
    try:
        yield bug
    finally:
        for owner, attribute, function in right:
            setattr(owner, attribute, function)


def find_bug(name: str) -> Bug:
    """The bug of this name."""
    bugs = {bug.name: bug for bug in BUGS}
    if name not in bugs:
        raise SettingsError(f"There is no planted bug '{name}'.{suggest(name, bugs)}")
    return bugs[name]


@dataclass(frozen=True)
class Catch:
    """What became of a planted bug."""

    bug: str
    tried: int
    """Seeds until it was caught, or all that were tried."""
    seed: int | None = None
    """The first seed that fails with the bug and passes without it."""
    failure: str = ""

    @property
    def caught(self) -> bool:
        return self.seed is not None

    def plain(self) -> dict[str, Any]:
        """The catch for programs."""
        return {
            "bug": self.bug, "what": find_bug(self.bug).what, "caught": self.caught,
            "tried": self.tried, "seed": self.seed, "failure": self.failure,
        }  # fmt: skip


def hunt(name: str, seeds: Iterable[int] = SEEDS) -> Catch:
    """Runs chaos with a bug planted until a seed fails that passes without it."""
    tried = 0
    for seed in seeds:
        tried += 1
        with planted(name):
            report = run_seed(seed)
        if report.failure and run_seed(seed).failure is None:
            return Catch(name, tried, seed, report.failure.splitlines()[0])
    return Catch(name, tried)
