"""Every constant that tunes a run, with its default and the reason for it."""

from __future__ import annotations

import functools
import typing
from collections.abc import Mapping
from math import inf
from typing import Any

import msgspec

from anabranch.errors import SettingsError, nearest, suggest

STRATEGIES = ("subquery", "query", "operator")
SHARED, SPLIT, NONE = BUFFERS = ("shared", "split", "none")
HYBRID, LAZY_DISK, ACTIVE_DISK = "hybrid", "lazy-disk", "active-disk"
POOR, RICH, ANY = "poor", "rich", "any"
POLICIES = (HYBRID, "load", "memory", LAZY_DISK, ACTIVE_DISK, "none")
AUTO = "auto"
PER_PARTITION, PER_SITE, FIXED_PLANS = PLANS = ("partition", "site", "fixed")
MOVING_STATE, PARALLEL_TRACK = PROTOCOLS = ("moving-state", "parallel-track")
TRANSITIONS = (AUTO, *PROTOCOLS)
TRANSPARENT, BEST_EFFORT = MERGERS = ("transparent", "best-effort")
DIALECTS = ("anabranch", "spark", "duckdb", "flink", "postgres", "risingwave", "arroyo")
EVERYTHING, CLOSED_WINDOWS = LATE_RULES = ("everything", "closed-windows")
CHOICES = {
    "strategy": STRATEGIES, "merge": MERGERS, "policy": POLICIES, "skew_buffer": BUFFERS,
    "spill_first": (POOR, RICH, ANY), "plans": PLANS, "dialect": DIALECTS, "late": LATE_RULES,
    "transition": TRANSITIONS,
}  # fmt: skip

