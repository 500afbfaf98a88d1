"""Every benchmark by its name. What they do is in their own modules."""

from __future__ import annotations

from collections.abc import Callable

from anabranch.bench.aggregate import run_aggregate
from anabranch.bench.balance import run_balance
from anabranch.bench.driver import run_driver
from anabranch.bench.hotjoin import run_hotjoin
from anabranch.bench.idle import run_idle
from anabranch.bench.join import run_join, run_multijoin
from anabranch.bench.kafka import run_kafka
from anabranch.bench.latency import run_latency
from anabranch.bench.nexmark import run_nexmark
from anabranch.bench.observe import run_observe
from anabranch.bench.overflow import run_overflow
from anabranch.bench.partitioning import run_partitioning
from anabranch.bench.plans import run_plans
from anabranch.bench.reorder import run_reorder
from anabranch.bench.result import Result
from anabranch.bench.scale import run_scale
from anabranch.bench.scaleout import run_scaleout
from anabranch.bench.sharing import run_sharing
from anabranch.bench.skew import run_skew
from anabranch.bench.spill import run_spill
from anabranch.bench.start import run_start
from anabranch.bench.state_growth import run_state_growth
from anabranch.bench.store import run_store
from anabranch.bench.strategies import run_strategies
from anabranch.bench.theta import run_theta
from anabranch.bench.timeline import run_timeline
from anabranch.bench.topn import run_topn
from anabranch.bench.zipf import run_dataframe, run_zipf
from anabranch.observe.steps import Steps

Benchmark = Callable[[bool, Steps], Result]
BENCHMARKS: dict[str, Benchmark] = {
    "aggregate": run_aggregate,
    "state-growth": run_state_growth,
    "latency": run_latency,
    "join": run_join,
    "multijoin": run_multijoin,
    "hotjoin": run_hotjoin,
    "timeline": run_timeline,
    "zipf": run_zipf,
    "dataframe": run_dataframe,
    "start": run_start,
    "reorder": run_reorder,
    "plans": run_plans,
    "partitioning": run_partitioning,
    "strategies": run_strategies,
    "sharing": run_sharing,
    "driver": run_driver,
    "theta": run_theta,
    "topn": run_topn,
    "balance": run_balance,
    "skew": run_skew,
    "spill": run_spill,
    "overflow": run_overflow,
    "idle": run_idle,
    "observe": run_observe,
    "kafka": run_kafka,
    "store": run_store,
    "scaleout": run_scaleout,
    "nexmark": run_nexmark,
    "scale": run_scale,
}
