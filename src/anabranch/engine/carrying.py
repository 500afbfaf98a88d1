"""A manifest of one query set as the manifest of another: state, maps and clocks under their new names.

State lies by slots, and a subquery of the same signature and placing finds it there, whatever it is called
and whoever shares its exchange. So nothing is read or written here: only names change, and what is gone is
no longer named.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from anabranch.engine.evolution import Evolution
from anabranch.errors import StateError
from anabranch.plan.exchange import Exchange
from anabranch.plan.keeping import identified, placing, wanted
from anabranch.plan.plan import Plan
from anabranch.plan.subquery import Subquery
from anabranch.routing.reach import Reach, least
from anabranch.state.manifest import (
    ExchangeRecord,
    HeldRef,
    Manifest,
    StreamRecord,
    SubqueryRecord,
)


def unfit(
    plan: Plan, stored: Manifest, evolution: Evolution
) -> dict[str, tuple[frozenset[str], str]]:
    """The subqueries of queries that go on for which the checkpoint has no state, or none that fits.

    With the queries that each is part of, and the reason.
    """
    before = {record.signature: record for record in stored.subqueries.values()}
    found: dict[str, tuple[frozenset[str], str]] = {}
    for name, queries in readers_of(plan).items():
        subquery = plan.subqueries[name]
        kept = queries & evolution.kept.keys()
        if subquery.stateful and kept:
            reason = _misfit(subquery, before.get(subquery.node.signature))
            if reason:
                found[name] = frozenset(kept), reason
    return found


def readers_of(plan: Plan) -> dict[str, set[str]]:
    """The queries that each subquery works for."""
    found: dict[str, set[str]] = {name: set() for name in plan.subqueries}
    for output in plan.outputs:
        waiting = [path.origin for path in output.paths]
        while waiting:
            name = waiting.pop()
            if name in found and output.query not in found[name]:
                found[name].add(output.query)
                waiting += [path.origin for path in plan.subqueries[name].paths]
    return found


def _misfit(subquery: Subquery, record: SubqueryRecord | None) -> str:
    if record is None:
        return "the checkpoint has no state of it"
    if record.placing != placing(subquery):
        return f"its rows were spread over {record.placing}, and would be over {placing(subquery)}"
    missing = [column for column in wanted(subquery) if column not in record.wanted]
    if missing:
        return f"its state does not have what is needed for {', '.join(missing)}"
    return ""


def carried(
    stored: Manifest, plan: Plan, evolution: Evolution, partitioning: list[str] | None
) -> Manifest:
    """The manifest with which the new query set goes on; exchanges that are new are still missing."""
    if stored.serial != evolution.serial:
        raise StateError(
            "Another run has gone on with the checkpoint while this one was planned. Start again."
        )
    before = {record.signature: name for name, record in stored.subqueries.items()}
    names = {
        name: before[subquery.node.signature]
        for name, subquery in plan.subqueries.items()
        if subquery.node.signature in before
    }
    """What each subquery that goes on was called."""
    exchanges = {
        name: record
        for name, exchange in plan.exchanges.items()
        if (record := _exchange(exchange, names, stored)) is not None
    }
    kept = evolution.kept
    return replace(
        stored,
        identity=plan.identity,
        queries=dict(evolution.queries),
        changes=evolution.number,
        partitioning=partitioning,
        streams=_streams(stored, plan, evolution),
        watermarks=_watermarks(stored, plan, evolution),
        exchanges=exchanges,
        reach={
            name: _reach(
                plan.exchanges[name],
                stored.reach[_formerly(plan.exchanges[name], names, stored)[0]],
            )
            for name in exchanges
        },
        subqueries={
            name: _subquery(subquery, stored.subqueries.get(names.get(name, "")))
            for name, subquery in plan.subqueries.items()
            if subquery.stateful or name in names
        },
        held=_held(stored, plan, names, evolution),
        moving=[
            replace(moving, exchange=name)
            for moving in stored.moving
            for name in exchanges
            if moving.exchange in _formerly(plan.exchanges[name], names, stored)
        ],
        # They are where they belong before a change counts
        results={},
        sinks={new: stored.sinks[old] for new, old in sorted(kept.items()) if old in stored.sinks},
        result_rows={
            new: stored.result_rows[old] for new, old in kept.items() if old in stored.result_rows
        },
    )


def _subquery(subquery: Subquery, record: SubqueryRecord | None) -> SubqueryRecord:
    if record is None:
        return SubqueryRecord(exchange=subquery.exchange, **identified(subquery))
    return replace(record, exchange=subquery.exchange, **identified(subquery))


def _formerly(exchange: Exchange, names: Mapping[str, str], stored: Manifest) -> list[str]:
    """The exchanges that its members had before."""
    olds = (names[member.name] for member in exchange.members if member.name in names)
    return list(dict.fromkeys(stored.subqueries[old].exchange for old in olds))


def _exchange(
    exchange: Exchange, names: Mapping[str, str], stored: Manifest
) -> ExchangeRecord | None:
    """The map that its members go on with; None if all of them are new."""
    olds = _formerly(exchange, names, stored)
    records = [stored.exchanges[old] for old in olds]
    if not records:
        return None
    first, *others = records
    slots = {record.map().slots for record in records}
    waits = any(stored.reach[old].behind or stored.reach[old].spilled for old in olds)
    bound = any(one.scattered or one.grid for one in records)
    if others and (len(slots) > 1 or waits or bound):
        raise StateError(
            f"In the new query set '{exchange.name}' shares the exchanges {', '.join(olds)}, whose rows wait "
            "or meet elsewhere at the moment. Let the former query set run for a few epochs and try again, "
            "or use another checkpoint folder."
        )
    if any(stored.reach[old].owing for old in olds) and not exchange.spills:
        raise StateError(
            f"State of '{exchange.name}' is put aside, and the new query set needs all of it at once. Go on "
            "with the query set as it was, let run.clean_up() bring it together, and change it then."
        )
    strangers = [one.name for one in exchange.members if one.stateful and one.name not in names]
    if first.scattered and strangers:
        raise StateError(
            f"Hot keys of '{exchange.name}' are scattered over several partitions, which suits only what was "
            f"there before: {', '.join(strangers)} cannot share its exchange. Use another checkpoint folder."
        )
    return first


def _reach(exchange: Exchange, before: Reach) -> Reach:
    """How far an exchange has come. Where no rows wait for state any more, none of it is aside for them."""
    return replace(before, spilled=before.owing) if exchange.spills else before


def _streams(stored: Manifest, plan: Plan, evolution: Evolution) -> dict[str, StreamRecord]:
    """Where each stream goes on: a replay at the beginning, or where its stream stands now."""
    goes_on = {
        stream for name in evolution.kept for stream in evolution.queries[name].streams.values()
    }
    replayed = {
        replay: stream
        for name in evolution.fresh
        for stream, replay in evolution.queries[name].streams.items()
        if replay != stream
    }
    records = {}
    for name in plan.streams:
        if name in stored.streams and (name in goes_on or not evolution.backfill):
            records[name] = stored.streams[name]
        elif name in replayed and not evolution.backfill:
            records[name] = StreamRecord(offset=stored.streams[replayed[name]].offset)
        else:
            records[name] = StreamRecord()
    return records


def _watermarks(stored: Manifest, plan: Plan, evolution: Evolution) -> dict[str, int | None]:
    """Each component goes on from where its streams had come; with a new stream, at its beginning."""
    reached = {
        stream: stored.watermarks[record.component]
        for record in stored.queries.values()
        for stream in record.streams.values()
    }
    if evolution.backfill:
        goes_on = {s for name in evolution.kept for s in evolution.queries[name].streams.values()}
        reached = {stream: mark for stream, mark in reached.items() if stream in goes_on}
    marks: dict[str, list[int | None]] = {}
    for stream in plan.streams.values():
        marks.setdefault(stream.component, []).append(reached.get(stream.name))
    return {component: least(some) for component, some in marks.items()}


def _held(
    stored: Manifest, plan: Plan, names: Mapping[str, str], evolution: Evolution
) -> list[HeldRef]:
    """The rows that wait for what goes on."""
    now = {old: new for new, old in names.items()}
    for name in evolution.kept.values():
        lost = [
            ref.subquery
            for ref in stored.held
            if ref.subquery not in now and ref.subquery in stored.queries[name].subqueries
        ]
        if lost:
            raise StateError(
                f"Rows wait before '{lost[0]}', which is part of query '{name}' as it was before the query "
                "set was changed. Start once more with the query set as it was, let the run come to its "
                "end, and change it then."
            )
    return [
        replace(
            ref, subquery=now[ref.subquery], exchange=plan.subqueries[now[ref.subquery]].exchange
        )
        for ref in stored.held
        if ref.subquery in now
    ]
