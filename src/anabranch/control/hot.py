"""Hot slots: what is done about single keys that are too much for any site.

Before aggregates, senders sub-aggregate the rows of such a slot (*condensed*). Rows of inner joins meet in
cells instead (*scattered*): the owner of the slot takes its state there at the end of an epoch, and from the
next one on rows are sent there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from anabranch.language.join import Join
from anabranch.plan.exchange import Exchange
from anabranch.plan.plan import Plan
from anabranch.plan.subquery import BY_TERMS
from anabranch.routing.grid import Scattered, choose_grid
from anabranch.routing.locator import MAX_SLOTS
from anabranch.routing.partition_map import PartitionMap
from anabranch.state.manifest import Manifest

CONDENSED = 20
"""Epochs after which a slot is no longer condensed if that does not make fewer rows."""
WORTHWHILE = 2.0
"""Rows before condensing against those after it."""


class HotSlots:
    """The slots of a run that are condensed, and those that are to be scattered."""

    def __init__(self, plan: Plan, maps: Mapping[str, PartitionMap], manifest: Manifest) -> None:
        self.combining = {one.name for one in plan.exchanges.values() if one.combines}
        """The exchanges before aggregates."""
        self.scatterable = {
            one.name: maps[one.name].hashed for one in plan.exchanges.values() if _can_scatter(one)
        }
        """The exchanges whose hot keys can be scattered, with the number of their slots."""
        self._condensed: dict[tuple[str, int], int] = {}
        self._next: dict[str, list[Scattered]] = {}
        self._known = {
            (name, one.slot)
            for name, record in manifest.exchanges.items()
            for one in record.scattered
        }

    def condense(self, exchange: str, slot: int, epoch: int) -> None:
        """Has senders sub-aggregate the rows of a slot from the next epoch on."""
        self._condensed[exchange, slot] = epoch

    @property
    def handled(self) -> Collection[tuple[str, int]]:
        """The exchanges and slots that something is done about already."""
        return self._condensed.keys() | self._known

    def renew(self, measured: Mapping[str, tuple[int, int]], epoch: int, reduction: float) -> None:
        """Keeps condensing where that makes fewer rows of many: those before and after are measured."""
        for exchange, slot in self._condensed:
            before, after = measured.get(exchange, (0, 0))
            if after and before >= min(reduction, WORTHWHILE) * after:
                self._condensed[exchange, slot] = epoch

    def condensed(self, epoch: int) -> dict[str, tuple[tuple[int, int], ...]]:
        """The slots whose rows senders sub-aggregate in an epoch."""
        found: dict[str, list[tuple[int, int]]] = {}
        for (exchange, slot), since in list(self._condensed.items()):
            if epoch - since > CONDENSED:
                del self._condensed[exchange, slot]
            else:
                found.setdefault(exchange, []).append((slot, slot + 1))
        return {exchange: tuple(sorted(slots)) for exchange, slots in found.items()}

    def scatter(
        self, exchange: str, slot: int, sites: tuple[int, ...], known: PartitionMap
    ) -> PartitionMap:
        """Sets out to scatter a slot with the next epoch: the map with its cells."""
        handled = (exchange, slot) in self._known
        self._known.add((exchange, slot))
        if handled or known.slots + len(sites) > MAX_SLOTS:
            return known
        bands = choose_grid(len(sites)).bands
        self._next.setdefault(exchange, []).append(Scattered(slot, known.slots, bands))
        return known.with_cells(sites)

    def take_next(self, apart: Collection[str]) -> dict[str, tuple[Scattered, ...]]:
        """What is scattered in this epoch; nothing yet of these exchanges: slots wait or are put aside."""
        now = {
            exchange: tuple(some) for exchange, some in self._next.items() if exchange not in apart
        }
        self._next = {exchange: some for exchange, some in self._next.items() if exchange in apart}
        return now


def _can_scatter(exchange: Exchange) -> bool:
    """Whether an exchange serves one inner join of two inputs by equal keys, and nothing else."""
    node = exchange.members[0].node
    return (
        len(exchange.members) == 1
        and isinstance(node, Join)
        and node.kind == "inner"
        and len(node.parts) == 2
        and node.rows is None
        and exchange.spread == BY_TERMS
    )
