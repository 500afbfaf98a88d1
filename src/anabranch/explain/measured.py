"""What a run has measured of its plan: figures of the newest manifest, per epoch."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.partitioning.flow import COUNTED, Flow
from anabranch.routing.reach import slots_of
from anabranch.routing.shaped import OnTrack, shapes_in_use, tracks_in_use
from anabranch.state.manifest import Manifest, SubqueryRecord
from anabranch.state.segment import slots_in


@dataclass(frozen=True)
class Work:
    """What a subquery has done; rows and bytes are means of all epochs so far."""

    received: Flow
    """What came to it through its exchange: sub-aggregates, where senders make them."""
    local: Flow
    """Rows that it took from subqueries on the same partitions; their bytes are not counted."""
    out: Flow
    rows_in_total: int
    rows_received_total: int
    rows_out_total: int
    seconds: float
    """Busy seconds of an epoch over all sites, the last epochs counting most."""
    share: float
    """Its part of the busy seconds of all subqueries."""
    skew: float
    """How much more than the mean the busiest of its sites had to take in, in the last epochs."""
    sites: int
    state_rows: int
    state_bytes: int
    aside_bytes: int
    """Of those what is put aside."""
    aside_partitions: int
    """The partitions of which something is put aside."""
    combining: bool
    """Whether senders sub-aggregate for it now."""
    shapes: dict[str, int]
    """The shapes of a join with the partitions that work in each; empty if all of them are flat."""
    tracks: list[OnTrack]
    """What comes to another shape of a join on parallel tracks."""
    partitions: int

    @property
    def rows_in(self) -> float:
        return self.received.rows + self.local.rows


@dataclass(frozen=True)
class Measured:
    """A run so far."""

    epochs: int
    streams: dict[str, Flow]
    stream_rows: dict[str, int]
    late_rows: dict[str, int]
    work: dict[str, Work]
    results: dict[str, float]
    """Rows of each query an epoch, be they written or not."""
    result_rows: dict[str, int]


def measured_by(manifest: Manifest) -> Measured | None:
    """The figures of a manifest; None before the first epoch."""
    epochs = manifest.epoch + 1
    if epochs < 1:
        return None
    seconds = sum(record.seconds for record in manifest.subqueries.values())
    return Measured(
        epochs=epochs,
        streams={
            name: Flow(stream.rows / epochs, stream.bytes / epochs, COUNTED)
            for name, stream in manifest.streams.items()
        },
        stream_rows={name: stream.rows for name, stream in manifest.streams.items()},
        late_rows={name: stream.late for name, stream in manifest.streams.items()},
        work={
            name: _work(record, manifest, seconds) for name, record in manifest.subqueries.items()
        },
        results={name: rows / epochs for name, rows in manifest.result_rows.items()},
        result_rows=dict(manifest.result_rows),
    )


def _work(record: SubqueryRecord, manifest: Manifest, seconds: float) -> Work:
    epochs, known = manifest.epoch + 1, manifest.exchanges[record.exchange].map()
    spilled = manifest.spilled.get(record.exchange, ())
    return Work(
        received=Flow(record.rows_received / epochs, record.bytes_received / epochs, COUNTED),
        local=Flow((record.rows_in - record.rows_received) / epochs, 0, COUNTED),
        out=Flow(record.rows_out / epochs, record.bytes_out / epochs, COUNTED),
        rows_in_total=record.rows_in,
        rows_received_total=record.rows_received,
        rows_out_total=record.rows_out,
        seconds=record.seconds,
        share=record.seconds / seconds if seconds else 0.0,
        skew=record.skew,
        sites=len({*known.sites}),
        state_rows=record.shelf.rows,
        state_bytes=record.shelf.bytes,
        aside_bytes=record.shelf.packed_bytes if spilled else 0,
        aside_partitions=len(known.with_some_of(slots_in(slots_of(spilled)))),
        combining=record.combine,
        shapes=shapes_in_use(record.shapes, known.starts, known.slots) if record.shapes else {},
        tracks=tracks_in_use(record.tracks, known.starts),
        partitions=known.partitions,
    )
