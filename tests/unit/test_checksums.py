"""Every byte that a checkpoint keeps is covered: a flipped bit is found and named, never a wrong result."""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from anabranch.engine.run import Run
from anabranch.errors import StateError
from anabranch.sources import seen
from anabranch.state.checksum import Damaged, seal, unseal
from anabranch.state.entry import decode, encode
from anabranch.state.manifest import Manifest
from anabranch.state.segment import SegmentRef
from anabranch.state.shelf import Shelf
from anabranch.testing.corruption import Damage, corrupt, durable_files
from helpers import Stage, sample

GOOD = [sample(number) for number in range(5)]
CRASHED = "the machine went down"


def interrupted(stage: Stage) -> Stage:
    """Three epochs are counted; then rows wait, results of a sink of the driver do, and all stops."""
    for number in range(5):
        stage.write(number)
    session = stage.session()
    runs: list[Run] = []
    begun = threading.Event()

    def step(name: str, epoch: int) -> None:
        if (name, epoch) == ("begin", 1):
            begun.wait()
            for start in runs[0].partition_map("sums@1").starts[::2]:
                runs[0].pause("sums@1", start)
        if (name, epoch) == ("after-commit", 3):
            raise StateError(CRASHED)

    run = session.start(sinks={"sums": "memory"}, checkpoint=stage.checkpoint, on_step=step)
    runs.append(run)
    begun.set()
    with pytest.raises(StateError, match=CRASHED):
        run.await_termination(60)
    return stage


def results(stage: Stage) -> list[tuple[object, ...]]:
    """Runs to the end; all results but those of epochs before the crash."""
    run = stage.start(sinks={"sums": "memory"}, at_end="close")
    assert run.await_termination(60)
    return sorted(run.results("sums").rows(), key=repr)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(seen, "RECENT", 1)
    return interrupted(Stage(tmp_path))


def _refusal(stage: Stage, expected: list[tuple[object, ...]]) -> str | None:
    """What the run is refused with; None if it gives what it should."""
    try:
        found = results(stage)
    except StateError as error:
        return str(error)
    assert found == expected
    return None


def test_a_flipped_bit_in_any_durable_file_is_found_and_named(stage: Stage) -> None:
    whole = stage.root / "whole"
    shutil.copytree(stage.checkpoint, whole)
    newest = stage.manifest().files()
    expected = results(stage)
    kinds = {path.relative_to(whole).parts[0] for path in durable_files(whole)}
    assert kinds == {"manifests", "sources", "state", "results"}
    names = [path.name for path in durable_files(whole)]
    assert any("-held-" in name for name in names)
    # A segment whose rows have all done their work is not read again; of the epoch before the last one,
    # what is noted of it and its lists of read files neither
    idle = {name for name in names if "-open-" in name or name.startswith("published-")}
    idle |= {
        path.name
        for path in durable_files(whole)
        if path.parent.name == "sources" and str(path.relative_to(whole)) not in newest
    }
    refused: set[str] = set()
    rng = random.Random(7)
    for path in durable_files(whole):
        for offset in {0, path.stat().st_size - 1, *rng.sample(range(path.stat().st_size), 3)}:
            shutil.rmtree(stage.checkpoint)
            shutil.copytree(whole, stage.checkpoint)
            damaged = stage.checkpoint / path.relative_to(whole)
            Damage(damaged, offset, rng.randrange(8)).flip()
            message = _refusal(stage, expected)
            if message:
                assert str(damaged) in message
                refused.add(path.name)
            else:
                assert path.name in idle
    assert {*names} - idle <= refused
    shutil.rmtree(stage.checkpoint)
    shutil.copytree(whole, stage.checkpoint)
    assert results(stage) == expected


def test_a_flipped_bit_in_the_note_of_what_was_handed_over_is_found_and_named(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path)
    for number in range(2):
        stage.write(number)
    stage.run(sinks={"sums": "memory"})
    (note,) = (stage.checkpoint / "results").glob("published-*.json")
    contents = note.read_bytes()
    for offset in range(len(contents)):
        Damage(note, offset, offset % 8).flip()
        assert str(note) in stage.refused(StateError, sinks={"sums": "memory"})
        note.write_bytes(contents)
    stage.run(sinks={"sums": "memory"})


