"""Segments: rows come back by partition and by locator, from whatever batch of whatever file."""

from __future__ import annotations

import mmap
import os
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from anabranch.errors import StateError
from anabranch.state import checksum, mapping
from anabranch.state.mapping import advise
from anabranch.state.place import Place
from anabranch.state.segment import (
    DUE,
    LOCATOR,
    NEVER,
    Part,
    Ranges,
    SegmentRef,
    open_segment,
    probe_slots,
    read_slots,
    sort_by_locator,
    write_segments,
)
from anabranch.testing.corruption import Damage
from helpers import ranges

LIVE = [(0, 65536)]


def state_rows(seed: int, rows: int, partitions: list[int]) -> pl.DataFrame:
    """Sorted rows of these partitions; several rows share a locator."""
    rng = np.random.default_rng(seed)
    where = np.array(partitions, dtype=np.uint64)[rng.integers(0, len(partitions), rows)]
    locators = (where << np.uint64(48)) | rng.integers(0, 40, rows).astype(np.uint64)
    frame = pl.DataFrame(
        {
            LOCATOR: locators,
            DUE: rng.integers(-50, 50, rows),
            "k": [None if n % 7 == 0 else f"key {n} beyond a view's bytes" for n in range(rows)],
            "set": [["a"] * (n % 3) for n in range(rows)],
            "n": np.arange(rows),
        },
        schema_overrides={"k": pl.String, "set": pl.List(pl.String)},
    )
    return sort_by_locator(frame)


def write(place: Place, *frames: pl.DataFrame) -> list[SegmentRef]:
    parts = [Part(tier, frame, LIVE) for tier, frame in enumerate(frames)]
    return write_segments(place, "state/q/1.arrow", "open", parts, (0, 0), fsync=False)


def in_partitions(rows: pl.DataFrame, wanted: set[int]) -> pl.DataFrame:
    return rows.filter(pl.Series(np.isin(rows[LOCATOR].to_numpy() >> np.uint64(48), list(wanted))))


@pytest.mark.parametrize("wanted", [{0}, {1, 2}, {0, 3, 65535}, {7}, {65535}, set(range(4))])
def test_the_rows_of_some_partitions(tmp_path: Path, wanted: set[int]) -> None:
    place = Place(tmp_path)
    frames = [state_rows(seed, 200, [0, 1, 2, 3, 65535]) for seed in range(3)]
    for ref, rows in zip(write(place, *frames), frames, strict=True):
        found = read_slots(open_segment(place, ref), ranges(wanted))
        expected = in_partitions(rows, wanted)
        assert all(part.height for part in found)
        assert_frame_equal(pl.concat([rows[:0], *found]), expected)


def test_references_tell_what_is_in_a_segment(tmp_path: Path) -> None:
    frames = [state_rows(1, 50, [0, 5]), state_rows(2, 1, [9])]
    first, second = write(Place(tmp_path), *frames)
    assert (first.batch, second.batch) == (0, 1)
    assert (first.tier, second.tier) == (0, 1)
    assert (first.rows, second.rows) == (50, 1)
    assert (first.min_due, first.max_due) == (frames[0][DUE].min(), frames[0][DUE].max())
    assert first.live == tuple(LIVE)
    assert first.bytes > second.bytes > 0


@pytest.mark.parametrize("seed", range(8))
def test_probing_finds_every_row_of_a_locator_and_no_other(tmp_path: Path, seed: int) -> None:
    place = Place(tmp_path)
    rows = state_rows(seed, 300, [0, 2, 65535])
    (ref,) = write(place, rows)
    rng = np.random.default_rng(seed)
    known = rows[LOCATOR].to_numpy()
    beside = np.concatenate([known + np.uint64(1), known - np.uint64(1), [np.uint64(0)]])
    asked = np.unique(rng.choice(np.concatenate([known, beside]), 60))
    for wanted in ({0, 2, 65535}, {2}, {65535}, {1}):
        found = probe_slots(open_segment(place, ref), ranges(wanted), asked)
        expected = in_partitions(rows, wanted).filter(pl.col(LOCATOR).is_in(asked.tolist()))
        if expected.height == 0:
            assert found is None
        else:
            assert found is not None
            assert_frame_equal(found, expected)


def test_probing_at_both_ends(tmp_path: Path) -> None:
    place = Place(tmp_path)
    rows = state_rows(3, 40, [1])
    (ref,) = write(place, rows)
    known = np.unique(rows[LOCATOR].to_numpy())
    for asked in (known[:1], known[-1:], known, np.array([0, 2**64 - 1], dtype=np.uint64)):
        found = probe_slots(open_segment(place, ref), LIVE, asked)
        height = rows.filter(pl.col(LOCATOR).is_in(asked.tolist())).height
        assert (0 if found is None else found.height) == height


@pytest.mark.parametrize("damage", ["gone", "cut", "other"])
def test_a_broken_segment_is_named(tmp_path: Path, damage: str) -> None:
    place = Place(tmp_path)
    (ref,) = write(place, state_rows(1, 50, [0]))
    path = tmp_path / ref.file
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:100] if damage == "cut" else b"something else" * 100)
    with pytest.raises(
        StateError, match=r"state/q/1\.arrow' named by the checkpoint cannot be read"
    ):
        read_slots(open_segment(place, ref), LIVE)


