"""From the queries of a session and what a checkpoint has to the plan that goes on with it.

Where the query set is another one than the checkpoint's, and going on with it was asked for, queries that
begin now are told apart from those that go on: they read the rows from now on (`Stream.since`), or, where
they need a beginning or a clock of their own, replays of the streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from anabranch.engine.carrying import readers_of, unfit
from anabranch.engine.evolution import (
    REFUSE,
    Evolution,
    compare,
    refusal,
    refuse_changed_streams,
    states_of,
)
from anabranch.errors import SettingsError, StateError
from anabranch.language.node import Node
from anabranch.partitioning.choice import Choice
from anabranch.plan.plan import Plan
from anabranch.planning import Planning
from anabranch.sources.base import gives_once
from anabranch.state.manifest import Manifest, QueryRecord


@dataclass(frozen=True)
class Prepared:
    """All that a run of a query set begins with."""

    planning: Planning
    plan: Plan
    choice: Choice | None
    queries: Mapping[str, QueryRecord]
    evolution: Evolution | None
    """What becomes of the queries of the checkpoint, if it had others."""


def prepare(
    planning: Planning, stored: Manifest | None, sinks: Mapping[str, str], changed: str, backfill: bool,
    what: str,
) -> Prepared:  # fmt: skip
    """The plan of a session's queries, going on with what a checkpoint has; `what` names that.

    `sinks` tells where the results of the queries go that have a sink.
    """
    if stored is None:
        plan, choice = planning.plan(None, sinks)
        records = {name: _record(node, 0, {}) for name, node in planning.nodes.items()}
        return Prepared(planning, plan, choice, _in_plan(records, plan), None)
    evolution = compare(stored, planning.nodes, sinks)
    before = planning.continuing(stored)
    if not evolution or changed == REFUSE:
        plan, choice = before.plan(stored, sinks)
        if evolution:
            refuse_changed_streams(stored, plan.identity, what)
            raise refusal(stored, evolution, plan.identity, what)
        return Prepared(before, plan, choice, stored.queries, None)
    if stored.ended:
        raise StateError(
            f"{what} was closed with at_end='close': its streams have ended, so no query can be added or "
            "changed. Use a new checkpoint."
        )
    return _evolved(planning, stored, sinks, replace(evolution, backfill=backfill), what)


def _evolved(
    planning: Planning, stored: Manifest, sinks: Mapping[str, str], evolution: Evolution,
    what: str,
) -> Prepared:  # fmt: skip
    while True:
        records = _records(planning, stored, evolution)
        derived = planning.reading(records)
        kept = {
            stream
            for name in evolution.kept
            if records[name].states
            for stream in records[name].streams.values()
        }
        plan, choice = derived.plan(stored, sinks, kept)
        refuse_changed_streams(stored, plan.identity, what)
        misfits = unfit(plan, stored, evolution)
        if not misfits:
            records = _in_plan(records, plan)
            done = replace(evolution, queries=records)
            return Prepared(derived, plan, choice, records, done)
        # What was changed can still begin anew, and then shares nothing with what goes on
        anew = {one for queries, _ in misfits.values() for one in queries} & {*evolution.adjusted}
        if not anew:
            name, (queries, reason) = next(iter(misfits.items()))
            raise StateError(
                f"{what} cannot go on with query {', '.join(sorted(queries))}, although it is the same: the "
                f"state of '{name}' does not fit the plan of the new query set, for {reason}. Give the same "
                "strategy, merge, central, permit() and partitioned_by as before, or use another checkpoint "
                "folder."
            )
        evolution = evolution.anew(anew)


def _records(planning: Planning, stored: Manifest, evolution: Evolution) -> dict[str, QueryRecord]:
    """What each query reads: those that go on what they did, the others rows from now on or replays."""
    records = {}
    for name, old in evolution.kept.items():
        node, record = planning.nodes[name], stored.queries[old]
        records[name] = _record(node, record.since, record.streams)
    clocks = _clocks(record.streams.values() for record in records.values())
    for name in evolution.fresh:
        node = planning.nodes[name]
        streams = node.streams & clocks.keys()
        # Were it to read kept streams along with others, they would have to wait for each other's time
        tied = streams != node.streams or len({clocks[one] for one in streams}) > 1
        replayed = streams if evolution.backfill or tied else frozenset()
        for stream in sorted(replayed):
            _refuse_once(planning, name, stream)
        replays = {stream: f"{stream}.{evolution.number}" for stream in replayed}
        records[name] = _record(node, evolution.number, replays)
    return records


def _clocks(reading: Iterable[Iterable[str]]) -> dict[str, str]:
    """The streams that queries read, each with one that stands for all whose time it shares."""
    clocks: dict[str, str] = {}
    for some in reading:
        streams = sorted(some)
        merged = {clocks.get(stream, stream) for stream in streams}
        first = min(merged)
        clocks |= dict.fromkeys(streams, first)
        clocks = {stream: first if one in merged else one for stream, one in clocks.items()}
    return clocks


def _refuse_once(planning: Planning, query: str, stream: str) -> None:
    source = planning.streams[stream].source
    if gives_once(source):
        raise SettingsError(
            f"Query '{query}' begins with a reading of its own of stream '{stream}', which is a "
            f"{source.describe()}: that gives its rows only once. Start without backfill, and with no join "
            "of this stream with others that it has not met before; or use another checkpoint folder."
        )


def _record(node: Node, since: int, streams: Mapping[str, str]) -> QueryRecord:
    return QueryRecord(
        signature=node.signature, states=states_of(node), since=since,
        streams={name: streams.get(name, name) for name in sorted(node.streams)},
    )  # fmt: skip


def _in_plan(records: Mapping[str, QueryRecord], plan: Plan) -> dict[str, QueryRecord]:
    """The records, with whose watermark each query goes by and what of the plan works for it."""
    readers = readers_of(plan)
    found = {}
    for name, record in records.items():
        first = min(record.streams.values())
        found[name] = structs.replace(
            record,
            component=plan.streams[first].component,
            subqueries=tuple(sorted(one for one, queries in readers.items() if name in queries)),
        )
    return found
