"""What a simulated cluster is made of; the defaults are those of the Flux paper (sections 3, 5.4 and 6.2)."""

from __future__ import annotations

from dataclasses import dataclass

LOADED = 0.43
"""What is left of a site beside a process that computes for 100 µs and sleeps for 50 µs (Flux, section 4)."""


@dataclass(frozen=True)
class Cluster:
    """Sites, links, disks and the partitions on them. Times are in seconds, sizes in bytes."""

    sites: int = 32
    partitions: int = 2048
    row_bytes: int = 80
    row_seconds: float = 45e-6
    row_deviation: float = 3e-6
    produce_seconds: float = 0.5e-6
    """What a producer takes for a row; it shares its site's processor with the consumer."""
    packet_rows: int = 12
    """Rows in a packet of 1 KB."""
    connection_rows: int = 24
    """Rows on their way between a producer and a site: two packets."""
    buffer_rows: int = 2048
    """What each producer may hold back (160 KB)."""
    partition_rows: int = 10_000
    """Rows of state in each partition."""
    handling_seconds: float = 0.2e-6
    """For each row of state that is extracted or inserted."""
    link: float = 250e6 / 8
    """Bytes a second between two sites that partitions move at, at most."""
    links: float = 500e6 / 8
    """The same for all moves together, in a cluster of 32; it grows with the cluster."""
    memory: float = 1e9
    """For the state of each site."""
    disk: float = 20e6
    """Bytes a second that a disk reads or writes."""
    seek: float = 5e-3
    seek_deviation: float = 0.2e-3
    disk_share: float = 0.77
    """The share of its time that a site gives to the rotation of spilled partitions. The paper leaves this
    to its longer version; the value is the one that gives its static throughput of 1.6e5 rows/s."""
    lanes: int = 32
    """Producers that are told apart; each stands for as many real ones as it takes."""
    step: float = 4e-3
    """How far time goes on at once."""

    @property
    def partition_bytes(self) -> int:
        return self.partition_rows * self.row_bytes

    @property
    def at_once(self) -> int:
        """Partitions of one site that are under way at the same time.

        The more producers there are, the more rows are on connections to be worked off before a move.
        """
        return max(4, self.sites // 8)

    @property
    def moving(self) -> float:
        """Bytes a second for all moves together."""
        return self.links * self.sites / 32

    @property
    def in_lane(self) -> float:
        """Real producers in a lane."""
        return self.sites / self.lanes


@dataclass(frozen=True)
class Event:
    """Something that happens to a site from outside."""

    at: float
    site: int
    rate: float | None = None
    """The share of its processor that it has from now on."""
    memory: float | None = None
    """The bytes it may keep in memory from now on."""
