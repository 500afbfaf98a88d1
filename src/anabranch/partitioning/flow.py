"""Rows and bytes an epoch, as people are shown them, and how far they can be trusted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from anabranch.partitioning.cost import Rates, rows_out
from anabranch.partitioning.tree import NeedTree

ASSUMED, SAMPLED, COUNTED = "assumed", "sample", "run"
"""Where figures come from, the least trustworthy first."""

_TRUST = (ASSUMED, SAMPLED, COUNTED)


@dataclass(frozen=True)
class Flow:
    """What a stream or node yields in an epoch."""

    rows: float
    bytes: float
    basis: str
    """What the figures rest on: `assumed`, `sample` or `run`."""

    def share(self, part: float) -> Flow:
        return Flow(self.rows * part, self.bytes * part, self.basis)


def flows_of(
    tree: NeedTree, rates: Mapping[str, Rates], sampled: Collection[str], counted: Collection[str]
) -> dict[str, Flow]:
    """The flow of every stream and node; `sampled` and `counted` are those whose rates were measured.

    What follows from several figures is trusted as much as the worst of them.
    """
    found: dict[str, Flow] = {}
    for name, rows in rows_out(tree, rates).items():
        own = COUNTED if name in counted else SAMPLED if name in sampled else ASSUMED
        # Rows that a run has counted do not depend on those below
        below = () if name in counted else tree.inputs.get(name, ())
        worst = min((own, *(found[part].basis for part in below)), key=_TRUST.index)
        found[name] = Flow(rows, rows * rates[name].bytes_per_row, worst)
    return found
