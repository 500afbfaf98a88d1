"""What sites take for rows, pairs and intermediates: the same in the simulator and in `bench plans`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Service:
    """The seconds that sites take."""

    row: float
    """For a row that comes in, on the site that takes it in."""
    pair: float
    """For a pair of rows that is looked at: results come of these."""
    intermediate: float
    """For a row of an intermediate that is made, put in its place and kept."""
    moved: float
    """For a row of state that came from another site: sent by one, put in its place by the other."""


SERVICE = Service(row=5.5e-3, pair=0.7e-3, intermediate=14e-3, moved=0.4e-3)
"""Chosen so that one site with half of the load cannot keep up and all together can, as in the paper."""
EPOCH = 2.0
"""Seconds of the streams that an epoch takes in."""
PARTITIONS = 15
"""Of each site: 105 of the paper's seven, which has 100."""
HALF = 0.5
"""The share of the load that one site of seven has at first, beside its part of the rest."""
