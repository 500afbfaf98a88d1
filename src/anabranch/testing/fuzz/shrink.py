"""A failure made small: fewer cases, runs, files and rows that still differ, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from anabranch.testing.fuzz.case import FuzzCase
from anabranch.testing.fuzz.judge import FAILED, Judgement, judge
from anabranch.testing.fuzz.world import DrawnStream, World

TRIES = 60
"""Smaller worlds tried for one failure: each costs a run."""


def describe(world: World, cases: Sequence[FuzzCase], outcome: Judgement) -> Judgement:
    """The outcome of one of the cases; a failure with its texts and a small world that shows it."""
    if outcome.verdict != FAILED:
        return outcome
    case = next(one for one in cases if one.seed == outcome.seed)
    together = not _fails(world, [case], case)
    shown = list(cases) if together else [case]
    world, outcome = _smaller(world, shown, case, outcome)
    lines = [
        f"Case {case.seed} failed" + (", only together with its neighbours." if together else ".")
    ]
    lines += [
        f"{name}: {text}" for one in shown for name, text in (*one.views, (one.name, one.ours))
    ]
    lines += [f"DuckDB: {case.duck}", outcome.reason.rstrip(), world.told()]
    first, count = (shown[0].seed, len(shown))
    lines.append(f"Repeat it: anabranch fuzz --first {first} --cases {count} --jobs 1")
    return replace(outcome, reason="\n".join(lines))


def _fails(world: World, cases: Sequence[FuzzCase], case: FuzzCase) -> Judgement | None:
    """The outcome of the case if it fails in this world."""
    found = next(one for one in judge(world, cases) if one.seed == case.seed)
    return found if found.verdict == FAILED else None


def _smaller(
    world: World, cases: Sequence[FuzzCase], case: FuzzCase, outcome: Judgement
) -> tuple[World, Judgement]:
    tries = TRIES
    again = True
    while again and tries > 0:
        again = False
        for candidate in _simpler(world):
            tries -= 1
            found = _fails(candidate, cases, case)
            if found is not None:
                world, outcome, again = candidate, found, True
                break
            if tries <= 0:
                break
    return world, outcome


def _simpler(world: World) -> Iterator[World]:
    """Worlds with one thing less."""
    if len(world.runs) > 1:
        whole = tuple(replace(one, there=one.there[-1:]) for one in world.inputs)
        yield replace(world, inputs=whole, runs=world.runs[-1:])
    if any(sites > 1 for sites, _ in world.runs):
        yield replace(world, runs=tuple((1, settings) for _, settings in world.runs))
    for place, stream in enumerate(world.inputs):
        for fewer in _fewer(stream):
            yield replace(world, inputs=(*world.inputs[:place], fewer, *world.inputs[place + 1 :]))


def _fewer(stream: DrawnStream) -> Iterator[DrawnStream]:
    """The stream with half of the rows of a file, or with a file less."""
    for number, file in enumerate(stream.files):
        if len(stream.files) > 1:
            files = stream.files[:number] + stream.files[number + 1 :]
            there = tuple(max(1, count - (number < count)) for count in stream.there)
            yield replace(stream, files=files, there=there)
        half = file.height // 2
        for part in (file[:half], file[half:]) if half else ((file[:0],) if file.height else ()):
            yield replace(stream, files=(*stream.files[:number], part, *stream.files[number + 1 :]))
