"""Sinks that notice what a reader must never see: an epoch before its commit, or twice.

Results of a trial go to memory or to folders of Parquet; either way `Results` has the rows of every epoch in
the end. Dead letters are read back here too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from anabranch.sinks.base import WriteContext
from anabranch.sinks.driver import DriverWriter, MemorySink
from anabranch.testing.cases import Case


@dataclass
class Witness(MemorySink):
    """Results in memory; an epoch may be handed over again only by the run after a crash, and as it was."""

    again: int = -1
    """The epoch that may come a second time: the last one that was committed before the run started."""

    def open(self, context: WriteContext) -> DriverWriter:
        # Two drivers of one checkpoint have it open at once, which a sink of this process would refuse
        self._run, self._open = context.run, False
        return super().open(context)

    def deliver(self, rows: pl.DataFrame, epoch: int) -> None:
        if epoch in self.epochs:
            assert epoch == self.again, f"epoch {epoch} was handed over twice"
            self.again = -1
        super().deliver(rows, epoch)


@dataclass
class Results:
    """Where the results of each query of a trial go, and what has come there."""

    case: Case
    folder: Path | None = None
    """Below it a folder for each query; without it results are kept in memory."""
    witnesses: dict[str, Witness] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.witnesses = {query: Witness() for query in self.case.queries}

    def sinks(self, committed: int) -> dict[str, Any]:
        """The sinks of a run that begins after this epoch."""
        for witness in self.witnesses.values():
            witness.again = committed
        if self.folder is None:
            return dict(self.witnesses)
        return {query: self.folder / query for query in self.case.queries}

    def visible(self, query: str, epoch: int) -> bool:
        """Whether a reader sees results of an epoch."""
        if self.folder is None:
            return epoch in self.witnesses[query].epochs
        return bool(list((self.folder / query).glob(f"epoch={epoch:012d}*")))

    def gather(self) -> None:
        """Brings what was written to folders into memory."""
        if self.folder is None:
            return
        for query, witness in self.witnesses.items():
            for folder in sorted((self.folder / query).glob("epoch=*")):
                parts = [pl.read_parquet(part) for part in sorted(folder.glob("*.parquet"))]
                witness.epochs[int(folder.name.removeprefix("epoch="))] = pl.concat(parts)


def late_letters(folder: Path, stream: str, schema: pl.Schema) -> pl.DataFrame:
    """The late rows of a stream that a run has kept aside."""
    parts = sorted((folder / "late" / stream).glob("epoch=*/*.parquet"))
    return pl.concat([pl.DataFrame(schema=schema), *(pl.read_parquet(part) for part in parts)])
