"""Which rows of a join have met something: what outer, semi- and anti-joins must know of them.

A row that meets something in its own epoch says so itself, in its column `MET`; of one that meets its first
later, the values on which that depends are kept in a table of their own. Rows that are alike in these
have met the same, so no row needs a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from anabranch.language.expression import Named
from anabranch.operators.meeting import Meeting
from anabranch.operators.partials import TIME
from anabranch.routing.locator import slot_of_locator
from anabranch.routing.reach import within
from anabranch.state.group import SiteState
from anabranch.state.segment import DUE, LOCATOR
from anabranch.state.stretch import around

MET = "__met"


@dataclass(frozen=True)
class JoinInput:
    """What the join takes in, and keeps, of one input."""

    number: int
    keys: tuple[Named, ...]
    payload: tuple[str, ...]
    names: dict[str, str]
    """The payload's columns as they are called in the results."""
    identity: tuple[str, ...]
    """The columns on which it depends what a row meets."""

    @property
    def table(self) -> str:
        return f"in{self.number}"

    @property
    def met(self) -> str:
        return f"met{self.number}"


@dataclass
class MetRecord:
    """What has met something in this epoch."""

    arrived: Sequence[pl.DataFrame | None]
    meeting: Meeting | None
    state: SiteState
    after: int | None
    """Rows that were due by then do not count any more."""
    met: list[np.ndarray] = field(default_factory=list)
    _first: dict[int, pl.DataFrame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.meeting is not None:
            self.met = [np.zeros(rows.height, dtype=bool) for rows in self.meeting.rows]

    def note(self, chosen: list[np.ndarray]) -> None:
        """The rows at these places, of each input, have met each other."""
        for met, places in zip(self.met, chosen, strict=True):
            met[places] = True

    def fresh(self, number: int) -> pl.DataFrame | None:
        """The rows that came in this epoch, and whether they have met something."""
        rows = self.arrived[number]
        if rows is None:
            return None
        met = np.zeros(rows.height, dtype=bool)
        if self.meeting is not None:
            origin = self.meeting.origin[number]
            new = origin >= 0
            met[origin[new]] = self.met[number][new]
        return rows.with_columns(pl.Series(MET, met))

    def fresh_met(self, number: int) -> pl.DataFrame:
        """The rows that came in this epoch and have met something."""
        rows = self.fresh(number)
        return pl.DataFrame() if rows is None else rows.filter(MET)

    def first_met(self, inlet: JoinInput) -> pl.DataFrame:
        """The remembered rows that have met something now, and nothing before."""
        if inlet.number not in self._first:
            self._first[inlet.number] = self._first_of(inlet)
        return self._first[inlet.number]

    def _first_of(self, inlet: JoinInput) -> pl.DataFrame:
        columns = [LOCATOR, DUE, *inlet.identity]
        if self.meeting is None:
            return pl.DataFrame(schema=dict.fromkeys(columns, pl.Null()))
        old = self.met[inlet.number] & (self.meeting.origin[inlet.number] < 0)
        rows = self.meeting.rows[inlet.number].filter(pl.Series(old))
        if MET in rows.columns:
            rows = rows.filter(~pl.col(MET))
        if rows.height == 0:
            return rows
        asked = around(TIME, rows[LOCATOR].to_numpy(), rows[TIME].to_numpy(), 0, 0)
        return without(rows, self.state.probe(inlet.met, asked, self.after), inlet)


def at_home(rows: pl.DataFrame, inlet: JoinInput, state: SiteState) -> pl.DataFrame:
    """The rows that are more than copies: of a scattered slot both inputs may be in many cells."""
    copies = state.copies.get(inlet.number)
    if not copies:
        return rows
    return rows.filter(pl.Series(~within(slot_of_locator(rows[LOCATOR].to_numpy()), copies)))


def without(rows: pl.DataFrame, known: list[pl.DataFrame], inlet: JoinInput) -> pl.DataFrame:
    """The rows that are not like any of the known ones."""
    known = [part for part in known if part.height]
    if not known or rows.height == 0:
        return rows
    on = [LOCATOR, *inlet.identity]
    return rows.join(
        pl.concat([part.select(on) for part in known]), on=on, how="anti", nulls_equal=True,
        maintain_order="left",
    )  # fmt: skip
