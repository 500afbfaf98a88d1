"""The site task: merges its frames, advances its operators, writes new state and results.

It depends on the last manifest and this epoch's frames alone, so it can be run twice: nothing it writes
counts until the manifest of the epoch names it.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import polars as pl

from anabranch.engine.counting import added
from anabranch.engine.orders import Orders
from anabranch.engine.outbox import Outbox, explained, pack, write_results
from anabranch.engine.report import (
    EpochReport,
    Fault,
    SiteReport,
    SplitReport,
    SubqueryReport,
    Word,
    masked_as_plain,
)
from anabranch.engine.sharing import Copies
from anabranch.engine.watermarks import advance_watermarks, reach_of_inputs
from anabranch.errors import AnabranchError
from anabranch.operators.base import Moment
from anabranch.plan.subquery import Subquery
from anabranch.routing.frame import Frame, Inlet, alike, concat, narrow, unpack
from anabranch.routing.locator import slot_of_locator
from anabranch.routing.ranges import intersect
from anabranch.routing.reach import Reach, within
from anabranch.state.group import SiteState
from anabranch.state.segment import LOCATOR, Ranges


def run_site(orders: Orders, level: int, site: int, parcels: Iterable[bytes]) -> Iterator[bytes]:
    """The parcels for the next level's sites, or at the last level the reports for the driver."""
    began = time.perf_counter()
    report = SiteReport(
        level, site, started=time.time(), worker=os.getpid(),
        executor=_executor(),
    )  # fmt: skip
    frames: dict[Inlet, list[Frame]] = {}
    sizes: dict[Inlet, int] = {}
    words: list[Word] = []
    # In the order of the senders: a task that is run again does the same, whatever came first
    heard = [(msgspec.convert(plain, Word), contents) for plain, contents in map(unpack, parcels)]
    for word, contents in sorted(heard, key=lambda one: one[0].sender):
        words.append(word)
        for inlet, frame, length in contents:
            frames.setdefault(inlet, []).append(frame)
            sizes[inlet] = sizes.get(inlet, 0) + length
    names = {name for word in words for name in word.sent}
    report.arrived = {
        name: added([word.sent[name] for word in words if name in word.sent]) for name in names
    }
    report.exchange_seconds = time.perf_counter() - began
    splits = [split for word in words for split in word.splits]
    sites = [known for word in words for known in word.sites]
    fault = next((word.fault for word in words if word.fault), None)
    watermarks = words[0].watermarks
    if watermarks is None:
        watermarks = advance_watermarks(orders, splits)
    reach = reach_of_inputs(orders.plan, orders.holds, watermarks)
    outbox = Outbox(orders, level)
    if fault is None:
        try:
            copies = Copies(orders, level, frames, sizes)
            # In the order of the plan: each after those whose results it reads
            for subquery in orders.plan.at_level(level):
                inlets = [(subquery.name, number) for number in range(subquery.inputs)]
                received = [frames.pop(inlet, []) for inlet in inlets]
                done = report.subqueries[subquery.name] = SubqueryReport()
                done.bytes_received = sum(sizes.get(inlet, 0) for inlet in inlets)
                with explained(f"Subquery '{subquery.name}'"):
                    done.bytes_received += copies.take(subquery, received)
                done.rows_received = sum(f.rows.height for part in received for f in part)
                for part, inlet in zip(received, inlets, strict=True):
                    part += outbox.take_local(inlet)
                with explained(f"Subquery '{subquery.name}'"):
                    _advance(orders, subquery, site, received, reach, report, outbox)
            outbox.combine()
            report.combined, report.condensed = outbox.combined, outbox.condensed
            report.held = outbox.held
        except AnabranchError as error:
            fault = report.fault = Fault(type(error).__name__, str(error))
            outbox = Outbox(orders)
    shelves = orders.shelves.values()
    orders.place.forget(
        lambda: set().union(*(shelf.files for shelf in shelves)), f"{orders.epoch:012d}"
    )
    if level == orders.plan.levels:
        report.seconds = time.perf_counter() - began
        # Not part of its work: who receives partitions is not slow for it
        for file in orders.fetch.get(site, ()):
            orders.place.local(file)
        # Every site has heard every split; the first one passes that on
        yield msgspec.msgpack.encode(EpochReport(splits if site == 0 else [], [*sites, report]))
        return
    for inlet, passing in frames.items():
        outbox.forwarded.setdefault(inlet, []).extend(passing)
    worked = time.perf_counter()
    boxes = outbox.by_site(orders.sites)
    ended = time.perf_counter()
    report.seconds = ended - began
    report.exchange_seconds += ended - worked
    words = _words(outbox, splits, [*sites, report], watermarks, fault, site)
    yield from pack(words, boxes)


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
    reach: dict[str, Reach], report: SiteReport, outbox: Outbox,
) -> None:  # fmt: skip
    began = time.perf_counter()
    done = report.subqueries[subquery.name]
    frames = [_gathered(subquery, part) for part in received]
    done.rows_in = sum(frame.rows.height for frame in frames if frame is not None)
    after = subquery.watermark(reach[subquery.exchange].watermark)
    reaches = list(_flowing(orders, subquery.exchange, site))
    for number, (slots, before) in enumerate(reaches):
        own = frames if len(reaches) == 1 else [_cut(frame, slots) for frame in frames]
        near = orders.shelves[subquery.name].within(slots)
        state = SiteState(orders.place, near, slots, orders.epoch)
        moment = Moment(subquery.watermark(before), after)
        part = f"site-{site:04d}-{number}"
        _step(orders, subquery, part, own, state, moment, report, outbox)
        if not orders.ended:
            # At the end of all streams there is nothing left to remember for
            _remember(orders, subquery, site, state, moment, done)
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


