"""Kinds of disturbance: small functions that meddle with a running query set the way users and failures do.

Each takes a `Meddling` and does one thing at random, or nothing where it does not apply; none may change a
result. To add a kind, write such a function and put it into `DISTURBANCES`: every chaos seed draws some of
them. What the run's history does not have it counts under a name of its own, which the report of `anabranch
chaos` then has.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from anabranch.adapt.actions import Condense, Scatter
from anabranch.engine.run import Run
from anabranch.plan.subquery import IN_GRID
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
    counts: Counter[str]

    def home(self) -> str | None:
        """One of the exchanges, if there is any."""
        homes = self.run.plan.homes
        return self.draw.choice(list(homes)) if homes else None

    def free(self, home: str) -> list[int]:
        """The partitions of an exchange that are not pinned."""
        pinned = self.run.pins.get(home, {})
        return [start for start in self.run.partition_map(home).starts if start not in pinned]

    def give(self, home: str, after: PartitionMap) -> None:
        """Gives an exchange another map; what moves by it is in the history."""
        self.run.repartition(home, after)

    def full_slots(self, home: str) -> list[int]:
        """The fullest slot of each partition of an exchange that had rows when it was last looked at."""
        for level in self.run.view().values():
            known = level["partitions"].filter(pl.col("exchange") == home, pl.col("rows_in") > 0)
            if not known.is_empty():
                return known["fullest_slot"].to_list()
        return []

    def site(self) -> int:
        return self.draw.randrange(self.run.sites)


Disturbance = Callable[[Meddling], None]


def move(it: Meddling) -> None:
    """A partition is asked to go to a site."""
    home = it.home()
    if home and (starts := it.free(home)):
        it.run.move(home, it.draw.choice(starts), it.site())


def move_many(it: Meddling) -> None:
    """Several partitions at once, through a map."""
    home = it.home()
    if home and (starts := it.free(home)):
        chosen = it.draw.sample(starts, it.draw.randint(1, len(starts)))
        known = it.run.partition_map(home)
        it.give(home, known.moved({start: it.site() for start in chosen}))


def split(it: Meddling) -> None:
    """A partition is cut anywhere; the second half goes elsewhere."""
    home = it.home()
    if home:
        known, at = it.run.partition_map(home), 0
        if known.slots > 1:
            at = it.draw.randrange(1, known.slots)
        if at in known.starts:
            return
        it.give(home, known.split(at).moved({at: it.site()}))
        it.counts["splits"] += 1


def merge(it: Meddling) -> None:
    """A partition is joined to the one before it."""
    home = it.home()
    starts = [start for start in it.free(home) if start] if home else []
    if home and starts:
        it.give(home, it.run.partition_map(home).merged(it.draw.choice(starts)))
        it.counts["merges"] += 1


def scatter(it: Meddling) -> None:
    """A map that has nothing to do with the one before: often few sites, cut anywhere."""
    home = it.home()
    if not home or it.run.pins.get(home):
        return
    known, sites = it.run.partition_map(home), it.run.sites
    slots = known.slots
    few = [it.site() for _ in range(it.draw.choice([1, 2, sites]))]
    cuts = it.draw.sample(range(1, slots), min(slots - 1, it.draw.choice([0, 1, 7, 40])))
    owners = tuple(it.draw.choice(few) for _ in range(len(cuts) + 1))
    it.give(home, PartitionMap(owners, (0, *sorted(cuts)), slots, known.cells))


def pin(it: Meddling) -> None:
    """A partition is to stay on a site."""
    home = it.home()
    if home:
        it.run.pin(home, it.draw.choice(it.run.partition_map(home).starts), it.site())
        it.counts["pins"] += 1


def unpin(it: Meddling) -> None:
    """A pinned partition may move again."""
    pinned = [(home, start) for home, starts in it.run.pins.items() for start in starts]
    if pinned:
        it.run.unpin(*it.draw.choice(pinned))


def rebalance(it: Meddling) -> None:
    """The load is to be evened out now."""
    it.run.rebalance()
    it.counts["rebalances"] += 1


def resize(it: Meddling) -> None:
    """More sites, or fewer."""
    plan = it.run.plan
    shared = [home for home in plan.homes if plan.subqueries[home].spread != IN_GRID]
    most = min([it.run.partition_map(home).partitions for home in shared] + [MOST_SITES])
    least = 1 + max([site for pins in it.run.pins.values() for site in pins.values()], default=0)
    if least <= most:
        it.run.set_sites(it.draw.randint(least, most))
        it.counts["site_changes"] += 1


def release(it: Meddling) -> None:
    """An exchange whose map was made by hand goes back to the controller."""
    homes = sorted(it.run._steering.by_hand)
    if homes:
        it.run.release(it.draw.choice(homes))
        it.counts["releases"] += 1


def pause(it: Meddling) -> None:
    """The rows of a partition are to wait."""
    home = it.home()
    if home and it.run.plan.subqueries[home].spread != IN_GRID:
        it.run.pause(home, it.draw.choice(it.run.partition_map(home).starts))
        it.counts["pauses"] += 1


def resume(it: Meddling) -> None:
    """Rows that wait may go on."""
    # What was merged with another since does not wait any more
    paused = [(h, start) for h, start in it.run.paused if start in it.run.partition_map(h).starts]
    if paused:
        it.run.resume(*it.draw.choice(paused))


def condense(it: Meddling) -> None:
    """Slots are taken to have hot keys: senders sub-aggregate their rows."""
    home = it.home()
    if home and (full := it.full_slots(home)):
        actions = [
            Condense(home, slot, "chaos", slot=slot) for slot in full if it.draw.random() < 0.5
        ]
        it.run._request(actions)


def spread_out(it: Meddling) -> None:
    """A slot of a join is taken to have a hot key: its rows meet in cells from now on."""
    scatterable = it.run._steering.adaptation.hot.scatterable
    home = it.draw.choice([*scatterable, None])
    if home and (full := it.full_slots(home)):
        sites = tuple(it.site() for _ in range(it.draw.choice([1, 2, 3, 4, 6])))
        slot = it.draw.choice(full)
        if slot < scatterable[home]:
            it.run._request([Scatter(home, slot, "chaos", slot=slot, sites=sites)])


HOLDING: tuple[Disturbance, ...] = (pause, pause, resume)
"""Those after which rows wait before an exchange, so that results come in later epochs."""
BY_MAP: tuple[Disturbance, ...] = (move_many, split, merge, scatter, release)
"""Those that give an exchange another map, with which it is out of the controller's hands; and back."""
DISTURBANCES: tuple[Disturbance, ...] = (
    *BY_MAP, move, pin, unpin, rebalance, resize, condense, spread_out, spread_out,
)  # fmt: skip


@dataclass(frozen=True)
class Meddler:
    """Disturbs a run at its steps. The same seed asks for the same in the same epoch."""

    seed: int
    kinds: Sequence[Disturbance]
    counts: Counter[str]
    chance: float = OFTEN

    def __call__(self, scene: Scene) -> None:
        # Of its own for every step, so that one choice less in an epoch does not change all others
        draw = random.Random(f"{self.seed} {scene.epoch} {scene.step}")
        chance = self.chance if scene.step == "begin" else OTHERWISE * self.chance
        if not self.kinds or draw.random() > chance:
            return
        for _ in range(draw.choice([1, 1, 2, 3])):
            draw.choice(self.kinds)(Meddling(scene.run, draw, self.counts))
