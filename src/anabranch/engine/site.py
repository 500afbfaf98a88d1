"""The site task: merges its frames, advances its operators, writes new state and results.

It depends on the last manifest and this epoch's frames alone, so it can be run twice: nothing it writes
counts until the manifest of the epoch names it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
import polars as pl

from anabranch.adapt.protocols.replanning import NO_TURN
from anabranch.engine.computing import computing
from anabranch.engine.counting import Made, added
from anabranch.engine.laps import Laps
from anabranch.engine.machine import free_memory
from anabranch.engine.orders import Orders
from anabranch.engine.outbox import Outbox
from anabranch.engine.remembering import parts_of, plain_again, put_aside, remember
from anabranch.engine.replanning import count_sample
from anabranch.engine.report import (
    EpochReport,
    Fault,
    SiteReport,
    SplitReport,
    SubqueryReport,
    Word,
)
from anabranch.engine.results import write_results
from anabranch.engine.sharing import Copies
from anabranch.engine.watermarks import advance_watermarks, reach_of_inputs
from anabranch.errors import AnabranchError
from anabranch.operators.base import Moment
from anabranch.operators.told import TOLD, Told
from anabranch.plan.subquery import Subquery
from anabranch.routing.frame import Frame, Inlet, alike, concat, narrow, pack, packed, unpack
from anabranch.routing.locator import slot_of_locator
from anabranch.routing.reach import Reach, SlotFlow, within
from anabranch.state.folders import flushed_beside
from anabranch.state.segment import LOCATOR, Ranges


def run_site(
    orders: Orders, level: int, site: int, parcels: Iterable[bytes], handover: str = ""
) -> Iterator[bytes]:
    """The parcels for the next level's sites, or at the last level the reports for the driver."""
    TOLD.set(Told(orders.place, orders.tables, orders.now))
    laps = Laps()
    report = SiteReport(
        level, site, started=laps.started, worker=os.getpid(),
        executor=_executor(), machine=os.uname().nodename, memory=free_memory(),
    )  # fmt: skip
    frames: dict[Inlet, list[Frame]] = {}
    sizes: dict[Inlet, int] = {}
    words: list[Word] = []
    # In the order of the senders: a task that is run again does the same, whatever came first
    heard = [(msgspec.convert(plain, Word), contents) for plain, contents in map(unpack, parcels)]
    laps.ended("receive")
    for word, contents in sorted(heard, key=lambda one: one[0].sender):
        words.append(word)
        for inlet, frame, length in contents:
            frames.setdefault(inlet, []).append(frame)
            sizes[inlet] = sizes.get(inlet, 0) + length
    names = {name for word in words for name in word.sent}
    report.arrived = {
        name: added([word.sent[name] for word in words if name in word.sent]) for name in names
    }
    laps.ended("unpack")
    report.exchange_seconds = laps.total
    splits = [split for word in words for split in word.splits]
    sites = [known for word in words for known in word.sites]
    fault = next((word.fault for word in words if word.fault), None)
    watermarks = words[0].watermarks
    if watermarks is None:
        watermarks = advance_watermarks(orders, splits)
    reach = reach_of_inputs(orders.plan, orders.holds, watermarks, orders.spilled)
    outbox = Outbox(orders, level)
    made = Made(orders.maps)
    if fault is None:
        try:
            with flushed_beside():
                copies = Copies(orders, level, frames, sizes)
                # In the order of the plan: each after those whose results it reads
                for subquery in orders.plan.at_level(level):
                    inlets = [(subquery.name, number) for number in range(subquery.inputs)]
                    received = [frames.pop(inlet, []) for inlet in inlets]
                    done = report.subqueries[subquery.name] = SubqueryReport()
                    done.inputs = [(0, sizes.get(inlet, 0)) for inlet in inlets]
                    done.bytes_received = sum(size for _, size in done.inputs)
                    with computing(f"Subquery '{subquery.name}'"):
                        done.bytes_received += copies.take(subquery, received)
                    done.rows_received = sum(f.rows.height for part in received for f in part)
                    for part, inlet in zip(received, inlets, strict=True):
                        part += outbox.take_local(inlet)
                    laps.ended("take")
                    with computing(f"Subquery '{subquery.name}'"):
                        _advance(
                            orders, subquery, site, received, reach, report, outbox, made, laps
                        )
                outbox.combine()
                laps.ended("combine")
            laps.ended("flush")
            report.combined, report.condensed = outbox.combined, outbox.condensed
            report.held, report.made = outbox.held, made.of(site)
            report.copied = outbox.copied
        except AnabranchError as error:
            fault = report.fault = Fault(type(error).__name__, str(error))
            outbox = Outbox(orders)
    shelves = orders.shelves.values()
    orders.place.forget(
        lambda: set().union(*(shelf.files for shelf in shelves)), f"{orders.epoch:012d}"
    )
    laps.ended("combine")
    report.steps = laps.seconds
    if level == orders.plan.levels:
        report.seconds = laps.total
        # Not part of its work: who receives partitions is not slow for it
        for file in orders.fetch.get(site, ()):
            orders.place.local(file)
        # Every site has heard every split; the first one passes that on
        yield msgspec.msgpack.encode(EpochReport(splits if site == 0 else [], [*sites, report]))
        return
    for inlet, passing in frames.items():
        outbox.forwarded.setdefault(inlet, []).extend(passing)
    boxes = outbox.by_site(orders.sites)
    laps.ended("address")
    report.seconds = laps.total
    report.exchange_seconds += laps.seconds["address"]
    bodies = [packed(box, handover) for box in boxes]
    laps.ended("pack")
    words = _words(outbox, splits, [*sites, report], watermarks, fault, site)
    yield from map(pack, words, bodies)


