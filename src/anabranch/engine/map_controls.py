"""What all that is done to a run by hand stands on: its maps, its partitions, and the lock to change them."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anabranch.control.governor import Governor
from anabranch.engine.commit import Checkpoint
from anabranch.errors import RunError, suggest
from anabranch.plan.plan import Plan
from anabranch.routing.partition_map import PartitionMap


class MapControls:
    """A run as those see it who change where its partitions are."""

    plan: Plan
    _checkpoint: Checkpoint
    _governor: Governor

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Keeps the run from changing its maps meanwhile; refuses if it has ended."""
        if not self.is_active:
            raise RunError("This run has ended: there is no next epoch to change anything for.")
        with self._governor.changing:
            yield

    @property
    def is_active(self) -> bool:
        raise NotImplementedError

    def partition_map(self, subquery: str) -> PartitionMap:
        """The sites of a subquery's partitions, as they are in the next epoch."""
        if str(subquery) not in self.plan.subqueries:
            raise RunError(
                f"There is no subquery '{subquery}'.{suggest(subquery, self.plan.subqueries)}"
            )
        return self._governor.maps[self.plan.subqueries[subquery].exchange]

    @property
    def sites(self) -> int:
        """How many sites the next epoch has."""
        return self._governor.sites

    @property
    def pins(self) -> dict[str, dict[int, int]]:
        """The sites that partitions are pinned to: by exchange and first slot."""
        return self._governor.pins

    def _subject(self, subquery: str, partition: int) -> tuple[str, int]:
        """A partition that there is, as its exchange and first slot."""
        known = self.partition_map(subquery)
        partition = whole("partition", partition)
        if partition not in known.starts:
            raise RunError(
                f"'{subquery}' has no partition that begins at slot {partition}; the nearest begins at "
                f"{known.starts[known.partition_at(max(0, min(partition, known.slots - 1)))]}. "
                f"run.partition_map('{subquery}').starts has all of them."
            )
        return self.plan.subqueries[subquery].exchange, partition


def whole(what: str, value: Any) -> int:
    """The value, if it is a whole number."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError as error:
        raise RunError(f"Expected a whole number for {what}, got {value!r}.") from error
