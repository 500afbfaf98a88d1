"""Sites in proportion to cost: balanced whatever the numbers, and given again when costs change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anabranch import Session
from anabranch.adapt.policies.shares import allot, allot_whole, busiest
from anabranch.routing.partition_map import even_map


@given(
    costs=st.lists(st.floats(0.01, 100), min_size=1, max_size=6),
    sites=st.integers(1, 12),
    each=st.integers(20, 60),
)
def test_every_site_has_the_same_to_do(costs: list[float], sites: int, each: int) -> None:
    named = {f"x{at}": cost for at, cost in enumerate(costs)}
    found = allot(named, dict.fromkeys(named, each * sites), sites)
    share = sum(costs) / sites
    # A partition is the least that can be given: each exchange may be off by one at each border
    grain = 2 * max(costs) / (each * sites) * len(costs)
    assert busiest(named, found, sites) <= share + grain
    owners = [site for own in found.values() for site in own.tolist()]
    assert owners == sorted(owners)


def test_a_single_exchange_has_all_sites_evenly() -> None:
    assert tuple(allot({"x": 3.0}, {"x": 96}, 3)["x"].tolist()) == even_map(96, 3).sites


def test_whole_sites_leave_capacity_unused() -> None:
    costs = {"a": 2.0, "b": 1.0}
    owners = allot_whole(costs, dict.fromkeys("ab", 8), 5)
    assert set(owners["a"].tolist()) == {0, 1, 2}
    assert set(owners["b"].tolist()) == {3}
    many = allot_whole(dict.fromkeys("abcd", 1.0), dict.fromkeys("abcd", 4), 2)
    assert [set(own.tolist()) for own in many.values()] == [{0}, {1}, {0}, {1}]


def test_a_light_exchange_needs_few_sites() -> None:
    """Measured while running: the query over a hundredth of the rows does not keep all sites."""
    session = Session.in_process(
        4, {"strategy": "subquery", "max_rows_per_epoch": 20_000, "policy": "none"}
    )
    session.stream(
        "tcp", generator="packets", rows=200_000, ordered="time", rows_per_second=1000, keys=400
    )
    session.query("flows", "SELECT tb, srcIP, destIP, COUNT(*) AS c, SUM(len) AS b, MAX(len) AS m "
                           "FROM tcp GROUP BY time/60 AS tb, srcIP, destIP")  # fmt: skip
    session.query("few", "SELECT tb, srcPort, COUNT(*) AS c FROM tcp WHERE destPort < 0 "
                         "GROUP BY time/60 AS tb, srcPort")  # fmt: skip
    plan = session.plan()
    assert plan.subqueries["flows@1"].exchange != plan.subqueries["few@1"].exchange
    run = session.start(sinks={"flows": "memory", "few": "memory"}, at_end="close")
    assert run.await_termination(120)
    steering, manifest = run._governor, run._checkpoint.manifest
    records = manifest.subqueries
    assert records["flows@1"].seconds > 0 < records["few@1"].seconds
    # What the clock says is not for a test: these are the costs from which sites are given
    records["flows@1"].seconds, records["few@1"].seconds = 9.0, 0.5
    steering.holdings.maps = dict.fromkeys(("flows@1", "few@1"), even_map(128, 4))
    steering.allot(manifest)
    assert set(steering.maps["few@1"].sites) == {3}
    assert set(steering.maps["flows@1"].sites) == {0, 1, 2, 3}
    before = steering.maps
    records["few@1"].seconds = 0.6
    steering.allot(manifest)
    assert steering.maps is before, "a small change is not worth a move"
    assert run.results("flows")["c"].sum() == 200_000
