"""A run on the terminal: a live picture of streams, sites and state, drawn from its totals.

`picture` is a pure function; `LiveView` shows it while `watch.py` feeds it.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from anabranch.amount import in_bytes, several
from anabranch.observe.losses import bad_input
from anabranch.observe.totals import Totals

SPARKS = "▁▂▃▄▅▆▇█"
EIGHTHS = " ▏▎▍▌▋▊▉"
MOST_SITES = 8
BAR_WIDTH = 20
LITTLE = 0.1
"""The share of a site's memory below which nobody wants to know."""


def picture(
    totals: Totals, title: str, elapsed: float, message: str = "", goal: int | None = None,
    sites: int = MOST_SITES,
) -> RenderableType:  # fmt: skip
    """The state of a run: `goal` is the number of rows it will read, if that is known."""
    head = Text.assemble((title, "bold"), f"  epoch {totals.last.get('batchId', '–')}", ("  ", ""))
    head.append(f"{elapsed:.0f} s  ")
    head.append(message, "yellow" if message else "")
    if not totals.epochs:
        return Group(head, Text("Waiting for the first epoch …", "dim"))
    parts: list[RenderableType] = [head, _reach(totals, goal), _rates(totals), Text()]
    parts += [_streams(totals), Text()]
    if totals.sites:
        parts += [_sites(totals, sites), Text()]
    if totals.last["stateOperators"]:
        parts += [_state(totals), Text()]
    parts.append(_results(totals))
    parts += _balance(totals)
    parts += _warnings(totals)
    return Group(*parts)


def _reach(totals: Totals, goal: int | None) -> Text:
    if not goal:
        return Text(f"{several(totals.rows, 'row')} in this run")
    text = bar(totals.rows / goal, 2 * BAR_WIDTH)
    return text.append(f"  {totals.rows:,} of {goal:,} rows", "default not dim")


def _rates(totals: Totals) -> Text:
    text = Text()
    if totals.rates:
        text.append(f"{totals.rates[-1]:,.0f} rows/s", "bold cyan")
        text.append(f" in the last epoch, {totals.rate:,.0f} over all  ")
        text.append(sparkline(totals.rates), "cyan")
    return text


def bar(share: float, width: int) -> Text:
    """A part of a whole as a bar, readable without colours, too.

    >>> bar(0.45, 10).plain
    '████▌░░░░░'
    """
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, part = divmod(eighths, 8)
    drawn = "█" * full + (EIGHTHS[part] if part else "")
    return Text.assemble((drawn, "cyan"), ("░" * (width - len(drawn)), "dim"))


def sparkline(values: list[float]) -> str:
    """The values as small columns, the greatest in full height."""
    top = max(values, default=0.0) or 1.0
    return "".join(SPARKS[min(7, int(value / top * 7.99))] for value in values)


def _table(totals: Totals, *columns: str) -> Table:
    """A plain table; the first two columns stand alike in all tables of the picture."""
    names = [*totals.streams, *totals.subqueries]
    widths = [max(map(len, names), default=0), len(f"{totals.rows:,}")]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for number, column in enumerate(columns):
        least = widths[number] if number < 2 else None
        side: JustifyMethod = "left" if number == 0 else "right"
        table.add_column(column, justify=side, no_wrap=True, min_width=least)
    return table


def _streams(totals: Totals) -> Table:
    table = _table(totals, "stream", "rows", "late", "bad", "newest", "watermark")
    for name, stream in totals.streams.items():
        table.add_row(
            name,
            f"{stream.rows:,}",
            Text(f"{stream.late:,}", "yellow" if stream.late else ""),
            Text(bad_input(stream.bad_rows, stream.bad_files), "red" if stream.bad else ""),
            stream.newest,
            stream.watermark,
        )
    return table


def _sites(totals: Totals, most: int) -> RenderableType:
    kept = _memory(totals)
    columns = ("site", "rows in", "rows out", "share", "", "busy", "load")
    table = _table(totals, *columns, *(("memory", "", "aside") if kept else ()))
    for at in (3, 7) if kept else (3,):
        table.columns[at].justify = "left"
    seconds = totals.last["durationMs"]["triggerExecution"] / 1000
    now = {site["site"]: site["busySeconds"] for site in totals.last["customMetrics"]["sites"]}
    ranked = sorted(totals.sites, key=lambda site: -totals.sites[site].rows_in)
    for number in sorted(ranked[:most]):
        flow, share = totals.sites[number], totals.share(number)
        table.add_row(
            str(number),
            f"{flow.rows_in:,}",
            f"{flow.rows_out:,}",
            bar(share, BAR_WIDTH),
            f"{share:.1%}",
            f"{flow.busy_seconds:.1f} s",
            f"{now.get(number, 0.0) / seconds:.0%}" if seconds else "–",
            *kept.get(number, ("", "", "") if kept else ()),
        )
    if len(ranked) <= most:
        return table
    return Group(table, Text(f"and {several(len(ranked) - most, 'site')} with fewer rows", "dim"))


