"""The plan as text that a person reads from top to bottom."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from anabranch.amount import in_bytes, in_rows, several
from anabranch.explain.explanation import Edge, Explanation, OutputPart, StreamPart, SubqueryPart
from anabranch.explain.join_words import length, shape_words, track_words
from anabranch.explain.measured import Work
from anabranch.explain.words import merger_words, operator_words, steps_words
from anabranch.language.kinds import type_words
from anabranch.partitioning.choice import WIDTH, ComponentChoice
from anabranch.partitioning.flow import ASSUMED, COUNTED, SAMPLED, Flow
from anabranch.plan.subquery import IN_GRID
from anabranch.routing.grid import choose_grid

BASES = {ASSUMED: "assumed", SAMPLED: "from a sample", COUNTED: "counted by the run"}

TIE = "\u00a0"
"""A space at which no line ends, until it is written."""


def explain_text(told: Explanation, verbose: bool = False) -> str:
    """Streams, the partitioning and why, subqueries level by level, outputs.

    `verbose` shows every candidate with its cost at each node, and long expressions in full.
    """
    return "\n".join(_lines(told, verbose))


def _lines(told: Explanation, verbose: bool) -> Iterator[str]:
    if told.measured:
        yield f"Measured in {several(told.measured.epochs, 'epoch')}; figures are means of an epoch."
        yield ""
    yield "Streams"
    for stream in told.streams:
        yield from _stream(stream)
    for part in told.choice.parts:
        yield ""
        yield from _partitioning(told, part, verbose)
    if told.better is not None:
        yield ""
        yield from _wrapped(
            f"With the measured rates, {told.better} would be chosen instead. A checkpoint keeps its "
            "partitioning: to change it, start with a new one.", "", "  "
        )  # fmt: skip
    for level in told.levels:
        yield ""
        yield f"Subqueries, level {level}"
        for number, subquery in enumerate(told.level(level)):
            if number:
                yield ""
            yield from _subquery(told, subquery, verbose)
    yield ""
    yield "Outputs"
    for output in told.outputs:
        yield from _output(told, output, verbose)


def _wrapped(text: str, indent: str, hang: str | None = None) -> list[str]:
    lines = textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=hang or indent + "  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace(TIE, " ") for line in lines]


def amount(flow: Flow) -> str:
    """Rows and, where they are known, bytes."""
    shown = f"{in_rows(flow.rows)} / {in_bytes(flow.bytes)}" if flow.bytes else in_rows(flow.rows)
    return shown.replace(" ", TIE)


def _figures(expected: Flow | None, measured: Flow | None, basis: bool = False) -> str:
    """Measured figures with what was expected, or the latter alone."""
    if measured is not None:
        before = f" (expected {amount(expected)})" if expected is not None else ""
        return f"{amount(measured)} an epoch{before}"
    if expected is None:
        return ""
    return f"about {amount(expected)} an epoch{f', {BASES[expected.basis]}' if basis else ''}"


def _stream(stream: StreamPart) -> Iterator[str]:
    plan = stream.plan
    late = f", lateness {length(plan.lateness, plan.ordered.timestamps)}" if plan.lateness else ""
    source = f"{stream.source}, " if stream.source else ""
    yield from _wrapped(f"{plan.name}: {source}ordered by {plan.ordered.column}{late}", "  ")
    if stream.given:
        kept = "and stays so" if plan.exchange else "but is partitioned anew"
        yield from _wrapped(f"comes partitioned by {', '.join(stream.given)}, {kept}", "    ")
    else:
        yield "    comes unpartitioned"
    figures = _figures(stream.expected, stream.measured, basis=True)
    if figures:
        were = "was" if stream.late_rows == 1 else "were"
        dropped = f"; {in_rows(stream.late_rows)} {were} late in all" if stream.late_rows else ""
        yield from _wrapped(f"{figures}{dropped}", "    ")
    columns = (f"{name} {type_words(plan.schema[name])}".replace(" ", TIE) for name in plan.columns)
    yield from _wrapped(f"reads {', '.join(columns)}", "    ")


def _partitioning(told: Explanation, part: ComponentChoice, verbose: bool) -> Iterator[str]:
    best = part.winner
    yield from _wrapped(f"Partitioning of {', '.join(part.streams)}: {best.partitioning}", "")
    if told.strategy != "subquery":
        yield from _wrapped(
            f"Not used: with strategy='{told.strategy}' every operator has an exchange of its own.",
            "  ", "  ",
        )  # fmt: skip
    else:
        rates = " Costs follow from the measured rates." if told.measured else ""
        yield from _wrapped(f"{_reach(told, part)}{part.reason}{rates}", "  ", "  ")
        if not best.partitioning.axes:
            yield "  Rows are spread evenly over the sites."
    yield ""
    yield from (f"  {line}" for line in part.considered(verbose))


def _reach(told: Explanation, part: ComponentChoice) -> str:
    """How many operators run on the partitions."""
    reading = [
        one.name
        for one in told.subqueries
        if one.subquery.stateful and one.name in part.winner.cost.suited | part.winner.cost.unsuited
    ]
    inside = [name for name in reading if name in part.winner.cost.suited]
    apart = [name for name in reading if name not in part.winner.cost.suited]
    if not inside:
        return ""
    if not apart:
        these = _these(inside)
        return f"{'All ' if these[0].isdigit() else ''}{these} on its partitions. "
    return f"{_these(inside)} on its partitions; {', '.join(apart)} cannot. "


def _these(names: list[str]) -> str:
    return (
        f"{len(names)} operators run"
        if len(names) > 3
        else (f"{', '.join(names)} run{'s' if len(names) == 1 else ''}")
    )


def _subquery(told: Explanation, part: SubqueryPart, verbose: bool) -> Iterator[str]:
    subquery = part.subquery
    yield from _wrapped(f"{part.name}: {operator_words(subquery.node)}", "  ", "      ")
    yield from _wrapped(f"{part.partitioned}: {_where(told, part)}", "    ")
    for edge in part.edges:
        yield from _wrapped(f"reads {_edge(part, edge, verbose)}", "    ")
    if subquery.merger:
        yield from _wrapped(merger_words(subquery.merger), "    ")
    if part.work is None:
        if part.expected is not None:
            yield from _wrapped(f"yields {_figures(part.expected, None)}", "    ")
        return
    work = part.work
    if subquery.shaped:
        yield from _wrapped(
            f"shape {shape_words(subquery.inputs, work.shapes, work.partitions)}"
            f"{track_words(subquery.inputs, work.tracks)}", "    "
        )  # fmt: skip
        if part.name in told.reshaped:
            yield from _wrapped(f"last changed to {told.reshaped[part.name]}", "    ")
    taken, made = in_rows(work.rows_in), _figures(part.expected, work.out)
    yield from _wrapped(f"takes in {taken} an epoch, yields {made}", "    ")
    yield from _wrapped(
        f"busy {work.seconds:.3f} s an epoch ({work.share:.0%} of all), skew {work.skew:.2f} over "
        f"{several(work.sites, 'site')}; state {in_rows(work.state_rows)} / {in_bytes(work.state_bytes)}"
        f"{_aside(work)}",
        "    ",
    )


def _aside(work: Work) -> str:
    if not work.aside_partitions:
        return ""
    return (
        f", {in_bytes(work.aside_bytes)} of it put aside ({work.aside_partitions:,} of "
        f"{several(work.partitions, 'partition')})"
    )


def _where(told: Explanation, part: SubqueryPart) -> str:
    if not part.opens:
        return f"on the partitions of {part.subquery.exchange}"
    if part.single:
        return "all rows go to one site"
    if part.subquery.spread == IN_GRID:
        return f"{choose_grid(told.sites, *part.subquery.weights)} cells, one on each site"
    sites = part.work.sites if part.work else told.sites
    return f"{several(told.partitions, 'partition')} on {several(sites, 'site')}"


def _edge(part: SubqueryPart, edge: Edge, verbose: bool) -> str:
    steps = steps_words(edge.path.steps, verbose)
    origin = f"{edge.origin} {steps}" if steps else edge.origin
    figures = _figures(edge.expected, edge.measured)
    after = f", {figures}" if figures else ""
    if edge.exchange:
        return f"{origin}: exchange {part.sent}{after}{_combining(part)}"
    return f"{origin}: stays {edge.stays(part.subquery.exchange)}{after}"


def _combining(part: SubqueryPart) -> str:
    if not part.subquery.combines:
        return ""
    if part.work is None:
        return "; senders may sub-aggregate"
    return f"; senders {'sub-aggregate' if part.work.combining else 'do not sub-aggregate'}"


def _output(told: Explanation, part: OutputPart, verbose: bool) -> Iterator[str]:
    sink = f" -> {part.sink}" if part.sink else " (no sink)" if told.sinks_known else ""
    if part.rows is not None:
        expected = f" (expected {in_rows(part.expected.rows)})" if part.expected else ""
        figures = f": {in_rows(part.rows)} an epoch{expected}"
    else:
        figures = f": {_figures(part.expected, None)}" if part.expected else ""
    yield from _wrapped(f"{part.output.query}{sink}{figures}", "  ")
    for edge in part.edges:
        steps = steps_words(edge.path.steps, verbose, leaving=True)
        columns = ", ".join(part.output.schema)
        shown = steps if "select" in steps else f"{steps}: {columns}" if steps else columns
        yield from _wrapped(f"from {edge.origin}: {shown}", "    ")
