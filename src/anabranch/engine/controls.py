"""What a user may do by hand with a running query set: move, pin, pause, another number of sites.

All of it takes effect with the next epoch and leaves every result as it is.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl

from anabranch.adapt.actions import Move
from anabranch.control.governor import Governor
from anabranch.control.seen import of_partitions, of_sites
from anabranch.engine.commit import Checkpoint
from anabranch.engine.options import RunOptions
from anabranch.errors import RunError, suggest
from anabranch.plan.plan import Plan
from anabranch.routing.partition_map import PartitionMap
from anabranch.settings import NONE


class Controls:
    """The part of a run's handle that steers it."""

    plan: Plan
    options: RunOptions
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

    def repartition(self, subquery: str, partition_map: PartitionMap) -> None:
        """Gives a subquery another map of partitions to sites, from the next epoch on.

        Subqueries without an exchange between them have one map: it changes for all of them.
        """
        with self._changing():
            known = self.partition_map(subquery)
            if not isinstance(partition_map, PartitionMap):
                raise RunError(
                    f"Expected a map as run.partition_map('{subquery}') gives it, got {partition_map!r}."
                )
            exchange = self.plan.subqueries[subquery].exchange
            alike = (partition_map.slots, partition_map.cells) == (known.slots, known.cells)
            numbers = [whole("site", site) for site in partition_map.sites]
            if not alike or not 0 <= min(numbers) <= max(numbers) < self.sites:
                raise RunError(
                    f"The new map of '{subquery}' must have {known.slots} slots on at most "
                    f"{self.sites} sites: make it of run.partition_map('{subquery}')."
                )
            for start, site in self.pins.get(exchange, {}).items():
                number = partition_map.partition_at(start)
                owner, first = partition_map.sites[number], partition_map.starts[number]
                # On its way to its site it is elsewhere, and may stay there until it has come
                here = known.sites[known.partition_at(start)]
                gone = site >= self.sites or not self._governor.alive[site]
                if first != start or not (gone or owner in (site, here)):
                    raise RunError(
                        f"The new map of '{subquery}' has partition {start} elsewhere, which is pinned "
                        f"to site {site}: unpin it first, or leave it there."
                    )
            self._governor.by_hand.add(exchange)
            self._governor.holdings.give(
                {exchange: partition_map}, "another map", self._checkpoint.manifest.epoch
            )

    @property
    def sites(self) -> int:
        """How many sites the next epoch has."""
        return self._governor.sites

    @property
    def pins(self) -> dict[str, dict[int, int]]:
        """The sites that partitions are pinned to: by exchange and first slot."""
        return self._governor.pins

    @property
    def paused(self) -> list[tuple[str, int]]:
        """The partitions whose rows wait until `resume`: their exchanges and first slots."""
        return sorted(self._governor.stopped)

    def view(self) -> dict[int, dict[str, pl.DataFrame]]:
        """What the controller last saw of each level: its sites and its partitions, as data frames."""
        with self._governor.changing:
            found = self._governor.views()
        return {
            level: {"sites": of_sites(v), "partitions": of_partitions(v)}
            for level, v in found.items()
        }

    def history(self) -> list[dict[str, Any]]:
        """Every decision so far, oldest first: what, why, how much, how long, with what effect."""
        return [decision.plain() for decision in self._governor.history]

    def rebalance(self) -> list[dict[str, Any]]:
        """Evens out the load by what has been measured so far, whatever the setting `policy` waits for.

        Returns the decisions; they take effect with the next epoch.
        """
        with self._changing():
            made = self._governor.rebalance(self._checkpoint.manifest)
        return [decision.plain() for decision in made]

    def release(self, subquery: str) -> None:
        """Gives an exchange that `repartition` took over back to the controller."""
        with self._changing():
            self.partition_map(subquery)
            exchange = self.plan.subqueries[subquery].exchange
            if exchange not in self._governor.by_hand:
                raise RunError(f"The map of '{subquery}' was not made by hand.")
            self._governor.by_hand.discard(exchange)

    def move(self, subquery: str, partition: int, site: int) -> None:
        """Moves a partition, told by its first slot, to a site from the next epoch on."""
        with self._changing():
            move = self._move(subquery, partition, site, "asked for")
            pinned = self._governor.holdings.pins.get(move.subject)
            if pinned not in (None, site):
                raise RunError(
                    f"Partition {partition} of '{subquery}' is pinned to site {pinned}: unpin it first, "
                    "or pin it to another site."
                )
            if not self._governor.alive[site]:
                raise RunError(
                    f"Site {site} is gone now: move the partition to another one, or pin it there for "
                    "when the site is back."
                )
            if move.source != move.target:
                self._governor.holdings.request([move], self._checkpoint.manifest.epoch)

    def pin(self, subquery: str, partition: int, site: int) -> None:
        """Moves a partition to a site and keeps it there, through restarts too, until `unpin`.

        If the site is gone, it goes there when the site is back.
        """
        with self._changing():
            move = self._move(subquery, partition, site, "pinned")
            if move.source != move.target and self._governor.alive[site]:
                self._governor.holdings.request([move], self._checkpoint.manifest.epoch)
            self._governor.holdings.pins[move.subject] = site

    def unpin(self, subquery: str, partition: int) -> None:
        """Lets a pinned partition move again."""
        with self._changing():
            self.partition_map(subquery)
            subject = (self.plan.subqueries[subquery].exchange, whole("partition", partition))
            if self._governor.holdings.pins.pop(subject, None) is None:
                raise RunError(f"Partition {partition} of '{subquery}' is not pinned.")

    def pause(self, subquery: str, partition: int) -> None:
        """Lets the rows of a partition wait before its exchange, from the next epoch on, until `resume`.

        Results of its groups come later, none is lost. What waits is bounded: when it exceeds the setting
        `skew_buffer_bytes`, all of it goes on.
        """
        with self._changing():
            subject = self._subject(subquery, partition)
            if subject[0] in self._governor.grids:
                raise RunError(
                    f"'{subquery}' is a grid: each row is in several cells, none can wait."
                )
            if self.plan.exchanges[subject[0]].in_step:
                raise RunError(
                    f"'{subquery}' numbers the rows of an input of a join within a number of rows, in step "
                    "with those of the other: none can wait."
                )
            if self.options.settings.skew_buffer == NONE:
                raise RunError("Nothing can wait: the setting skew_buffer is 'none'.")
            self._governor.stopped.add(subject)

    def resume(self, subquery: str, partition: int) -> None:
        """Lets the rows of a paused partition go."""
        with self._changing():
            self.partition_map(subquery)
            subject = (self.plan.subqueries[subquery].exchange, whole("partition", partition))
            if subject not in self._governor.stopped:
                raise RunError(f"Partition {partition} of '{subquery}' is not paused.")
            self._governor.stopped.discard(subject)

    def _move(self, subquery: str, partition: int, site: int, cause: str) -> Move:
        exchange, partition = self._subject(subquery, partition)
        if not 0 <= whole("site", site) < self.sites:
            raise RunError(
                f"There is no site {site}: this run has the sites 0 to {self.sites - 1}."
            )
        self._governor.holdings.transitions.moves.require_at_rest((exchange, partition))
        known = self.partition_map(subquery)
        source = known.sites[known.partition_at(partition)]
        return Move(exchange, partition, cause, source=source, target=whole("site", site))

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

    def set_sites(self, sites: int) -> None:
        """Goes on with another number of sites from the next epoch on; few partitions move."""
        if whole("sites", sites) < 1:
            raise RunError(f"A run needs at least one site; {sites} were asked for.")
        with self._changing():
            counts = [
                known.partitions
                for exchange, known in self._governor.maps.items()
                if exchange not in self._governor.grids
            ]
            fewest = min(counts, default=sites)
            if sites > fewest:
                raise RunError(
                    f"{sites} sites were asked for, but there are only {fewest} partitions to share: "
                    f"start with a larger partitions_per_site, or ask for at most {fewest} sites."
                )
            pinned = [site for pins in self.pins.values() for site in pins.values()]
            gone = [site for site in pinned if sites <= site < self.sites]
            if gone:
                raise RunError(
                    f"Partitions are pinned to site {gone[0]}, which would go: unpin them."
                )
            self._governor.resize(sites, self._checkpoint.manifest.epoch)


def whole(what: str, value: Any) -> int:
    """The value, if it is a whole number."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError as error:
        raise RunError(f"Expected a whole number for {what}, got {value!r}.") from error
