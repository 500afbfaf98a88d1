"""What waits before the exchanges of a run: for sites that are slow, for moves to end, or for the user.

The rows themselves are in files that the manifest names; here is chosen which partitions' rows join them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from anabranch.adapt.policies.holding import MOST_EPOCHS, choose_holds, slow_sites
from anabranch.adapt.view import View
from anabranch.plan.plan import Plan
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import intersect
from anabranch.settings import NONE, SHARED, Settings
from anabranch.state.manifest import HeldRef, Manifest


class SkewBuffer:
    """Which partitions' rows wait, within the space that the settings give."""

    def __init__(self, plan: Plan, settings: Settings) -> None:
        self._kind, self._space = settings.skew_buffer, float(settings.skew_buffer_bytes)
        self._never = [one.name for one in plan.exchanges.values() if one.in_grid or one.in_step]
        self._slow: set[tuple[str, int]] = set()
        """Partitions whose rows wait because their site is slow."""
        self._given_up: dict[int, set[int]] = {}
        """Sites of each level that have been slow for longer than rows may wait."""
        self._rows = np.zeros(0)
        self._warnings: list[str] = []
        self.stopped: set[tuple[str, int]] = set()
        """Partitions whose rows wait because the user wants them to."""

    def rows(self, sites: int) -> np.ndarray:
        """How many rows wait for each site."""
        return self._rows if len(self._rows) == sites else np.zeros(sites)

    def waiting(
        self, maps: Mapping[str, PartitionMap], paused: Iterable[tuple[str, int]]
    ) -> dict[str, list[tuple[int, int]]]:
        """The slots of each exchange whose rows wait in the next epoch: those of paused partitions too."""
        found: dict[str, list[tuple[int, int]]] = {}
        for exchange, start in sorted({*paused, *self._slow, *self.stopped}):
            first, end = maps[exchange].range_at(start)
            if first == start:
                found.setdefault(exchange, []).append((first, end))
        return found

    def forget_slow(self) -> None:
        """Lets go what waits for slow sites."""
        self._slow = set()

    def resize(self) -> None:
        """Goes on with other sites, of which nothing is known."""
        self._slow, self._given_up = set(), {}

    def choose(
        self, views: Mapping[int, View], urgent: Collection[int], manifest: Manifest,
        maps: Mapping[str, PartitionMap], sites: int, all_stay: bool,
    ) -> None:  # fmt: skip
        """Chooses what waits for slow sites, given the view of each level, for levels where it is urgent.

        When the space is full, all is let go.
        """
        waited = {
            (exchange, hold.first): manifest.epoch - hold.since + 1
            for exchange, holds in manifest.holds.items()
            for hold in holds
        }
        self._give_up(views, waited, manifest)
        self._slow, self._warnings = set(), []
        self._rows = _by_site(manifest, maps, sites)
        left = self._space - sum(
            ref.bytes for ref in manifest.held if not _for_state(ref, manifest)
        )
        if left < 0:
            self._warnings = ["what waits for sites exceeds skew_buffer_bytes: all of it goes on"]
            self.stopped.clear()
            return
        if self._kind == NONE:
            return
        for level in urgent:
            view = views[level]
            records = [manifest.subqueries[exchange] for exchange in view.exchanges]
            rows = sum(record.rows_received for record in records)
            each = max(1.0, sum(record.bytes_received for record in records) / max(1, rows))
            chosen, count = choose_holds(
                view, left / each, waited, shared=self._kind == SHARED, all_stay=all_stay,
                given_up=self._given_up[level], never=self._never,
            )  # fmt: skip
            self._slow |= chosen
            left -= count * each

    def _give_up(
        self, views: Mapping[int, View], waited: Mapping[tuple[str, int], int], manifest: Manifest
    ) -> None:
        """Notes the sites that stayed slow for longer than rows may wait, until they are fast again."""
        late = [name for name in self._slow if waited.get(name, 0) >= MOST_EPOCHS]
        for level, view in views.items():
            found = self._given_up.setdefault(level, set())
            for exchange, start in late:
                if exchange in view.exchanges:
                    known = manifest.exchanges[exchange].map()
                    found.add(known.sites[known.partition_at(start)])
            slow = slow_sites(view)
            found &= {*np.flatnonzero(slow).tolist()}

    def describe(self, manifest: Manifest) -> dict[str, Any]:
        """What waits now."""
        return {
            "waiting": [
                {"exchange": exchange, "first": hold.first, "end": hold.end, "since": hold.since}
                for exchange, holds in manifest.holds.items()
                for hold in holds
            ],
            "waitingRows": sum(ref.rows for ref in manifest.held),
            "warnings": self._warnings,
        }


def _for_state(ref: HeldRef, manifest: Manifest) -> bool:
    """Whether rows wait for state that is put aside: that is not for this buffer to decide."""
    aside = [(one.first, one.end) for one in manifest.reach[ref.exchange].spilled if not one.cuts]
    return bool(intersect(sorted(ref.slots), sorted(aside)))


def _by_site(manifest: Manifest, maps: Mapping[str, PartitionMap], sites: int) -> np.ndarray:
    """The rows that wait for each site, those of a file taken as spread evenly over its slots."""
    found = np.zeros(sites)
    for ref in manifest.held:
        slots = np.concatenate([np.arange(first, end) for first, end in ref.slots])
        owners = maps[ref.exchange].site_of(slots)
        found += np.bincount(owners, minlength=sites)[:sites] * ref.rows / len(slots)
    return found
