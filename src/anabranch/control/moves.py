"""Moves under way, between the protocol, the manifest that remembers them, and the files they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from anabranch.adapt.actions import Move
from anabranch.adapt.protocols.moving import Moving
from anabranch.plan.plan import Plan
from anabranch.routing.partition_map import PartitionMap
from anabranch.state.manifest import Manifest, MovingRecord


def recorded(moving: Iterable[Moving]) -> list[MovingRecord]:
    """The moves as the manifest has them."""
    return [
        MovingRecord(
            exchange=known.move.exchange, partition=known.move.partition,
            source=known.move.source, target=known.move.target, bytes=known.move.bytes,
            cause=known.move.cause, phase=known.phase, since=known.since,
        )
        for known in moving
    ]  # fmt: skip


def resumed(manifest: Manifest, maps: Mapping[str, PartitionMap]) -> dict[tuple[str, int], Moving]:
    """The moves that were under way when the manifest was written, as far as sites are as they were."""
    found = {}
    for record in manifest.moving:
        move = Move(
            record.exchange, record.partition, record.cause, source=record.source,
            target=record.target, bytes=record.bytes,
        )  # fmt: skip
        known = maps[record.exchange]
        there = known.sites[known.partition_at(record.partition)] == record.source
        if there and record.target < manifest.sites:
            found[move.subject] = Moving(move, record.phase, record.since)
    return found


def fetches(
    moves: Iterable[Move], plan: Plan, manifest: Manifest, maps: Mapping[str, PartitionMap]
) -> dict[int, tuple[str, ...]]:
    """The files that the new sites of these partitions should have at hand."""
    wanted: dict[int, set[str]] = {}
    for move in moves:
        slots = maps[move.exchange].range_at(move.partition)
        for member in plan.exchanges[move.exchange].members:
            shelf = manifest.subqueries[member.name].shelf
            files = {ref.file for ref in shelf.within([slots])}
            wanted.setdefault(move.target, set()).update(files)
    return {site: tuple(sorted(files)) for site, files in wanted.items()}