def _flowing(orders: Orders, exchange: str, site: int) -> Iterator[tuple[Ranges, int | None]]:
    """The slots of a site that are worked on in this epoch, by the watermark they had reached before."""
    owned = orders.maps[exchange].owned_by(site)
    return orders.reach[exchange].flowing(owned, orders.released.get(exchange, ()))


def _cut(frame: Frame | None, slots: Ranges) -> Frame | None:
    """The rows of these slots."""
    if frame is None:
        return None
    mine = within(slot_of_locator(frame.rows[LOCATOR].to_numpy()), slots)
    return Frame(frame.rows.filter(pl.Series(mine)), frame.narrowed) if mine.any() else None


def _step(
    orders: Orders, subquery: Subquery, part: str, frames: Sequence[Frame | None], state: SiteState,
    moment: Moment, report: SiteReport, outbox: Outbox,
) -> None:  # fmt: skip
    """Takes the operator to its results, and these to where they go."""
    done = report.subqueries[subquery.name]
    for number, results in enumerate(subquery.operator.advance(frames, state, moment)):
        if results.height == 0:
            continue
        done.rows_out += results.height
        done.bytes_out += int(results.drop(LOCATOR).estimated_size())
        outbox.route(subquery.name, results)
        write_results(orders, subquery.name, results, f"{part}-{number:04d}", report)
    done.groups += state.groups
    done.compared += state.compared
    done.warnings += state.warnings


def _remember(
    orders: Orders, subquery: Subquery, site: int, state: SiteState, moment: Moment,
    done: SubqueryReport,
) -> None:  # fmt: skip
    """Writes what the operator remembers, and merges what has become many."""
    settings, operator = orders.settings, subquery.operator
    name = _namer(orders, subquery.name, site)
    scattering = [
        one
        for one in orders.scattering.get(subquery.exchange, ())
        if intersect(state.owned, [(one.slot, one.slot + 1)])
    ]
    for one in scattering:
        for table in operator.tables:
            if table.input is not None:
                state.scatter(table, one)
    done.segments += state.write(name, operator.span, settings.fsync)
    done.masked += masked_as_plain(state.expired)
    if scattering:
        return  # what was scattered must not be merged as it was
    budget = max(settings.compaction_floor_rows, int(done.rows_in * settings.compaction_share))
    merged, masked = state.compact(
        operator.tables, moment.after, operator.span, settings.compaction_fan, budget, name,
        settings.fsync,
    )  # fmt: skip
    done.segments += merged
    done.masked += masked_as_plain(masked)


def _namer(orders: Orders, subquery: str, site: int) -> Callable[[str], str]:
    # Unique for every try, so that a task Spark believes lost cannot spoil the file of its successor
    token = uuid.uuid4().hex[:12]
    return lambda table: f"state/{subquery}/{orders.epoch:012d}-{site:04d}-{table}-{token}.arrow"
