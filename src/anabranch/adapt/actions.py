"""What can be done between two epochs: proposed by a policy, judged by the arbiter, done by a protocol.

An action knows what it does to whatever it is applied to, how a person would say it, and how it is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from anabranch.adapt.policies.ways import MOVED, WAYS, Way
from anabranch.settings import PARALLEL_TRACK


class Target(Protocol):
    """What actions are applied to: the maps of the exchanges, and what is done about hot slots."""

    def move(self, exchange: str, partition: int, site: int) -> None: ...

    def place(self, exchange: str, sites: tuple[int, ...]) -> None: ...

    def split(self, exchange: str, at: int) -> None: ...

    def merge(self, exchange: str, partition: int, other: int) -> None: ...

    def combine(self, subquery: str, on: bool) -> None: ...

    def condense(self, exchange: str, slot: int) -> None: ...

    def scatter(self, exchange: str, slot: int, sites: tuple[int, ...]) -> None: ...

    def unscatter(self, exchange: str, slot: int) -> None: ...

    def regrid(self, exchange: str, bands: tuple[int, ...]) -> None: ...

    def spill(self, exchange: str, partition: int) -> None: ...

    def clean_up(self, exchange: str, partition: int) -> None: ...

    def replan(
        self, exchange: str, subquery: str, partitions: tuple[int, ...], shape: str,
        protocol: str,
    ) -> None: ...  # fmt: skip


@dataclass(frozen=True)
class Action:
    """Something to do with one partition, told by its exchange and the first slot of its range."""

    exchange: str
    partition: int
    cause: str

    remaps: ClassVar[bool] = True
    """Whether it changes where partitions are, or what they are."""

    @property
    def subject(self) -> tuple[str, int]:
        return self.exchange, self.partition

    @property
    def subjects(self) -> tuple[tuple[str, int], ...]:
        """All partitions that it is about."""
        return (self.subject,)

    @property
    def name(self) -> str:
        """The partition as people write it."""
        return f"{self.exchange}/{self.partition}"

    def words(self) -> str:
        """The action as a person would say it."""
        raise NotImplementedError

    def apply(self, target: Target) -> None:
        """Does it."""
        raise NotImplementedError

    def plain(self) -> dict[str, Any]:
        """The action as the history records it."""
        return {
            "action": self.words(),
            "kind": type(self).__name__.lower(),
            "exchange": self.exchange,
            "partition": self.partition,
            "source": None,
            "target": None,
            "bytes": 0,
            "cause": self.cause,
        }


@dataclass(frozen=True)
class Move(Action):
    """A partition to another site.

    >>> Move("flows", 640, "load", source=2, target=5).words()
    'move flows/640 from site 2 to 5'
    """

    source: int
    target: int
    bytes: int = 0

    def words(self) -> str:
        return f"move {self.name} from site {self.source} to {self.target}"

    def apply(self, target: Target) -> None:
        target.move(self.exchange, self.partition, self.target)

    def plain(self) -> dict[str, Any]:
        where = {"source": self.source, "target": self.target, "bytes": self.bytes}
        return {**super().plain(), **where}


@dataclass(frozen=True)
class Spill(Action):
    """The state of a partition aside: it gives memory back.

    >>> Spill("flows", 640, "memory", site=2).words()
    'put flows/640 of site 2 aside'
    """

    remaps: ClassVar[bool] = False
    site: int
    bytes: int = 0

    def words(self) -> str:
        return f"put {self.name} of site {self.site} aside"

    def apply(self, target: Target) -> None:
        target.spill(self.exchange, self.partition)

    def plain(self) -> dict[str, Any]:
        return {**super().plain(), "source": self.site, "bytes": self.bytes}


@dataclass(frozen=True)
class CleanUp(Action):
    """What was put aside of a partition together with what has come since, and what that owes.

    >>> CleanUp("flows", 640, "room", site=2).words()
    'bring flows/640 on site 2 together'
    """

    remaps: ClassVar[bool] = False
    site: int
    bytes: int = 0

    def words(self) -> str:
        return f"bring {self.name} on site {self.site} together"

    def apply(self, target: Target) -> None:
        target.clean_up(self.exchange, self.partition)

    def plain(self) -> dict[str, Any]:
        return {**super().plain(), "target": self.site, "bytes": self.bytes}


@dataclass(frozen=True)
class Allot(Action):
    """All partitions of an exchange to these sites: its share of them.

    >>> Allot("flows", 0, "shares", sites=(1, 1, 2, 2)).words()
    'give flows the sites 1 to 2'
    """

    sites: tuple[int, ...]

    def words(self) -> str:
        return f"give {self.exchange} the sites {min(self.sites)} to {max(self.sites)}"

    def apply(self, target: Target) -> None:
        target.place(self.exchange, self.sites)


@dataclass(frozen=True)
class Split(Action):
    """A partition into two, at a slot within its range; both stay where it is."""

    at: int

    def words(self) -> str:
        return f"split {self.name} at {self.at}"

    def apply(self, target: Target) -> None:
        target.split(self.exchange, self.at)


@dataclass(frozen=True)
class Merge(Action):
    """A partition with the one after it on the same site."""

    other: int
    """The first slot of the one after it."""

    @property
    def subjects(self) -> tuple[tuple[str, int], ...]:
        return self.subject, (self.exchange, self.other)

    def words(self) -> str:
        return f"merge {self.name} with {self.exchange}/{self.other}"

    def apply(self, target: Target) -> None:
        target.merge(self.exchange, self.partition, self.other)


@dataclass(frozen=True)
class Replan(Action):
    """Partitions of a join to another shape, by moving state or on a parallel track.

    >>> Replan("j", 0, "cost", "j", (0, 64), before="(0,1,2)", shape="((0,1),2)").words()
    'run j as ((0,1),2) in place of (0,1,2) on 2 partitions'
    """

    remaps: ClassVar[bool] = False
    subquery: str
    partitions: tuple[int, ...]
    before: str
    shape: str
    expected: float | None = None
    """What an epoch is expected to cost in it, against the shape before."""
    way: Way = MOVED
    """How they come to it, and what that should cost."""

    @property
    def subjects(self) -> tuple[tuple[str, int], ...]:
        return tuple((self.exchange, partition) for partition in self.partitions)

    def words(self) -> str:
        count = len(self.partitions)
        on = "1 partition" if count == 1 else f"{count} partitions"
        way = f", {WAYS[PARALLEL_TRACK]}" if self.way.protocol == PARALLEL_TRACK else ""
        return f"run {self.subquery} as {self.shape} in place of {self.before} on {on}{way}"

    def apply(self, target: Target) -> None:
        target.replan(self.exchange, self.subquery, self.partitions, self.shape, self.way.protocol)

    def plain(self) -> dict[str, Any]:
        how = {
            "subquery": self.subquery, "partitions": list(self.partitions), "before": self.before,
            "shape": self.shape, "costExpected": self.expected,
            "protocol": self.way.protocol.replace("-", " "), "protocolReason": self.way.reason,
            "movingCost": round(self.way.moving),
            "trackCost": None if self.way.track is None else round(self.way.track),
        }  # fmt: skip
        return {**super().plain(), **how}


@dataclass(frozen=True)
class Combine(Action):
    """Sub-aggregate all rows of a subquery before they are sent, or no longer."""

    subquery: str
    on: bool

    @property
    def subjects(self) -> tuple[tuple[str, int], ...]:
        """None: it is about senders, and each subquery behind an exchange has a word of its own."""
        return ()

    def words(self) -> str:
        now = "sub-aggregate" if self.on else "no longer sub-aggregate"
        return f"{now} for {self.subquery} before rows are sent"

    def apply(self, target: Target) -> None:
        target.combine(self.subquery, self.on)


@dataclass(frozen=True)
class Condense(Action):
    """Sub-aggregate the rows of a slot before they are sent: it has a hot key."""

    slot: int

    def words(self) -> str:
        return f"sub-aggregate slot {self.slot} of {self.exchange} before it is sent"

    def apply(self, target: Target) -> None:
        target.condense(self.exchange, self.slot)
