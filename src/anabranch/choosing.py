"""The choice of a partitioning for the streams of a session, from what is known of them.

Rates come from the manifest of a run where there is one, else from a sample of each stream, and are
assumed where there is neither. The sample of a stream that is said to come partitioned is also held
against that claim: were it wrong, groups would be split without anyone noticing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from anabranch.errors import SourceError
from anabranch.language.expression import Named
from anabranch.language.node import Node
from anabranch.operators.stateless import compute
from anabranch.partitioning.choice import Choice
from anabranch.partitioning.cost import Rates, assume, comes_so
from anabranch.partitioning.flow import flows_of
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.search import search
from anabranch.partitioning.tree import NeedTree, needs_of
from anabranch.partitioning.written import read_chosen
from anabranch.plan.columns import columns_read
from anabranch.plan.draft import draft
from anabranch.plan.estimate import rates_of_run, rates_on_sample, skew_of_lanes, skew_on_sample
from anabranch.settings import Settings
from anabranch.sources.base import EpochLimits, StreamSample
from anabranch.sources.make import Registered
from anabranch.state.manifest import Manifest

LANE = "__lane"
AS_BEFORE = "As it was chosen when the run first started."


@dataclass
class Choosing:
    """Chooses for one session; samples are taken once."""

    sites: int
    settings: Settings
    permitted: Sequence[PartitioningSet] | None = None
    """The only sets that may be chosen, if the user has named some."""
    _samples: dict[str, StreamSample] = field(default_factory=dict)
    _known: dict[tuple[str, ...], Choice] = field(default_factory=dict)

    def as_chosen(
        self, queries: Mapping[str, Node], streams: Mapping[str, Registered], texts: Sequence[str]
    ) -> Choice:
        """The choice that a checkpoint was started with, whatever a sample would say now.

        It is sought among all sets before those that are permitted, which may have changed since.
        """
        tree = needs_of(queries)
        rates = assume(tree, {})
        for permitted in (None, self.permitted):
            found = self._search(tree, streams, rates, lambda _: 1.0, permitted).pinned(texts)
            if found is not None:
                return found
        return self.keeping(queries, streams, texts, streams)

    def keeping(
        self, queries: Mapping[str, Node], streams: Mapping[str, Registered], texts: Sequence[str],
        kept: Collection[str],
    ) -> Choice:  # fmt: skip
        """The best choice with which the `kept` streams stay partitioned as in an earlier one.

        What that was chosen for may be gone, so it need not be among the candidates.
        """
        choice = self.choose(queries, streams)
        before = read_chosen({name: stream.node for name, stream in streams.items()}, texts)
        if before is None:
            return choice
        tree = needs_of(queries)
        forced = self._search(tree, streams, assume(tree, {}), lambda _: 1.0, [before])
        parts = []
        for part, as_before in zip(choice.parts, forced.parts, strict=True):
            if {*part.streams} & {*kept}:
                winner = as_before.pinned(before.restricted(part.streams).texts).winner
                rest = [one for one in part.candidates if one.partitioning != winner.partitioning]
                part = replace(part, candidates=(winner, *rest), reason=AS_BEFORE)
            parts.append(part)
        return replace(choice, parts=tuple(parts))

    def choose(
        self, queries: Mapping[str, Node], streams: Mapping[str, Registered],
        run: Manifest | None = None,
    ) -> Choice:  # fmt: skip
        """The best partitioning for these queries."""
        key = tuple(f"{name} {node.signature}" for name, node in queries.items())
        if run is None and key in self._known:
            return self._known[key]
        tree = needs_of(queries)
        samples = {
            name: found
            for name in tree.streams
            if (found := self._sample(streams[name])) is not None
        }
        # Only what queries read is sent, so only that has a weight
        _, read = columns_read(draft(queries))
        rows = {name: _only(sample, streams[name], read[name]) for name, sample in samples.items()}
        sampled = rates_on_sample(tree, rows, {n: s.per_epoch for n, s in samples.items()})
        counted = rates_of_run(tree, run) if run is not None else {}
        rates = assume(tree, sampled | counted)
        given, partitions = self.given(streams), self.sites * self.settings.partitions_per_site

        def skew(chosen: PartitioningSet) -> float:
            lanes = [
                sample.lanes
                for name, sample in samples.items()
                if sample.lanes is not None and name in comes_so(chosen, given)
            ]
            if lanes and len(tree.streams) == 1:
                return skew_of_lanes(lanes[0].unique().sort().to_list(), partitions, self.sites)
            return skew_on_sample(chosen, rows, partitions, self.sites)

        choice = self._search(tree, streams, rates, skew, self.permitted)
        choice = replace(choice, flows=flows_of(tree, rates, sampled, counted))
        if run is None and len(samples) == len(tree.streams):
            self._known[key] = choice  # else there may be more to go by the next time
        return choice

    def _search(
        self, tree: NeedTree, streams: Mapping[str, Registered],
        rates: Mapping[str, Rates], skew: Callable[[PartitioningSet], float],
        permitted: Sequence[PartitioningSet] | None,
    ) -> Choice:  # fmt: skip
        return search(
            tree, rates, given=self.given(streams), only=permitted, skew=skew,
            sites=self.sites, central=self.settings.central,
        )  # fmt: skip

    def permit(self, sets: Sequence[PartitioningSet]) -> None:
        """From now on, chooses among these only."""
        self.permitted = sets
        self._known.clear()

    def given(self, streams: Mapping[str, Registered]) -> PartitioningSet:
        """How the streams come partitioned."""
        return PartitioningSet(tuple(a for stream in streams.values() for a in stream.given.axes))

    def _sample(self, stream: Registered) -> StreamSample | None:
        name = stream.node.name
        if name not in self._samples:
            limits = EpochLimits(
                self.settings.max_files_per_epoch, self.settings.max_bytes_per_epoch,
                self.settings.max_rows_per_epoch, 1,
            )  # fmt: skip
            found = stream.source.sample(self.settings.sample_rows, limits)
            if found is not None:
                _check_lanes(stream, found)
            if found is None:
                return None  # there may be rows later
            self._samples[name] = found
        return self._samples[name]


def _only(sample: StreamSample, stream: Registered, read: set[str]) -> pl.DataFrame:
    """The rows of a sample in the columns that are read, the ordered attribute always."""
    assert stream.node.ordered
    names = read | {stream.node.ordered.column}
    return sample.rows.select(name for name in sample.rows.columns if name in names)


def _check_lanes(stream: Registered, sample: StreamSample) -> None:
    terms = stream.given.terms(stream.node.name)
    if not terms or sample.lanes is None:
        return
    named = [Named(f"term{at}", term) for at, term in enumerate(terms)]
    try:
        computed = compute(sample.rows, named)
    except pl.exceptions.PolarsError:
        return  # rows that are filtered out may not have the terms
    values = computed.with_columns(sample.lanes.alias(LANE)).unique()
    keys = [part.name for part in named]
    twice = values.group_by(keys, maintain_order=True).agg(pl.col(LANE)).filter(
        pl.col(LANE).list.len() > 1
    )  # fmt: skip
    for row in twice.head(1).iter_rows():
        shown = ", ".join(f"{term} = {value}" for term, value in zip(terms, row, strict=False))
        raise SourceError(
            f"Stream '{stream.node.name}' is said to come partitioned by "
            f"{', '.join(map(str, terms))}, but rows with {shown} are in the parts "
            f"'{row[-1][0]}' and '{row[-1][1]}'. Take partitioned_by away, or mend the input."
        )