def test_a_bit_that_flips_while_the_process_lives_is_found(stage: Stage) -> None:
    """What was looked at before is looked at again once the file has changed."""
    whole = stage.root / "whole"
    shutil.copytree(stage.checkpoint, whole)
    expected = results(stage)
    for _ in range(2):
        shutil.rmtree(stage.checkpoint)
        shutil.copytree(whole, stage.checkpoint)
        segment = next(path for path in durable_files(stage.checkpoint) if "-open-" in path.name)
        before = os.stat(segment)
        Damage(segment, before.st_size // 2, 3).flip()
        os.utime(segment, ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(StateError, match="checksum"):
            results(stage)
    shutil.rmtree(stage.checkpoint)
    shutil.copytree(whole, stage.checkpoint)
    assert results(stage) == expected


def test_corrupt_flips_one_bit_and_says_which(stage: Stage) -> None:
    before = {path: path.read_bytes() for path in durable_files(stage.checkpoint)}
    damage = corrupt(stage.checkpoint, random.Random(1))
    assert damage is not None
    changed = [path for path in before if path.read_bytes() != before[path]]
    assert changed == [damage.path]
    pairs = zip(before[damage.path], damage.path.read_bytes(), strict=True)
    assert [(a ^ b).bit_count() for a, b in pairs if a != b] == [1]
    damage.flip()
    assert damage.path.read_bytes() == before[damage.path]
    assert corrupt(stage.root / "nothing", random.Random(1)) is None


def test_an_error_of_the_disk_is_an_error_of_the_segment(stage: Stage) -> None:
    """A disk that has lost a block: read, it gives an error; mapped, it would end the process."""
    segment = next(path for path in durable_files(stage.checkpoint) if "-open-" in path.name)
    segment.unlink()
    segment.symlink_to("/proc/self/mem")
    with pytest.raises(StateError, match="Input/output error") as caught:
        results(stage)
    assert segment.name in str(caught.value)


def test_a_segment_cut_off_after_it_was_looked_at_is_named(stage: Stage) -> None:
    def cut(name: str, epoch: int) -> None:
        if (name, epoch) == ("before-tasks", 5):
            for path in (stage.checkpoint / "state").rglob("*.arrow"):
                os.truncate(path, 100)

    with pytest.raises(StateError, match="cannot be read: its checksum"):
        stage.run(sinks={"sums": "memory"}, on_step=cut, at_end="close")


def test_a_manifest_with_any_bit_flipped_is_told_as_damaged(stage: Stage) -> None:
    """Also where its bytes are no text any more."""
    path = durable_files(stage.checkpoint)[0]
    whole = path.read_bytes()
    decode(whole, path.name)
    for offset in range(len(whole)):
        for bit in (7, offset % 7):
            flipped = bytearray(whole)
            flipped[offset] ^= 1 << bit
            with pytest.raises(StateError, match=path.name):
                decode(bytes(flipped), path.name)


def test_a_seal_covers_every_byte() -> None:
    data = seal(b'{"a": [1, 2], "b": "text"}')
    for offset in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[offset] ^= 1 << bit
            with pytest.raises(Damaged):
                unseal(bytes(flipped))
    for cut in range(len(data)):
        with pytest.raises(Damaged):
            unseal(data[:cut])


def _segment(manifest: Manifest, **changes: Any) -> None:
    record = manifest.subqueries["sums@1"]
    first, *others = record.shelf
    record.shelf = _Edited((replace(first, **changes), *others))


class _Edited(Shelf):
    """A shelf that is written with other segments than it has."""

    def __init__(self, refs: tuple[SegmentRef, ...]) -> None:
        super().__init__()
        self._edited = refs

    def __iter__(self) -> Iterator[SegmentRef]:
        return iter(self._edited)


IMPOSSIBLE: dict[str, Callable[[Manifest], Any]] = {
    "site 99 of 2": lambda m: m.exchanges["sums@1"].sites.__setitem__(0, 99),
    "-1 of 2": lambda m: m.exchanges["sums@1"].sites.__setitem__(0, -1),
    "rows of stream rows is -1": lambda m: setattr(m.streams["rows"], "rows", -1),
    "0 sites": lambda m: setattr(m, "sites", 0),
    "epoch -2": lambda m: setattr(m, "epoch", -2),
    "are no map": lambda m: setattr(m.exchanges["sums@1"], "slots", 3),
    "no exchange nobody": lambda m: setattr(m.subqueries["sums@1"], "exchange", "nobody"),
    "has the slots [[0, 70000]] of 65536": lambda m: _segment(m, live=((0, 70000),)),
    "has the slots [[5, 5]] of 65536": lambda m: _segment(m, live=((5, 5),)),
    "are due from 9 to 3": lambda m: _segment(m, min_due=9, max_due=3),
    "is called '../../passwd'": lambda m: _segment(m, file="../../passwd"),
    "-5 result rows": lambda m: m.result_rows.update(sums=-5),
}


@pytest.mark.parametrize("words", IMPOSSIBLE)
def test_impossible_values_are_refused_whatever_the_checksum_says(stage: Stage, words: str) -> None:
    entry = stage.manifest()
    decode(encode(entry), "here")
    IMPOSSIBLE[words](entry)
    with pytest.raises(StateError) as caught:
        decode(encode(entry), "here")
    for word in ("'here' says what cannot be", words, "Restore it from a copy"):
        assert word in str(caught.value)


def test_a_mark_that_a_machine_without_power_has_lost_stops_nobody(tmp_path: Path) -> None:
    """It is not flushed where result folders tell the same."""
    stage = Stage(tmp_path)
    for number in range(2):
        stage.write(number)
    stage.run()
    (mark,) = (stage.checkpoint / "results").glob("published-*.json")
    mark.write_bytes(b"")
    for number in range(2, 4):
        stage.write(number)
    stage.finish()
    assert stage.results() == stage.expected(*(sample(number) for number in range(4)))


def test_results_of_folders_are_marked_also_beside_sinks_that_would_have_them_twice(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path)
    session, rows = stage.stream()
    session.query("all", rows.select("time", "k"))
    session.query("none", rows.where("v < -1000").select("time"))
    stage.write(0)
    stage.run(session, sinks={"all": stage.out, "none": "memory"})
    (mark,) = (stage.checkpoint / "results").glob("published-*.json")
    assert '"all"' in mark.read_text()
