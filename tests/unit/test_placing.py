"""Which subqueries share partitions, and the gate that no plan gets past that could split a group."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session, col
from anabranch.errors import PlanningError, SettingsError
from anabranch.plan.check import check_plan
from anabranch.plan.plan import Plan
from anabranch.plan.subquery import EVENLY

FLOWS = "SELECT tb, srcIP, destIP, COUNT(*) AS cnt FROM tcp GROUP BY time/60 AS tb, srcIP, destIP"
HEAVY = "SELECT tb, srcIP, MAX(cnt) AS most FROM flows GROUP BY tb, srcIP"


def network(
    strategy: str = "subquery", skew: str = "uniform", central: bool = False, **queries: str
) -> Session:
    session = Session.in_process(3, {"strategy": strategy, "central": central})
    session.stream("tcp", generator="packets", rows=20_000, ordered="time", rows_per_second=100,
                   keys=50 if skew == "zipf" else 500, skew=skew)  # fmt: skip
    for name, query in queries.items():
        session.query(name, query)
    return session


def placings(plan: Plan) -> dict[str, tuple[str, int, str]]:
    return {
        name: (part.exchange, part.level, ", ".join(part.partitioning))
        for name, part in plan.subqueries.items()
    }


def test_a_chain_that_one_set_suits() -> None:
    assert placings(network(flows=FLOWS, heavy=HEAVY).plan()) == {
        "flows@1": ("flows@1", 1, "srcIP"),
        "heavy@1": ("flows@1", 1, "srcIP"),
    }


def test_an_exchange_before_every_stateful_operator() -> None:
    assert placings(network("query", flows=FLOWS, heavy=HEAVY).plan()) == {
        "flows@1": ("flows@1", 1, "srcIP, destIP"),
        "heavy@1": ("heavy@1", 2, "srcIP"),
    }


def test_every_operator_by_itself() -> None:
    large = FLOWS.replace("FROM tcp", "FROM tcp WHERE len > 0")
    assert placings(network("operator", flows=large, heavy=HEAVY).plan()) == {
        "flows@where1": ("flows@where1", 1, ""),
        "flows@1": ("flows@1", 2, "srcIP, destIP"),
        "heavy@1": ("heavy@1", 3, "srcIP"),
    }


def test_a_set_that_a_sample_shows_to_be_uneven_is_not_taken() -> None:
    found = placings(network(skew="zipf", flows=FLOWS, heavy=HEAVY).plan())
    assert found["flows@1"][2] == "srcIP, destIP"
    assert found["heavy@1"] == ("heavy@1", 2, "srcIP")


def test_a_set_is_computed_from_the_keys_of_each() -> None:
    """Each subquery writes the term with what it has: a column, or a part of one under a mask."""
    masked = "SELECT tb, net, COUNT(*) AS n FROM tcp GROUP BY time/60 AS tb, srcIP & 0xFFF0 AS net"
    above = (
        "SELECT tb, net & 0xFF00 AS wide, SUM(n) AS n FROM nets GROUP BY tb, net & 0xFF00 AS wide"
    )
    found = placings(network(flows=FLOWS, nets=masked, wides=above).plan())
    assert {
        name: (exchange, level) for name, (exchange, level, _) in found.items()
    } == dict.fromkeys(("flows@1", "nets@1", "wides@1"), ("flows@1", 1))
    assert found["flows@1"][2] == "srcIP & 65280"
    assert found["nets@1"][2] == "(srcIP & 65520) & 65280"


def test_a_query_the_set_does_not_suit_opens_an_exchange_that_others_join() -> None:
    dests = "SELECT tb, destIP, COUNT(*) AS c FROM heavier GROUP BY tb, destIP"
    above = "SELECT tb, destIP, MAX(c) AS most FROM dests GROUP BY tb, destIP"
    heavier = "SELECT tb, srcIP, destIP, MAX(cnt) AS m FROM flows GROUP BY tb, srcIP, destIP"
    session = network(flows=FLOWS, heavy=HEAVY, heavier=heavier, dests=dests, above=above)
    plan = session.plan()
    exchanges = {part.exchange for part in plan.subqueries.values()}
    assert len(exchanges) == 2
    assert plan.levels == 2
    by_home = {name: part.exchange for name, part in plan.subqueries.items()}
    assert by_home["dests@1"] == by_home["above@1"]


@pytest.mark.parametrize("strategy", ["operator", "query", "subquery"])
def test_all_strategies_give_the_same(strategy: str) -> None:
    session = network(strategy, flows=FLOWS, heavy=HEAVY)
    run = session.start(sinks={"flows": "memory", "heavy": "memory"}, at_end="close")
    assert run.await_termination(60)
    flows, heavy = run.results("flows"), run.results("heavy")
    assert flows["cnt"].sum() == 20_000
    wanted = flows.group_by("tb", "srcIP").agg(pl.col("cnt").max())
    order = ["tb", "srcIP"]
    assert heavy.sort(order).rows() == wanted.sort(order).rows()
    reached = {site["site"] for site in run.last_progress["customMetrics"]["sites"]}
    assert reached == {0, 1, 2}


def test_the_central_form() -> None:
    """What the paper does: super-aggregates and results on one site."""
    session = network(central=True, flows=FLOWS, heavy=HEAVY)
    plan = session.plan()
    assert {part.name: (part.level, part.partitioning) for part in plan.subqueries.values()} == {
        "flows@1": (1, ("srcIP",)),
        "heavy@1": (1, ("srcIP",)),
        "flows@gather": (2, ()),
        "heavy@gather": (2, ()),
    }
    run = session.start(sinks={"flows": "memory", "heavy": "memory"}, at_end="close")
    assert run.await_termination(60)
    assert run.results("flows")["cnt"].sum() == 20_000
    assert run.results("heavy").height > 0


def test_the_choice_is_kept_over_restarts(tmp_path: Path) -> None:
    """What a sample says may change; a checkpoint goes on as it began."""
    made = {"flows": FLOWS, "heavy": HEAVY}
    first = network(**made)
    run = first.start(sinks={"flows": "memory"}, checkpoint=tmp_path / "c", at_end="keep")
    assert run.await_termination(60)
    again = network(skew="zipf", **made)
    assert placings(again.plan())["heavy@1"][1] == 2
    assert placings(again.plan(tmp_path / "c")) == placings(first.plan())
    run = again.start(sinks={"flows": "memory"}, checkpoint=tmp_path / "c")
    assert run.await_termination(60)


def test_the_gate() -> None:
    plan = network(flows=FLOWS, heavy=HEAVY).plan()
    check_plan(plan)
    flows, heavy = plan.subqueries.values()
    for wrong, reason in (
        (replace(heavy, terms=((col("cnt"),),)), "not a function of"),
        (replace(heavy, exchange="heavy@1"), "without an exchange between them"),
        (replace(heavy, level=0), "comes after it"),
        (replace(heavy, spread=EVENLY), "evenly, whatever their group"),
    ):
        with pytest.raises(PlanningError, match=reason):
            check_plan(replace(plan, subqueries={flows.name: flows, wrong.name: wrong}))


def test_the_gate_knows_how_rows_really_lie() -> None:
    """What a subquery says of its partitions is not enough: they are those of its exchange."""
    plan = network("query", flows=FLOWS, heavy=HEAVY).plan()
    flows, heavy = plan.subqueries.values()
    moved = replace(heavy, exchange=flows.name, level=1)
    with pytest.raises(PlanningError, match=r"partitions of 'flows@1', which do not suit it"):
        check_plan(replace(plan, subqueries={flows.name: flows, heavy.name: moved}))


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(SettingsError, match="expected one of subquery, query, operator"):
        Session.in_process(2, {"strategy": "central"})


def test_sinks_may_come_and_go_in_the_central_form(tmp_path: Path) -> None:
    """What gathers results has no state: another run may have more of them, or fewer."""
    rows = []
    for sinks in (["flows"], ["flows", "heavy"], ["heavy"]):
        session = network(central=True, flows=FLOWS, heavy=HEAVY)
        run = session.start(sinks=dict.fromkeys(sinks, "memory"), checkpoint=tmp_path / "c")
        gathering = {name for name in run.plan.subqueries if name.endswith("@gather")}
        assert gathering == {f"{name}@gather" for name in sinks}
        assert run.await_termination(60)
        rows.append(run.results(sinks[0]).height)
    assert rows[0] > 0
