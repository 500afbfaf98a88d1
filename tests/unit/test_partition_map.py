"""Ranges of partitions against plain sets, and the arithmetic from hash to partition to row range."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import PlanningError
from anabranch.routing import ranges as ranges_module
from anabranch.routing.locator import MAX_SLOTS, locator, row_ranges, slot_of, slot_of_locator
from anabranch.routing.partition_map import PartitionMap, even_map
from anabranch.routing.ranges import expand, intersect, subtract
from anabranch.routing.sorting import sort_locators
from helpers import ranges

Ranges = list[tuple[int, int]]

partitions = st.sets(st.integers(0, 40) | st.integers(MAX_SLOTS - 4, MAX_SLOTS - 1))
words = st.integers(0, 2**64 - 1)


def members(pairs: Ranges) -> set[int]:
    return {partition for first, end in pairs for partition in range(first, end)}


def well_formed(pairs: Ranges) -> bool:
    """Not empty, ascending, none inside another."""
    ends = [edge for pair in pairs for edge in pair]
    return ends == sorted(ends) and all(first < end for first, end in pairs)


@given(partitions)
def test_ranges_hold_exactly_the_partitions(wanted: set[int]) -> None:
    pairs = ranges(wanted)
    assert members(pairs) == wanted
    assert well_formed(pairs)
    assert all(a[1] < b[0] for a, b in itertools.pairwise(pairs)), "neighbours not joined"


@pytest.mark.parametrize("many", [0, 24, 1000])
@given(left=partitions, right=partitions)
def test_intersect_and_subtract_are_those_of_sets(
    many: int, left: set[int], right: set[int]
) -> None:
    """However many there are: from a number of ranges on they are looked at all at once."""
    with mock.patch.object(ranges_module, "MANY", many):
        check_intersect_and_subtract(left, right)


def check_intersect_and_subtract(left: set[int], right: set[int]) -> None:
    both, rest = intersect(ranges(left), ranges(right)), subtract(ranges(left), ranges(right))
    assert members(both) == left & right
    assert members(rest) == left - right
    assert well_formed(both)
    assert well_formed(rest)


@given(partitions, st.lists(st.integers(0, 3), max_size=8))
def test_subtract_takes_ranges_in_any_order_and_more_than_once(
    left: set[int], cuts: list[int]
) -> None:
    right = [(cut * 5, cut * 5 + 7) for cut in cuts]
    assert members(subtract(ranges(left), right)) == left - members(right)


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 7, 40, 65534, 65535]), words)), partitions)
def test_slices_find_the_rows_of_the_partitions(
    rows: list[tuple[int, int]], wanted: set[int]
) -> None:
    numbers = np.array([partition for partition, _ in rows], dtype=np.uint64)
    hashes = np.array([word for _, word in rows], dtype=np.uint64)
    sorted_ = np.sort(locator(numbers, hashes))
    found = row_ranges(sorted_, ranges(wanted))
    assert all(start < end for start, end in found)
    rows_found = [row for start, end in found for row in range(start, end)]
    inside = np.isin(slot_of_locator(sorted_), list(wanted))
    assert rows_found == np.flatnonzero(inside).tolist()


@given(st.lists(words), st.integers(1, MAX_SLOTS))
def test_partitions_are_equal_ranges_of_the_upper_32_bits(hashes: list[int], number: int) -> None:
    found = slot_of(np.array(hashes, dtype=np.uint64), number)
    assert found.tolist() == [(word >> 32) * number >> 32 for word in hashes]


def test_locators_keep_the_partition_and_48_bits_of_the_hash() -> None:
    made = locator(np.array([0, 65535], dtype=np.uint64), np.array([2**64 - 1, 5], dtype=np.uint64))
    assert made.tolist() == [2**48 - 1, 65535 << 48 | 5]
    assert slot_of_locator(made).tolist() == [0, 65535]


@given(
    st.lists(words)
    | st.lists(st.integers(0, 5))
    | st.lists(st.tuples(st.integers(0, 2), st.integers(0, 600))).map(
        lambda pairs: [high << 40 | low for high, low in pairs]
    )
)
def test_order_is_that_of_a_stable_sort(locators: list[int]) -> None:
    array = np.array(locators, dtype=np.uint64)
    order, ordered = sort_locators(array)
    assert order.tolist() == np.argsort(array, kind="stable").tolist()
    assert ordered.tolist() == sorted(locators)


def test_many_locators_that_differ_only_in_low_bits() -> None:
    """More rows than the bits that tell them apart: all words are blurred."""
    array = np.random.default_rng(1).integers(0, 50, 100_000).astype(np.uint64)
    order, ordered = sort_locators(array)
    assert np.array_equal(order, np.argsort(array, kind="stable"))
    assert np.array_equal(ordered, np.sort(array))


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 6))))
def test_expand_concatenates_ranges(pairs: list[tuple[int, int]]) -> None:
    start = np.array([first for first, _ in pairs], dtype=np.int64)
    length = np.array([count for _, count in pairs], dtype=np.int64)
    wanted = [value for first, count in pairs for value in range(first, first + count)]
    assert expand(start, length).tolist() == wanted


@given(st.integers(1, 300), st.integers(1, 300))
def test_an_even_map_is_even(number: int, sites: int) -> None:
    made = even_map(number, sites)
    counts = np.bincount(made.sites, minlength=sites)
    assert made.partitions == number
    assert counts.max() - counts.min() <= 1
    assert list(made.sites) == sorted(made.sites)


@given(st.lists(st.integers(0, 4), min_size=1))
def test_every_partition_has_one_owner(sites: list[int]) -> None:
    made = PartitionMap(tuple(sites))
    owned = [partition for site in range(5) for partition in members(made.owned_by(site))]
    assert sorted(owned) == list(range(len(sites)))
    assert made.site_of(np.arange(len(sites), dtype=np.uint64)).tolist() == sites


def test_a_map_has_at_least_one_and_at_most_65536_partitions() -> None:
    for sites in ((), (0,) * (MAX_SLOTS + 1)):
        with pytest.raises(PlanningError, match="Expected 1 to 65536 partitions"):
            PartitionMap(sites)


@given(st.data())
def test_cutting_and_joining_partitions_moves_no_slot(data: st.DataObject) -> None:
    made = even_map(6, 3, slots=60)
    every = np.arange(60)
    for _ in range(data.draw(st.integers(0, 12))):
        at = data.draw(st.integers(0, 59))
        before = made.site_of(every).tolist()
        if data.draw(st.booleans()):
            cut = made.split(at)
            assert at in cut.starts
            assert cut.site_of(every).tolist() == before
            assert cut.merged(at).partitions <= cut.partitions
            made = cut
        else:
            joined = made.merged(at)
            assert joined.partitions == made.partitions - (at in made.starts[1:])
            made = joined


def test_a_map_covers_every_slot_once() -> None:
    for starts in ((1, 2), (0, 0), (0, 9)):
        with pytest.raises(PlanningError, match="cover all slots"):
            PartitionMap((0, 1), starts, slots=5)


def test_too_many_partitions_are_refused_before_they_are_made() -> None:
    with pytest.raises(PlanningError, match="4 sites would have 4000000000 partitions together"):
        even_map(4_000_000_000, 4)
