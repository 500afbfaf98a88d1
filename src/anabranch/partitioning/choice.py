"""What a search for the best partitioning found, and the text that says so."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from anabranch.partitioning.cost import PlanCost
from anabranch.partitioning.partitioning_set import PartitioningSet


@dataclass(frozen=True)
class Candidate:
    """A set that was considered."""

    partitioning: PartitioningSet
    origin: str
    """What it was made for: a node, nodes reconciled, the way the input comes, a permitted set."""
    cost: PlanCost
    skew: float | None = None
    """The estimate of its imbalance, 1 for none; asked for only where costs are equal."""


@dataclass(frozen=True)
class Part:
    """The choice for streams that meet in some query, and so depend on each other."""

    streams: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    """All that were considered, best first."""
    reason: str
    complete: bool
    """Whether there were no more candidates to consider."""

    @property
    def winner(self) -> Candidate:
        return self.candidates[0]

    def pinned(self, texts: Collection[str]) -> Part:
        """The part with the candidate first whose axes are among these."""
        known = [one for one in self.candidates if one.partitioning.texts <= set(texts)]
        if not known:
            return self
        chosen = max(known, key=lambda one: len(one.partitioning))
        rest = tuple(one for one in self.candidates if one is not chosen)
        return replace(
            self, candidates=(chosen, *rest), reason="As it was chosen when the run first started."
        )

    def explain(self) -> str:
        best = self.winner
        lines = [
            f"Partitioning of {', '.join(self.streams)}: {best.partitioning}",
            f"  {self.reason}",
        ]
        if not best.partitioning.axes:
            lines.append("  Rows are spread evenly over the sites.")
        lines.append(
            "  Considered, with the bytes an epoch that one site must receive at each node:"
        )
        width = max(len(str(candidate.partitioning)) for candidate in self.candidates)
        for candidate in self.candidates:
            mark = "*" if candidate is best else " "
            skew = "" if candidate.skew is None else f", skew {candidate.skew:.2f}"
            lines.append(
                f"  {mark} {candidate.partitioning!s:{width}}  {candidate.cost.most:>16,.0f}{skew}"
                f"  for {candidate.origin}"
            )
            lines.append(f"      {_per_node(candidate.cost)}")
        if not self.complete:
            lines.append("  There are more; the search ended at its limit, cheapest sets first.")
        return "\n".join(lines)


@dataclass(frozen=True)
class Choice:
    """The partitioning of all streams; streams that never meet were chosen for apart."""

    parts: tuple[Part, ...]

    @property
    def partitioning(self) -> PartitioningSet:
        return PartitioningSet(
            tuple(axis for part in self.parts for axis in part.winner.partitioning.axes)
        )

    @property
    def texts(self) -> list[str]:
        """The axes by name, to remember the choice by."""
        return sorted(self.partitioning.texts)

    def pinned(self, texts: Collection[str]) -> Choice:
        """The same candidates, with those first that an earlier choice had made."""
        return Choice(tuple(part.pinned(texts) for part in self.parts))

    @property
    def cost(self) -> float:
        """The most bytes an epoch that any one site must receive."""
        return max((part.winner.cost.most for part in self.parts), default=0.0)

    def explain(self) -> str:
        """The choice, why, and everything that was considered, to be read top to bottom."""
        return "\n\n".join(part.explain() for part in self.parts)


def _per_node(cost: PlanCost) -> str:
    parts = [
        f"{name} {value:,.0f}{' (unsuited)' if name in cost.unsuited else ''}"
        for name, value in cost.received.items()
    ]
    return ", ".join(parts)
