"""What holds of every run after every epoch, whatever moved: checked by every chaos seed.

Every slot of every exchange has one owner, which is one of the sites that live; what the manifest names lies
in slots that exist, and is there; what is pinned is where it was pinned to, unless that site is gone; no
results are to be seen before their epoch is committed, and all of them after.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np

from anabranch.adapt.protocols.moving import Moving
from anabranch.engine.run import Run
from anabranch.language.shape import written_shape
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import subtract, union
from anabranch.routing.shaped import Shaped
from anabranch.state.manifest import Manifest, SubqueryRecord
from anabranch.testing.trial import Scene


def check_invariants(scene: Scene) -> None:
    """A watcher for trials; raises AssertionError where something does not hold."""
    where = f"epoch {scene.epoch}, {scene.step}"
    if scene.step == "before-tasks":
        check_run(scene.run, where)
    elif scene.step == "before-commit":
        for query in scene.results.case.queries:
            early = scene.results.visible(query, scene.epoch)
            assert not early, f"{where}: results of '{query}' are to be seen before the commit"
    elif scene.step == "after-publish":
        for query in scene.outcome.manifests[-1].results:
            seen = scene.results.visible(query, scene.epoch)
            assert seen, f"{where}: results of '{query}' are not to be seen after the commit"
    elif scene.step == "after-commit":
        committed = scene.outcome.manifests
        check_manifest(committed[-1], scene.folder, where)
        if len(committed) > 1:
            check_successor(committed[-2], committed[-1], where)


def check_run(run: Run, where: str) -> None:
    """What holds when the tasks of an epoch are about to begin."""
    maps = {exchange: run.partition_map(exchange) for exchange in run.plan.exchanges}
    alive = run._governor.holdings.alive
    for exchange, known in maps.items():
        check_owners(known, run.sites, f"{where}: exchange '{exchange}'")
        stranded = sorted({site for site in known.sites if not alive[site]})
        assert not stranded, (
            f"{where}: exchange '{exchange}' has partitions on lost sites {stranded}"
        )
    check_pins(maps, run.pins, alive, run._governor.moving, where)


def check_owners(known: PartitionMap, sites: int, where: str) -> None:
    """Every slot belongs to exactly one of the sites."""
    owners = np.zeros(known.slots, dtype=int)
    for site in range(sites):
        for first, end in known.owned_by(site):
            owners[first:end] += 1
    wrong = np.flatnonzero(owners != 1).tolist()
    assert not wrong, f"{where}: slot {wrong[0]} has {owners[wrong[0]]} owners among {sites} sites"


def check_pins(
    maps: Mapping[str, PartitionMap], pins: Mapping[str, Mapping[int, int]], alive: np.ndarray,
    moving: Mapping[tuple[str, int], Moving], where: str,
) -> None:  # fmt: skip
    """What is pinned begins where it began, and is on its site or on its way there, if that lives."""
    for exchange, pinned in pins.items():
        known = maps[exchange]
        for start, site in pinned.items():
            assert start in known.starts, f"{where}: pinned partition {exchange}/{start} is no more"
            owner = known.sites[known.partition_at(start)]
            gone = site >= len(alive) or not alive[site]
            under_way = (exchange, start) in moving and moving[exchange, start].move.target == site
            assert owner == site or gone or under_way, (
                f"{where}: partition {exchange}/{start} is pinned to site {site}, but is on {owner}"
            )


def check_manifest(manifest: Manifest, folder: Path, where: str) -> None:
    """The maps of a manifest are whole, and its segments are in known slots and there."""
    maps = {name: record.map() for name, record in manifest.exchanges.items()}
    for name, known in maps.items():
        check_owners(known, manifest.sites, f"{where}: exchange '{name}'")
    for record in manifest.subqueries.values():
        known = maps[record.exchange]
        for ref in record.shelf:
            told = f"{where}: segment {ref.file}"
            assert ref.live, f"{told} has no slots left"
            assert ref.live[0][0] >= 0, f"{told} is before the first slot: {ref.live}"
            assert ref.live[-1][1] <= known.slots, (
                f"{told} is beyond slot {known.slots}: {ref.live}"
            )
            assert all(first < end for first, end in ref.live), f"{told} has {ref.live}"
            assert all(a[1] <= b[0] for a, b in pairwise(ref.live)), f"{told} has {ref.live}"
            assert (folder / ref.file).exists(), f"{told} is not there"
        check_shapes(record, f"{where}: {record.exchange}")
    for held in manifest.held:
        told, known = f"{where}: rows that wait in {held.file}", maps[held.exchange]
        assert all(0 <= a < b <= known.slots for a, b in held.slots), f"{told} have {held.slots}"
        assert (folder / held.file).exists(), f"{told} are not there"


def check_shapes(record: SubqueryRecord, where: str) -> None:
    """What lies between the inputs and the results of a join lies where its shape has it, and only there."""
    for ref in record.shelf:
        if ref.table.startswith("mid"):
            inputs = tuple(map(int, ref.table.removeprefix("mid")))
            tracks = (Shaped(one.first, one.end, one.shape) for one in record.tracks if one.shape)
            slots = [
                (one.first, one.end)
                for one in (*record.shapes, *tracks)
                if inputs in written_shape(one.shape).intermediates
            ]
            beyond = subtract(ref.live, union(slots, []))
            assert not beyond, (
                f"{where}: {ref.table} lies in {beyond}, the shapes are {record.shapes}, on "
                f"tracks {record.tracks}"
            )


def check_successor(before: Manifest, after: Manifest, where: str) -> None:
    """Epochs follow each other, and no slot of an exchange is lost; cells may change."""
    assert after.epoch == before.epoch + 1, f"{where}: comes after epoch {before.epoch}"
    for name, record in after.exchanges.items():
        known = before.exchanges.get(name)
        if known is not None and not known.grid:
            hashed = known.slots - known.cells
            assert record.slots - record.cells == hashed, f"{where}: '{name}' had {hashed} slots"