def test_a_small_segment_stays_open_until_its_file_changes(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (ref,) = write(place, state_rows(1, 50, [0]))
    first = open_segment(place, ref)
    assert open_segment(place, ref) is first
    path = tmp_path / ref.file
    contents = bytearray(path.read_bytes())
    contents[len(contents) // 2] ^= 1
    path.write_bytes(contents)
    with pytest.raises(StateError, match="checksum"):
        open_segment(place, ref)


def large_segment(
    folder: Path, rows: int = 40_000, slots: int = 400
) -> tuple[pl.DataFrame, SegmentRef]:
    """Rows that came in another order than they are written in."""
    came = pl.DataFrame(
        {
            LOCATOR: (np.arange(rows, dtype=np.uint64) % slots) << np.uint64(48),
            DUE: np.full(rows, NEVER),
            "text": [f"{number:0200}" for number in range(rows)],
        }
    )
    sorted_rows = sort_by_locator(came)
    parts = [Part(0, sorted_rows, [(0, slots)])]
    (ref,) = write_segments(Place(folder), "s.arrow", "t", parts, (1, 1), False)
    return sorted_rows, ref


@pytest.mark.parametrize(
    ("wanted", "least", "most"),
    [(None, 0, 0.02), ([(10, 14)], 0.01, 0.04), ([(0, 100), (300, 400)], 0.48, 0.55)],
    ids=["to look something up", "few slots", "half of them"],
)
def test_of_a_large_segment_what_is_wanted_is_read_and_nothing_around_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wanted: Ranges | None,
    least: float,
    most: float,
) -> None:
    """Where memory is short, all else that is read drives out what is needed."""
    asked: list[int] = []
    advices: list[int] = []

    def watched(address: int, length: int, advice: int) -> None:
        advices.append(advice)
        if advice == mmap.MADV_WILLNEED:
            asked.append(length)
        advise(address, length, advice)

    place, (rows, ref) = Place(tmp_path), large_segment(tmp_path)
    monkeypatch.setattr(mapping, "advise", watched)
    segment = open_segment(place, ref, wanted)
    assert advices[0] == mmap.MADV_RANDOM, "the system reads around what is touched"
    size = (tmp_path / ref.file).stat().st_size
    # Locators tell where rows are
    assert least < (sum(asked) - 8 * rows.height) / size < most
    if wanted:
        slots = pl.col(LOCATOR) // (1 << 48)
        inside = pl.any_horizontal(slots.is_between(*one, closed="left") for one in wanted)
        assert_frame_equal(pl.concat(read_slots(segment, wanted)), rows.filter(inside))


def test_large_segments_that_are_looked_into_keep_no_file_open(tmp_path: Path) -> None:
    """There may be more of them than a process may have files."""
    rows, ref = large_segment(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    held = [open_segment(Place(tmp_path), ref, LIVE) for _ in range(20)]
    assert len(os.listdir("/proc/self/fd")) == before
    mapped = Path("/proc/self/maps").read_text().count(ref.file)
    assert mapped
    assert all(one.equals(rows) for one in held)
    del held
    assert ref.file not in Path("/proc/self/maps").read_text(), "it still takes its space"


def test_in_a_large_segment_the_texts_of_a_slot_lie_together(tmp_path: Path) -> None:
    rows, ref = large_segment(tmp_path)
    contents = (tmp_path / ref.file).read_bytes()
    for some in rows.partition_by(LOCATOR)[::40]:
        assert "".join(some["text"]).encode() in contents


def test_a_large_segment_is_mapped_only_while_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file may be gone by then, and would still take its space on the disk."""
    place = Place(tmp_path)
    (ref,) = write(place, state_rows(1, 50, [0]))
    monkeypatch.setattr("anabranch.state.segment.SMALL", ref.bytes - 1)
    assert open_segment(place, ref) is not open_segment(place, ref)


def test_what_this_process_wrote_is_summed_only_once_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed: list[str] = []

    def sum_up(version: checksum.FileVersion) -> int:
        summed.append(version.path)
        return zlib.crc32(Path(version.path).read_bytes())

    monkeypatch.setattr(checksum, "_checksum_of", sum_up)
    place, rows = Place(tmp_path), state_rows(3, 100, [1, 2])
    (ref,) = write_segments(place, "state/a.arrow", "t", [Part(0, rows, LIVE)], (1, 1), True)
    assert open_segment(place, ref).equals(rows)
    assert not summed
    path = tmp_path / ref.file
    before = path.stat()
    while path.stat().st_ctime_ns == before.st_ctime_ns:
        # A clock of the file system may stand still for some milliseconds
        Damage(path, before.st_size // 2, 3).flip()
        Damage(path, before.st_size // 2, 3).flip()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert open_segment(place, ref).equals(rows)
    assert summed == [str(path)]
    Damage(path, before.st_size // 2, 3).flip()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(StateError, match="its checksum"):
        open_segment(place, ref)
    # Another file under its name, of the same size and time
    other = tmp_path / "other"
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, path)
    with pytest.raises(StateError, match="its checksum"):
        open_segment(place, ref)