def _memory(totals: Totals) -> dict[int, tuple[Text, str, str]]:
    """What each site keeps of what it may, and what it has put aside; nothing while that is very little."""
    told = totals.last["customMetrics"].get("adaptation", {}).get("memory", ())
    known = [one for one in told if one["limit"]]
    if all(one["resident"] < LITTLE * one["limit"] and not one["aside"] for one in known):
        return {}
    return {
        one["site"]: (
            bar(one["resident"] / one["limit"], BAR_WIDTH // 2),
            f"{in_bytes(one['resident'])} of {in_bytes(one['limit'])}",
            in_bytes(one["aside"]) if one["aside"] else "–",
        )
        for one in known
    }


def _state(totals: Totals) -> RenderableType:
    table = _table(totals, "subquery", "rows in", "rows out", "state rows", "state", "segments")
    for part in totals.last["stateOperators"]:
        flow = totals.subqueries[part["operatorName"]]
        table.add_row(
            part["operatorName"],
            f"{flow.rows_in:,}",
            f"{flow.rows_out:,}",
            f"{part['numRowsTotal']:,}",
            in_bytes(part["memoryUsedBytes"]),
            str(part["customMetrics"]["segments"]),
        )
    combining = totals.last["customMetrics"]["combining"]
    if not combining:
        return table
    told = f"senders sub-aggregate for {', '.join(combining)}: fewer rows come in than were read"
    return Group(table, Text(told, "dim"))


def _results(totals: Totals) -> Text:
    text = Text("results  ", "dim")
    for number, (query, rows) in enumerate(totals.results.items()):
        text.append(f"{', ' if number else ''}{query} ", "")
        text.append(f"{rows:,}", "bold green" if rows else "")
    return text


def _balance(totals: Totals) -> list[Text]:
    """How even the load is, and what was done about it."""
    levels = totals.last["customMetrics"].get("adaptation", {}).get("levels", ())
    known = [level["imbalance"] for level in levels if level["imbalance"] is not None]
    if not known:
        return []
    text = Text("balance  ", "dim")
    text.append(
        f"the busiest site has {max(known):.2f} times the mean, {several(totals.moved, 'move')}"
    )
    return [text, *(Text(f"  epoch {d['epoch']}: {worded(d)}", "dim") for d in totals.decisions)]


def worded(decision: dict[str, Any]) -> str:
    """A decision with its cause, in one line."""
    return f"{decision['action']} ({decision['cause']})"


def _warnings(totals: Totals) -> list[Text]:
    return [Text(f"epoch {epoch}: {warning}", "yellow") for epoch, warning in totals.warnings]


class LiveView:
    """The picture, redrawn in place; it stays on the screen when the run has ended."""

    def __init__(self, console: Console, title: str, goal: int | None = None) -> None:
        self._title, self._goal = title, goal
        self._began = time.monotonic()
        self._console = console
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def epoch(self, progress: dict[str, Any], totals: Totals) -> None:
        """Nothing of its own: the next tick shows the new totals."""

    def tick(self, totals: Totals, message: str) -> None:
        elapsed = time.monotonic() - self._began
        warned = sum(1 + text.cell_len // self._console.width for text in _warnings(totals))
        fixed = 17 + len(totals.last.get("stateOperators", [])) + warned + len(totals.decisions)
        room = max(2, self._console.height - fixed)
        self._live.transient = not totals.epochs  # a run without epochs leaves no picture
        drawn = picture(totals, self._title, elapsed, message, self._goal, min(room, MOST_SITES))
        self._live.update(drawn, refresh=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._live.stop()


def show_end(console: Console, totals: Totals) -> None:
    """What a run has read and given, in the lines that stay."""
    if not totals.epochs:
        console.print("There was nothing new to read.")
        return
    late = f", {totals.late:,} of them late" if totals.late else ""
    console.print(
        f"{several(totals.rows, 'row')} in {several(totals.epochs, 'epoch')} and {totals.seconds:.1f} s "
        f"({totals.rate:,.0f} rows/s){late}",
        highlight=False,
    )
    for sink in totals.last.get("sinks", []):
        rows = several(totals.results[sink["query"]], "row")
        line = f"  {sink['query']}: {rows} -> {sink['description']}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
