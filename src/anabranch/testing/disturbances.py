"""Kinds of disturbance: small functions that meddle with a running query set the way users and failures do.

Each takes a `Meddling` and does one thing at random, or nothing where it does not apply, and says whether it
did; none may change a result. To add a kind, write such a function and put it into `DISTURBANCES`: every
chaos seed draws some of them. Each is counted under its name, which the report of `anabranch chaos` then has.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from anabranch.adapt.actions import Action, Condense
from anabranch.adapt.cell_actions import Regrid, Scatter, Unscatter
from anabranch.control.spilling import apart
from anabranch.engine.run import Run
from anabranch.routing.partition_map import PartitionMap
from anabranch.testing.trial import Scene

MOST_SITES = 7
OFTEN, SELDOM = 0.8, 0.25
"""How likely something happens when an epoch begins; seldom enough, and the controller acts between."""
OTHERWISE = 0.15
"""The same at other steps."""


@dataclass(frozen=True)
class Meddling:
    """A run to meddle with, and who decides how."""

    run: Run
    draw: random.Random

    def exchange(self) -> str | None:
        """One of the exchanges, if there is any."""
        exchanges = self.run.plan.exchanges
        return self.draw.choice(list(exchanges)) if exchanges else None

    def free(self, exchange: str) -> list[int]:
        """The partitions of an exchange that are not pinned."""
        pinned = self.run.pins.get(exchange, {})
        return [start for start in self.run.partition_map(exchange).starts if start not in pinned]

    def at_rest(self, exchange: str, pinned: bool = False) -> list[int]:
        """The partitions of an exchange that are not on their way somewhere, nor put aside."""
        moving = self.run._governor.moving
        starts = self.in_memory(exchange)
        if not pinned:
            starts = [start for start in self.free(exchange) if start in starts]
        return [start for start in starts if (exchange, start) not in moving]

    def in_memory(self, exchange: str) -> list[int]:
        """The partitions of an exchange of which nothing is put aside."""
        governor = self.run._governor
        slots = governor.holdings.spilling.slots(self.run._checkpoint.manifest)
        aside = apart(slots, governor.maps)
        starts = self.run.partition_map(exchange).starts
        return [start for start in starts if (exchange, start) not in aside]

    def give(self, exchange: str, after: PartitionMap) -> None:
        """Gives an exchange another map; what moves by it is in the history."""
        self.run.repartition(exchange, after)

    def request(self, actions: Sequence[Action]) -> None:
        """Has actions carried out as they are, as if a policy had proposed them."""
        with self.run._changing():
            self.run._governor.holdings.request(actions, self.run._checkpoint.manifest.epoch)

    def full_slots(self, exchange: str) -> list[int]:
        """The fullest slot of each partition of an exchange that had rows when it was last looked at."""
        for level in self.run.view().values():
            known = level["partitions"].filter(
                pl.col("exchange") == exchange, pl.col("rows_in") > 0
            )
            if not known.is_empty():
                return known["fullest_slot"].to_list()
        return []

    def one_of(self, exchange: str, starts: Sequence[int]) -> int:
        """One of these partitions, most likely one that has had rows: many have none."""
        known = self.run.partition_map(exchange)
        full = {known.range_at(slot)[0] for slot in self.full_slots(exchange) if slot < known.slots}
        busy = sorted(full & {*starts})
        return self.draw.choice(busy if busy and self.draw.random() < 0.7 else starts)

    def site(self) -> int:
        """One of the sites that live."""
        return self.draw.choice(np.flatnonzero(self.run._governor.holdings.alive).tolist())


Disturbance = Callable[[Meddling], bool]


def move(it: Meddling) -> bool:
    """A partition is asked to go to a site."""
    exchange = it.exchange()
    starts = it.at_rest(exchange) if exchange else []
    if not exchange or not starts:
        return False
    it.run.move(exchange, it.one_of(exchange, starts), it.site())
    return True


def move_many(it: Meddling) -> bool:
    """Several partitions at once, through a map."""
    exchange = it.exchange()
    starts = it.free(exchange) if exchange else []
    if not exchange or not starts:
        return False
    chosen = it.draw.sample(starts, it.draw.randint(1, len(starts)))
    it.give(exchange, it.run.partition_map(exchange).moved({start: it.site() for start in chosen}))
    return True


def split(it: Meddling) -> bool:
    """A partition is cut anywhere; the second half goes elsewhere."""
    exchange = it.exchange()
    known = it.run.partition_map(exchange) if exchange else None
    at = it.draw.randrange(1, known.slots) if known and known.slots > 1 else 0
    if not exchange or not known or at in known.starts:
        return False
    it.give(exchange, known.split(at).moved({at: it.site()}))
    return True


def merge(it: Meddling) -> bool:
    """A partition is joined to the one before it."""
    exchange = it.exchange()
    starts = [start for start in it.free(exchange) if start] if exchange else []
    if not exchange or not starts:
        return False
    it.give(exchange, it.run.partition_map(exchange).merged(it.draw.choice(starts)))
    return True


def scatter(it: Meddling) -> bool:
    """A map that has nothing to do with the one before: often few sites, cut anywhere."""
    exchange = it.exchange()
    if not exchange or it.run.pins.get(exchange):
        return False
    known, sites = it.run.partition_map(exchange), it.run.sites
    slots = known.slots
    few = [it.site() for _ in range(it.draw.choice([1, 2, sites]))]
    cuts = it.draw.sample(range(1, slots), min(slots - 1, it.draw.choice([0, 1, 7, 40])))
    owners = tuple(it.draw.choice(few) for _ in range(len(cuts) + 1))
    it.give(exchange, PartitionMap(owners, (0, *sorted(cuts)), slots, known.cells))
    return True


def pin(it: Meddling) -> bool:
    """A partition is to stay on a site, one that is gone perhaps."""
    exchange = it.exchange()
    starts = it.at_rest(exchange, pinned=True) if exchange else []
    if not exchange or not starts:
        return False
    it.run.pin(exchange, it.one_of(exchange, starts), it.draw.randrange(it.run.sites))
    return True


def unpin(it: Meddling) -> bool:
    """A pinned partition may move again."""
    pinned = [(exchange, start) for exchange, starts in it.run.pins.items() for start in starts]
    if pinned:
        it.run.unpin(*it.draw.choice(pinned))
    return bool(pinned)


def rebalance(it: Meddling) -> bool:
    """The load is to be evened out now."""
    it.run.rebalance()
    return True


def resize(it: Meddling) -> bool:
    """More sites, or fewer."""
    plan = it.run.plan
    shared = [one.name for one in plan.exchanges.values() if not one.in_grid]
    most = min([it.run.partition_map(exchange).partitions for exchange in shared] + [MOST_SITES])
    least = 1 + max([site for pins in it.run.pins.values() for site in pins.values()], default=0)
    if least <= most:
        it.run.set_sites(it.draw.randint(least, most))
    return least <= most


def release(it: Meddling) -> bool:
    """An exchange whose map was made by hand goes back to the controller."""
    exchanges = sorted(it.run._governor.holdings.by_hand)
    if exchanges:
        it.run.release(it.draw.choice(exchanges))
    return bool(exchanges)


def pause(it: Meddling) -> bool:
    """The rows of a partition are to wait."""
    exchange = it.exchange()
    if not exchange:
        return False
    known = it.run.plan.exchanges[exchange]
    if known.in_grid or known.in_step:
        return False
    starts = it.in_memory(exchange)
    if starts:
        it.run.pause(exchange, it.one_of(exchange, starts))
    return bool(starts)


def resume(it: Meddling) -> bool:
    """Rows that wait may go on."""
    # What was merged with another since does not wait any more
    paused = [(h, start) for h, start in it.run.paused if start in it.run.partition_map(h).starts]
    if paused:
        it.run.resume(*it.draw.choice(paused))
    return bool(paused)


def condense(it: Meddling) -> bool:
    """Slots are taken to have hot keys: senders sub-aggregate their rows."""
    exchange = it.exchange()
    full = it.full_slots(exchange) if exchange else []
    hot = [slot for slot in full if it.draw.random() < 0.5]
    if exchange and hot:
        it.request([Condense(exchange, slot, "chaos", slot=slot) for slot in hot])
    return bool(hot)


def spread_out(it: Meddling) -> bool:
    """A slot of a join is taken to have a hot key: its rows meet in cells from now on."""
    scatterable = it.run._governor.holdings.scattering.candidates
    exchange = it.draw.choice([*scatterable, None])
    full = it.full_slots(exchange) if exchange else []
    hot = [slot for slot in full if slot < scatterable[exchange or ""]]
    if exchange and hot:
        sites = tuple(it.site() for _ in range(it.draw.choice([1, 2, 3, 4, 6])))
        slot = it.draw.choice(hot)
        it.request([Scatter(exchange, slot, "chaos", slot=slot, sites=sites)])
    return bool(hot)


def bring_back(it: Meddling) -> bool:
    """A key that was taken to be hot is taken to have cooled: its rows meet in one place again."""
    scattered = sorted(it.run._governor.holdings.scattering.scattered)
    if scattered:
        exchange, slot = it.draw.choice(scattered)
        it.request([Unscatter(exchange, slot, "chaos", slot=slot)])
    return bool(scattered)


def lay_anew(it: Meddling) -> bool:
    """A grid gets other cells, more of them or fewer, in bands of any length."""
    grids = sorted({*it.run._governor.holdings.grids.current} & {*it.run.plan.exchanges})
    if grids:
        exchange = it.draw.choice(grids)
        bands = tuple(it.draw.choice([1, 1, 2, 3]) for _ in range(it.draw.choice([1, 2, 3, 4])))
        it.request([Regrid(exchange, 0, "chaos", bands=bands)])
    return bool(grids)


HOLDING: tuple[Disturbance, ...] = (pause, pause, resume)
"""Those after which rows wait before an exchange, so that results come in later epochs."""
BY_MAP: tuple[Disturbance, ...] = (move_many, split, merge, scatter, release)
"""Those that give an exchange another map, with which it is out of the controller's hands; and back."""
DISTURBANCES: tuple[Disturbance, ...] = (
    *BY_MAP, move, pin, unpin, rebalance, resize, condense, spread_out, bring_back,
)  # fmt: skip


@dataclass(frozen=True)
class Meddler:
    """Disturbs a run at its steps. The same seed asks for the same in the same epoch."""

    seed: int
    kinds: Sequence[Disturbance]
    chance: float = OFTEN
    always: Sequence[Disturbance] = ()
    """What is done at every step."""

    def __call__(self, scene: Scene) -> None:
        # Of its own for every step, so that one choice less in an epoch does not change all others
        draw = random.Random(f"{self.seed} {scene.epoch} {scene.step}")
        chance = self.chance if scene.step == "begin" else OTHERWISE * self.chance
        kinds = list(self.always)
        if self.kinds and draw.random() < chance:
            kinds += [draw.choice(self.kinds) for _ in range(draw.choice([1, 1, 2, 3]))]
        for disturb in kinds:
            name = disturb.__name__.replace("_", " ")
            scene.outcome.fired[name] += disturb(Meddling(scene.run, draw))
