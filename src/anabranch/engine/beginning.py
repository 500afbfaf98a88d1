"""The manifest that a run begins with: that of its checkpoint, completed, or the first one."""

from __future__ import annotations

from msgspec.structs import replace

from anabranch.engine.carrying import carried
from anabranch.engine.options import RunOptions
from anabranch.engine.records import mapped
from anabranch.engine.watermarks import reach_of_inputs
from anabranch.errors import StateError
from anabranch.plan.keeping import identified
from anabranch.plan.plan import Plan
from anabranch.plan.subquery import IN_GRID
from anabranch.routing.grid import choose_grid
from anabranch.routing.partition_map import even_map, slots_for
from anabranch.state.manifest import (
    ExchangeRecord,
    Manifest,
    StreamRecord,
    SubqueryRecord,
    refuse_other,
)


def begun_with(plan: Plan, options: RunOptions, stored: Manifest) -> Manifest:
    """Where a run stands when it goes on from a manifest; StateError if it cannot."""
    if options.evolution is not None:
        stored = carried(stored, plan, options.evolution, options.partitioning)
    records = {name: dict(getattr(stored, name)) for name in ("subqueries", "exchanges", "reach")}
    manifest = _complete(plan, options, replace(stored, **records))
    _refuse(plan, manifest, f"The checkpoint '{options.root}'")
    return manifest


def first_manifest(plan: Plan, options: RunOptions, run_id: str) -> Manifest:
    """That of a run that has read nothing yet."""
    return Manifest(
        run_id=run_id,
        epoch=-1,
        sites=options.sites,
        committed_at=0.0,
        identity=plan.identity,
        streams={name: StreamRecord() for name in plan.streams},
        watermarks={stream.component: None for stream in plan.streams.values()},
        exchanges={},
        subqueries={},
        queries=dict(options.queries),
        partitioning=options.partitioning,
    )


def _complete(plan: Plan, options: RunOptions, manifest: Manifest) -> Manifest:
    """The manifest with an entry for every subquery without state: they come and go with sinks."""
    # Those that the run has now: maps of more or fewer sites are brought to them later
    sites = manifest.sites
    partitions = options.sites * options.settings.partitions_per_site
    reach = reach_of_inputs(plan, manifest.holds, manifest.watermarks, manifest.spilled)
    for name, subquery in plan.subqueries.items():
        if name not in manifest.subqueries:
            if manifest.epoch >= 0 and subquery.stateful:
                continue
            known_by = identified(subquery)
            manifest.subqueries[name] = SubqueryRecord(exchange=subquery.exchange, **known_by)
        if subquery.exchange in manifest.exchanges:
            continue
        grid = None
        if subquery.spread == IN_GRID:
            grid = choose_grid(sites, *subquery.weights)
        # The cells of a grid cannot be cut
        count, slots = (grid.cells, 0) if grid else (partitions, slots_for(partitions))
        manifest.exchanges[subquery.exchange] = ExchangeRecord(
            **mapped(even_map(count, sites, slots)),
            grid=list(grid.bands) if grid else [],
        )
        manifest.reach[subquery.exchange] = reach[subquery.exchange]
    return manifest


def _refuse(plan: Plan, manifest: Manifest, what: str) -> None:
    """Raises StateError if the manifest is not of this query set; `what` names it."""
    refuse_other(manifest, plan.identity, what)
    # Entries of subqueries without state may be left of sinks that the query set no longer has
    keeping = {name for name, record in manifest.subqueries.items() if record.shelf}
    keeping |= {ref.subquery for ref in manifest.held}
    for name in sorted(keeping - plan.subqueries.keys()):
        raise StateError(
            f"{what} has state of a subquery '{name}', which the plan of this query set does not "
            f"have. Existing: {', '.join(plan.subqueries)}. Was its manifest changed by hand? "
            "Restore it from a copy, or start with a new checkpoint folder."
        )
