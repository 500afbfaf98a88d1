"""What a join would do in other shapes: counted by sites on a sample of keys, told by partitions (P2)."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from anabranch.adapt.policies.plans import Counted, decoded, splits
from anabranch.control.observed import JoinWork
from anabranch.engine.orders import Orders
from anabranch.engine.report import EpochReport, SubqueryReport
from anabranch.operators.join import SymmetricJoin
from anabranch.operators.sampled import sample
from anabranch.operators.tree import table_of
from anabranch.plan.subquery import Subquery
from anabranch.routing.frame import Frame
from anabranch.routing.locator import slot_of_locator
from anabranch.state.group import SiteState


def count_sample(
    orders: Orders, subquery: Subquery, frames: Sequence[Frame | None], state: SiteState,
    before: int | None, done: SubqueryReport,
) -> None:  # fmt: skip
    """Adds what a sample of these rows shows to the report of a site."""
    began = time.perf_counter()
    join = subquery.operator
    assert isinstance(join, SymmetricJoin)
    arrived = [None if frame is None else frame.wide() for frame in frames]
    found = sample(join, arrived, state, before, splits(subquery.inputs))
    if found is None:
        return
    starts = np.asarray(orders.maps[subquery.exchange].starts)
    at = np.searchsorted(starts, slot_of_locator(found.locators), "right") - 1
    columns = np.hstack([found.fresh, found.looked, found.made, found.kept]) * found.share
    columns = np.hstack([np.ones((len(at), 1)), columns])
    for partition in np.unique(at).tolist():
        counted = columns[at == partition].sum(axis=0)
        known = done.sampled.get(int(starts[partition]))
        whole = counted if known is None else counted + np.asarray(known)
        done.sampled[int(starts[partition])] = whole.tolist()
    done.sampling += time.perf_counter() - began


def counted_samples(orders: Orders, report: EpochReport) -> dict[str, dict[int, Counted]]:
    """What was counted of each join, by the first slots of its partitions."""
    return {
        name: {
            start: decoded(vector, orders.plan.subqueries[name].inputs)
            for done in report.of_subquery(name)
            for start, vector in done.sampled.items()
        }
        for name in orders.sampling
    }


def work_of(orders: Orders, report: EpochReport) -> dict[str, JoinWork]:
    """What each join that can have several shapes has done."""
    found = {}
    for name, subquery in orders.plan.subqueries.items():
        if subquery.shaped:
            done = report.of_subquery(name)
            found[name] = JoinWork(
                sum(part.rows_in for part in done),
                sum(part.compared for part in done),
                sum(part.rows_out for part in done),
                sum(part.seconds for part in done),
                sum(part.sampling for part in done),
                tuple(
                    float(orders.shelves[name].rows_by_table.get(table_of((number,)), 0))
                    for number in range(subquery.inputs)
                ),
            )
    return found
