"""Query sets that change, drawn at random: a case cut into phases, each with a query set of its own.

How they are run and judged is in `evolution.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from anabranch.language.builder import Query
from anabranch.language.expression import col
from anabranch.testing.cases import Case, draw_case
from anabranch.testing.chooser import Chooser
from anabranch.testing.joins import draw_join_case
from anabranch.testing.queries import tells_groups
from anabranch.testing.trial import STEPS, draw_trial

FIRST_STEPS = ("opened", *STEPS)
"""Where a run may crash: once it is open, before anything is polled, or at a step of its first epoch."""


@dataclass(frozen=True)
class Phase:
    """A stretch of a run with one query set."""

    queries: Mapping[str, Query]
    done: Mapping[str, str]
    """How each query came to be in it: new, keep, rename or adjust, moved if its results go elsewhere;
    and what was dropped."""
    formerly: Mapping[str, str]
    places: Mapping[str, str]
    """Where the results of each query go: what tells those apart that ask the same."""
    frames: int
    """How many frames of each stream there are by its end."""
    sites: int
    backfill: bool = False
    crash: str = ""
    stop: int | None = None
    """After how many epochs it is stopped, whatever waits or moves then."""
    meddling: int | None = None
    """The seed of what is done to it by hand in every epoch."""


@dataclass(frozen=True)
class Evolving:
    """A case, and the phases of its query set."""

    case: Case
    phases: tuple[Phase, ...]
    settings: Mapping[str, Any]


def draw_evolution(chooser: Chooser, meddling: bool = False) -> Evolving:
    """A case cut into phases, each with some other queries than the one before.

    With `meddling`, partitions are moved and paused by hand, and phases end in the middle of it.
    """
    case = draw_join_case(chooser) if chooser.flag(0.4) else draw_case(chooser)
    distinct = {query.node.signature: query for query in case.queries.values()}
    pool = [query for query in distinct.values() if query.node.streams]
    settings = dict(draw_trial(chooser, 1).settings)
    if meddling:
        settings["skew_buffer"] = chooser.choice(["shared", "split"])
    names, phases = 0, list[Phase]()
    queries: dict[str, Query] = {}
    places: dict[str, str] = {}
    cuts = sorted({chooser.integer(1, case.epochs) for _ in range(chooser.choice([1, 1, 2, 3]))})
    for frames in [*cuts, case.epochs]:
        done: dict[str, str] = {}
        formerly: dict[str, str] = {}
        now: dict[str, Query] = {}
        exchanged = _exchanged(list(queries), chooser)
        for name, query in queries.items():
            what = chooser.choice(["keep", "keep", "rename", "drop", "adjust"])
            changed = _adjusted(query, chooser) if what == "adjust" else None
            if len(case.frames) > 1 or (what == "adjust" and changed is None):
                what = "keep" if what == "adjust" else what
            names += 1
            new = f"n{names}" if what == "rename" else name
            if name in exchanged:
                what, new, changed = "rename", exchanged[name], None
            done[new] = what
            if what != "drop":
                now[new] = changed if what == "adjust" and changed is not None else query
                formerly[new] = name
        signatures = set(_signatures(queries))
        # What asks the same as one that is gone would be that one under another name
        kept = {formerly[name] for name in now}
        gone = {queries[name].node.signature for name in queries if name not in kept}
        for query in pool:
            asked = query.node.signature in signatures
            if query.node.signature in gone:
                continue
            if chooser.flag(0.15 if asked else 0.5) or not (asked or now):
                names += 1
                now[f"n{names}"], done[f"n{names}"] = query, "new"
        if not now:
            # The same as before: a set without queries is none
            now, done = dict(queries), dict.fromkeys(queries, "keep")
            formerly = {name: name for name in queries}
        before, places = places, {}
        for name in now:
            places[name] = before[formerly[name]] if name in formerly else f"place of {name}"
            alone = [*_signatures(queries), *_signatures(now)].count(now[name].node.signature) < 3
            if formerly.get(name) == name and alone and chooser.flag(0.2):
                # By its name it is still the same
                places[name], done[name] = f"place {len(phases)} of {name}", f"{done[name]}, moved"
        crash = chooser.choice(["", "", *FIRST_STEPS])
        sites, backfill = chooser.choice([2, 1, 5]), chooser.flag(0.4)
        seed = chooser.integer(0, 2**31) if meddling else None
        stop = chooser.choice([None, 1, 2]) if meddling else None
        if crash in ("opened", "after-commit", "after-publish"):
            stop = None  # how many epochs come before it is not for sure, or one too many
        phases.append(
            Phase(now, done, formerly, places, frames, sites, backfill, crash, stop, seed)
        )
        queries = now
    phases[-1] = replace(phases[-1], stop=None)
    return Evolving(case, tuple(phases), settings)


def _signatures(queries: Mapping[str, Query]) -> list[str]:
    return [query.node.signature for query in queries.values()]


def _exchanged(names: list[str], chooser: Chooser) -> dict[str, str]:
    """Two queries that get each other's names, now and then."""
    if len(names) < 2 or not chooser.flag(0.2):
        return {}
    one = chooser.integer(0, len(names) - 1)
    other = (one + chooser.integer(1, len(names) - 1)) % len(names)
    return {names[one]: names[other], names[other]: names[one]}


def _adjusted(query: Query, chooser: Chooser) -> Query | None:
    """The query with a condition on its results."""
    whole = [name for name, kind in query.node.schema.items() if kind == pl.Int64]
    if not whole or not any(part for part in query.node.inputs):
        return None
    adjusted = query.where(col(chooser.choice(whole)) > chooser.choice([0, 2, -5]))
    return adjusted if tells_groups(adjusted) else None
