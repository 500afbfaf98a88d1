"""How the governor is set up in experiments: with Flux's rules as published, or ours that tune themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from anabranch.control.governor import Governor
from anabranch.control.manner import Manner
from anabranch.language.node import Stream
from anabranch.plan.plan import Plan
from anabranch.plan.subquery import Subquery
from anabranch.routing.partition_map import even_map
from anabranch.settings import Settings
from anabranch.simulate.cluster import Cluster
from anabranch.state.manifest import ExchangeRecord, Manifest, SubqueryRecord
from anabranch.state.segment import NEVER, SegmentRef, along
from anabranch.state.shelf import Shelf

EXCHANGE = "rows"
LEAST, MOST = 0.01, 2.0
"""Seconds of the shortest collection, as in Flux, and of the longest when tuned by itself."""
NO_LIMIT = 1 << 62
"""Bytes that may move in a round: as many as it takes."""
SIMULATED = Manner(far=True, in_turn=True, fetch_first=False, warm_up=0, doubt=0.0)
"""Flux's movement: a partition is paused first, and moves are all done before the next figures count. There
are no workers that start, and no site takes longer than its rows do."""
AS_PUBLISHED = replace(SIMULATED, convinced=0, least_gain=0.0)
"""The same, and every round decides: Flux knows no gain that is too small."""


def as_published(policy: str = "load", least: float = LEAST) -> Settings:
    """Flux's thresholds 1.2 and 0.9, the given δ_min, and nothing that keeps partitions from returning."""
    return _settings(policy, self_tuning=False, least_collection_seconds=least)


def self_tuning(policy: str = "load") -> Settings:
    """Told nothing but between which lengths a collection may be."""
    return _settings(policy, self_tuning=True, least_collection_seconds=LEAST)


def _settings(policy: str, self_tuning: bool, least_collection_seconds: float) -> Settings:
    return Settings(
        policy=policy, self_tuning=self_tuning, least_collection_seconds=least_collection_seconds,
        most_collection_seconds=MOST, moved_bytes_per_epoch=NO_LIMIT, split_partitions=False,
        least_gain_seconds=0.0, site_memory_bytes=NO_LIMIT,
    )  # fmt: skip


def govern(cluster: Cluster, settings: Settings, manifest: Manifest) -> Governor:
    """The governor of a simulated cluster."""
    manner = SIMULATED if settings.self_tuning else AS_PUBLISHED
    return Governor(the_plan(), settings, cluster.sites, manifest, manner)


def the_plan() -> Plan:
    """One subquery behind one exchange: what it computes does not matter, only what it costs."""
    node = Stream(EXCHANGE, pl.Schema(), None)
    only = Subquery(EXCHANGE, node, (), EXCHANGE, exchange=EXCHANGE, level=1)
    return Plan({}, {EXCHANGE: only}, (), {})


def begin_with(cluster: Cluster) -> Manifest:
    """The manifest of a simulated cluster: one exchange, evenly over the sites, and its state."""
    known = even_map(cluster.partitions, cluster.sites)
    state = SegmentRef(
        file="", batch=0, table="", tier=0, min_due=NEVER, max_due=NEVER, checksum=0,
        rows=cluster.partitions * cluster.partition_rows,
        bytes=cluster.partitions * cluster.partition_bytes, live=((0, known.slots),),
        along=along(np.full(known.slots, cluster.partition_rows)), born=(0, 0),
    )  # fmt: skip
    return Manifest(
        run_id="", epoch=-1, sites=cluster.sites, committed_at=0.0, identity={}, streams={},
        watermarks={},
        exchanges={EXCHANGE: ExchangeRecord(sites=list(known.sites), slots=known.slots)},
        subqueries={EXCHANGE: SubqueryRecord(exchange=EXCHANGE, shelf=Shelf([state]))},
    )  # fmt: skip
