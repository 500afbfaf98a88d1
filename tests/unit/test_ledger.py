"""The line of manifests while two drivers and a reader are at it: moments that exploring has found."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from anabranch.control.waiting import still_held
from anabranch.errors import StateError
from anabranch.routing.lane_times import LaneTime
from anabranch.state.entry import applied, difference, encode
from anabranch.state.ledger import Ledger
from anabranch.state.line import entry_name, read_line, read_newest
from anabranch.state.manifest import ExchangeRecord, HeldRef, Manifest, StreamRecord
from anabranch.state.place import Place

FIRST = Manifest(
    run_id="run", epoch=-1, sites=1, committed_at=0.0, identity={}, streams={}, watermarks={},
    exchanges={"sums": ExchangeRecord(sites=[0])}, subqueries={},
)  # fmt: skip


def ledger_on(place: Place, keep: int = 2) -> Ledger:
    ledger = Ledger(place, fsync=False, keep=keep)
    ledger.latest()
    return ledger


def commit(ledger: Ledger, epoch: int) -> None:
    ledger.commit(msgspec.structs.replace(FIRST, epoch=epoch), {})


def once(patch: pytest.MonkeyPatch, name: str, before: Callable[[], None], skip: int = 0) -> None:
    """Has something happen just before one call of a place."""
    right, left = getattr(Place, name), [skip]

    def late(self: Place, *arguments: object) -> object:
        left[0] -= 1
        if left[0] == -1:
            before()
        return right(self, *arguments)

    patch.setattr(Place, name, late)


def test_an_entry_stays_if_another_run_has_built_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path)
    first = ledger_on(place)
    first.claim(FIRST)

    def take_over() -> None:
        second = ledger_on(place)
        second.claim(msgspec.structs.replace(FIRST, epoch=0))

    # Between the put of the first run and its look at the line
    once(monkeypatch, "names", take_over)
    with pytest.raises(StateError, match="Another run has taken over"):
        commit(first, 0)
    kept = [entry.manifest for entry in read_line(place)]
    assert [one.serial for one in kept if isinstance(one, Manifest)] == [0, 1, 2]
    assert read_newest(place).oldest == 1


def test_an_entry_whose_number_was_cleared_away_is_taken_back(tmp_path: Path) -> None:
    place = Place(tmp_path)
    sleeper = ledger_on(place, keep=1)
    sleeper.claim(FIRST)
    other = ledger_on(place, keep=1)
    other.claim(FIRST)
    for epoch in range(3):
        commit(other, epoch)
        other.clear()
    before = place.names("manifests", ".json")
    assert entry_name(1) not in before
    with pytest.raises(StateError, match="Another run has taken over"):
        commit(sleeper, 0)
    assert place.names("manifests", ".json") == before


@pytest.mark.parametrize("read", [read_newest, read_line])
def test_a_reader_is_not_misled_by_an_entry_whose_number_was_cleared_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Place], object]
) -> None:
    place = Place(tmp_path)
    sleeper = ledger_on(place, keep=1)
    sleeper.claim(FIRST)
    other = ledger_on(place, keep=1)
    other.claim(FIRST)
    other.clear()

    def go_on_and_wake() -> None:
        commit(other, 0)
        other.clear()
        # The sleeper has put its entry, and has not looked at the line yet
        late = msgspec.structs.replace(FIRST, serial=1, token="sleeper")
        place.put(entry_name(1), encode(late), False)

    once(monkeypatch, "read", go_on_and_wake)
    found = read(place)
    newest = found[-1].manifest if isinstance(found, list) else found
    assert isinstance(newest, Manifest), newest
    assert newest.serial == 2


def test_an_entry_that_is_listed_and_cannot_be_opened_is_named(tmp_path: Path) -> None:
    place = Place(tmp_path)
    ledger_on(place).claim(FIRST)
    (tmp_path / entry_name(1)).symlink_to(tmp_path / "gone")
    with pytest.raises(StateError, match="is listed but cannot be opened"):
        read_newest(place)
    (entry,) = read_line(place)
    assert isinstance(entry.manifest, StateError)
    assert "000000000001.json' is listed but cannot be opened" in str(entry.manifest)


def test_an_entry_that_could_not_be_flushed_is_not_taken_for_another_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path)
    ledger = Ledger(place, fsync=True)
    ledger.latest()
    ledger.claim(FIRST)

    def fail(path: Path) -> None:
        if path.is_dir():
            raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("anabranch.state.place.sync", fail)
        with pytest.raises(StateError, match="It is there, but may not be on the disk"):
            commit(ledger, 0)
    assert ledger.lost() is None
    ledger_on(place).claim(FIRST)
    assert "Another run has taken over" in str(ledger.lost())


def test_lanes_that_are_forgotten_are_gone_for_the_next_reader_too(tmp_path: Path) -> None:
    """A delta has only the lanes that have changed, so one that forgets some takes a whole entry."""
    place = Place(tmp_path)
    ledger = ledger_on(place)
    ledger.claim(FIRST)
    lanes = [("a", "b"), ("a", "b"), ("a", "b", "c"), ()]
    for epoch, some in enumerate(lanes):
        times = {lane: LaneTime(newest=epoch) for lane in some}
        streams = {"rows": StreamRecord(lane_times=times)}
        ledger.commit(msgspec.structs.replace(FIRST, epoch=epoch, streams=streams), {})
        newest = read_newest(place)
        assert newest is not None
        assert newest.streams["rows"].lane_times == times


def test_rows_that_wait_are_told_apart_by_what_of_a_file_still_does() -> None:
    """A file of which some slots have gone on keeps its place, and only its other slots."""
    first, second, third = (
        HeldRef(
            file=f"{name}.arrow", exchange="sums", subquery="sums", input=0, rows=8, bytes=80,
            slots=((0, 4), (6, 10)), checksum=1,
        )
        for name in "abc"
    )  # fmt: skip
    before = msgspec.structs.replace(FIRST, epoch=0, held=[first, second])
    left = still_held(before.held, [first.cut([(0, 4)]), second])
    after = msgspec.structs.replace(FIRST, epoch=1, held=[*left, third])
    assert [ref.slots for ref in after.held] == [((6, 10),), third.slots]
    assert [ref.rows for ref in after.held] == [4, 8]
    delta = difference(before, after, {})
    assert delta is not None
    assert delta.let_go == ["b.arrow"]
    assert applied(before, delta).held == after.held


def _refuse_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*paths: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)


def test_one_of_many_puts_an_entry_where_there_are_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on exFAT: who looked before the write overwrote who came between."""
    _refuse_links(monkeypatch)
    place, together = Place(tmp_path), threading.Barrier(4)
    looked = Path.exists

    def wait(path: Path, **options: bool) -> bool:
        found = looked(path, **options)
        if not found and path.name.startswith("entry"):
            together.wait(5)
        return found

    monkeypatch.setattr(Path, "exists", wait)
    for number in range(20):
        name = f"manifests/entry{number}"
        with ThreadPoolExecutor(4) as several:
            data = [bytes([each]) * 100 for each in range(4)]
            won = list(several.map(lambda own, name=name: place.put(name, own, False), data))
        assert won.count(True) == 1
        assert (tmp_path / name).read_bytes() == data[won.index(True)]
    assert place.unfinished() == []


def test_a_folder_in_which_nobody_could_be_first_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(*paths: object) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    _refuse_links(monkeypatch)
    monkeypatch.setattr("anabranch.state.place.rename_once", lacking, raising=False)
    with pytest.raises(StateError, match="neither hard links nor"):
        Place(tmp_path).put("manifests/entry", b"one", False)
    assert not (tmp_path / "manifests/entry").exists()
