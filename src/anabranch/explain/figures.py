"""Gathers what is known about a plan into its explanation: expected flows, and what a run has measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from anabranch.explain.explanation import Edge, Explanation, OutputPart, StreamPart, SubqueryPart
from anabranch.explain.measured import Measured, Work, measured_by
from anabranch.language.node import Node
from anabranch.partitioning.choice import Choice
from anabranch.partitioning.flow import Flow
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.term import text_of
from anabranch.partitioning.tree import NeedTree, needs_of
from anabranch.plan.plan import Output, Plan
from anabranch.plan.subquery import BY_LANE, Path, Subquery
from anabranch.state.manifest import Manifest


@dataclass(frozen=True)
class Background:
    """What a plan does not know of itself."""

    sites: int
    partitions: int
    strategy: str
    sources: Mapping[str, str] = field(default_factory=dict)
    given: PartitioningSet = field(default_factory=PartitioningSet)
    sinks: Mapping[str, str] | None = None


def explanation_of(
    plan: Plan, queries: Mapping[str, Node], choice: Choice, known: Background,
    run: Manifest | None = None, better: PartitioningSet | None = None,
) -> Explanation:  # fmt: skip
    """The plan with all that is known about it; `choice` is that which the plan was made by."""
    measured = measured_by(run) if run is not None else None
    maker = _Maker(plan, needs_of(queries), choice.flows, measured)
    parts = sorted(plan.subqueries.values(), key=lambda part: part.level)
    return Explanation(
        streams=tuple(
            StreamPart(
                stream, known.sources.get(name, ""), tuple(map(text_of, known.given.terms(name))),
                choice.flows.get(name), measured.streams.get(name) if measured else None,
                measured.late_rows.get(name, 0) if measured else 0,
            )
            for name, stream in plan.streams.items()
        ),
        subqueries=tuple(maker.subquery(part) for part in parts),
        outputs=tuple(
            maker.output(output, queries[output.query], (known.sinks or {}).get(output.query))
            for output in plan.outputs
        ),
        choice=choice,
        sites=run.sites if run is not None else known.sites,
        partitions=_partitions(run) or known.partitions,
        strategy=known.strategy,
        measured=measured,
        better=better,
        sinks_known=known.sinks is not None,
    )  # fmt: skip


def _partitions(run: Manifest | None) -> int:
    """How many a run has: it keeps them when it goes on with other sites."""
    records = run.exchanges.values() if run is not None else ()
    return max((len(record.sites) for record in records), default=0)


@dataclass
class _Maker:
    plan: Plan
    tree: NeedTree
    flows: Mapping[str, Flow]
    measured: Measured | None
    named: dict[str, str] = field(init=False)
    """The need of each signature: names differ where every operator is a subquery."""

    def __post_init__(self) -> None:
        self.named = {node.signature: name for name, node in self.tree.nodes.items()}

    def flow(self, node: Node) -> Flow | None:
        return self.flows.get(self.named.get(node.signature, getattr(node, "name", "")))

    def subquery(self, subquery: Subquery) -> SubqueryPart:
        work = self.measured.work.get(subquery.name) if self.measured else None
        crosses = [self._crosses(subquery, path) for path in subquery.paths]
        expected = self._received(subquery)
        edges = tuple(
            Edge(
                path,
                crossing,
                self._lane(subquery, path),
                flow,
                _own(work, subquery, crosses, crossing),
            )
            for path, crossing, flow in zip(subquery.paths, crosses, expected, strict=True)
        )
        # What a rule has made of several nodes goes by the name of the last of them
        yields = self.flow(subquery.node) or self.flows.get(subquery.name)
        return SubqueryPart(subquery, edges, yields, work)

    def _crosses(self, subquery: Subquery, path: Path) -> bool:
        origin = self.plan.subqueries.get(path.origin)
        if origin is None:
            return subquery.spread != BY_LANE
        return origin.level != subquery.level

    def _lane(self, subquery: Subquery, path: Path) -> bool:
        return subquery.spread == BY_LANE and path.origin not in self.plan.subqueries

    def _received(self, subquery: Subquery) -> list[Flow | None]:
        """What it takes in along each of its paths."""
        nodes, paths = subquery.node.inputs, subquery.paths
        if subquery.inputs == 1:
            return self._expected(paths, self._together(nodes))
        found: dict[int, Flow | None] = {}
        for number, node in enumerate(nodes):
            places = [place for place, path in enumerate(paths) if path.input == number]
            flows = self._expected(tuple(paths[place] for place in places), self.flow(node))
            found |= zip(places, flows, strict=True)
        return [found[place] for place in range(len(paths))]

    def _together(self, nodes: Sequence[Node]) -> Flow | None:
        flows = [self.flow(node) for node in nodes]
        known = [flow for flow in flows if flow is not None]
        if not flows or len(known) < len(flows):
            return None
        rows, size = sum(flow.rows for flow in known), sum(flow.bytes for flow in known)
        return Flow(rows, size, known[0].basis)

    def _expected(self, paths: tuple[Path, ...], whole: Flow | None) -> list[Flow | None]:
        """The flow along each of several paths: parts of a union in proportion to their origins."""
        if whole is None or len(paths) == 1:
            return [whole] * len(paths)
        origins = [self._origin(path.origin) for path in paths]
        if any(flow is None for flow in origins):
            return [None] * len(paths)
        rows = [flow.rows for flow in origins if flow is not None]
        return [whole.share(count / sum(rows) if sum(rows) else 0.0) for count in rows]

    def _origin(self, name: str) -> Flow | None:
        subquery = self.plan.subqueries.get(name)
        return self.flow(subquery.node) if subquery else self.flows.get(name)

    def output(self, output: Output, node: Node, sink: str | None) -> OutputPart:
        whole = self.flow(node)
        rows = self.measured.results.get(output.query, 0.0) if self.measured else None
        edges = tuple(
            Edge(path, False, expected=flow)
            for path, flow in zip(output.paths, self._expected(output.paths, whole), strict=True)
        )
        return OutputPart(output, edges, sink, whole, rows)


def _own(work: Work | None, subquery: Subquery, crosses: list[bool], crossing: bool) -> Flow | None:
    """What a run has counted along one path; received rows are not counted by where they are from."""
    if work is None or crosses.count(crossing) != 1:
        return None
    through = crossing or (subquery.spread == BY_LANE and not work.local.rows)
    return work.received if through else work.local
