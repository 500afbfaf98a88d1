"""A join of three streams whose partitions have a shape and a site each, as a model of expected values.

Rows of each stream and partition are drawn by chance; how many of them meet follows from how many there are
within the window. Sites work at the same time, and an epoch takes as long as the busiest of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from anabranch.adapt.policies.plans import Counted, splits
from anabranch.adapt.view import Partitions, Sites, View
from anabranch.language.shape import Inputs, JoinShape, inputs_of, read_shape
from anabranch.simulate.service import EPOCH, HALF, PARTITIONS, SERVICE

EXCHANGE = "joined"
ROW_BYTES = 100.0
SAMPLED = 64.0
"""Keys that a sample of a site has, at least: enough for its own figures to count."""


@dataclass(frozen=True)
class PlanScenario:
    """Sites and what comes to them; rates are those of every seven sites."""

    sites: int = 7
    seconds: float = 200.0
    rates: tuple[float, float, float] = (100.0, 100.0, 100.0)
    change: float = 30.0
    later: tuple[float, float, float] = (100.0, 5.0, 5.0)
    window: float = 60.0
    keys: float = 800.0
    shape: str = "((0,1),2)"
    seed: int = 1


@dataclass
class PlanModel:
    """What is where: rows within the window by stream and partition, sites and shapes of partitions."""

    scene: PlanScenario
    site: np.ndarray = field(init=False)
    shapes: list[str] = field(init=False)
    """That of each partition, as it is written."""
    kept: np.ndarray = field(init=False)
    """Rows within the window, by stream and partition."""
    fresh: np.ndarray = field(init=False)
    """Those of the last epoch."""
    read: float = 0.0
    """Up to which time of the streams rows were taken in."""
    results: float = 0.0
    """So far."""

    def __post_init__(self) -> None:
        scene, count = self.scene, PARTITIONS * self.scene.sites
        crowded = max(1, scene.sites // 7)
        alone = round(count * HALF)
        spread = np.arange(count - alone) % scene.sites
        self.site = np.append(np.arange(alone) % crowded, spread)
        self.shapes = [scene.shape] * count
        self.keys = scene.keys / (7 * PARTITIONS)
        self._rng = np.random.default_rng(scene.seed)
        self._recent: list[np.ndarray] = []
        self.kept, self.fresh = np.zeros((2, 3, count))

    @property
    def count(self) -> int:
        return len(self.site)

    def take_in(self, upto: float) -> None:
        """Rows up to a time of the streams come; what is out of the window goes."""
        scene = self.scene
        early = max(0.0, min(upto, scene.change) - self.read)
        late = max(0.0, upto - max(self.read, scene.change))
        rates = np.array(scene.rates) * early + np.array(scene.later) * late
        self._recent.append(self.fresh)
        self._recent = self._recent[-round(scene.window / EPOCH) :]
        self.kept = np.sum(self._recent, axis=0)
        expected = rates[:, None] / (7 * PARTITIONS)
        self.fresh = self._rng.poisson(expected, self.kept.shape).astype(float)
        self.read = upto
        self.results += float(self.made((0, 1, 2)).sum())

    def held(self, inputs: Inputs) -> np.ndarray:
        """The combinations of earlier rows of these streams, by partition."""
        whole = np.prod(self.kept[list(inputs)], axis=0)
        return np.asarray(whole / self.keys ** (len(inputs) - 1))

    def made(self, inputs: Inputs) -> np.ndarray:
        """The combinations with a new row."""
        some = list(inputs)
        whole = np.prod(self.kept[some] + self.fresh[some], axis=0)
        return np.asarray(whole / self.keys ** (len(inputs) - 1) - self.held(inputs))

    def looked(self, parts: tuple[Inputs, ...]) -> np.ndarray:
        """The pairs that a join of these parts looks at."""
        whole = tuple(sorted(one for part in parts for one in part))
        pairs = self.made(whole)
        if len(parts) > 2:
            # Each new row meets the stream of which there are fewest first, and then what is left
            for number, (one,) in enumerate(parts):
                others = [part[0] for at, part in enumerate(parts) if at != number]
                fewest = (self.kept + self.fresh)[others].min(axis=0)
                pairs = pairs + self.fresh[one] * fewest / self.keys
        return pairs

    def work(self, shape: JoinShape) -> np.ndarray:
        """The seconds that the last epoch takes each partition in a shape."""
        seconds: np.ndarray = SERVICE.row * self.fresh.sum(axis=0)
        for one in shape.joins:
            parts = tuple(sorted(map(inputs_of, one.parts)))
            seconds = seconds + SERVICE.pair * self.looked(parts)
            if one is not shape:
                seconds = seconds + SERVICE.intermediate * self.made(one.inputs)
        return seconds

    def busy(self) -> np.ndarray:
        """The seconds that the last epoch takes each partition in the shape that it has."""
        seconds = np.zeros(self.count)
        for text in {*self.shapes}:
            mine = np.array([shape == text for shape in self.shapes])
            seconds[mine] = self.work(read_shape(text, 3))[mine]
        return seconds

    def state(self) -> np.ndarray:
        """The rows that each partition keeps, those of intermediates too."""
        rows: np.ndarray = self.kept.sum(axis=0) + self.fresh.sum(axis=0)
        for text in {*self.shapes}:
            mine = np.array([shape == text for shape in self.shapes])
            for inputs in read_shape(text, 3).intermediates:
                rows[mine] += (self.held(inputs) + self.made(inputs))[mine]
        return rows

    def counted(self) -> dict[int, Counted]:
        """What samples would show, by site."""
        known = splits(3)
        wholes = [tuple(sorted(one for part in split for one in part)) for split in known]
        columns = [
            *self.fresh,
            *map(self.looked, known),
            *map(self.made, wholes),
            *map(self.held, wholes),
        ]
        sums = np.array([np.bincount(self.site, one, self.scene.sites) for one in columns])
        fresh, looked, made, held = np.split(sums, np.cumsum([3, len(known), len(known)]))
        return {
            site: Counted(SAMPLED, fresh[:, site], looked[:, site], made[:, site], held[:, site])
            for site in np.unique(self.site).tolist()
        }

    def view(self, seconds: float) -> View:
        """What the engine would see of it."""
        size = ROW_BYTES * self.state()
        rows, made = self.fresh.sum(axis=0), self.made((0, 1, 2))
        return view_of(self.site, self.scene.sites, self.busy(), rows, made, size, seconds)


def view_of(
    site: np.ndarray, sites: int, work: np.ndarray, rows: np.ndarray, made: np.ndarray,
    size: np.ndarray, seconds: float,
) -> View:  # fmt: skip
    """What the engine would see of partitions on these sites: their work, rows, results and bytes."""
    count = len(site)
    none, zero = np.zeros(sites), np.zeros(count)
    return View(
        (EXCHANGE,), seconds,
        Sites(
            busy=np.bincount(site, work, sites), waiting=none,
            rows=np.bincount(site, rows, sites), slowness=none + 1,
            resident=np.bincount(site, size, sites), spilled=none, held=none,
            memory=np.full(sites, np.inf), alive=np.ones(sites, dtype=bool),
        ),
        Partitions(
            exchange=zero.astype(int), start=np.arange(count), slots=zero.astype(int) + 1,
            site=site.copy(), rows_in=rows, rows_out=made,
            work=work, bytes=size, aside=zero, last_use=zero, spills=zero > 0, closing=zero > 0,
            since=zero, generations=zero, awaited=zero > 0, fixed=zero > 0, peak=zero,
            peak_at=zero.astype(int),
        ),
    )  # fmt: skip
