"""An entry of the ledger: a whole manifest, or how one differs from the one before it; as bytes and back."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from anabranch.errors import StateError
from anabranch.routing.locator import MAX_SLOTS
from anabranch.state.checksum import Damaged, seal, sealed, unseal
from anabranch.state.manifest import FORMAT_VERSION, VERSIONS, Manifest, StreamRecord
from anabranch.state.segment import SegmentRef
from anabranch.state.shelf import Shelf, ShelfChange
from anabranch.state.validity import Impossible, refuse_impossible


class Delta(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="delta"
):
    """How a manifest differs from the one before it in the line."""

    format_version: int = FORMAT_VERSION
    state: Manifest
    """Itself, but with empty shelves, without what stays for a whole run, with only those exchanges and lanes
    that have changed and only files of rows that have begun to wait, or of which some have gone on."""
    shelves: dict[str, ShelfChange]
    """What becomes of the shelves."""
    let_go: list[str]
    """The files of rows that wait no longer."""


Entry = Manifest | Delta
BY_LANE = ("lanes", "lane_values", "lane_times")
"""What a stream's record has of each of its lanes."""


def difference(before: Manifest, after: Manifest, shelves: dict[str, ShelfChange]) -> Delta | None:
    """How a manifest differs from the one before it, given what becomes of the shelves.

    None if lanes are forgotten, as where a stream has none any more: then it takes a whole one.
    """
    if any(_forgets_lanes(before.streams[name], one) for name, one in after.streams.items()):
        return None
    waiting = {ref.file: ref for ref in before.held}
    exchanges = {
        name: record
        for name, record in after.exchanges.items()
        if record is not before.exchanges.get(name)
    }
    subqueries = {
        name: replace(record, shelf=Shelf(), signature="", placing="", wanted=[])
        for name, record in after.subqueries.items()
    }
    streams = {
        name: replace(record, **_lanes(before.streams[name], record))
        for name, record in after.streams.items()
    }
    return Delta(
        state=replace(
            after, identity={}, queries={}, streams=streams, exchanges=exchanges, subqueries=subqueries,
            held=[ref for ref in after.held if waiting.get(ref.file) != ref],
        ),
        shelves={name: change for name, change in shelves.items() if change},
        let_go=sorted(waiting.keys() - {ref.file for ref in after.held}),
    )  # fmt: skip


def _lanes(before: StreamRecord, after: StreamRecord) -> dict[str, Any]:
    """What is kept of a stream lane by lane, of those that have changed."""
    found = {}
    for name in BY_LANE:
        known, now = getattr(before, name), getattr(after, name)
        found[name] = {lane: one for lane, one in now.items() if known.get(lane) != one}
    return found


def _forgets_lanes(before: StreamRecord, after: StreamRecord) -> bool:
    return any(not getattr(before, part).keys() <= getattr(after, part).keys() for part in BY_LANE)


def applied(before: Manifest, delta: Delta) -> Manifest:
    """The manifest that differs so from the one before it."""
    state, gone = delta.state, {*delta.let_go}
    held = {ref.file: ref for ref in (*before.held, *state.held)}
    nothing = ShelfChange([], [])
    return replace(
        state,
        identity=before.identity,
        queries=before.queries,
        streams={
            name: replace(
                record,
                **{
                    part: getattr(before.streams[name], part) | getattr(record, part)
                    for part in BY_LANE
                },
            )
            for name, record in state.streams.items()
        },
        exchanges={**before.exchanges, **state.exchanges},
        subqueries={
            name: replace(
                record,
                shelf=before.subqueries[name].shelf.after(delta.shelves.get(name, nothing)),
                signature=before.subqueries[name].signature,
                placing=before.subqueries[name].placing,
                wanted=before.subqueries[name].wanted,
            )
            for name, record in state.subqueries.items()
        },
        held=[ref for file, ref in held.items() if file not in gone],
    )


def encode(entry: Entry) -> bytes:
    plain = msgspec.json.encode(entry, enc_hook=_plain)
    return seal(msgspec.json.format(plain, indent=1))


def _plain(value: Any) -> Any:
    if isinstance(value, Shelf):
        return list(value)
    raise NotImplementedError(f"{value!r} has no place in a manifest")


def _shelf(kind: type, value: Any) -> Any:
    if kind is Shelf:
        refs = msgspec.convert(value, list[SegmentRef])
        for ref in refs:
            _refuse_slots(ref)
        return Shelf(refs)
    raise NotImplementedError(f"a manifest has no {kind}")


def _refuse_slots(ref: SegmentRef) -> None:
    """Raises Impossible if a segment has slots that none can have."""
    edges = [0, *(edge for pair in ref.live for edge in pair), MAX_SLOTS]
    slots = sum(end - first for first, end in ref.live)
    if edges != sorted(edges) or any(first == end for first, end in ref.live) or not ref.live:
        told = [list(pair) for pair in ref.live]
        raise Impossible(f"segment {ref.file} has the slots {told} of {MAX_SLOTS}")
    if not 0 < len(ref.along) <= slots or min(ref.along) < 0:
        raise Impossible(f"segment {ref.file} has {list(ref.along)} rows along its {slots} slots")


def decode(data: bytes, where: str) -> Entry:
    """An entry from its bytes; another format, damage and impossible values are refused by name."""
    _refuse_version(data, where)
    try:
        entry: Entry = msgspec.json.decode(unseal(data), type=Entry, dec_hook=_shelf)
    except Damaged as error:
        raise StateError(
            f"The manifest '{where}' is damaged: {error}. Restore it from a copy, or start with a new "
            "checkpoint folder."
        ) from error
    except Impossible as error:
        raise error.told(where) from error
    except msgspec.DecodeError as error:
        raise StateError(
            f"The manifest '{where}' cannot be read: {error}. Restore it from a copy, or start "
            "with a new checkpoint folder."
        ) from error
    if isinstance(entry, Manifest):
        refuse_impossible(entry, where)
    return entry


def _refuse_version(data: bytes, where: str) -> None:
    """Raises StateError if it was another version that wrote these bytes, not a fault that changed them."""
    try:
        version = msgspec.json.decode(data).get("format_version")
        if sealed(data):
            unseal(data)
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError, Damaged):
        return  # whatever is wrong with it is told by whoever reads it
    if type(version) is int and version != FORMAT_VERSION:
        difference = f" ({VERSIONS[version]})" if version in VERSIONS else ""
        raise StateError(
            f"The checkpoint '{where}' has format version {version}{difference}; this version of "
            f"Anabranch reads {FORMAT_VERSION} ({VERSIONS[FORMAT_VERSION]}). Use the version of "
            "Anabranch that wrote it, or a new checkpoint folder."
        )
