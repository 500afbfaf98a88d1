"""What a site sees of its state: by due time, by locator, and the same after compaction as before."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anabranch.engine.report import SubqueryReport, masked_as_plain
from anabranch.routing.ranges import intersect
from anabranch.state import packing
from anabranch.state.compaction import compact
from anabranch.state.group import SiteState
from anabranch.state.packing import bring_back, put_away
from anabranch.state.place import Place
from anabranch.state.segment import (
    DUE,
    LOCATOR,
    NEVER,
    SegmentRef,
    open_segment,
    read_slots,
    sort_by_locator,
)
from anabranch.state.shelf import Shelf
from anabranch.state.table import StateTable
from anabranch.testing.compare import assert_same_rows
from helpers import ranges

PARTITIONS, SPAN = 12, 10


@dataclass
class Store:
    """The segments of a subquery, as manifests would carry them from epoch to epoch."""

    place: Place
    rng: np.random.Generator
    refs: list[SegmentRef] = field(default_factory=list)
    _files: Callable[[], int] = field(default_factory=lambda: itertools.count().__next__)

    def name(self, table: str) -> str:
        return f"state/q/{self._files():04d}-{table}.arrow"

    def rows(self, number: int, owned: set[int], low: int = 0, high: int = 45) -> pl.DataFrame:
        where = self.rng.choice(sorted(owned), number).astype(np.uint64) << np.uint64(48)
        frame = pl.DataFrame(
            {
                LOCATOR: where | self.rng.integers(0, 9, number).astype(np.uint64),
                DUE: self.rng.integers(low, high, number),
                "id": self.rng.integers(0, 2**62, number),
            }
        )
        return sort_by_locator(frame)

    def site(self, owned: set[int]) -> SiteState:
        return SiteState(self.place, tuple(self.refs), ranges(owned))

    def add(self, number: int, owned: set[int], table: str = "open") -> pl.DataFrame:
        """An epoch of one site: rows appended and written."""
        rows = self.rows(number, owned)
        site = self.site(owned)
        site.append(table, rows)
        self.refs += site.write(self.name, SPAN, fsync=False)
        return rows

    def compact(
        self, owned: set[int], after: int | None = None, fan: int = 2, budget: int = 1 << 40
    ) -> tuple[list[SegmentRef], SubqueryReport]:
        """Compacts as a site does and commits as the driver does."""
        written, masked = compact(
            self.site(owned), TABLES, after, SPAN, fan, budget, self.name, False
        )
        report = SubqueryReport(segments=written, masked=masked_as_plain(masked))
        shelf = Shelf(self.refs)
        self.refs = list(shelf.after(shelf.change(written, report.masked, None)))
        return written, report

    def contents(self, table: str = "open") -> pl.DataFrame:
        """All live rows of a table."""
        parts = [
            part
            for ref in self.refs
            if ref.table == table
            for part in read_slots(open_segment(self.place, ref), list(ref.live))
        ]
        empty = self.rows(1, {0})[:0]
        return pl.concat([empty, *parts])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Place(tmp_path), np.random.default_rng(7))


ALL = set(range(PARTITIONS))
TABLES = [StateTable(name, (), sort_by_locator) for name in ("open", "kept", "pending")]


def filled(store: Store, epochs: int, number: int = 40) -> None:
    """Epochs on two sites, with a new map each time."""
    for _ in range(epochs):
        mine = set(store.rng.permutation(PARTITIONS)[: PARTITIONS // 2].tolist())
        store.add(number, mine)
        store.add(number, ALL - mine)


def test_due_rows_by_time_and_partition(store: Store) -> None:
    filled(store, 4)
    everything = store.contents()
    where = everything[LOCATOR].to_numpy() >> np.uint64(48)
    for owned in ({0}, {3, 4, 9}, ALL):
        mine = everything.filter(pl.Series(np.isin(where, list(owned))))
        for after, upto in ((None, 20), (10, 20), (19, 20), (20, 44), (None, -1), (44, 99)):
            found = store.site(owned).due("open", after, upto)
            expected = mine.filter(
                pl.col(DUE).is_between(-99 if after is None else after + 1, upto)
            )
            assert_same_rows(pl.concat([everything[:0], *found]), expected)


def test_probe_by_locator_and_time(store: Store) -> None:
    filled(store, 4)
    everything = store.contents()
    known = np.unique(everything[LOCATOR].to_numpy())
    for locators in (known[::3], known[:1], known[-1:], known):
        for after in (None, 0, 17, 44):
            found = store.site(ALL).probe("open", locators, after)
            expected = everything.filter(
                pl.col(LOCATOR).is_in(locators.tolist())
                & (pl.col(DUE) > (-99 if after is None else after))
            )
            assert_same_rows(pl.concat([everything[:0], *found]), expected)


@pytest.mark.parametrize("fan", [2, 3])
def test_compaction_loses_and_repeats_nothing(store: Store, fan: int) -> None:
    for _ in range(6):
        filled(store, 2)
        before = store.contents()
        for owned in ({0, 1, 2, 3}, ALL - {0, 1, 2, 3}):
            store.compact(owned, fan=fan)
            assert_same_rows(store.contents(), before)
    assert max(ref.tier for ref in store.refs) >= (2 if fan == 2 else 1)


def test_compaction_makes_fewer_segments(store: Store) -> None:
    filled(store, 8)
    before = len(store.refs)
    while store.compact(ALL)[0]:
        pass
    classes = {(ref.max_due // SPAN, ref.tier) for ref in store.refs}
    for key in classes:
        members = [ref for ref in store.refs if (ref.max_due // SPAN, ref.tier) == key]
        for one, other in itertools.combinations(members, 2):
            assert not intersect(one.live, other.live), "two segments of a tier still overlap"
    assert len(store.refs) < before / 2


def test_the_last_slot_has_its_bytes_too(store: Store) -> None:
    """What comes after it is no number of 64 bits any more."""
    last = (1 << 16) - 1
    store.add(50, {last - 1, last})
    site = store.site({last - 1, last})
    by_slot = site._bytes_of(np.array([last - 1, last]))
    assert by_slot.min() > 0
    assert by_slot.sum() == pytest.approx(sum(ref.bytes for ref in store.refs))


def test_rows_that_never_fall_due_lie_beside_those_that_soon_do(tmp_path: Path) -> None:
    due = [0, 3, 1 << 40, NEVER, 3, NEVER - 1]
    rows = pl.DataFrame({LOCATOR: np.arange(6, dtype=np.uint64), DUE: due, "n": range(6)})
    state = SiteState(Place(tmp_path), (), [(0, PARTITIONS)])
    state.append("t", rows)
    refs = state.write(lambda table: f"state/{table}.arrow", 1, False)
    assert [(ref.min_due, ref.max_due) for ref in refs] == [(0, 1 << 40), (NEVER - 1, NEVER)]
    assert [open_segment(state.place, ref)["n"].to_list() for ref in refs] == [[0, 1, 2, 4], [3, 5]]


@pytest.mark.parametrize("windows", [1, 2, 7, 8, 9, 17, 40])
def test_neighbouring_windows_share_a_segment_where_they_are_many(
    windows: int, tmp_path: Path
) -> None:
    due = np.random.default_rng(windows).permutation(windows * SPAN) - 7 * SPAN
    rows = pl.DataFrame({LOCATOR: np.arange(len(due), dtype=np.uint64), DUE: due})
    state = SiteState(Place(tmp_path), (), [(0, PARTITIONS)])
    state.append("t", rows)
    refs = state.write(lambda table: f"state/{table}.arrow", SPAN, False)
    count = min(windows, 8)
    expected = [
        rows.filter((pl.col(DUE) // SPAN + 7) * count // windows == number)
        for number in range(count)
    ]
    for ref, frame in zip(refs, expected, strict=True):
        assert open_segment(state.place, ref).equals(frame)


def test_segments_stay_sorted_and_within_their_owners(store: Store) -> None:
    filled(store, 4)
    written, _ = store.compact({1, 2, 5})
    assert written
    for ref in written:
        assert set(ref.live) == {(1, 3), (5, 6)}
        rows = pl.concat(read_slots(open_segment(store.place, ref), [(0, 65536)]))
        locators = rows[LOCATOR].to_numpy()
        assert (locators[1:] >= locators[:-1]).all()
        assert set((locators >> np.uint64(48)).tolist()) <= {1, 2, 5}
        assert (ref.min_due, ref.max_due) == (rows[DUE].min(), rows[DUE].max())


def test_nothing_of_another_site_is_touched(store: Store) -> None:
    filled(store, 4)
    _, report = store.compact({1, 2, 5})
    for _, _, masked in report.masked:
        assert intersect(masked, ranges(ALL - {1, 2, 5})) == []


def test_rows_that_have_done_their_work_are_left_out(store: Store) -> None:
    filled(store, 4)
    expected = store.contents().filter(pl.col(DUE) > 23)
    while store.compact(ALL, after=23)[0]:
        pass
    assert_same_rows(store.contents().filter(pl.col(DUE) > 23), expected)
    merged = [ref for ref in store.refs if ref.tier]
    assert merged
    assert all(ref.min_due > 23 for ref in merged)


@pytest.mark.parametrize("budget", [0, 1, 10, 60, 200])
def test_the_budget_bounds_the_rows_rewritten_per_tier(store: Store, budget: int) -> None:
    filled(store, 6, number=60)
    before = store.contents()
    tiers = {ref.tier for ref in store.refs}
    most = before.group_by((pl.col(LOCATOR) // 2**48), pl.col(DUE) // SPAN).len()["len"].max()
    assert isinstance(most, int)
    written, _ = store.compact(ALL, budget=budget)
    assert_same_rows(store.contents(), before)
    assert written, "one partition is always merged, or compaction could stop for ever"
    # What a partition has is estimated from its segments: twice the largest is room enough
    assert sum(ref.rows for ref in written) <= len(tiers) * (budget + 2 * most)
    if budget >= 200:
        tiny, _ = Store(store.place, np.random.default_rng(7), list(store.refs)).compact(
            ALL, budget=1
        )
        assert sum(ref.rows for ref in tiny) < sum(ref.rows for ref in written)


def test_tables_are_kept_apart(store: Store) -> None:
    for _ in range(3):
        store.add(30, ALL, "pending")
        store.add(30, ALL, "kept")
    before = {table: store.contents(table) for table in ("pending", "kept")}
    store.compact(ALL)
    for table, rows in before.items():
        assert_same_rows(store.contents(table), rows)


def test_fewer_segments_than_the_fan_are_left_alone(store: Store) -> None:
    filled(store, 1)
    before = store.refs
    written, report = store.compact(ALL, fan=4)
    assert (written, report.masked, store.refs) == ([], [], before)


def packed(store: Store, owned: set[int], passed: int | None) -> list[SegmentRef]:
    """Puts slots away as a site does and commits as the driver does."""
    written, masked = put_away(store.site(owned), TABLES, store.name, False, passed)
    shelf = Shelf(store.refs)
    store.refs = list(shelf.after(shelf.change(written, masked_as_plain(masked), None)))
    return written


@pytest.mark.parametrize("passed", [None, 23])
def test_what_goes_aside_is_all_that_has_work_to_do(store: Store, passed: int | None) -> None:
    """Rows whose time has passed may be carried on in others: merged with these they would count twice."""
    filled(store, 4)
    whole = store.contents()
    written = packed(store, ALL, passed)
    assert all(ref.packed for ref in store.refs)
    assert {ref.file for ref in written} == {ref.file for ref in store.refs}
    lasting = whole if passed is None else whole.filter(pl.col(DUE) > passed)
    assert_same_rows(store.contents(), lasting)


def test_what_goes_aside_lies_in_small_parts_of_whole_slots(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PART_BYTES", 500)
    filled(store, 4)
    whole = store.contents()
    written = packed(store, ALL, None)
    assert len(written) > 4
    for one, other in itertools.combinations(written, 2):
        assert not intersect(one.live, other.live), "two parts have a slot"
    assert_same_rows(store.contents(), whole)
    assert sum(ref.rows for ref in written) == whole.height


def test_what_comes_back_is_plain_and_of_one_piece(store: Store) -> None:
    filled(store, 4)
    expected = store.contents().filter(pl.col(DUE) > 30)
    packed(store, ALL, 10)
    found: list[SegmentRef] = []
    for piece in store.site(ALL).in_pieces():
        written, masked = bring_back(piece, TABLES, store.name, False, 30)
        found += written
        shelf = Shelf(store.refs)
        store.refs = list(shelf.after(shelf.change(written, masked_as_plain(masked), None)))
    assert found
    assert not any(ref.packed for ref in store.refs)
    assert_same_rows(store.contents(), expected)
