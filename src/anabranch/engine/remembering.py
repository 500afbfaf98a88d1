"""What a site remembers of its subqueries: state in parts, written, merged, put aside, and plain again."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence

from anabranch.engine.orders import Orders
from anabranch.engine.report import SubqueryReport, masked_as_plain
from anabranch.engine.reshaping import Group, groups_of, reshape
from anabranch.operators.base import Moment
from anabranch.operators.join import SymmetricJoin
from anabranch.plan.subquery import Subquery
from anabranch.routing.ranges import intersect, subtract, union
from anabranch.routing.reach import SlotFlow
from anabranch.state.compaction import compact
from anabranch.state.group import SiteState
from anabranch.state.packing import bring_back, put_away
from anabranch.state.scattering import gather_state, regrid_state, scatter_state
from anabranch.state.segment import Ranges


def parts_of(
    orders: Orders, subquery: Subquery, site: int, flow: SlotFlow, before: int | None,
    done: SubqueryReport,
) -> Iterator[SiteState]:  # fmt: skip
    """The state of a flow, that of slots of one shape together.

    Slots with something that is packed come piece by piece, so that little is unpacked; so do those that come
    to another shape first, with what is not due by the watermark before.
    """
    for group in groups_of(orders, subquery, flow):
        state, slots = _state(orders, subquery, site, flow, group), group.slots
        if group.there is not None:
            for piece in state.in_pieces():
                _reshape(orders, subquery, site, piece, group.there, before, done)
                yield piece
            continue
        packed = union([], [some for ref in state.refs if ref.packed for some in state.wanted(ref)])
        if flow.cuts:
            packed = slots
        plain = subtract(slots, packed)
        if not packed:
            yield state
        elif plain:
            yield state.part(plain)
        if packed:
            yield from state.part(packed).in_pieces()


def _state(
    orders: Orders, subquery: Subquery, site: int, flow: SlotFlow, group: Group
) -> SiteState:
    """The state of some slots of a flow."""
    near = orders.shelves[subquery.name].within(group.slots)
    if flow.newest:
        oldest = min(epoch for epoch, _ in flow.newest)
        near = [ref for ref in near if ref.born[1] > oldest]
    state = SiteState(
        orders.place, near, group.slots, orders.epoch, orders.piece_bytes(site), flow.newest, group.shape,
        group.track, copies=_copies(orders, subquery),
    )  # fmt: skip
    state.refs = [ref for ref in near if state.wanted(ref)]
    return state


def _reshape(
    orders: Orders, subquery: Subquery, site: int, piece: SiteState, there: Sequence[str],
    before: int | None, done: SubqueryReport,
) -> None:  # fmt: skip
    """Brings a piece of the state of a join to the shape in which it goes on."""
    join = subquery.operator
    assert isinstance(join, SymmetricJoin)
    name, fsync = _namer(orders, subquery.name, site), orders.settings.fsync
    written, masked = reshape(join, piece, there, before, name, fsync)
    done.segments += written
    done.masked += masked_as_plain(masked)


def plain_again(
    orders: Orders, subquery: Subquery, site: int, piece: SiteState, moment: Moment,
    done: SubqueryReport,
) -> None:  # fmt: skip
    """The state of slots that have come together, plain: it is on the disk as that from now on."""
    if orders.cleaning_all or not any(ref.packed and piece.wanted(ref) for ref in piece.refs):
        return
    name, fsync = _namer(orders, subquery.name, site), orders.settings.fsync
    written, masked = bring_back(piece, subquery.operator.tables, name, fsync, moment.after)
    piece.refs = [*(ref for ref in piece.refs if not ref.packed), *written]
    done.segments += written
    done.masked += masked_as_plain(masked)


def put_aside(orders: Orders, subquery: Subquery, site: int, done: SubqueryReport) -> None:
    """Packs the state that is put aside in this epoch."""
    if not subquery.stateful:
        return
    owned = orders.maps[subquery.exchange].owned_by(site)
    going: dict[int | None, Ranges] = {}
    for one in orders.reach[subquery.exchange].spilled:
        if one.goes_in(orders.epoch):
            going.setdefault(one.watermark, []).append((one.first, one.end))
    for watermark, ranges in going.items():
        slots = intersect(owned, ranges)
        if not slots:
            continue
        near = orders.shelves[subquery.name].within(slots)
        state = SiteState(orders.place, near, slots, orders.epoch, orders.piece_bytes(site))
        name, fsync = _namer(orders, subquery.name, site), orders.settings.fsync
        passed = subquery.watermark(watermark)
        tables = subquery.operator.tables
        # What lies between inputs and results does not go along: it can be made again
        between = {table.name for table in tables if table.between}
        done.masked += [
            (ref.file, ref.batch, some)
            for ref in near
            if ref.table in between and (some := state.wanted(ref))
        ]
        # What went before stays as it is: it must not make the pieces smaller
        state.refs = [ref for ref in near if not ref.packed and ref.table not in between]
        written, masked = put_away(state, tables, name, fsync, passed)
        done.segments += written
        done.masked += masked_as_plain(masked)


def remember(
    orders: Orders, subquery: Subquery, site: int, state: SiteState, moment: Moment,
    done: SubqueryReport,
) -> None:  # fmt: skip
    """Writes what the operator remembers, and merges what has become many."""
    settings, operator = orders.settings, subquery.operator
    name = _namer(orders, subquery.name, site)
    settled = _settle_anew(orders, subquery, state)
    done.segments += state.write(name, operator.span, settings.fsync)
    done.masked += masked_as_plain(state.expired)
    if settled or orders.cleaning_all:
        return  # what went elsewhere must not be merged as it was; at the end it does not pay any more
    budget = max(settings.compaction_floor_rows, int(done.rows_in * settings.compaction_share))
    merged, masked = compact(
        state, operator.tables, moment.after, operator.span, settings.compaction_fan, budget, name,
        settings.fsync,
    )  # fmt: skip
    done.segments += merged
    done.masked += masked_as_plain(masked)


def _settle_anew(orders: Orders, subquery: Subquery, state: SiteState) -> bool:
    """Takes state to cells of hot keys and back, or to those of another grid; whether there was any."""
    # Scattered slots have nothing between inputs and results, nor have those that are about to be
    tables = [table for table in subquery.operator.tables if table.scatters]
    settled = False
    for one in orders.resettling.scattering.get(subquery.exchange, ()):
        if intersect(state.owned, [(one.slot, one.slot + 1)]):
            settled = True
            for table in tables:
                scatter_state(state, table, one)
    for one in orders.resettling.gathering.get(subquery.exchange, ()):
        if intersect(state.owned, [one.cells]):
            settled = True
            for table in tables:
                gather_state(state, table, one)
    new = orders.resettling.grids.get(subquery.exchange)
    if new is not None:
        settled = True
        for table in tables:
            regrid_state(state, table, orders.grids[subquery.exchange], new.grid)
    return settled


def _copies(orders: Orders, subquery: Subquery) -> dict[int, Ranges]:
    """For each input the cells in which its rows are only met."""
    scattered = orders.scattered.get(subquery.exchange, ())
    found = {
        input: sorted(cells for one in scattered for cells in one.copies(input))
        for input in range(subquery.inputs)
    }
    return {input: cells for input, cells in found.items() if cells}


def _namer(orders: Orders, subquery: str, site: int) -> Callable[[str], str]:
    # Unique for every try, so that a task Spark believes lost cannot spoil the file of its successor
    token = uuid.uuid4().hex[:12]
    return lambda table: f"state/{subquery}/{orders.epoch:012d}-{site:04d}-{table}-{token}.arrow"
