"""What a search for the best partitioning found, and the text that says so."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from anabranch.amount import in_bytes, table
from anabranch.partitioning.cost import PlanCost
from anabranch.partitioning.flow import Flow
from anabranch.partitioning.partitioning_set import PartitioningSet

WIDTH = 110
"""Columns that a line of text should not exceed."""

SHOWN = 8
"""Candidates that are shown unless all are asked for."""

LONGEST = 48
"""Longer sets are cut in the table; the chosen one is written out above it."""


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
class ComponentChoice:
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

    def pinned(self, texts: Collection[str]) -> ComponentChoice:
        """The part with the candidate first whose axes are among these."""
        known = [one for one in self.candidates if one.partitioning.texts <= set(texts)]
        if not known:
            return self
        chosen = max(known, key=lambda one: len(one.partitioning))
        rest = tuple(one for one in self.candidates if one is not chosen)
        return replace(
            self, candidates=(chosen, *rest), reason="As it was chosen when the run first started."
        )

    def explain(self, verbose: bool = False) -> str:
        """The set, why, and what else was considered; `verbose` adds all of it, node by node."""
        best = self.winner
        lines = [f"Partitioning of {', '.join(self.streams)}: {best.partitioning}"]
        lines += textwrap.wrap(
            self.reason, WIDTH - 2, initial_indent="  ", subsequent_indent="  ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        if not best.partitioning.axes:
            lines.append("  Rows are spread evenly over the sites.")
        return "\n".join([*lines, *(f"  {line}" for line in self.considered(verbose))])

    def considered(self, verbose: bool = False) -> list[str]:
        """The candidates as a table, best first and the chosen one marked."""
        shown = self.candidates if verbose else self.candidates[:SHOWN]
        everywhere = self.winner.cost.everywhere
        amounts = ("to each site",) if everywhere else ("most to a site", "in all")
        rows = [("", "set", *amounts, "skew", "nodes on it", "made for")]
        for one in shown:
            cost, mark = one.cost, "*" if one is self.winner else ""
            skew = "" if one.skew is None else f"{one.skew:.1f}"
            nodes = f"{len(cost.suited)} of {len(cost.suited) + len(cost.unsuited)}"
            received = (cost.most,) if everywhere else (cost.most, cost.total)
            shown_set = _cut(str(one.partitioning))
            rows.append((mark, shown_set, *map(in_bytes, received), skew, nodes, one.origin))
        columns = table(rows, "<<" + ">" * (len(rows[0]) - 3) + "<")
        head, *lines = [_cut(line, WIDTH - 2) for line in columns]
        if verbose:
            parts = zip(lines, shown, strict=True)
            lines = [text for line, one in parts for text in (line, *_per_node(one.cost))]
        found = [head, *lines]
        if len(shown) < len(self.candidates):
            more = len(self.candidates) - len(shown)
            found.append(f"and {more} more that cost as much or more")
        if not self.complete:
            found.append("There are more; the search ended at its limit, cheapest sets first.")
        return found


@dataclass(frozen=True)
class Choice:
    """The partitioning of all streams; streams that never meet were chosen for apart."""

    parts: tuple[ComponentChoice, ...]
    flows: Mapping[str, Flow] = field(default_factory=dict)
    """What streams and nodes are expected to yield: the figures that the costs follow from."""

    @property
    def partitioning(self) -> PartitioningSet:
        return PartitioningSet(
            tuple(axis for part in self.parts for axis in part.winner.partitioning.axes)
        )

    @property
    def texts(self) -> list[str]:
        """The axes by name, to remember the choice by."""
        return sorted(self.partitioning.texts)

    def pinned(self, texts: Collection[str]) -> Choice | None:
        """The same candidates, with those first that an earlier choice had made; None if they are none."""
        pinned = replace(self, parts=tuple(part.pinned(texts) for part in self.parts))
        return pinned if pinned.partitioning.texts == set(texts) else None

    @property
    def cost(self) -> float:
        """The most bytes an epoch that any one site must receive."""
        return max((part.winner.cost.most for part in self.parts), default=0.0)

    def explain(self, verbose: bool = False) -> str:
        """The choice, why, and what was considered, to be read top to bottom."""
        return "\n\n".join(part.explain(verbose) for part in self.parts)


def _per_node(cost: PlanCost) -> list[str]:
    """The bytes an epoch that one site must receive at each node."""
    parts = [
        f"{name} {value:,.0f}{' (unsuited)' if name in cost.unsuited else ''}".replace(" ", "\0")
        for name, value in cost.received.items()
    ]
    # No break inside a part
    lines = textwrap.wrap(", ".join(parts), WIDTH - 8, break_on_hyphens=False)
    return ["      " + line.replace("\0", " ") for line in lines]


def _cut(text: str, width: int = LONGEST) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
