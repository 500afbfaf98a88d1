"""The controller's view as data frames, for people who look at it."""

from __future__ import annotations

import numpy as np
import polars as pl

from anabranch.adapt.view import View


def of_sites(view: View) -> pl.DataFrame:
    """A row for each site: seconds and rows of an epoch, bytes of state."""
    sites = view.sites
    idle = np.maximum(view.seconds - sites.busy, 0.0)
    return pl.DataFrame(
        {
            "site": np.arange(len(sites)),
            "busy": sites.busy,
            "idle": idle,
            "waiting": sites.waiting,
            "rows": sites.rows,
            "slowness": sites.slowness,
            "resident": sites.resident,
            "spilled": sites.spilled,
            "budget": sites.memory,
            "held": sites.held,
            "alive": sites.alive,
            "executor": list(sites.executors) or [""] * len(sites),
        }
    )


def of_partitions(view: View) -> pl.DataFrame:
    """A row for each partition: rows and time of an epoch, bytes of state, where it is."""
    known = view.partitions
    return pl.DataFrame(
        {
            "exchange": [view.exchanges[at] for at in known.exchange],
            "partition": known.start,
            "slots": known.slots,
            "site": known.site,
            "rows_in": known.rows_in,
            "rows_out": known.rows_out,
            "seconds": known.work,
            "share": view.share,
            "bytes": known.bytes,
            "spilled": known.aside,
            "last_use": known.last_use,
            "fullest_slot": known.peak_at,
            "fixed": known.fixed,
        }
    )
