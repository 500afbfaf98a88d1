"""The demonstration on the terminal: the run that adapts and the one that stays as it began, side by side.

Everything shown is from the reports of the two runs; what the input does in a phase is told in words.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from anabranch.amount import in_bytes, several
from anabranch.demo.course import Did, RunCourse, times_as_fast, times_as_many
from anabranch.demo.scenario import PHASES, SECONDS_PER_ROW, SITE_MEMORY, Demo
from anabranch.observe.terminal import bar, sparkline

ADAPTING, AS_IT_BEGAN = "adapting", "adaptation off"
LINES = 9
"""Lines for what was done."""


def picture(
    demo: Demo, adapted: RunCourse, fixed: RunCourse, elapsed: float, message: str, height: int
) -> RenderableType:
    """How both runs stand."""
    phase = PHASES[adapted.phase]
    head = Text.assemble(("anabranch demo", "bold"), f"  {elapsed:.0f} s  ")
    head.append(message, "yellow")
    if not adapted.totals.epochs:
        waiting = f"Spark starts its workers for two runs on {demo.sites} sites each …"
        return Group(head, Text(waiting, "dim"))
    now = Text(f"Phase {adapted.phase + 1} of {len(PHASES)}, {phase.title}: ", "bold")
    now.append(phase.trouble, "not bold yellow" if phase.kinds else "not bold")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("", no_wrap=True)
    for title in (ADAPTING, AS_IT_BEGAN):
        table.add_column(title, no_wrap=True)
    for name, *cells in _rows(demo, adapted, fixed):
        table.add_row(Text(name, "dim"), *cells)
    parts: list[RenderableType] = [
        head,
        now,
        Text(),
        table,
        Text(),
        Text("What Anabranch does", "bold"),
    ]
    room = max(1, min(LINES, height - 17))
    lines = [told(one) for one in adapted.done[-room:]] or [Text("nothing so far", "dim")]
    return Group(*parts, *lines)


def _rows(demo: Demo, adapted: RunCourse, fixed: RunCourse) -> Iterator[tuple[str, Text, Text]]:
    both = adapted, fixed
    yield "rows", *(_reach(demo, one) for one in both)  # type: ignore[misc]
    yield "rows/s", *(_rate(one) for one in both)  # type: ignore[misc]
    yield "results", *(Text(f"{one.results:,}") for one in both)  # type: ignore[misc]
    yield "site work", *(_busy(one) for one in both)  # type: ignore[misc]
    yield "fullest site", *(_memory(one) for one in both)  # type: ignore[misc]
    yield "join order", *(_shapes(one) for one in both)  # type: ignore[misc]


def _reach(demo: Demo, course: RunCourse) -> Text:
    return bar(course.totals.rows / demo.all_rows, 12).append(f" {course.totals.rows:,}", "default")


def _rate(course: RunCourse) -> Text:
    rates = course.totals.rates
    newest = Text(f"{rates[-1]:,.0f} " if rates else "–", "bold cyan")
    return newest.append(sparkline(rates[-12:]), "cyan")


def _busy(course: RunCourse) -> Text:
    busy = course.busy
    if not sum(busy):
        return Text("–")
    text = Text(sparkline(busy), "cyan")
    return text.append(f" busiest {max(busy) * len(busy) / sum(busy):.1f}x the mean", "default")


def _memory(course: RunCourse) -> Text:
    kept, aside = course.memory
    over = "red" if kept > 1.1 * SITE_MEMORY else ""
    text = Text(f"{in_bytes(kept)} of {in_bytes(SITE_MEMORY)}", over)
    return text.append(f", {in_bytes(aside)} aside" if aside else "")


def _shapes(course: RunCourse) -> Text:
    shapes = sorted(course.shapes.items(), key=lambda one: -one[1])
    return Text(", ".join(f"{shape} {several(n, 'part')}" for shape, n in shapes) or "–")


def told(one: Did) -> Text:
    """Something that was done, in a line that ends where the terminal does."""
    more = f" and {one.count - 1} more" if one.count > 1 else ""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"epoch {one.epoch:>2} ", "dim").append(f"{one.action}{more}", "green")
    return text.append(f"  {one.cause}", "dim")


def ending(adapted: RunCourse, fixed: RunCourse) -> Iterator[Text | Table]:
    """What came of it, by phases, computed from both runs."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("phase")
    for title in (ADAPTING, AS_IT_BEGAN, "won"):
        table.add_column(title, justify="right")
    table.add_column("done about it")
    for phase, mine, other in zip(PHASES, adapted.phases, fixed.phases, strict=True):
        won = times_as_many(mine.rate, other.rate)
        table.add_row(
            phase.title,
            *("–" if one.rate is None else f"{one.rate:,.0f}" for one in (mine, other)),
            Text("–" if won is None else f"{won:.2f}x", "bold cyan"),
            ", ".join(f"{kind} {mine.actions[kind]}" for kind in phase.kinds if mine.actions[kind])
            or "–",
        )
    yield Text("Rows a second, by phase", "bold")
    yield table
    yield Text()
    whole = times_as_fast(adapted, fixed)
    if whole is not None:
        cut = "" if fixed.ended else f" (the {fixed.totals.rows:,} rows that were done without it)"
        yield Text(f"With adaptation the same input{cut} went {whole:.2f} times as fast.")
    kept, kept_without = (max(one.resident for one in c.phases) for c in (adapted, fixed))
    aside = max(one.aside for one in adapted.phases)
    yield Text(
        f"A site kept at most {in_bytes(kept)} of state in memory (it may have {in_bytes(SITE_MEMORY)}), "
        f"{in_bytes(aside)} were put aside; without adaptation: {in_bytes(kept_without)}."
    )
    yield Text(
        f"Slow on purpose (the hook for faults): every row takes a site {SECONDS_PER_ROW * 1e6:.0f} µs more, "
        "so that sites on few cores are like machines of their own; "
        f"from phase 3 on {PHASES[2].trouble}. All else is as it is.",
        "dim",
    )
