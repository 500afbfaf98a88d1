"""What no manifest can say, whatever its checksum is: sites that do not exist, slots out of range."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from anabranch.errors import PlanningError, SettingsError, StateError
from anabranch.language.shape import written_shape

if TYPE_CHECKING:
    from anabranch.state.manifest import ExchangeRecord, Manifest, SubqueryRecord

Says = Callable[[bool, str], None]
"""Refuses the manifest with these words unless something holds."""
STREAM_COUNTS = ("rows", "epochs", "bytes", "late", "bad_rows", "bad_files", "last_rows_at")
SUBQUERY_COUNTS = (
    "rows_in", "rows_out", "rows_received", "bytes_received", "bytes_out", "seconds", "skew",
)  # fmt: skip
SEGMENT_COUNTS = ("batch", "tier", "rows", "bytes", "checksum")


class Impossible(Exception):
    """What a manifest says that cannot be."""

    def told(self, where: str) -> StateError:
        return StateError(
            f"The manifest '{where}' says what cannot be: {self}. Was it changed by hand? Restore it from a "
            "copy, or start with a new checkpoint folder."
        )


def refuse_impossible(manifest: Manifest, where: str) -> None:
    """Raises StateError if a manifest says what no run can have written."""

    def expect(holds: bool, otherwise: str) -> None:
        if not holds:
            raise Impossible(otherwise).told(where)

    expect(manifest.sites >= 1, f"{manifest.sites} sites")
    expect(manifest.epoch >= -1, f"epoch {manifest.epoch}")
    _not_negative(expect, "the manifest", manifest, ("committed_at", "ordinal"))
    for name, stream in manifest.streams.items():
        _not_negative(expect, f"stream {name}", stream, STREAM_COUNTS)
        for lane, slot in stream.lanes.items():
            expect(slot >= 0, f"lane '{lane}' of stream {name} is in slot {slot}")
        for lane, time in stream.lane_times.items():
            _not_negative(expect, f"lane '{lane}' of stream {name}", time, ("last_rows_at",))
    for query, rows in manifest.result_rows.items():
        expect(rows >= 0, f"query {query} has {rows} result rows")
    for query, parts in manifest.results.items():
        for result in parts:
            _not_negative(expect, f"'{result.name}' of query {query}", result, ("rows", "bytes"))
            # The folders of a partitioned table have values in their names, nothing that leads elsewhere
            *folders, own = result.name.split("/")
            expect(
                own not in ("", ".", "..")
                and all("=" in folder for folder in folders)
                and "\0" not in result.name,
                f"a part of the results of query {query} is called '{result.name}'",
            )
    for name, exchange in manifest.exchanges.items():
        _check_exchange(expect, name, exchange, manifest.sites)
    for name, subquery in manifest.subqueries.items():
        _check_subquery(expect, name, subquery, _slots(expect, manifest, subquery.exchange))
    _check_waiting(expect, manifest)
    for moving in manifest.moving:
        _slots(expect, manifest, moving.exchange)
        for site in (moving.source, moving.target):
            expect(
                0 <= site < manifest.sites,
                f"a partition of {moving.exchange} moves from site {moving.source} to "
                f"{moving.target} of {manifest.sites}",
            )


def _check_exchange(expect: Says, name: str, record: ExchangeRecord, sites: int) -> None:
    for site in {*record.sites}:
        expect(0 <= site < sites, f"a partition of {name} is on site {site} of {sites}")
    try:
        slots = record.map().slots
    except (PlanningError, IndexError) as error:
        expect(False, f"the partitions of {name} are no map: {error}")
    expect(0 <= record.cells < slots, f"{record.cells} of {slots} slots of {name} are cells")
    for start, site in record.pins.items():
        expect(min(start, site) >= 0, f"partition {start} of {name} is pinned to site {site}")
    for one in record.scattered:
        left, right = one.sides
        expect(
            0 <= one.slot < slots and min(one.bands, default=0) > 0 and 0 <= left < right,
            f"slot {one.slot} of {slots} of {name} is scattered over bands {list(one.bands)} of the inputs "
            f"{list(one.sides)}",
        )
        _ranges(expect, f"the cells of slot {one.slot} of {name}", [one.cells], slots)
    expect(
        all(cells > 0 for cells in record.grid) and sum(record.grid) <= slots,
        f"the grid of {name} has bands {record.grid} in {slots} slots",
    )


def _check_subquery(expect: Says, name: str, record: SubqueryRecord, slots: int) -> None:
    _not_negative(expect, f"subquery {name}", record, SUBQUERY_COUNTS)
    for shapes in (record.shapes, record.wanted_shapes):
        _ranges(expect, f"subquery {name}", [(one.first, one.end) for one in shapes], slots)
        for one in shapes:
            expect(_is_shape(one.shape), f"a join of {name} has the shape '{one.shape}'")
    tracks = [(one.first, one.end) for one in record.tracks]
    for ranges in (tracks, record.by_track):
        _ranges(expect, f"the tracks of {name}", ranges, slots)
    for track in record.tracks:
        known = not track.shape or _is_shape(track.shape)
        expect(known and track.cut >= -1, f"a track of {name} is {track}")
    for ref in record.shelf:
        _file(expect, ref.file)
        _not_negative(expect, f"segment {ref.file}", ref, SEGMENT_COUNTS)
        _ranges(expect, f"segment {ref.file}", ref.live, slots)
        expect(ref.born[0] <= ref.born[1], f"rows of segment {ref.file} were born in {ref.born}")
        expect(
            ref.min_due <= ref.max_due,
            f"rows of segment {ref.file} are due from {ref.min_due} to {ref.max_due}",
        )


def _is_shape(text: str) -> bool:
    try:
        return str(written_shape(text)) == text
    except SettingsError:
        return False


def _check_waiting(expect: Says, manifest: Manifest) -> None:
    for name, reach in manifest.reach.items():
        waiting = [(hold.first, hold.end) for hold in reach.behind]
        _ranges(expect, f"what waits for {name}", waiting, _slots(expect, manifest, name))
        aside = [(one.first, one.end) for one in reach.spilled]
        _ranges(expect, f"what is put aside of {name}", aside, _slots(expect, manifest, name))
    for ref in manifest.held:
        slots = _slots(expect, manifest, ref.exchange)
        expect(
            ref.subquery in manifest.subqueries, f"rows wait for {ref.subquery}, which is not there"
        )
        _file(expect, ref.file)
        _not_negative(expect, f"'{ref.file}'", ref, ("input", "rows", "bytes", "checksum"))
        _ranges(expect, f"'{ref.file}'", ref.slots, slots)


def _slots(expect: Says, manifest: Manifest, name: str) -> int:
    """The slots of an exchange that must be there."""
    expect(name in manifest.exchanges, f"there is no exchange {name}, but it is spoken of")
    return manifest.exchanges[name].map().slots


def _not_negative(expect: Says, what: str, record: object, names: Iterable[str]) -> None:
    for name in names:
        # Not `< 0`, which a NaN would pass
        expect(getattr(record, name) >= 0, f"{name} of {what} is {getattr(record, name)}")


def _ranges(expect: Says, what: str, ranges: Sequence[tuple[int, int]], slots: int) -> None:
    edges = [0, *(edge for pair in ranges for edge in pair), slots]
    expect(
        all(low <= high for low, high in pairwise(edges)) and all(a < b for a, b in ranges),
        f"{what} has the slots {[list(pair) for pair in ranges]} of {slots}",
    )


def _file(expect: Says, name: str) -> None:
    parts = PurePosixPath(name).parts
    expect(
        len(parts) == 3 and parts[0] == "state" and ".." not in parts and "\0" not in name,
        f"a file of the state is called '{name}'",
    )
