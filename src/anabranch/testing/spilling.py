"""What chaos does to the state of a run: it is put aside and brought together again, at any step."""

from __future__ import annotations

from anabranch.testing.disturbances import Disturbance, Meddling


def spill(it: Meddling) -> bool:
    """State of some partitions is put aside."""
    exchange = it.exchange()
    # What is owed at the end comes only if the streams end with it
    if not exchange or not it.run.options.close_at_end:
        return False
    known = it.run.plan.exchanges[exchange]
    record = it.run._checkpoint.manifest.exchanges[exchange]
    if known.in_grid or known.in_step or record.scattered:
        return False
    stopped = it.run._governor.stopped
    moving = it.run._governor.moving
    starts = [
        start
        for start in it.run.partition_map(exchange).starts
        if (exchange, start) not in stopped and (exchange, start) not in moving
    ]
    for start in it.draw.sample(starts, it.draw.choice([1, len(starts)])) if starts else ():
        it.run.spill(exchange, start)
    return bool(starts)


def clean_up(it: Meddling) -> bool:
    """What was put aside comes together again, all of it or some."""
    spilled = it.run._checkpoint.manifest.spilled
    if spilled:
        it.run.clean_up(it.draw.choice([None, *spilled]))
    return bool(spilled)


SPILLING: tuple[Disturbance, ...] = (spill, spill, clean_up) * 3
"""Those after which results are owed; often, for most cases have few rows that could meet."""
