"""The sinks of a run and its dead letters: opened for it, staged into by tasks, made to follow the manifest.

    results/published-000000000012-4be1a07c.json   in the checkpoint: whose results are where they belong

After a crash the mark tells what is still to be done for the last epoch: what it does not name is asked of
the sinks, which have it waiting or visible, or the start is refused. Once it is there, results may be taken
away and queries may get other sinks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from anabranch.engine.options import RunOptions
from anabranch.engine.orders import Orders
from anabranch.engine.report import EpochReport
from anabranch.errors import RunError, StateError
from anabranch.plan.plan import Plan
from anabranch.sinks import dead_letter
from anabranch.sinks.base import Sink, WriteContext, Writer
from anabranch.sinks.claim import Claim, claim
from anabranch.sinks.staging import RESULTS, Staging
from anabranch.state.manifest import Manifest, ResultPart
from anabranch.state.place import Place
from anabranch.state.store import read_sealed, write_sealed


class Outlets:
    """The writers that a run has opened, and its dead-letter folder."""

    def __init__(self, plan: Plan, options: RunOptions, place: Place) -> None:
        self._plan = plan
        self._options = options
        self._place = place
        self._writers: dict[str, Writer] = {}
        self._dead_letter: Claim | None = None
        self._marks: list[str] = []
        """Those in the checkpoint, oldest first."""

    def open(self, sinks: Mapping[str, Sink], run: str) -> None:
        """Takes the places of the results for this run; raises if one cannot be written, or is another's."""
        settings = self._options.settings
        outputs = {output.query: output for output in self._plan.outputs}
        kept = self._options.evolution.kept if self._options.evolution else {}
        for query, sink in sinks.items():
            self._writers[query] = sink.open(
                WriteContext(
                    run=run,
                    query=query,
                    schema=outputs[query].schema,
                    replaces=outputs[query].replaces,
                    keys=outputs[query].keys,
                    marked=outputs[query].marked,
                    formerly=kept.get(query, query),
                    checkpoint=self._place,
                    fsync=settings.fsync,
                    private=settings.private_files,
                    temporary=self._options.temporary,
                )
            )
        if self._options.dead_letter is not None:
            self._dead_letter = claim(
                Path(self._options.dead_letter), "The dead-letter folder", run, self._place,
                ("*/*/epoch=*",), settings.private_files, self._options.temporary,
            )  # fmt: skip

    def stagings(self, epoch: int, attempt: str) -> dict[str, Staging]:
        """Where the results of an epoch wait for its commit."""
        return {name: writer.staging(epoch, attempt) for name, writer in self._writers.items()}

    def staged(self, orders: Orders, report: EpochReport) -> dict[str, list[ResultPart]]:
        """The parts of the queries that had results in this epoch; RunError if one is not to be seen."""
        staged = {query: report.result_parts(query) for query in orders.results}
        for query, parts in staged.items():
            staging = orders.results[query]
            for part in parts:
                if not staging.place.has(f"{staging.prefix}{part.name}"):
                    raise RunError(
                        f"The results of query '{query}' in epoch {orders.epoch} should be in "
                        f"'{staging.where(part.name)}', which is not there: were they written on another "
                        "machine? Results must go to a folder that all executors and the driver "
                        "share. The epoch is not counted."
                    )
        return {query: parts for query, parts in staged.items() if parts}

    def publish(self, manifest: Manifest) -> None:
        """Makes the results of the committed epoch visible."""
        self._publish(manifest, set(), None)

    def recover(self, manifest: Manifest, renamed: Mapping[str, str] | None = None) -> None:
        """Does what a crash has left undone for the last epoch; safe to repeat.

        `renamed` has what the queries of that epoch are called now, if the query set is another one; those
        that are gone are not in it.
        """
        published: set[str] = set()
        if manifest.results and self._place.has(_mark(manifest)):
            published = self._published(manifest, renamed)
        self._publish(manifest, published, renamed)

    def _published(self, manifest: Manifest, renamed: Mapping[str, str] | None) -> set[str]:
        """Whose results the mark says are where they belong."""
        what = "The record of published results"
        try:
            return {*read_sealed(self._place, _mark(manifest), what)["queries"]}
        except StateError:
            # Lost with the power of a machine: it was not flushed, for the folders tell the same
            if self._repeating(manifest, renamed):
                raise
            return set()

    def _publish(
        self, manifest: Manifest, published: set[str], renamed: Mapping[str, str] | None
    ) -> None:
        todo = {query: parts for query, parts in manifest.results.items() if query not in published}
        noted = not todo
        # Folders first, which can be asked what they have: each other sink is noted as soon as it is served
        for query, parts in sorted(todo.items(), key=lambda one: self._repeats(one[0], renamed)):
            now = query if renamed is None else renamed.get(query, "")
            writer = self._writers.get(now)
            if writer is None:
                raise StateError(
                    f"The results of query '{query}' in epoch {manifest.epoch} are committed, but a crash "
                    "came before they were published, and the query has no sink now. Start once with the "
                    "sink that it had."
                )
            writer.publish(parts, manifest.epoch, manifest.attempt)
            published.add(query)
            noted = writer.repeats
            if noted:
                self._note(manifest, published, self._options.settings.fsync)
        if not noted:
            # Should the machine lose it, folders tell the same; what others have had stays flushed
            flushed = self._repeating(manifest, renamed) and self._options.settings.fsync
            self._note(manifest, published, flushed)
        # Where they were then: this start may have another folder
        dead_letter.publish(
            manifest.dead_letter, manifest.streams, manifest.epoch, manifest.attempt
        )

    def _repeating(self, manifest: Manifest, renamed: Mapping[str, str] | None) -> bool:
        """Whether results of the epoch go to a sink that would have them twice."""
        return any(self._repeats(query, renamed) for query in manifest.results)

    def _repeats(self, query: str, renamed: Mapping[str, str] | None) -> bool:
        writer = self._writers.get(query if renamed is None else renamed.get(query, ""))
        return writer is not None and writer.repeats

    def _note(self, manifest: Manifest, published: Iterable[str], fsync: bool) -> None:
        mark = _mark(manifest)
        write_sealed(self._place, mark, {"queries": sorted(published)}, fsync)
        if mark not in self._marks:
            self._marks.append(mark)

    def clear(self) -> None:
        """Removes what published epochs no longer need; only a run that has the lead may."""
        for writer in self._writers.values():
            writer.clear()
        for mark in self._marks[:-1]:
            self._place.remove(mark)
        del self._marks[:-1]

    def sweep(self, manifest: Manifest) -> None:
        """Removes what a crash left behind, once the last epoch is published."""
        for suffix in (".arrow", ".json"):
            for name in self._place.names(RESULTS, suffix):
                if name != _mark(manifest):
                    self._place.remove(name)
        self._marks = [_mark(manifest)]
        for writer in self._writers.values():
            writer.recover(manifest.epoch)
        dead_letter.recover(self._options.dead_letter, self._plan.streams, manifest.epoch)

    def discard(self, epoch: int, attempt: str) -> None:
        """Removes what a failed epoch left."""
        for writer in self._writers.values():
            writer.discard(epoch, attempt)
        dead_letter.discard(self._options.dead_letter, self._plan.streams, epoch, attempt)

    def closers(self) -> list[Writer | Claim]:
        """All that is to be let go of."""
        return [*self._writers.values(), *([self._dead_letter] if self._dead_letter else [])]


def _mark(manifest: Manifest) -> str:
    return f"{RESULTS}/published-{manifest.epoch:012d}-{manifest.attempt}.json"
