"""From the streams and queries of a session to a plan and its explanation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from anabranch.choosing import Choosing
from anabranch.errors import PlanningError
from anabranch.explain.explanation import Explanation
from anabranch.explain.figures import Background, explanation_of
from anabranch.language.deep import deeply
from anabranch.language.node import Node, Stream
from anabranch.language.numbered import Numbered
from anabranch.language.rebase import rebased
from anabranch.partitioning.choice import Choice
from anabranch.partitioning.tree import needs_of
from anabranch.plan.compile import compile_queries
from anabranch.plan.draft import Aims
from anabranch.plan.keeping import kept_state
from anabranch.plan.plan import Plan
from anabranch.plan.subquery import IN_GRID
from anabranch.settings import Settings
from anabranch.sinks.make import make_sinks
from anabranch.sources.make import Registered
from anabranch.state.manifest import Manifest, QueryRecord, refuse_other


@dataclass(frozen=True)
class Planning:
    """The queries and streams of a session at one time."""

    nodes: Mapping[str, Node]
    streams: Mapping[str, Registered]
    choosing: Choosing

    @property
    def settings(self) -> Settings:
        return self.choosing.settings

    def continuing(self, stored: Manifest | None) -> Planning:
        """The same, with queries that a checkpoint has reading what they read there."""
        return self if stored is None else self.reading(stored.queries)

    def reading(self, records: Mapping[str, QueryRecord]) -> Planning:
        """The same, with queries that begin later, or with replays, as these records of them say."""
        nodes, streams = dict(self.nodes), dict(self.streams)
        for query, record in records.items():
            if query not in nodes:
                continue
            read: dict[str, Stream] = {}
            for name, replay in record.streams.items():
                if name in self.streams and (record.since or replay != name):
                    streams.setdefault(replay, self.streams[name].replayed(replay))
                    read[name] = replace(streams[replay].node, since=record.since)
            nodes[query] = rebased(nodes[query], read)
        return replace(self, nodes=nodes, streams=streams)

    def plan(
        self, stored: Manifest | None, sinks: Collection[str] | None,
        kept: Collection[str] | None = None,
    ) -> tuple[Plan, Choice | None]:  # fmt: skip
        """The plan, and the choice it was made by if it was; as a stored run first started, if any.

        If the query set is not that of the run, the streams under what is `kept` of it stay partitioned so.
        """
        return deeply(lambda: self._planned(stored, sinks, kept), "The query set", PlanningError)

    def _planned(
        self, stored: Manifest | None, sinks: Collection[str] | None, kept: Collection[str] | None
    ) -> tuple[Plan, Choice | None]:
        choice = None
        if self.settings.strategy == "subquery" and self.nodes:
            if stored and stored.partitioning is not None:
                texts = stored.partitioning
                choice = (
                    self.choosing.as_chosen(self.nodes, self.streams, texts)
                    if kept is None
                    else self.choosing.keeping(self.nodes, self.streams, texts, kept)
                )
            else:
                choice = self.choose()
        plan = compile_queries(
            {name: stream.node for name, stream in self.streams.items()},
            self.nodes,
            {name: stream.lateness for name, stream in self.streams.items()},
            self.settings.allow_unbounded_state,
            [name for name, stream in self.streams.items() if stream.whole],
            Aims(
                choice,
                self.choosing.given(self.streams),
                self.settings.central,
                sinks,
                kept_state(stored),
            ),
            self.settings.strategy,
            self.settings.merge,
        )
        return self._weighed(plan, choice), choice

    def _weighed(self, plan: Plan, choice: Choice | None) -> Plan:
        """The plan with the rates at which rows come to joins in a grid, which give it its shape."""
        if choice is None:
            return plan
        named = {node.signature: name for name, node in needs_of(self.nodes).nodes.items()}

        def rows(node: Node) -> float:
            node = node.input if isinstance(node, Numbered) else node
            flow = choice.flows.get(named.get(node.signature, getattr(node, "name", "")))
            return flow.rows if flow is not None and flow.rows > 0 else 1.0

        weighed = {
            name: replace(part, weights=(rows(part.node.inputs[0]), rows(part.node.inputs[1])))
            for name, part in plan.subqueries.items()
            if part.spread == IN_GRID
        }
        return replace(plan, subqueries={**plan.subqueries, **weighed})

    def choose(self, run: Manifest | None = None) -> Choice:
        """The best partitioning, by what a run has counted if there is one."""
        return deeply(
            lambda: self.choosing.choose(self.nodes, self.streams, run),
            "The query set",
            PlanningError,
        )

    def explainer(
        self, sinks: Mapping[str, Any] | None
    ) -> Callable[[Manifest | None], Explanation]:
        """What explains the plan, with what a run has measured by then."""
        sites = self.choosing.sites
        described = {query: sink.describe() for query, sink in make_sinks(sinks or {}).items()}
        known = Background(
            sites, sites * self.settings.partitions_per_site, self.settings.strategy,
            {name: stream.source.describe() for name, stream in self.streams.items()},
            self.choosing.given(self.streams), described if sinks is not None else None,
        )  # fmt: skip

        def explain(stored: Manifest | None) -> Explanation:
            plan, used = self.plan(stored, sinks)
            if stored is not None:
                refuse_other(stored, plan.identity, "The checkpoint")
            choice, better = self.choose(), None
            if used is not None:
                expected, choice = choice.flows, used
                if stored is not None and stored.epoch >= 0:
                    again = self.choose(stored)
                    if again.partitioning != choice.partitioning:
                        better = again.partitioning
                    # The candidates at the measured rates, beside what had been expected
                    choice = replace(again.pinned(choice.texts) or choice, flows=expected)
            return explanation_of(plan, self.nodes, choice, known, stored, better)

        return lambda stored: deeply(lambda: explain(stored), "The query set", PlanningError)
