"""The last gate: refuses a plan in which a stateful operator could see less than its whole group."""

from __future__ import annotations

from anabranch.errors import PlanningError
from anabranch.language.lateness import meets_late
from anabranch.language.stateful import Stateful
from anabranch.partitioning.lattice import is_function_of
from anabranch.partitioning.reconcile import compatible
from anabranch.partitioning.requirement import all_keys, need_of
from anabranch.plan.plan import Plan
from anabranch.plan.subquery import BY_LANE, EVENLY, IN_GRID, Subquery


def check_plan(plan: Plan) -> None:
    """Raises PlanningError if rows of one group could come to different sites."""
    for subquery in plan.subqueries.values():
        _check_late(plan, subquery)
        _check_terms(subquery)
        _check_home(plan, subquery)
        for path in subquery.paths:
            origin = plan.subqueries.get(path.origin)
            if origin is None:
                if subquery.level > 1 and subquery.spread == BY_LANE:
                    _refuse(subquery, f"takes the lanes of '{path.origin}' behind an exchange")
                continue
            if origin.level > subquery.level:
                _refuse(subquery, f"reads '{origin.name}', which comes after it")
            if origin.level == subquery.level and origin.exchange != subquery.exchange:
                _refuse(subquery, f"reads '{origin.name}' without an exchange between them")


def _check_late(plan: Plan, subquery: Subquery) -> None:
    """Late rows are judged where they are read: there must be nothing on their way to who keeps them."""
    if isinstance(subquery.node, Stateful) or not plan.reading(subquery.name):
        return
    if meets_late(subquery.node):
        raise PlanningError(
            f"Query '{subquery.query}' reads a stream with late='closed-windows', whose late rows are told "
            "apart where they are read; the setting strategy='operator' would send them elsewhere before. "
            "Use strategy='subquery' or 'query', or late='everything'."
        )


def _check_terms(subquery: Subquery) -> None:
    """Rows that agree on the keys must agree on what they are sent by."""
    if not isinstance(subquery.node, Stateful):
        return
    if subquery.spread == IN_GRID and any(all_keys(subquery.node)):
        _refuse(subquery, "has rows sent to a grid, whatever their keys")
    if subquery.spread == EVENLY:
        _refuse(subquery, "has rows sent to it evenly, whatever their group")
    for keys, terms in zip(all_keys(subquery.node), subquery.terms, strict=True):
        for term in terms:
            if not is_function_of(term, keys):
                shown = ", ".join(map(str, keys))
                _refuse(
                    subquery, f"is partitioned by '{term}', which is not a function of ({shown})"
                )


def _check_home(plan: Plan, subquery: Subquery) -> None:
    """What another's exchange is partitioned by must suit it too: its rows lie as they came there."""
    node, exchange = subquery.node, plan.subqueries[subquery.exchange]
    if not isinstance(node, Stateful) or exchange is subquery:
        return
    if exchange.spread == IN_GRID:
        _refuse(subquery, f"runs in the grid of '{exchange.name}'")
    if exchange.central:
        return
    if not compatible(plan.sets[exchange.name], need_of(subquery.name, node)):
        _refuse(subquery, f"runs on the partitions of '{exchange.name}', which do not suit it")


def _refuse(subquery: Subquery, reason: str) -> None:
    raise PlanningError(
        f"The plan is wrong: '{subquery.name}' {reason}, so its groups could be split. This is a "
        "fault of Anabranch; the setting strategy='query' avoids it."
    )
