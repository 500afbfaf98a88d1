"""What a user may do by hand with a running query set: move, pin, pause, another number of sites.

All of it takes effect with the next epoch and leaves every result as it is.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from anabranch.adapt.actions import Move
from anabranch.control.seen import of_partitions, of_sites
from anabranch.engine.map_controls import whole
from anabranch.engine.options import RunOptions
from anabranch.engine.state_controls import StateControls
from anabranch.errors import RunError
from anabranch.routing.partition_map import PartitionMap
from anabranch.settings import NONE


class Controls(StateControls):
    """The part of a run's handle that steers it."""

    options: RunOptions

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
                here = known.site_at(start)
                gone = site >= self.sites or not self._governor.holdings.alive[site]
                if first != start or not (gone or owner in (site, here)):
                    raise RunError(
                        f"The new map of '{subquery}' has partition {start} elsewhere, which is pinned "
                        f"to site {site}: unpin it first, or leave it there."
                    )
            self._governor.holdings.by_hand.add(exchange)
            self._governor.holdings.give(
                {exchange: partition_map}, "another map", self._checkpoint.manifest.epoch
            )

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
            if exchange not in self._governor.holdings.by_hand:
                raise RunError(f"The map of '{subquery}' was not made by hand.")
            self._governor.holdings.by_hand.discard(exchange)

    def move(self, subquery: str, partition: int, site: int) -> None:
        """Moves a partition, told by its first slot, to a site from the next epoch on."""
        with self._changing():
            move = self._move(subquery, partition, site, "asked for")
            self._require_in_memory(subquery, partition)
            pinned = self._governor.holdings.pins.get(move.subject)
            if pinned not in (None, site):
                raise RunError(
                    f"Partition {partition} of '{subquery}' is pinned to site {pinned}: unpin it first, "
                    "or pin it to another site."
                )
            if not self._governor.holdings.alive[site]:
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
            if move.source != move.target:
                self._require_in_memory(subquery, partition)
            if move.source != move.target and self._governor.holdings.alive[site]:
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
            self._require_in_memory(subquery, partition)
            if subject[0] in self._governor.holdings.grids.current:
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
        source = self.partition_map(subquery).site_at(partition)
        return Move(exchange, partition, cause, source=source, target=whole("site", site))

    def set_sites(self, sites: int) -> None:
        """Goes on with another number of sites from the next epoch on; few partitions move."""
        if whole("sites", sites) < 1:
            raise RunError(f"A run needs at least one site; {sites} were asked for.")
        with self._changing():
            counts = [
                known.partitions
                for exchange, known in self._governor.maps.items()
                if exchange not in self._governor.holdings.grids.current
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