def _executor() -> str:
    """The number of the executor this task runs on; empty where it cannot be told."""
    # Kubernetes says it in the environment; a standalone executor's folder is …/app-…/<number>
    parent, folder = os.path.split(os.getcwd())
    standalone = folder if os.path.basename(parent).startswith("app-") else ""
    return os.environ.get("SPARK_EXECUTOR_ID", standalone)


def _words(
    outbox: Outbox, splits: list[SplitReport], sites: list[SiteReport],
    watermarks: dict[str, int | None], fault: Fault | None, site: int,
) -> list[Word]:  # fmt: skip
    """The first site of the next level gathers the reports; all hear the watermarks."""
    return [
        Word(
            splits if site == 0 and to == 0 else [],
            sites if to == 0 else [],
            watermarks,
            site,
            outbox.sent(to),
            fault,
        )
        for to in range(outbox.orders.sites)
    ]


def _advance(
    orders: Orders, subquery: Subquery, site: int, received: list[list[Frame]],
    reach: dict[str, Reach], report: SiteReport, outbox: Outbox, made: Made, laps: Laps,
) -> None:  # fmt: skip
    began = time.perf_counter()
    done = report.subqueries[subquery.name]
    frames = [_gathered(subquery, part) for part in received]
    rows_in = [0 if frame is None else frame.rows.height for frame in frames]
    done.rows_in = sum(rows_in)
    done.inputs = [(rows, size) for rows, (_, size) in zip(rows_in, done.inputs, strict=True)]
    flows = list(_flowing(orders, subquery.exchange, site, reach[subquery.exchange].watermark))
    for number, flow in enumerate(flows):
        own = frames if len(flows) == 1 else [_cut(frame, flow.slots) for frame in frames]
        moment = Moment(subquery.watermark(flow.before), subquery.watermark(flow.after))
        still = moment.before == moment.after and not any(own) and not flow.cuts
        changing = orders.turns.get(subquery.name, NO_TURN).changing
        if still and not changing and subquery.exchange not in orders.resettling:
            continue  # neither rows nor time have come
        part_name = f"site-{site:04d}-{number}"
        results = SentResults(orders, subquery, part_name, report, outbox, made, laps)
        for part in parts_of(orders, subquery, site, flow, moment.before, done):
            mine = own if part.owned == flow.slots else [_cut(frame, part.owned) for frame in own]
            if flow.cuts:
                results.add(subquery.operator.owed(part, flow.cuts))
            results.add(subquery.operator.advance(mine, part, moment))
            if subquery.name in orders.sampling and not (flow.cuts or flow.newest):
                count_sample(orders, subquery, mine, part, moment.before, done)
            done.groups += part.groups
            done.compared += part.compared
            done.warnings += part.warnings
            if not orders.ended:
                # At the end of all streams there is nothing left to remember for
                plain_again(orders, subquery, site, part, moment, done)
                remember(orders, subquery, site, part, moment, done)
            laps.ended("remember")
    put_aside(orders, subquery, site, done)
    if orders.faults is not None:
        orders.faults.worked(site, done.rows_in, time.perf_counter() - began)
    done.seconds = time.perf_counter() - began


def _gathered(subquery: Subquery, received: list[Frame]) -> Frame | None:
    """All that came to an input; what was not sub-aggregated yet is, if anything was."""
    kinds = alike(received)
    if len(kinds) < 2:
        return kinds[0] if kinds else None
    operator = subquery.operator
    return concat([k if operator.is_combined(k) else narrow(operator.combine(k)) for k in kinds])


def _flowing(orders: Orders, exchange: str, site: int, after: int | None) -> Iterator[SlotFlow]:
    """The slots of a site that are worked on in this epoch, by how far they had come before."""
    owned = orders.maps[exchange].owned_by(site)
    released, cleaned = orders.released.get(exchange, ()), orders.cleaned.get(exchange, ())
    return orders.reach[exchange].flowing(owned, released, cleaned, after)


def _cut(frame: Frame | None, slots: Ranges) -> Frame | None:
    """The rows of these slots."""
    if frame is None:
        return None
    mine = within(slot_of_locator(frame.rows[LOCATOR].to_numpy()), slots)
    return Frame(frame.rows.filter(pl.Series(mine)), frame.narrowed) if mine.any() else None


@dataclass
class SentResults:
    """Where the results of an operator go, of one part of its slots."""

    orders: Orders
    subquery: Subquery
    part: str
    report: SiteReport
    outbox: Outbox
    made: Made
    laps: Laps
    count: int = 0

    def add(self, frames: Iterable[pl.DataFrame]) -> None:
        """Takes results as they are made to where they go."""
        name, done = self.subquery.name, self.report.subqueries[self.subquery.name]
        for results in frames:
            self.laps.ended("advance")
            self.count += 1
            if results.height == 0:
                continue
            done.rows_out += results.height
            done.bytes_out += int(results.drop(LOCATOR).estimated_size())
            self.made.add(self.subquery.exchange, results[LOCATOR].to_numpy())
            self.outbox.route(name, results)
            part = f"{self.part}-{self.count:04d}"
            write_results(self.orders, name, results, part, self.report)
            self.laps.ended("results")
        self.laps.ended("advance")
