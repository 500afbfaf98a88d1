"""Where senders sub-aggregate all that they send: only where each of them would shrink its rows (Q6)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from anabranch.adapt.actions import Combine
from anabranch.amount import several

ENOUGH = 0.75
"""Of the reduction that was asked for, what has to be left for senders to go on."""


@dataclass(frozen=True)
class Intake:
    """What came to a subquery in an epoch that senders may sub-aggregate for."""

    exchange: str
    rows: int
    groups: int
    senders: int
    before: int
    """Rows that senders sub-aggregated."""
    after: int
    """What they made of them."""


def propose_combine(
    combining: Collection[str], intakes: Mapping[str, Intake], reduction: float
) -> Iterator[Combine]:
    """To begin where it pays, and to end where it does not; `combining` are those it is done for now."""
    for name, seen in intakes.items():
        if name in combining:
            if seen.before < reduction * ENOUGH * seen.after:
                cause = f"combine: {seen.before:,} rows became {seen.after:,}"
                yield Combine(seen.exchange, 0, cause, subquery=name, on=False)
        # With so many rows per group over all senders, each has at least the wanted reduction
        elif seen.groups > 0 and seen.rows / seen.groups >= reduction * seen.senders:
            cause = (
                f"combine: {seen.rows:,} rows of {seen.groups:,} groups from "
                f"{several(seen.senders, 'sender')}"
            )
            yield Combine(seen.exchange, 0, cause, subquery=name, on=True)
