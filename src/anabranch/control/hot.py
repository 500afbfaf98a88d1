"""Hot slots before aggregates: senders sub-aggregate the rows of single keys that are too much for any site.

What is done about hot keys of joins is in `scattering.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from anabranch.plan.plan import Plan

CONDENSED = 20
"""Epochs after which a slot is no longer condensed if that does not make fewer rows."""
WORTHWHILE = 2.0
"""Rows before condensing against those after it."""


class HotSlots:
    """The slots of a run that are condensed."""

    def __init__(self, plan: Plan) -> None:
        self.combining = {one.name for one in plan.exchanges.values() if one.combines}
        """The exchanges before aggregates."""
        self._condensed: dict[tuple[str, int], int] = {}

    def condense(self, exchange: str, slot: int, epoch: int) -> None:
        """Has senders sub-aggregate the rows of a slot from the next epoch on."""
        self._condensed[exchange, slot] = epoch

    @property
    def handled(self) -> Collection[tuple[str, int]]:
        """The exchanges and slots that something is done about already."""
        return self._condensed.keys()

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
