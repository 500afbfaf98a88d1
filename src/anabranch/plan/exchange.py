"""An exchange: rows brought to the sites, by one partition map for all subqueries behind it."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.language.numbered import Numbered
from anabranch.plan.subquery import IN_GRID, Subquery


@dataclass(frozen=True)
class Exchange:
    """Rows brought to the sites: a partition of it moves for all its members at once."""

    name: str
    """That of the subquery that opened it."""
    members: tuple[Subquery, ...]
    """The subqueries behind it, which run on its partitions; the first opened it."""

    @property
    def level(self) -> int:
        return self.members[0].level

    @property
    def spread(self) -> str:
        """How rows are spread over its partitions."""
        return self.members[0].spread

    @property
    def in_grid(self) -> bool:
        """Whether its slots are cells in which rows of two inputs meet: these cannot be cut."""
        return self.spread == IN_GRID

    @property
    def in_step(self) -> bool:
        """Whether its rows are numbered for a join within a number of rows.

        They must not wait: numbers of one input would come to the join before those of the other.
        """
        return any(isinstance(member.node, Numbered) for member in self.members)

    @property
    def combines(self) -> bool:
        """Whether senders may sub-aggregate for one of its members."""
        return any(member.combines for member in self.members)
