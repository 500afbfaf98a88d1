"""Looking at folders again and again: what a look finds, and what it costs."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from anabranch.sources import tree
from anabranch.sources.notices import Notices
from anabranch.sources.tree import Tree

WORK = ("stat", "lstat", "scandir")


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def noticing(tmp_path: Path) -> Iterator[Notices]:
    notices = Notices()
    if notices.watch(str(tmp_path)) is None:
        pytest.skip("this system does not tell what changes in folders")
    yield notices
    notices.close()


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the file system is asked for something; of listings, also how many names they have."""
    counts: Counter[str] = Counter()

    def counted(name: str) -> None:
        ask = getattr(os, name)

        def asked(*arguments: object, **options: object) -> object:
            counts[name] += 1
            answer = ask(*arguments, **options)
            if name == "scandir":
                answer = list(answer)
                counts["names"] += len(answer)
            return answer

        monkeypatch.setattr(os, name, asked)

    for name in WORK:
        counted(name)
    return counts


def fill(folder: Path, numbers: range) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        (folder / f"{number:06d}.csv").touch()


def names(look: tree.Look) -> list[str]:
    return sorted(name for entry in look.new for name in entry.names)


# -- what a look costs ------------------------------------------------------------------------------


def test_a_look_at_a_large_folder_costs_what_is_new(
    tmp_path: Path, noticing: Notices, clock: Clock, work: Counter[str]
) -> None:
    """As many steps with 20,000 files as with 2,000."""
    costs = []
    for folder, count in ((tmp_path / "few", 2_000), (tmp_path / "many", 20_000)):
        fill(folder, range(count))
        seen = Tree(str(folder), noticing, clock)
        assert len(seen.look().new) == count
        fill(folder, range(count, count + 10))
        work.clear()
        assert names(seen.look()) == [f"{number:06d}.csv" for number in range(count, count + 10)]
        assert work["scandir"] == 0
        costs.append(dict(work))
    assert costs[0] == costs[1]
    assert sum(costs[0].values()) < 30


def test_a_look_lists_only_the_folders_that_changed(
    tmp_path: Path, clock: Clock, work: Counter[str]
) -> None:
    for day in range(100):
        fill(tmp_path / f"day={day:02d}", range(20))
    seen = Tree(str(tmp_path), None, clock)
    assert len(seen.look().new) == 2_000
    clock.now += tree.SETTLING
    assert seen.look() == tree.Look()
    time.sleep(0.02)
    fill(tmp_path / "day=99", range(20, 30))
    work.clear()
    assert len(seen.look().new) == 10
    assert (work["scandir"], work["names"]) == (1, 30)
    assert work["lstat"] <= 10 + len(tmp_path.parts), "the new ones, and where the path leads"
    work.clear()
    assert seen.look() == tree.Look()
    assert work["scandir"] == 0


# -- what a look finds ------------------------------------------------------------------------------