FINITE = 1e9
"""More than any number of seconds or ratio that means something; clocks cannot wait much longer."""
BOUNDS: dict[str, tuple[float, float]] = {
    "partitions_per_site": (1, inf), "max_files_per_epoch": (1, inf), "max_bytes_per_epoch": (1, inf),
    "max_rows_per_epoch": (1, inf), "split_tasks": (0, inf), "poll_interval_seconds": (0, FINITE),
    "idle_after_seconds": (0, FINITE), "sample_rows": (1, inf), "allot_imbalance": (1, FINITE),
    "imbalance_threshold": (1, FINITE), "utilisation_limit": (0, 1),
    "least_collection_seconds": (0, FINITE), "most_collection_seconds": (0, FINITE),
    "least_gain_seconds": (0, FINITE), "moved_bytes_per_epoch": (1, inf), "skew_buffer_bytes": (1, inf),
    "site_memory_bytes": (1, inf), "memory_share": (0, 1), "spill_share": (0, 1),
    "spill_idle_epochs": (0, inf), "memory_balance": (0, 1), "output_ratio": (1, FINITE),
    "compaction_fan": (2, inf), "compaction_share": (0, FINITE),
    "compaction_floor_rows": (0, inf), "combine_reduction": (0, FINITE), "keep_manifests": (1, inf),
    "recent_progress": (1, inf), "event_history_bytes": (0, inf), "landing_ahead": (1, inf),
    "replan_effort": (0, FINITE),
}  # fmt: skip
"""The least and the most that each number may be."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a user may tune; everything has a default.

    >>> Settings(max_files_per_epoch=5).max_files_per_epoch
    5
    """

    # Flux: many more partitions than sites, so that load can be evened out in small steps.
    partitions_per_site: int = 32
    # Whose SQL the texts of queries are, where systems mean something else by the same words.
    dialect: str = "anabranch"
    # An epoch takes whole files until one of these is reached.
    max_files_per_epoch: int = 1000
    max_bytes_per_epoch: int = 256 * 1024 * 1024
    max_rows_per_epoch: int = 10_000_000
    # Tasks that read the input of an epoch; 0: as many as Spark runs at once.
    split_tasks: int = 0
    # Read, filter and pack the input of the next epoch while the sites work on this one. What is prepared in
    # vain, because something was decided in between, is prepared anew.
    overlap: bool = True
    # How often to look for new input when there was none.
    poll_interval_seconds: float = 0.05
    # A stream without rows for this long no longer holds the watermark; None: it always does.
    idle_after_seconds: float | None = None
    # What a late row is left out of: "everything", or "closed-windows" alone. A stream may say otherwise.
    late: str = EVERYTHING
    # "subquery": operators that one partitioning set suits run together on its partitions. "query": rows
    # are exchanged before every stateful operator. "operator": every operator has sites of its own.
    strategy: str = "subquery"
    # Bring what the partitioning does not suit, and all results, to one site.
    central: bool = False
    # StreamCloud's input mergers. "transparent": histories, count windows and joins within a number of
    # rows get rows in the order of time, once the watermark has passed them. "best-effort": they take
    # rows as they come.
    merge: str = TRANSPARENT
    # Rows of each stream looked at before the first start, to choose the partitioning.
    sample_rows: int = 20_000
    # Give exchanges of one level other shares of the sites when the busiest site has this much too much to
    # do: the threshold at which Flux moves load.
    allot_imbalance: float = 1.2
    # In which shape an inner join of three to six inputs begins: "m-way" keeps nothing but the rows of its
    # inputs, "left-deep" what each input gives with those before it; or written out, such as ((0,1),2).
    join_shape: str = "m-way"
    # Who has a shape of a join to itself, chosen by what is measured: each "partition", or each "site". If
    # "fixed", all of it stays as join_shape says, or as run.replan() has it.
    plans: str = PER_PARTITION
    # The share of the work of a join that may go into counting what it would do in other shapes.
    replan_effort: float = 0.02
    # How a join comes to another shape. "moving-state": what the new one keeps is made at once out of what is
    # remembered. "parallel-track": both work until the rows of before are gone. "auto": what costs less.
    transition: str = AUTO
    # Which partitions move by themselves. "load": from busy sites to idle ones. "memory": from sites that
    # keep more than site_memory_bytes. "hybrid": by memory while that is exceeded, else by load where there
    # is room. "lazy-disk": the paper on state adaptation, which evens out memory. "active-disk": the same,
    # and sites that give few results put state aside early. "none": nothing moves.
    policy: str = HYBRID
    # Tune the thresholds and the time of collection by themselves. If not, the three after it are Flux's
    # th_imb, th_util and δ_min, with its values.
    self_tuning: bool = True
    imbalance_threshold: float = 1.2
    utilisation_limit: float = 0.9
    least_collection_seconds: float = 0.01
    # Figures are never collected for longer than this before the next decision.
    most_collection_seconds: float = 2.0
    # Time an epoch must be expected to save for anything to move: small epochs are not worth it.
    least_gain_seconds: float = 0.02
    # Bytes of state that all exchanges together may move between two epochs.
    moved_bytes_per_epoch: int = 1024 * 1024 * 1024
    # Cut partitions that are too hot for any site, and join them again when they have cooled.
    split_partitions: bool = True
    # Flux's skew buffer: rows of partitions that are paused, or slow and cannot move, wait before the
    # exchange. "shared": whoever needs the space gets it. "split": every site has an equal part, as in an
    # Exchange. "none": nothing waits.
    skew_buffer: str = SHARED
    skew_buffer_bytes: int = 64 * 1024 * 1024
    # Bytes of state a site may keep in memory: what goes beyond is put aside. "auto": memory_share of what
    # its machine or container has free, divided by the sites there; None: no limit.
    site_memory_bytes: int | str | None = AUTO
    memory_share: float = 0.5
    # A site over its memory puts this share of its state aside at once (the paper on state adaptation has
    # 30%): first partitions that have had no rows for so many epochs, then "poor" ones, which give fewest
    # results for their bytes. "rich" ones first, or "any", are only good to be compared with.
    spill_share: float = 0.3
    spill_idle_epochs: int = 20
    spill_first: str = POOR
    # For lazy-disk and active-disk: state moves when the emptiest site keeps less than this of the fullest,
    # and a site puts state aside early when another's partitions give this many times its results.
    memory_balance: float = 0.8
    output_ratio: float = 2.0
    # Merge this many segments of one tier into one of the next.
    compaction_fan: int = 8
    # Rows a site may rewrite per tier and epoch, as a multiple of the rows it received.
    compaction_share: float = 2.0
    compaction_floor_rows: int = 50_000
    # Sub-aggregate before the exchange when the last epoch's rows per group reached this.
    combine_reduction: float = 2.0
    # Manifests kept; state older than the oldest of them is deleted.
    keep_manifests: int = 2
    # Flush segments, results and manifests to the disk, to survive the machine and not only the process.
    fsync: bool = True
    # Checkpoints, results, landed batches and dead letters are for their owner alone (folders 0700, files
    # 0600); if not, as the umask says. A umask that is stricter counts in any case.
    private_files: bool = True
    # Accept aggregates without a window and joins without bounds of time, whose state no watermark ever
    # gives back.
    allow_unbounded_state: bool = False
    # Progress reports kept in memory.
    recent_progress: int = 100
    # Bytes of events kept beside the checkpoint, for those who look later: the page, the report. 0: none.
    event_history_bytes: int = 64 * 1024 * 1024
    # Batches of a streaming DataFrame that may be landed ahead of the epochs.
    landing_ahead: int = 2

    def __post_init__(self) -> None:
        for name, kinds in _kinds().items():
            value = getattr(self, name)
            # True is no number here, and a whole number is a number
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                expected = " or ".join(
                    WORDS[kind] for kind in kinds if (kind, float) != (int, kinds[0])
                )
                raise SettingsError(f"Setting '{name}' is {value!r}; expected {expected}.")
        for name, options in CHOICES.items():
            value = getattr(self, name)
            if value not in options:
                raise SettingsError(
                    f"Setting '{name}' is '{value}'; expected one of {', '.join(options)}."
                    f"{nearest(value, options)}"
                )
        if isinstance(self.site_memory_bytes, str) and self.site_memory_bytes != AUTO:
            raise SettingsError(
                f"Setting 'site_memory_bytes' is {self.site_memory_bytes!r}; expected a number of bytes, "
                f"'{AUTO}' or nothing for no limit."
            )
        for name, (least, most) in BOUNDS.items():
            value = getattr(self, name)
            # Not `<`, which a NaN would pass
            if value is not None and value != AUTO and not (least <= value <= most):
                upper = "" if most == inf else f" and at most {most:g}"
                raise SettingsError(
                    f"Setting '{name}' is {value}; expected at least {least}{upper}."
                )
        self._refuse_contradictions()

    def _refuse_contradictions(self) -> None:
        """Settings that fit alone but not together."""
        if self.policy == "memory" and self.site_memory_bytes is None:
            raise SettingsError(
                "Setting 'policy' is 'memory', but no site has a limit to keep: give "
                "'site_memory_bytes' too, or choose another policy."
            )
        if self.least_collection_seconds > self.most_collection_seconds:
            raise SettingsError(
                f"Setting 'least_collection_seconds' is {self.least_collection_seconds}, more than "
                f"'most_collection_seconds', which is {self.most_collection_seconds}."
            )
        fixed = [name for name in FIXED if getattr(self, name) != _default(name)]
        if self.self_tuning and fixed:
            raise SettingsError(
                f"Setting '{fixed[0]}' is given, but thresholds are tuned by themselves: set "
                "'self_tuning' to false to have it count."
            )


FIXED = ("imbalance_threshold", "utilisation_limit", "least_collection_seconds")
"""Flux's parameters, which tuning by itself replaces."""


WORDS = {
    int: "a whole number", float: "a number", str: "a text", bool: "true or false",
    type(None): "nothing",
}  # fmt: skip


@functools.cache
def _kinds() -> dict[str, tuple[type, ...]]:
    """The types that the value of each setting may have."""
    kinds = {
        name: typing.get_args(hint) or (hint,)
        for name, hint in typing.get_type_hints(Settings).items()
    }
    return {
        name: (*given, int) if float in given else given
        for name, given in kinds.items()
    }  # fmt: skip


def _default(name: str) -> Any:
    return dict(zip(Settings.__struct_fields__, Settings.__struct_defaults__, strict=True))[name]


def read_settings(values: Mapping[str, Any]) -> Settings:
    """Settings from plain values; an unknown name or a wrong type is an error that says what fits."""
    if not isinstance(values, Mapping):
        raise SettingsError(f"Settings are a mapping of names to values, not {values!r}.")
    known = Settings.__struct_fields__
    for name in values:
        if name not in known:
            raise SettingsError(f"There is no setting '{name}'.{suggest(name, known)}")
    return Settings(**values)
