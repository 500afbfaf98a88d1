"""What a user may do by hand with the state of a running query set: put it aside, and bring it back."""

from __future__ import annotations

from anabranch.adapt.actions import CleanUp, Spill
from anabranch.adapt.policies.ways import ENDLESS
from anabranch.control.shapes import kept_shape
from anabranch.control.spilling import apart
from anabranch.engine.map_controls import MapControls
from anabranch.errors import RunError
from anabranch.language.join import Join
from anabranch.language.shape import MOST_INPUTS
from anabranch.settings import MOVING_STATE, PARALLEL_TRACK, TRANSITIONS


class StateControls(MapControls):
    """The part of a run's handle that says which state is in memory."""

    def spill(self, subquery: str, partition: int) -> None:
        """Puts the state of a partition aside, from the next epoch on, until `clean_up` or its windows close.

        Rows of inner joins and windows go on and meet what has come since; the results that they miss are
        owed, and come then. Where they would be wrong without what is put aside, the rows wait.
        """
        with self._changing():
            exchange, start = self._subject(subquery, partition)
            known = self.plan.exchanges[exchange]
            if known.in_grid or known.in_step:
                raise RunError(
                    f"State of '{subquery}' cannot be put aside: its rows cannot do without it, nor wait."
                )
            if self._checkpoint.manifest.exchanges[exchange].scattered:
                raise RunError(
                    f"Rows of hot keys of '{subquery}' meet in cells: they cannot be put aside."
                )
            if (exchange, start) in {*self._governor.moving, *self._governor.stopped}:
                raise RunError(
                    f"Partition {start} of '{subquery}' moves or is paused: wait for that."
                )
            owned = self.partition_map(subquery)
            aside = Spill(exchange, start, "asked for", site=owned.site_at(start))
            self._governor.holdings.request([aside], self._checkpoint.manifest.epoch)
            self._governor.holdings.spilling.keep_aside(exchange, [owned.range_at(start)])

    def _require_in_memory(self, subquery: str, partition: int) -> None:
        aside = self._governor.holdings.spilling.slots(self._checkpoint.manifest)
        if self._subject(subquery, partition) in apart(aside, self._governor.maps):
            raise RunError(
                f"State of partition {partition} of '{subquery}' is put aside: run.recall('{subquery}', "
                f"{partition}) brings it back."
            )

    def replan(
        self, subquery: str, shape: str, partition: int | None = None, *,
        transition: str | None = None,
    ) -> None:  # fmt: skip
        """Lets a join of several inputs work in another shape from the next epochs on, such as ((0,1),2).

        Of one partition, told by its first slot, or of all. A few epochs may pass until state of any size has
        come to it; results are the same throughout. With `plans="fixed"` it stays so; otherwise what is
        measured may change it again. `transition` takes the place of the setting of that name.
        """
        with self._changing():
            known = self.partition_map(subquery)
            joins = self._governor.holdings.shapes
            if subquery not in joins.inputs:
                raise RunError(self._why_flat(subquery))
            starts = known.starts[: known.partition_at(known.slots - known.cells - 1) + 1]
            if partition is not None:
                starts = (self._subject(subquery, partition)[1],)
            if transition is not None and transition not in TRANSITIONS:
                raise RunError(
                    f"There is no transition '{transition}': expected one of {', '.join(TRANSITIONS)}."
                )
            if transition == PARALLEL_TRACK and joins.endless(subquery):
                raise RunError(
                    f"'{subquery}' cannot come to another shape on a parallel track: {ENDLESS}. Take "
                    f"'{MOVING_STATE}', or bound the times of all its inputs."
                )
            kept = kept_shape(shape, joins.inputs[subquery])
            manifest = self._checkpoint.manifest
            record = manifest.subqueries[subquery]
            counted = self._governor.planning.counted(subquery, known, starts)
            actions = joins.changes(
                subquery, known, starts, kept, "asked for", record, counted, transition
            )
            self._governor.holdings.request(actions, manifest.epoch)

    def _why_flat(self, subquery: str) -> str:
        node = self.plan.subqueries[subquery].node
        if not isinstance(node, Join):
            return f"'{subquery}' is no join: only joins have a shape."
        if node.kind != "inner":
            return (
                f"'{subquery}' is a {node.kind} join, and what a row gives that meets nothing "
                "depends on all inputs at once, so it has one shape. Only inner joins can have another."
            )
        if len(node.parts) < 3 or not node.keys[0]:
            return f"'{subquery}' has {len(node.parts)} inputs: with fewer than three on one key, one shape."
        return (
            f"'{subquery}' has {len(node.parts)} inputs: with more than {MOST_INPUTS}, one shape."
        )

    def recall(self, subquery: str, partition: int) -> None:
        """Brings the state of a partition back that was put aside; it gives what it owes."""
        self.clean_up(subquery, partition)

    def clean_up(self, subquery: str | None = None, partition: int | None = None) -> None:
        """Brings together what was put aside, of a partition, a subquery or all, and gives what it owes."""
        with self._changing():
            maps, manifest = self._governor.maps, self._checkpoint.manifest
            asked = {*apart(self._governor.holdings.spilling.slots(manifest), maps)}
            if subquery is not None:
                self.partition_map(subquery)
                wanted = self.plan.subqueries[subquery].exchange
                asked = {(exchange, start) for exchange, start in asked if exchange == wanted}
            if subquery is not None and partition is not None:
                asked &= {self._subject(subquery, partition)}
            actions = [
                CleanUp(exchange, start, "asked for", site=maps[exchange].site_at(start))
                for exchange, start in sorted(asked)
            ]
            self._governor.holdings.request(actions, manifest.epoch)
