"""What an epoch costs the driver as sites and epochs grow: real ledger, real governor, made-up tasks.

Tasks report what those of a cluster would (`bench/made_up.py`). Orders are put together and pickled, reports
decoded, as with Spark. What the made-up tasks themselves take is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import numpy as np

from anabranch.bench.made_up import PARTITIONS, SEGMENTS, WINDOW, Driven, Faked, MadeUp
from anabranch.bench.measure import load, machine
from anabranch.bench.result import Result
from anabranch.engine.run import Run
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.settings import MOVING_STATE

SITES = (8, 64, 256, 1024)
EPOCHS = 40
WARM_UP = 10
LONG = 5_000
LONG_SITES = 8
PREPARED = 2
"""The epoch before which a run is brought to what its case is about."""
BAR = 0.5
WINDOWS = {
    "flows": f"SELECT tb, srcIP, SUM(len) AS bytes FROM packets GROUP BY time/{WINDOW} AS tb, srcIP",
    "heavy": "SELECT tb, bytes, COUNT(*) AS n FROM flows GROUP BY tb, bytes",
}
THREE = f"""
    SELECT a.time AS at, a.srcIP, b.len AS second, c.len AS third FROM packets a
    JOIN packets b ON a.srcIP = b.srcIP AND b.time BETWEEN a.time - {WINDOW} AND a.time + {WINDOW}
    JOIN packets c ON a.srcIP = c.srcIP AND c.time BETWEEN a.time - {WINDOW} AND a.time + {WINDOW}
        AND c.time BETWEEN b.time - {WINDOW} AND b.time + {WINDOW}"""
NEAR = f"""
    SELECT a.time AS at, a.len AS shorter, b.len AS longer FROM packets a
    JOIN packets b ON a.len < b.len AND b.time BETWEEN a.time - {WINDOW} AND a.time + {WINDOW}"""
SHAPES = ("((0,1),2)", "(0,(1,2))", "(0,1,2)", "((0,2),1)")
"""Those of neighbouring partitions, in turn."""


def put_half_aside(run: Run) -> None:
    """Every second partition, for good."""
    spilling = run._governor.holdings.spilling
    for name in run.plan.exchanges:
        known = run.partition_map(name)
        slots = [known.range_at(start) for start in known.starts[::2]]
        spilling.spill(name, slots)
        spilling.keep_aside(name, slots)


def give_shapes(run: Run) -> None:
    """Another shape to each partition than to its neighbours."""
    shapes = run._governor.holdings.shapes
    (join,) = shapes.inputs
    known = run.partition_map(join)
    slots = [known.range_at(start) for start in known.starts]
    for number, shape in enumerate(SHAPES):
        shapes.replan(join, slots[number :: len(SHAPES)], shape, MOVING_STATE)


PLAIN = Driven(WINDOWS)
CASES = {
    "aside": Driven(WINDOWS, put_half_aside, stays=True, segments=4),
    "shapes": Driven({"three": THREE}, give_shapes, segments=1, settings={"plans": "fixed"}),
    "grid": Driven({"near": NEAR}, segments=1),
}
"""What an epoch costs besides where not all is as simple."""
NOTES = (
    "Seconds are those of the driver from one epoch to the next, without its tasks: polling, orders and "
    "their bytes, reports, the commit, results, clearing away, control, progress. cpu_seconds is what its "
    "thread computed in them.",
    f"Every site writes a segment for each of {len(WINDOWS)} subqueries in every epoch, and they live "
    f"until there are {SEGMENTS:,}.",
    "aside: every second partition of both exchanges is put aside, and stays so. shapes: a join of three "
    "inputs has another shape in each partition than in its neighbours. grid: a join without equal keys.",
)


def run_driver(quick: bool, steps: Steps) -> Result:
    """Every number of sites, then many epochs on few; with `quick`, fewer of both."""
    counts, epochs, long = (SITES[:2], WARM_UP + 5, 200) if quick else (SITES, EPOCHS, LONG)
    steps.expect(len(counts) * (1 + len(CASES)) + 1)
    before = load()
    figures: dict[str, Any] = {
        "quick": quick,
        "partitions_per_site": PARTITIONS,
        "segments": SEGMENTS,
        "sites": {},
        **{name: {} for name in CASES},
    }
    for count in counts:
        steps.begin(f"{count:,} sites, {count * PARTITIONS:,} partitions")
        figures["sites"][str(count)] = time_of_driver(count, epochs, quick)
        for name, case in CASES.items():
            steps.begin(f"{count:,} sites, {name}")
            figures[name][str(count)] = time_of_driver(count, epochs, quick, case)
    steps.begin(f"{long:,} epochs on {LONG_SITES} sites")
    figures["long"] = _growth(_run(LONG_SITES, long, PLAIN))
    most = str(counts[-1])
    figures[f"seconds_{most}"] = figures["sites"][most]["seconds"]
    for name in CASES:
        figures[f"{name}_seconds_{most}"] = figures[name][most]["cpu_seconds"]
    growth = figures["long"]["seconds_ratio"]
    bars = (
        Bar(f"seconds_{most}", figures[f"seconds_{most}"], "<=", BAR),
        Bar("seconds of the last epochs against earlier ones", growth, "<=", 1.3),
    )
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("driver", figures, bars, NOTES, circumstances=circumstances)


def time_of_driver(sites: int, epochs: int, quick: bool, case: Driven = PLAIN) -> dict[str, Any]:
    """What so many epochs cost the driver, once as many segments go as come; with `quick`, before that."""
    warm = WARM_UP if quick else max(WARM_UP, case.lifetime(sites))
    return _told(_run(sites, warm + epochs, case), warm)


@dataclass(frozen=True)
class MeasuredEpochs:
    """What was measured, epoch by epoch."""

    seconds: list[float]
    cpu: list[float]
    orders: list[int]
    """Bytes that tasks are told."""
    entries: list[int]
    """Bytes of each entry of the ledger."""
    files: list[int]
    """Files in the checkpoint."""
    memory: list[int]
    """Bytes that the driver has resident."""


def _told(found: MeasuredEpochs, warm: int) -> dict[str, Any]:
    return {
        "seconds": round(median(found.seconds[warm:]), 4),
        "seconds_most": round(max(found.seconds[warm:]), 4),
        "cpu_seconds": round(median(found.cpu[warm:]), 4),
        "orders_bytes": round(median(found.orders[warm:])),
        "manifest_bytes": round(mean(found.entries[warm:])),
    }


def _growth(found: MeasuredEpochs) -> dict[str, Any]:
    """What of an epoch has grown from the time when all segments were there to the end."""
    tenth = len(found.cpu) // 10
    full = min(PLAIN.lifetime(LONG_SITES), len(found.cpu) // 2)
    early, late = slice(full, full + tenth), slice(-tenth, None)
    seconds = [round(median(found.cpu[part]), 5) for part in (early, late)]
    return {
        "epochs": len(found.cpu),
        "cpu_seconds": seconds,
        "seconds_ratio": round(seconds[1] / seconds[0], 3),
        "manifest_bytes": [round(mean(found.entries[part])) for part in (early, late)],
        "orders_bytes": [round(mean(found.orders[part])) for part in (early, late)],
        "files": [round(mean(found.files[part])) for part in (early, late)],
        "memory_bytes": [round(mean(found.memory[part])) for part in (early, late)],
    }


def _run(sites: int, epochs: int, case: Driven) -> MeasuredEpochs:
    """So many epochs of a run whose tasks are made up."""
    settings = {
        "partitions_per_site": PARTITIONS,
        "max_rows_per_epoch": 100,
        "fsync": False,
        "recent_progress": 10,
        **case.settings,
    }
    started = Event()

    def on_step(step: str, epoch: int) -> None:
        if case.prepare and (step, epoch) == ("begin", PREPARED):
            started.wait()
            case.prepare(run)

    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        transport = MadeUp(sites, Path(scratch), case)
        session = Faked(sites, settings, transport)
        session.stream("packets", generator="packets", rows=100 * (epochs + 1), ordered="time")
        for name, text in case.queries.items():
            session.query(name, text)
        sink = [*case.queries][-1]
        run = session.start(
            sinks={sink: lambda rows, epoch: None}, checkpoint=scratch, on_step=on_step
        )
        started.set()
        run.await_termination()
    wall, cpu = (np.diff(moments).tolist() for moments in transport.moments)
    return MeasuredEpochs(
        wall, cpu, transport.orders_bytes, transport.entries, transport.files, transport.memory
    )
