"""`anabranch checkpoint`: what a checkpoint has, whether it is whole, and savepoints."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
from typing import Annotated, Any

import msgspec
import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from anabranch.amount import in_bytes, several
from anabranch.observe.commands import AsJson, Commands
from anabranch.operators.base import END_OF_TIME
from anabranch.routing.reach import Reach
from anabranch.state.manifest import Manifest
from anabranch.state.place import place
from anabranch.state.savepoint import BadFile, chosen, copy, kept, verify
from anabranch.state.shelf import Shelf, bytes_of

app = Commands(
    help="Look at a checkpoint, verify it, copy it to go on from later.", no_args_is_help=True
)
Where = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="Its folder or URI.")]
Epoch = Annotated[int | None, typer.Option("--epoch", help="One that is kept; else the newest.")]


@app.command("list")
def list_kept(checkpoint: Where, as_json: AsJson = False) -> None:
    """The epochs that a run can go on from."""
    entries = kept(place(checkpoint))
    if as_json:
        print(json.dumps([_line(name, one) for name, one in entries]))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("epoch", "committed", "state", "by", "manifest"):
        table.add_column(column)
    for name, one in entries:
        if isinstance(one, BadFile):
            table.add_row("damaged", "", "", "", f"{_short(name)}: {one.reason}")
        else:
            size = in_bytes(_state_bytes(one))
            when = _time(one.committed_at) if one.epoch >= 0 else "–"
            table.add_row(_epoch(one), when, size, one.holder, _short(name))
    Console(highlight=False, soft_wrap=True).print(table)


@app.command()
def describe(checkpoint: Where, epoch: Epoch = None, as_json: AsJson = False) -> None:
    """Streams, offsets, watermarks, and the state of each query and partition."""
    manifest = chosen(place(checkpoint), epoch)
    told = described(manifest)
    if as_json:
        print(json.dumps(told))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"epoch {manifest.epoch} of run {manifest.run_id}, committed {_time(manifest.committed_at)}, "
        f"{several(manifest.sites, 'site')}"
    )
    components = {
        stream: record.component
        for record in manifest.queries.values()
        for stream in record.streams.values()
    }
    for name, stream in told["streams"].items():
        described_as = manifest.identity.get(f"stream {name}", "")
        watermark = manifest.watermarks.get(components.get(name, name))
        console.print(
            f"stream {name}: {stream['rows']:,} rows, {stream['late']:,} late, "
            f"newest {_in_time(stream['newest'], described_as)}, "
            f"watermark {_in_time(watermark, described_as)}"
        )
    for name, query in told["queries"].items():
        reads = ", ".join(query["streams"])
        console.print(f"query {name}: reads {reads}, {query['resultRows']:,} result rows")
    table = Table(box=None, pad_edge=False)
    for column in (
        "subquery",
        "exchange",
        "rows",
        "state",
        "aside",
        "segments",
        "partitions",
        "sites",
    ):
        table.add_column(column, justify="left" if column in ("subquery", "exchange") else "right")
    for name, one in told["subqueries"].items():
        exchange = told["exchanges"][one["exchange"]]
        table.add_row(
            name, one["exchange"], f"{one['rows']:,}", in_bytes(one["bytes"]),
            in_bytes(one["asideBytes"]), str(one["segments"]), str(len(exchange["partitions"])),
            str(len({part["site"] for part in exchange["partitions"]})),
        )  # fmt: skip
    console.print(table)


@app.command("verify")
def verify_all(checkpoint: Where, as_json: AsJson = False) -> None:
    """Reads every byte that is kept and compares its checksum; exit code 1 if something is damaged."""
    found = verify(place(checkpoint))
    if as_json:
        damaged = [{"file": one.file, "reason": one.reason} for one in found.damaged]
        counts = {"manifests": found.manifests, "files": found.files, "bytes": found.bytes}
        print(json.dumps({"checkpoint": checkpoint, **counts, "damaged": damaged}))
    else:
        console = Console(highlight=False, soft_wrap=True)
        console.print(
            f"{several(found.manifests, 'manifest')}, {several(found.files, 'file')}, "
            f"{in_bytes(found.bytes)}: "
            + (f"{len(found.damaged)} damaged" if found.damaged else "whole")
        )
        for one in found.damaged:
            console.print(f"  {one.file}: {one.reason}", markup=False)
    if found.damaged:
        raise typer.Exit(1)


@app.command("copy")
def copy_to(
    checkpoint: Where,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="An empty folder or URI.")],
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Copies a kept epoch, also of a run that goes on: a savepoint, to be given as a checkpoint."""
    manifest = copy(place(checkpoint), place(target), epoch)
    if as_json:
        print(json.dumps({"checkpoint": target, "epoch": manifest.epoch, "run": manifest.run_id}))
    else:
        print(f"epoch {manifest.epoch} is in '{target}'")


