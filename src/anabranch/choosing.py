"""The choice of a partitioning for the streams of a session, from what is known of them.

Rates come from the manifest of a run where there is one, else from a sample of each stream, and are
assumed where there is neither. The sample of a stream that is said to come partitioned is also held
against that claim: were it wrong, groups would be split without anyone noticing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from anabranch.errors import SourceError
from anabranch.language.expression import Named
from anabranch.language.graph import Node
from anabranch.operators.stateless import compute
from anabranch.partitioning.choice import Choice
from anabranch.partitioning.cost import assume
from anabranch.partitioning.flow import flows_of
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.search import search
from anabranch.partitioning.tree import needs_of
from anabranch.plan.estimate import rates_of_run, rates_on_sample, skew_on_sample
from anabranch.settings import Settings
from anabranch.sources.base import Limits, Sample
from anabranch.sources.make import Registered
from anabranch.state.manifest import Manifest

LANE = "__lane"


@dataclass
class Choosing:
    """Chooses for one session; samples are taken once."""

    sites: int
    settings: Settings
    permitted: Sequence[PartitioningSet] | None = None
    """The only sets that may be chosen, if the user has named some."""
    _samples: dict[str, Sample | None] = field(default_factory=dict)
    _known: dict[tuple[str, ...], Choice] = field(default_factory=dict)

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
        rows = {name: sample.rows for name, sample in samples.items()}
        sampled = rates_on_sample(tree, rows, {n: s.per_epoch for n, s in samples.items()})
        counted = rates_of_run(tree, run) if run is not None else {}
        rates = assume(tree, sampled | counted)
        partitions = self.sites * self.settings.partitions_per_site
        choice = search(
            tree,
            rates,
            given=self.given(streams),
            only=self.permitted,
            skew=lambda chosen: skew_on_sample(chosen, rows, partitions, self.sites),
            sites=self.sites,
            central=self.settings.central,
        )
        choice = replace(choice, flows=flows_of(tree, rates, sampled, counted))
        if run is None:
            self._known[key] = choice
        return choice

    def permit(self, sets: Sequence[PartitioningSet]) -> None:
        """From now on, chooses among these only."""
        self.permitted = sets
        self._known.clear()

    def given(self, streams: Mapping[str, Registered]) -> PartitioningSet:
        """How the streams come partitioned."""
        return PartitioningSet(tuple(a for stream in streams.values() for a in stream.given.axes))

    def _sample(self, stream: Registered) -> Sample | None:
        name = stream.node.name
        if name not in self._samples:
            limits = Limits(
                self.settings.max_files_per_epoch, self.settings.max_bytes_per_epoch,
                self.settings.max_rows_per_epoch, 1,
            )  # fmt: skip
            found = stream.source.sample(self.settings.sample_rows, limits)
            if found is not None:
                _check_lanes(stream, found)
            self._samples[name] = found
        return self._samples[name]


def _check_lanes(stream: Registered, sample: Sample) -> None:
    terms = stream.given.terms(stream.node.name)
    if not terms or sample.lanes is None:
        return
    named = [Named(f"term{at}", term) for at, term in enumerate(terms)]
    values = compute(sample.rows, named).with_columns(sample.lanes.alias(LANE)).unique()
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
