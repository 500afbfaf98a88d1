"""Rates for the cost model: measured on a sample before the first start, or by the manifests of a run.

The sample goes through the queries themselves, operators and all, in memory: what comes out of every
node, per row that went in, is its selectivity, and the size of its rows is theirs. Windows that are
longer than the sample look less selective than they are. Skew is measured on the sample as well: how
the rows would lie on the sites under a partitioning set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from anabranch.language.expression import Named
from anabranch.language.groups import Aggregate
from anabranch.language.join import Join
from anabranch.language.lowering import columns_of
from anabranch.language.node import Node, Stream
from anabranch.language.numbered import Numbered, numbered
from anabranch.language.stateful import Stateful
from anabranch.language.stateless import Filter, Union
from anabranch.language.window import Hop, Tumble
from anabranch.operators.base import END_OF_TIME, Moment, Spread, no_results
from anabranch.operators.partials import SEQ
from anabranch.operators.stateless import apply, compute
from anabranch.partitioning.cost import Rates
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.tree import NeedTree
from anabranch.plan.subquery import operator_of, steps_of
from anabranch.routing.frame import Frame
from anabranch.routing.hashing import hash_columns
from anabranch.routing.lanes import place_lanes
from anabranch.routing.locator import slot_of
from anabranch.routing.partition_map import even_map
from anabranch.routing.sorting import distinct
from anabranch.state.group import SiteState
from anabranch.state.manifest import Manifest
from anabranch.state.place import place
from anabranch.state.segment import LOCATOR


def rates_on_sample(
    tree: NeedTree, samples: Mapping[str, pl.DataFrame], per_epoch: Mapping[str, float]
) -> dict[str, Rates]:
    """The rates of all streams that have a sample, and of the nodes above such streams only."""
    rates = {
        name: Rates(_width(rows), rows_per_epoch=per_epoch[name])
        for name, rows in samples.items()
        if name in tree.streams
    }
    read = {part for parts in tree.inputs.values() for part in parts}
    many = len(tree.nodes) > MANY
    evaluator = _Evaluator(samples)
    yielded = {name: rows.height for name, rows in samples.items()}
    for name, node in tree.nodes.items():
        if not node.streams <= samples.keys():
            continue
        try:
            yielded[name], width = evaluator.measure(node, closely=name in read or not many)
        except Exception:
            continue  # an estimate is not worth failing for; the run will say what is wrong
        if all(part in yielded for part in tree.inputs[name]):
            received = sum(yielded[part] for part in tree.inputs[name])
            rates[name] = Rates(width, yielded[name] / received if received else 0.0)
    return rates


def rates_of_run(tree: NeedTree, manifest: Manifest) -> dict[str, Rates]:
    """The rates that a run has counted since its beginning, per epoch."""
    epochs = max((stream.epochs for stream in manifest.streams.values()), default=0)
    if epochs < 1:
        return {}
    rates: dict[str, Rates] = {}
    for name, stream in manifest.streams.items():
        if stream.rows and name in tree.streams:
            rates[name] = Rates(stream.bytes / stream.rows, rows_per_epoch=stream.rows / epochs)
    for name, record in manifest.subqueries.items():
        if name in tree.needs and record.rows_out:
            width = record.bytes_out / record.rows_out
            rates[name] = Rates(width, rows_per_epoch=record.rows_out / epochs)
    return rates


def _width(rows: pl.DataFrame) -> float:
    own = [name for name in rows.columns if name.startswith("__")]
    return rows.drop(own).estimated_size() / max(1, rows.height)


MANY = 64
"""Of more nodes than this, aggregates that nothing reads are not computed: it is enough to count groups."""
LARGE_CONDITION = 5_000
"""Parts of a condition that is not tried on a sample: all rows are taken to pass it."""
PAIRED_ROWS = 1_000
"""Rows of each input that a join without equal keys is tried with."""

MOST_RESULTS = 1_000_000
"""Results of an operator over a sample that are waited for."""


@dataclass
class _Evaluator:
    """Runs nodes over whole samples, each node once."""

    samples: Mapping[str, pl.DataFrame]
    known: dict[str, pl.DataFrame] = field(default_factory=dict)

    def rows(self, node: Node) -> pl.DataFrame:
        if node.signature not in self.known:
            self.known[node.signature] = self._evaluate(node)
        return self.known[node.signature]

    def measure(self, node: Node, closely: bool) -> tuple[int, float]:
        """How many rows a node gives over the sample, and how wide they are; about, if not `closely`."""
        if not closely and isinstance(node, Aggregate) and isinstance(node.window, Tumble):
            operator = operator_of(node, None)
            taken = operator.intake(self.rows(node.input), Spread(1), 0)
            keys = [key.name for key in node.keys if key.name in taken]
            numbers = 8 * (len(node.schema) - len(keys))
            wide = taken.select(keys).estimated_size() / max(1, taken.height)
            return len(distinct(taken[LOCATOR].to_numpy())), wide + numbers
        rows = self.rows(node)
        return rows.height, _width(rows)

    def _evaluate(self, node: Node) -> pl.DataFrame:
        if isinstance(node, Stream):
            assert node.ordered
            rows = self.samples[node.name].drop_nulls(node.ordered.column)
            return rows.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(SEQ))
        if isinstance(node, Union):
            names = node.schema.names()
            return _numbered(pl.concat([self.rows(part).select(names) for part in node.parts]))
        if isinstance(node, Join) and node.rows is not None:
            node = numbered(node)
        below = [self.rows(part) for part in node.inputs]
        if isinstance(node, Filter) and getattr(node.predicate, "weight", 1) > LARGE_CONDITION:
            return below[0]
        if not isinstance(node, Stateful):
            return apply(steps_of(node), below[0])
        wanted = None
        if isinstance(node, Numbered):
            wanted = {name for name in node.input.schema if name in below[0]}
        if isinstance(node, Join):
            # A sample has only the columns that are read
            sides = zip(node.names, below, strict=True)
            wanted = {shown for names, rows in sides for own, shown in names.items() if own in rows}
            if not node.keys[0]:
                # Every row meets every row: of a whole sample there would be far too many
                below = [rows.head(PAIRED_ROWS) for rows in below]
        if isinstance(node, Aggregate) and isinstance(node.window, Hop):
            # Every row is in many windows, which close at once here
            windows = -(-node.window.size // node.window.slide)
            below = [rows.head(MOST_RESULTS // windows) for rows in below]
        operator = operator_of(node, wanted)
        state = SiteState(place("."), (), [(0, 1)])
        taken = [operator.intake(rows, Spread(1), number) for number, rows in enumerate(below)]
        frames = [Frame(rows) if rows.height else None for rows in taken]
        made: list[pl.DataFrame] = []
        for results in operator.advance(frames, state, Moment(None, END_OF_TIME)):
            made.append(results)
            if sum(part.height for part in made) > MOST_RESULTS:
                break  # very many, then; how many does not matter for a plan
        return _numbered(pl.concat(made) if made else no_results(node.schema))


def _numbered(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(SEQ))


def skew_on_sample(
    partitioning: PartitioningSet, samples: Mapping[str, pl.DataFrame], partitions: int, sites: int
) -> float:
    """How much more than its share the busiest site would get; 1 if nothing is known."""
    worst = 1.0
    owners = np.asarray(even_map(partitions, sites).sites)
    for stream, rows in samples.items():
        terms = partitioning.terms(stream)
        # A sample has only the columns that are read; a stream may come partitioned by others
        known = all({*columns_of(term)} <= {*rows.columns} for term in terms)
        if terms and known and rows.height:
            named = [Named(f"term{at}", term) for at, term in enumerate(terms)]
            try:
                values = compute(rows, named).get_columns()
            except pl.exceptions.PolarsError:
                continue  # rows that a filter keeps from the operator may not have the term
            hashes = hash_columns(values, rows.height)
            counts = np.bincount(owners[slot_of(hashes, partitions)], minlength=sites)
            worst = max(worst, float(counts.max()) * sites / rows.height)
    return worst


def skew_of_lanes(lanes: Sequence[str], partitions: int, sites: int) -> float:
    """The same for a stream that stays in the lanes it comes in, if all of them are as full.

    >>> skew_of_lanes(["a", "b"], 64, 8)
    4.0
    """
    owners = even_map(partitions, sites).sites
    counts = Counter(owners[place] for place in place_lanes({}, lanes, partitions).values())
    return max(counts.values()) * sites / len(lanes)
