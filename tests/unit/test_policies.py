"""Policies, arbiter, tuning and smoothing: what they do with small views written out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anabranch.adapt.actions import CleanUp, Combine, Merge, Move, Replan, Spill, Split
from anabranch.adapt.arbiter import Arbiter, Limits
from anabranch.adapt.policies.disk import propose_active_disk, propose_lazy_disk
from anabranch.adapt.policies.even import propose_even
from anabranch.adapt.policies.heat import propose_heat
from anabranch.adapt.policies.hybrid import propose_hybrid
from anabranch.adapt.policies.load import propose_load
from anabranch.adapt.policies.memory import propose_memory
from anabranch.adapt.policies.relief import propose_relief
from anabranch.adapt.policies.spill import (
    Thresholds,
    propose_due,
    propose_return,
    propose_spill,
)
from anabranch.adapt.smoothing import Smoothed
from anabranch.adapt.tuning import Tuning, after_round, by_itself, fixed, surprise
from anabranch.adapt.view import Partitions, Sites, View, slowness
from anabranch.state.segment import NEVER

PAPER = fixed(0.01)
ITSELF = by_itself(0.01, 2.0)


def view(
    parts: list[list[float]],
    slow: list[float] | None = None,
    size: int = 10,
    memory: list[float] | None = None,
    on_disk: tuple[int, ...] = (),
) -> View:
    """Sites with partitions of this work (seconds of one), numbered through."""
    site = np.repeat(np.arange(len(parts)), [len(own) for own in parts])
    work = np.array([value for own in parts for value in own])
    sites, partitions = len(parts), len(work)
    pace = np.array(slow or [1.0] * sites)
    spilled = np.isin(np.arange(partitions), on_disk)
    bytes_ = np.full(partitions, size)
    none, flat = np.zeros(sites), np.zeros(partitions)
    return View(
        ("x",), 1.0,
        Sites(
            np.bincount(site, work, sites) * pace, none, none, pace,
            np.bincount(site, bytes_ * ~spilled, sites), np.bincount(site, bytes_ * spilled, sites), none,
            np.array(memory or [1e9] * sites), np.ones(sites, bool),
        ),
        Partitions(
            flat.astype(int), np.arange(partitions), np.full(partitions, 4), site, work, work, work, bytes_,
            bytes_ * spilled, flat, flat == 0, flat > 0, flat, flat, flat > 0, flat > 0, flat,
            flat.astype(int),
        ),
    )  # fmt: skip


def short(moves: object) -> list[tuple[int, int, int]]:
    return [(move.partition, move.source, move.target) for move in moves]  # type: ignore[attr-defined]


def test_flux_moves_what_its_figure_5_shows() -> None:
    # Sites 1 to 4 of the paper are 0 to 3: the first gives its largest to the last; the second may not
    # give its largest, 9 of the paper, to the third, for that would turn the two around by more
    four = view([[0.4, 0.3, 0.25], [0.6, 0.1], [0.35, 0.05], [0.1, 0.05]])
    assert short(propose_load(four, PAPER)) == [(0, 0, 3), (4, 1, 2)]


def test_flux_leaves_close_or_full_sites_alone() -> None:
    assert not list(propose_load(view([[0.5, 0.5], [0.45, 0.45]]), PAPER))
    assert not list(propose_load(view([[0.6, 0.6], [0.5, 0.45]]), PAPER)), (
        "the receiver is above 0.9"
    )
    assert not list(propose_load(view([[0.9], [0.2]]), PAPER)), "it would fill the receiver"


def test_flux_shifts_a_popular_partition_where_ours_moves_the_others() -> None:
    skewed = view([[0.8, 0.03, 0.03], [0.05], [0.05]])
    assert short(propose_load(skewed, PAPER))[0][0] == 0
    moved = short(propose_even(skewed, ITSELF))
    assert {partition for partition, _, _ in moved} == {1, 2}


def test_a_popular_partition_leaves_a_slow_site_first() -> None:
    moved = short(propose_even(view([[0.3, 0.05, 0.05], [0.1], [0.1]], slow=[2.3, 1, 1]), ITSELF))
    assert moved[0][0] == 0


def test_ours_brings_all_sites_together_in_one_round() -> None:
    start = view([[0.02] * 40, [0.02] * 5, [0.02] * 15])
    moves = list(propose_even(start, ITSELF))
    after = start.moved([m.partition for m in moves], [m.target for m in moves])
    assert after.utilisation.max() <= after.utilisation.min() * 1.11
    assert not list(propose_even(after, ITSELF))


def test_memory_gives_resident_partitions_before_those_on_disk() -> None:
    pressed = view([[0.1] * 4, [0.1]], memory=[20, 100], on_disk=(0, 1))
    assert short(propose_memory(pressed, PAPER)) == [(2, 0, 1)]
    assert short(propose_memory(pressed, ITSELF)) == [(2, 0, 1), (3, 0, 1), (0, 0, 1)]
    assert not list(propose_memory(view([[0.1] * 4, [0.1]], memory=[100, 100]), PAPER))


def test_hybrid_goes_by_memory_only_while_something_is_on_disk() -> None:
    loads = [[0.2] * 4, [0.1]]
    on_disk = view(loads, memory=[30, 100], on_disk=(0,))
    assert short(propose_hybrid(on_disk, PAPER)) == short(propose_memory(on_disk, PAPER))
    assert short(propose_hybrid(view(loads), PAPER)) == short(propose_load(view(loads), PAPER))
    assert not list(propose_hybrid(view(loads, memory=[100, 15]), PAPER)), "there is no room"


def test_heat_splits_what_is_hot_and_merges_what_is_cold() -> None:
    found = list(propose_heat(view([[0.9, 0.001, 0.001], [0.1]]), PAPER, base=2))
    assert [type(action) for action in found] == [Split, Merge]


def test_the_arbiter_says_why_not() -> None:
    two = view([[0.5, 0.5], [0.1]])
    arbiter = Arbiter(Limits(bytes_per_epoch=15, settle=1, remember=4))
    away = Move("x", 0, "load", source=0, target=1, bytes=10)
    first = arbiter.judge([away, away, replace(away, partition=1)], two, 1)
    assert [verdict.accepted for verdict in first] == [True, False, False]
    assert "another proposal" in first[1].reason
    assert "5 are left" in first[2].reason
    arbiter.renew()
    back = replace(away, source=1, target=0)
    assert "no return: it moved" in arbiter.judge([back], two, 2)[0].reason
    assert "no return: it left site 0" in arbiter.judge([back], two, 4)[0].reason
    faster = replace(two, sites=replace(two.sites, slowness=np.array([0.5, 1.0])))
    assert arbiter.judge([back], faster, 4)[0].accepted, "the site it left is another one now"
    gone = replace(two, sites=replace(two.sites, alive=np.array([True, False])))
    assert Arbiter().judge([away], gone, 1)[0].reason == "site 1 is gone"


def test_the_arbiter_forgets() -> None:
    two, arbiter = view([[0.5, 0.5], [0.1]]), Arbiter(Limits(settle=1, remember=4))
    move = Move("x", 0, "load", source=0, target=1)
    arbiter.judge([move], two, 1)
    assert arbiter.judge([replace(move, source=1, target=0)], two, 6)[0].accepted


def test_one_arbiter_judges_all_levels_and_all_that_needs_no_view() -> None:
    one, other = view([[0.5, 0.5], [0.1]]), replace(view([[0.5], [0.1]]), exchanges=("y",))
    arbiter = Arbiter(Limits(bytes_per_epoch=15, settle=1, remember=4))
    away = Move("x", 0, "load", source=0, target=1, bytes=10)
    assert arbiter.judge([away], one, 1, binding=False)[0].accepted
    assert arbiter.budget == 15, "what does not bind is not paid for"
    assert arbiter.judge([away], one, 1)[0].accepted
    # The rounds of another level are its own, the bytes are not
    refused = arbiter.judge([replace(away, exchange="y")], other, 9)[0]
    assert "5 are left" in refused.reason
    arbiter.renew()
    assert "no return" in arbiter.judge([replace(away, source=1, target=0)], one, 2)[0].reason
    replan = Replan("x", 0, "cost", "j", (0, 64), before="(0,1,2)", shape="((0,1),2)")
    assert "put aside" in arbiter.judge([replan], busy={("x", 64)})[0].reason
    both = [Combine("x", 0, "combine", subquery=name, on=True) for name in ("a", "b")]
    assert all(verdict.accepted for verdict in arbiter.judge(both))


def test_flux_collects_as_long_as_it_moved_and_half_as_long_after_rest() -> None:
    tuning = after_round(fixed(0.01), 0.3, None, 4)
    assert tuning.collect == 0.3
    assert after_round(tuning, 0.0, 0.5, 4).collect == 0.15
    assert after_round(fixed(0.01), 0.0, None, 4).collect == 0.01


def test_tuning_by_itself_collects_longer_while_it_is_wrong() -> None:
    wrong = after_round(ITSELF, 0.1, 0.2, 32)
    assert wrong.collect > ITSELF.collect
    assert wrong.imbalance > ITSELF.imbalance
    better = wrong
    for _ in range(40):
        better = after_round(better, 0.0, 0.001, 32)
    assert better.collect == ITSELF.least
    assert better.imbalance < ITSELF.imbalance, "at first nothing is known"
    assert after_round(ITSELF, 0.1, 3.0, 32) == ITSELF, (
        "a change of the world is not an error of measuring"
    )


def test_surprise_counts_shares() -> None:
    assert surprise(np.array([1.0, 1.0]), np.array([0.5, 0.5])) == 0
    assert surprise(np.array([1.0, 1.0]), np.array([1.1, 0.9])) == pytest.approx(0.1, abs=0.01)


def test_means_follow_a_change_at_once_and_ignore_noise() -> None:
    rng, smoothed = np.random.default_rng(3), Smoothed()
    for _ in range(30):
        mean = smoothed.add(rng.normal(1, 0.02, 200))
    assert np.abs(mean - 1).max() < 0.03
    assert np.abs(smoothed.add(np.full(200, 2.0)) - 2).max() == 0
    kept = smoothed.add(np.full(200, 5.0), np.arange(200) > 0)
    assert kept[0] == 2
    assert kept[1] == 5


def test_an_idle_site_is_as_slow_as_the_others() -> None:
    assert slowness(np.zeros(2), np.zeros(2)).tolist() == [1.0, 1.0]
    assert isinstance(ITSELF, Tuning)


def test_sites_that_are_all_slow_have_nothing_to_give() -> None:
    even = view([[0.1] * 8] * 4, slow=[3.0] * 4)
    assert short(propose_even(even, ITSELF)) == []
    assert short(propose_load(even, PAPER)) == []


def test_hybrid_goes_by_memory_where_a_site_keeps_more_than_it_may() -> None:
    full = view([[0.2] * 4, [0.01] * 4], size=100, memory=[50, 1e9])
    assert {move.cause.split(":")[0] for move in propose_hybrid(full, ITSELF)} == {"memory"}


def test_nothing_is_moved_and_merged_in_one_round() -> None:
    four = view([[0.4, 0.3, 0.25], [0.1, 0.05]])
    arbiter = Arbiter(Limits())
    move = Move("x", 1, "", source=0, target=1)
    merge = Merge("x", 0, "", other=1)
    verdicts = arbiter.judge([move, merge], four, 1)
    assert [verdict.accepted for verdict in verdicts] == [True, False]
    assert "another proposal" in verdicts[1].reason


# -- more state than memory (S3, S4, F8) ---------------------------------------------------------------


def pressed(**columns: Any) -> View:
    """One site with four partitions of ten bytes each and room for 25."""
    one = view([[0.1] * 4], memory=[25])
    known = {name: np.asarray(values) for name, values in columns.items()}
    known = {"generations": known.get("aside", np.zeros(4)) > 0, **known}
    partitions = replace(one.partitions, **known)
    kept = partitions.bytes - partitions.aside
    sites = replace(one.sites, resident=np.array([kept.sum()]), spilled=np.array([0.0]))
    return replace(one, partitions=partitions, sites=sites)


def starts(actions: object) -> list[int]:
    return [action.partition for action in actions]  # type: ignore[attr-defined]


def test_what_gives_least_for_its_bytes_goes_first_when_memory_is_short() -> None:
    poor_first = pressed(rows_out=[5, 1, 9, 3])
    assert starts(propose_spill(poor_first, Thresholds(share=0.3))) == [1, 3]
    assert starts(propose_spill(poor_first, Thresholds(share=0.8))) == [1, 3, 0, 2]
    best_first = Thresholds(share=0.3, first="rich")
    assert starts(propose_spill(poor_first, best_first)) == [2, 0]


def test_what_has_had_no_rows_for_long_goes_before_all_others() -> None:
    idle = pressed(rows_out=[5, 1, 9, 3], last_use=[100, 100, 40, 100])
    assert starts(propose_spill(idle, Thresholds(idle=50))) == [2, 1]
    assert starts(propose_spill(idle, Thresholds(idle=60))) == [1, 3]


def test_only_what_can_be_put_aside_is() -> None:
    assert starts(propose_spill(pressed(spills=[False, False, True, False]), Thresholds())) == [2]


def test_what_gives_most_comes_back_first_as_far_as_there_is_room() -> None:
    aside = pressed(rows_out=[5, 1, 9, 3], aside=[10, 10, 10, 0])
    assert starts(propose_return(aside, 7, Thresholds(share=0))) == [2], "a fifth stays free"
    closing = pressed(
        rows_out=[5, 1, 9, 3], aside=[10, 10, 10, 0], closing=[False, True, False, False]
    )
    assert starts(propose_due(closing, 7, Thresholds(share=0))) == [1]
    assert not list(propose_return(aside, 7, Thresholds(share=0.3))), "it would soon go again"
    assert starts(propose_return(aside, 40, Thresholds(share=0.3))) == [2], "but not for ever"


def test_rows_wait_for_no_partition_for_ever() -> None:
    columns = {"aside": [10, 10, 0, 0], "awaited": [True] * 4, "since": [4, 2, NEVER, NEVER]}
    full = pressed(rows_out=[5, 1, 9, 3], **columns)
    assert not list(propose_due(full, 9, Thresholds(share=0)))
    turn = list(propose_due(full, 10, Thresholds(share=0)))
    assert starts(turn) == [3, 1]
    assert [type(action) for action in turn] == [Spill, CleanUp]


def test_what_is_in_many_generations_is_brought_together() -> None:
    many = pressed(aside=[10, 10, 10, 0], generations=[63, 65, 64, 0])
    (found,) = propose_due(many, 3, Thresholds())
    assert (found.partition, found.cause) == (1, "65 generations of it are aside")


def test_what_is_hardly_anything_is_not_put_aside() -> None:
    tiny = pressed(bytes=[1e-3, 20, 1e-3, 20])
    assert starts(propose_spill(tiny, Thresholds(share=1.0))) == [1, 3]


# -- lazy-disk and active-disk ----------------------------------------------------------------------


def test_lazy_disk_moves_half_the_difference_and_what_gives_most_first() -> None:
    uneven = view([[1, 5, 2, 4, 3, 6], [1], [1, 1, 1]])
    moves = list(propose_lazy_disk(uneven, Thresholds()))
    assert short(moves) == [(5, 0, 1), (1, 0, 1)]
    assert moves[0].cause == "memory: site 0 keeps 60 B, site 1 10 B"
    assert not list(propose_lazy_disk(view([[1] * 5, [1] * 4]), Thresholds()))
    assert len(list(propose_lazy_disk(view([[1] * 6, [1] * 4]), Thresholds()))) == 1


def test_lazy_disk_leaves_alone_what_is_put_aside() -> None:
    uneven = view([[1, 5, 2, 4, 3, 6], [1], [1, 1, 1]], on_disk=(5,))
    assert short(propose_lazy_disk(uneven, Thresholds())) == [(1, 0, 1), (3, 0, 1)]


def test_active_disk_puts_aside_where_sites_give_little() -> None:
    uneven = view([[8, 8, 8], [1, 3, 2], [8, 8, 8]], memory=[40.0] * 3)
    aside = list(propose_active_disk(uneven, Thresholds(share=0.7), 160.0))
    assert [(one.partition, one.site) for one in aside] == [(3, 1), (5, 1)]
    assert aside[0].cause == "site 1 gives 2 results a partition, site 0 8"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([[8, 8, 8], [1, 3, 2]], 80.0),  # as much as there is memory
        ([[8, 8, 8], [5, 5, 5]], 160.0),  # not poor enough
        ([[8, 8, 8, 8], [1, 3, 2]], 160.0),  # memory is evened out first
    ],
)
def test_active_disk_does_nothing(parts: list[list[float]], expected: float) -> None:
    uneven = view(parts, memory=[40.0] * 2)
    assert not list(propose_active_disk(uneven, Thresholds(share=1.0), expected))


# -- by cost ----------------------------------------------------------------------------------------

EVER = float("inf")


def kinds(actions: object) -> list[tuple[str, int]]:
    return [(type(action).__name__, action.partition) for action in actions]  # type: ignore[attr-defined]


def test_what_gives_most_moves_while_there_is_room_and_the_rest_is_put_aside() -> None:
    # Site 0 keeps 60 of 35 bytes; site 1 has room for one more partition of ten
    full = view([[1e-6, 5e-6, 2e-6, 4e-6, 3e-6, 6e-6], [1e-6]], memory=[35, 25])
    found = list(propose_relief(full, Thresholds(share=0.3), EVER))
    assert kinds(found) == [("Move", 5), ("Spill", 0), ("Spill", 2)]
    assert found[0].cause == "site 0 keeps 25 B beyond its memory"


def test_nothing_moves_to_a_site_that_would_be_the_busiest_for_it() -> None:
    busy = view([[0.1] * 4, [0.5]], memory=[35, 100])
    assert kinds(propose_relief(busy, Thresholds(share=0), EVER)) == [("Move", 3)]
    slow = view([[0.1] * 4, [0.5]], slow=[1.0, 100.0], memory=[35, 100])
    assert kinds(propose_relief(slow, Thresholds(share=0), EVER)) == [("Spill", 0)]


def test_no_more_moves_than_the_bytes_of_an_epoch_allow() -> None:
    full = view([[1e-6] * 6, [1e-6]], memory=[35, 1000])
    assert kinds(propose_relief(full, Thresholds(share=0), EVER)).count(("Move", 5)) == 1
    told = [kind for kind, _ in kinds(propose_relief(full, Thresholds(share=0), 15))]
    assert told == ["Move", "Spill", "Spill"]


def test_a_partition_that_is_too_large_for_its_site_is_split() -> None:
    found = list(propose_relief(view([[1e-6], [1e-6]], memory=[8, 1000]), Thresholds(), EVER))
    assert kinds(found) == [("Split", 0)]
    assert found[0].words() == "split x/0 at 2"


def test_it_is_put_aside_where_that_cannot_wait() -> None:
    large = view([[1e-6], [1e-6]], memory=[6, 1000])
    assert kinds(propose_relief(large, Thresholds(), EVER)) == [("Spill", 0)]


def test_nothing_is_split_where_the_user_does_not_want_it() -> None:
    large = view([[1e-6], [1e-6]], memory=[8, 1000])
    assert kinds(propose_relief(large, Thresholds(), EVER, splits=False)) == [("Move", 0)]


def test_sites_with_enough_memory_are_left_alone() -> None:
    assert not list(propose_relief(view([[1.0] * 3, [1.0]], memory=[30, 30]), Thresholds(), EVER))


def test_what_is_said_to_go_first_does_so_by_cost_too() -> None:
    full = view([[1e-6, 5e-6, 2e-6, 4e-6]], memory=[25])
    rich = Thresholds(share=0, first="rich")
    assert kinds(propose_relief(full, rich, EVER)) == [("Spill", 1), ("Spill", 3)]
    unused = replace(full.partitions, last_use=np.array([100, 100, 40, 100]))
    idle = replace(full, partitions=unused)
    assert kinds(propose_relief(idle, Thresholds(share=0, idle=50), EVER))[0] == ("Spill", 2)