def described(manifest: Manifest) -> dict[str, Any]:
    """A manifest for people and programs."""
    return {
        "run": manifest.run_id,
        "epoch": manifest.epoch,
        "committedAt": _time(manifest.committed_at),
        "sites": manifest.sites,
        "ended": manifest.ended,
        "watermarks": manifest.watermarks,
        "streams": {
            name: {
                "offset": one.offset, "newest": one.newest, "rows": one.rows, "bytes": one.bytes,
                "late": one.late, "badRows": one.bad_rows, "badFiles": one.bad_files,
                "lanes": {lane: time.newest for lane, time in one.lane_times.items()},
            }
            for name, one in manifest.streams.items()
        },
        "exchanges": {
            name: {
                "partitions": [
                    {"first": first, "end": end, "site": site, "bytes": round(bytes)}
                    for first, end, site, bytes in zip(
                        known.starts, (*known.starts[1:], known.slots), known.sites,
                        bytes_of(_shelves(manifest, name), np.asarray(known.starts), known.slots),
                        strict=True,
                    )
                ],
                "aside": [
                    {"first": one.first, "end": one.end, "since": one.since, "generations": len(one.cuts)}
                    for one in reach.spilled
                ],
                "reached": reach.watermark,
                "waiting": [{"first": hold.first, "end": hold.end} for hold in reach.behind],
                "pins": one.pins,
            }
            for name, one in manifest.exchanges.items()
            for known, reach in [(one.map(), manifest.reach.get(name, Reach()))]
        },
        "subqueries": {
            name: {
                "exchange": one.exchange,
                "watermark": one.watermark,
                "rows": one.shelf.rows,
                "bytes": one.shelf.bytes,
                "segments": len(one.shelf),
                "asideBytes": sum(ref.bytes for ref in one.shelf if ref.packed),
                "tables": sorted(one.shelf.rows_by_table),
                "shapes": [msgspec.to_builtins(shaped) for shaped in one.shapes],
                "tracks": [msgspec.to_builtins(track) for track in one.tracks],
            }
            for name, one in manifest.subqueries.items()
        },
        "queries": {
            name: {
                "streams": sorted(one.streams.values()),
                "resultRows": manifest.result_rows.get(name, 0),
            }
            for name, one in manifest.queries.items()
        },
        "results": manifest.result_rows,
    }  # fmt: skip


def _shelves(manifest: Manifest, exchange: str) -> list[Shelf]:
    return [one.shelf for one in manifest.subqueries.values() if one.exchange == exchange]


def _in_time(value: int | None, stream: str) -> str:
    """A time of a stream as people read it; `stream` is what the manifest knows the stream by."""
    if value is None:
        return "none yet"
    if value >= END_OF_TIME:
        return "end"
    ordered = re.search(r"\) ordered by (.*), lateness", stream)
    if ordered and f"{ordered[1]} Datetime" in stream:
        with contextlib.suppress(OverflowError):
            return str(dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value))
    return f"{value:,}"


def _line(name: str, one: Manifest | BadFile) -> dict[str, Any]:
    if isinstance(one, BadFile):
        return {"file": name, "damaged": one.reason}
    return {
        "file": name,
        "epoch": one.epoch,
        "committedAt": _time(one.committed_at),
        "stateBytes": _state_bytes(one),
        "by": one.holder,
    }


def _state_bytes(manifest: Manifest) -> int:
    return sum(record.shelf.bytes for record in manifest.subqueries.values())


def _epoch(manifest: Manifest) -> str:
    return str(manifest.epoch) if manifest.epoch >= 0 else "none yet"


def _time(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="seconds")


def _short(name: str) -> str:
    return name.rpartition("/")[2]