def disturb(rng: random.Random, root: Path) -> None:
    """Something that users and programs do to folders."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    files = [path for path in root.rglob("*") if path.is_file()]
    folder, name = (
        rng.choice(folders),
        rng.choice(["a", "b", "_c", ".d", "e.csv", "f.csv", "g.csv"]),
    )
    place = folder / name
    what = rng.randrange(9)
    if what < 3 and not place.exists():
        place.touch()
    elif what == 3 and not place.exists():
        place.mkdir()
    elif what == 4 and files:
        rng.choice(files).unlink()
    elif what == 5 and folder != root:
        shutil.rmtree(folder)
    elif what == 6 and files and not place.exists():
        rng.choice(files).rename(place)
    elif what == 7 and folder != root and not (root / name).exists():
        folder.rename(root / name)
    elif what == 8 and place.is_file():
        place.unlink()
        place.mkdir()
        (place / "e.csv").touch()


@pytest.mark.parametrize("pattern", ["", "*.csv", "**/*.csv", "*/*", "a/*.csv", "**/a/*", "e.csv"])
@pytest.mark.parametrize("noticed", [True, False])
def test_looks_find_what_one_whole_look_finds(
    tmp_path: Path, pattern: str, noticed: bool, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "LARGE", 0)
    root = tmp_path / "in"
    root.mkdir()
    path = str(root / pattern) if pattern else str(root)
    for seed in range(4 if noticed else 2):
        rng = random.Random(seed)
        notices = Notices() if noticed else None
        seen = Tree(path, notices, clock)
        present = {name for entry in seen.look().new for name in entry.names}
        for _ in range(40):
            if not noticed:
                time.sleep(0.006)  # the steps in which times are counted
            for _ in range(rng.randrange(4)):
                disturb(rng, root)
            clock.now += rng.choice([0, 0.1, tree.SETTLING, tree.LIST_EVERY])
            look = seen.look()
            present = (present - look.gone) | {name for entry in look.new for name in entry.names}
            assert present == seen.present
            fresh = Tree(path)
            assert names(fresh.look()) == sorted(present)
        seen.close()


def test_a_file_that_came_within_one_step_of_the_clock_is_found(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The times of the folder were taken before it came, and say nothing of it."""
    fill(tmp_path, range(3))
    seen = Tree(str(tmp_path), None, clock)
    stamp = tree.stamp_of(str(tmp_path))
    monkeypatch.setattr(tree, "stamp_of", lambda path: stamp)
    seen.look()
    fill(tmp_path, range(3, 4))
    assert seen.look() == tree.Look()
    clock.now += tree.SETTLING
    assert names(seen.look()) == ["000003.csv"]


def test_the_times_of_a_file_system_that_stand_still_are_not_believed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, range(3))
    stamp = tree.stamp_of(str(tmp_path))
    monkeypatch.setattr(tree, "stamp_of", lambda path: stamp)
    seen = Tree(str(tmp_path), None, clock)
    seen.look()
    clock.now += tree.SETTLING
    seen.look()
    fill(tmp_path, range(3, 4))
    assert seen.look() == tree.Look(), "its times are believed"
    clock.now += tree.LIST_EVERY
    assert names(seen.look()) == ["000003.csv"]
    fill(tmp_path, range(4, 5))
    assert names(seen.look()) == ["000004.csv"], "and from now on no longer"


def test_a_folder_that_becomes_large_is_watched_from_then_on(
    tmp_path: Path, noticing: Notices, clock: Clock, work: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(tree, "LARGE", 50)
    seen = Tree(str(tmp_path), noticing, clock)
    for number in range(100):
        fill(tmp_path, range(number, number + 1))
        assert len(seen.look().new) == 1
    work.clear()
    for number in range(100, 110):
        fill(tmp_path, range(number, number + 1))
        assert len(seen.look().new) == 1
    assert work["names"] == 0


def test_notices_that_were_lost_are_made_up_for(
    tmp_path: Path, noticing: Notices, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "LARGE", 1)
    fill(tmp_path, range(3))
    seen = Tree(str(tmp_path), noticing, clock)
    seen.look()
    fill(tmp_path, range(3, 5))
    read = noticing.read
    monkeypatch.setattr(noticing, "read", lambda: read() and None)
    assert len(seen.look().new) == 5


def test_folders_that_only_lead_to_what_is_meant_may_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`*/in/*.csv` passes over `lost+found`; what it is meant to read must be open."""
    fill(tmp_path / "a" / "in", range(2))
    fill(tmp_path / "closed", range(2))
    scan = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert len(Tree(f"{tmp_path}/*/in/*.csv").look().new) == 2
    assert len(Tree(f"{tmp_path}/*/*/*.csv").look().new) == 2
    with pytest.raises(Exception, match="closed' cannot be read"):
        Tree(f"{tmp_path}/**/*.csv").look()
