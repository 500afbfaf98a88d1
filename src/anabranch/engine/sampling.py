"""What the controller gets to see: samples of each level from the reports of an epoch, bytes of state."""

from __future__ import annotations

from collections import Counter

import numpy as np

from anabranch.adapt.collector import Sample, Traffic
from anabranch.adapt.policies.combine import Intake
from anabranch.control.observed import InputRates, Observed
from anabranch.engine.counting import made, together
from anabranch.engine.orders import Orders
from anabranch.engine.replanning import counted_samples, work_of
from anabranch.engine.report import EpochReport
from anabranch.plan.subquery import Subquery
from anabranch.settings import AUTO, Settings

LEAST_MEMORY = 16 * 1024 * 1024
"""Bytes that a site may keep however little is free: less would not even hold the rows of an epoch."""


def observed(orders: Orders, report: EpochReport) -> Observed:
    """What an epoch has shown, from its reports."""
    samples = {
        level: found
        for level in range(1, orders.plan.levels + 1)
        if (found := _sample(orders, report, level)) is not None
    }
    condensed: dict[str, tuple[int, int]] = {}
    for part in report.parts():
        for exchange, (rows, fewer) in part.condensed.items():
            before, after = condensed.get(exchange, (0, 0))
            condensed[exchange] = before + rows, after + fewer
    memory = {} if orders.settings.site_memory_bytes != AUTO else _memory(report, orders.settings)
    memory |= orders.faults.memory() if orders.faults else {}
    return Observed(
        orders.epoch, orders.sites, report.seconds, orders.maps, samples, condensed, memory,
        {one.name: _intake(orders, report, one) for one in orders.plan.subqueries.values() if one.combines},
        inputs={
            name: _inputs(report, one.members[0])
            for name, one in orders.plan.exchanges.items()
            if len(one.members) == 1 and one.members[0].inputs > 1
        },
        joins=work_of(orders, report), sampled=counted_samples(orders, report),
    )  # fmt: skip


def _memory(report: EpochReport, settings: Settings) -> dict[int, int]:
    """The bytes that each site may keep: its part of a share of what its machine has free."""
    machines = {site.site: (site.machine, site.memory) for site in report.sites}
    sites = Counter(machine for machine, _ in machines.values())
    return {
        site: max(LEAST_MEMORY, int(settings.memory_share * memory / sites[machine]))
        for site, (machine, memory) in machines.items()
    }


def _intake(orders: Orders, report: EpochReport, subquery: Subquery) -> Intake:
    """What came to a subquery that senders may sub-aggregate for."""
    name = subquery.name
    done = [site.subqueries[name] for site in report.sites if name in site.subqueries]
    measured = [part.combined[name] for part in report.parts() if name in part.combined]
    before, after = (sum(pair[side] for pair in measured) for side in (0, 1))
    return Intake(
        subquery.exchange,
        sum(part.rows_in for part in done),
        sum(part.groups for part in done),
        len(orders.pieces) if subquery.level == 1 else orders.sites,
        before,
        after,
    )


def _inputs(report: EpochReport, subquery: Subquery) -> InputRates:
    """What came to each input of a subquery, without copies for cells of hot keys."""
    done = report.of_subquery(subquery.name)
    totals = np.zeros((subquery.inputs, 2))
    for part in done:
        totals += np.asarray(part.inputs, dtype=float).reshape(-1, 2) if part.inputs else 0.0
    received = totals[:, 0].copy()
    for sender in report.parts():
        for input, copies in sender.copied.get(subquery.name, {}).items():
            totals[input, 0] -= copies
    # Each row counted once, and so its bytes
    totals[:, 1] *= totals[:, 0] / np.maximum(received, 1)
    rows, size = np.maximum(totals, 0).T.tolist()
    return InputRates(tuple(rows), tuple(size), float(sum(part.compared for part in done)))


def _sample(orders: Orders, report: EpochReport, number: int) -> Sample | None:
    """One epoch at one level; None if nothing came to it."""
    parts = [part for part in report.sites if part.level == number]
    traffic = {}
    for exchange in (one for one in orders.plan.exchanges.values() if one.level == number):
        arrived = {p.site: p.arrived[exchange.name] for p in parts if exchange.name in p.arrived}
        if not arrived:
            continue
        rows, peaks, slots = together(arrived, orders.maps[exchange.name])
        own = {member.name for member in exchange.members}
        done = [d for part in parts for name, d in part.subqueries.items() if name in own]
        results = {p.site: p.made[exchange.name] for p in parts if exchange.name in p.made}
        traffic[exchange.name] = Traffic(
            rows, peaks, slots, sum(d.seconds for d in done),
            made(results, orders.maps[exchange.name]),
        )  # fmt: skip
    if not traffic or not parts:
        return None
    first = min(part.started for part in parts)
    busy, waiting, rows_in = (np.zeros(orders.sites) for _ in range(3))
    executors = [""] * orders.sites
    for part in parts:
        busy[part.site] = part.seconds
        waiting[part.site] = part.started - first
        rows_in[part.site] = sum(done.rows_in for done in part.subqueries.values())
        executors[part.site] = part.executor
    return Sample(float(busy.max()), busy, waiting, rows_in, traffic, executors)
