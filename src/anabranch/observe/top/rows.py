"""What `anabranch top` shows, as rows of plain values: a story in, tables out. No terminal is met here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anabranch.amount import in_bytes, several
from anabranch.events.event import MARKS, EpochHappened
from anabranch.observe.losses import bad_input
from anabranch.observe.story import Story
from anabranch.observe.terminal import sparkline
from anabranch.observe.totals import moment

DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Sheet:
    """A table: its columns, its rows, and which row is which thing."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    """Numbers as numbers, to sort by; `shown` writes them."""
    keys: list[str]
    left_out: int = 0

    def sorted_by(self, column: int, descending: bool) -> Sheet:
        """The same in another order; what is unknown comes last."""

        def rank(at: int) -> tuple[bool, Any]:
            value = self.rows[at][column]
            return (value is None) != descending, -1 if value is None else _rank(value)

        order = sorted(range(len(self.rows)), key=rank, reverse=descending)
        return Sheet(self.columns, [self.rows[at] for at in order], [self.keys[at] for at in order])

    def first(self, most: int) -> Sheet:
        """At most so many of its rows."""
        left = max(0, len(self.rows) - most)
        return Sheet(self.columns, self.rows[:most], self.keys[:most], left)


def _rank(value: Any) -> Any:
    """Names with numbers in them by these: flows@1/64 comes before flows@1/128."""
    if not isinstance(value, str):
        return value
    return [
        (part.isdecimal(), int(part) if part.isdecimal() else part) for part in DIGITS.split(value)
    ]


def shown(column: str, value: Any) -> str:
    """A cell as people read it.

    >>> shown("state", 2_000_000), shown("rows in", 1234), shown("load", 0.5), shown("aside", None)
    ('2.0 MB', '1,234', '50%', '–')
    """
    if value is None:
        return "–"
    if column in ("memory", "aside", "budget", "state", "received"):
        return in_bytes(value) if value else "–"
    if column == "busy":
        return f"{value:,.2f} s"
    if column == "load":
        return f"{value:.0%}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return (
        f"{value:,}" if isinstance(value, int) and column not in ("site", "epoch") else str(value)
    )


def sites(story: Story, of: str | None = None) -> Sheet:
    """What each site did in the newest epoch, and what it keeps."""
    event = story.newest
    columns = ("site", "busy", "load", "rows in", "rows out", "memory", "budget", "aside")
    if event is None:
        return Sheet(columns, [], [])
    custom = event.progress["customMetrics"]
    memory = {one["site"]: one for one in custom["adaptation"].get("memory", ())}
    seconds = max(event.progress["durationMs"]["triggerExecution"] / 1000, 1e-9)
    rows = []
    for site in custom["sites"]:
        kept = memory.get(site["site"], {})
        rows.append(
            (
                site["site"], float(site["busySeconds"]), site["busySeconds"] / seconds, site["rowsIn"],
                site["rowsOut"], kept.get("resident"), kept.get("limit"), kept.get("aside"),
            )
        )  # fmt: skip
    return Sheet(columns, rows, [f"site {row[0]}" for row in rows])


def subqueries(story: Story, of: str | None = None) -> Sheet:
    """What each subquery did in the newest epoch, and its state."""
    event = story.newest
    columns = (
        "subquery",
        "busy",
        "rows in",
        "rows out",
        "received",
        "state",
        "state rows",
        "aside",
        "skew",
    )
    told = [] if event is None else event.progress["stateOperators"]
    rows: list[tuple[Any, ...]] = [
        (
            one["operatorName"], float(own["busySeconds"]), own["rowsIn"], own["rowsOut"],
            own["bytesReceived"], one["memoryUsedBytes"], one["numRowsTotal"], own["spilledBytes"],
            float(own["skew"]),
        )
        for one in told
        for own in [one["customMetrics"]]
    ]  # fmt: skip
    return Sheet(columns, rows, [f"subquery {row[0]}" for row in rows])


def exchanges(story: Story, of: str | None = None) -> Sheet:
    """The partitions of each exchange in short, with their load along the slots."""
    columns = ("exchange", "parts", "busy", "rows in", "state", "aside", "load along the slots")
    event, rows = story.newest, []
    for name, one in ({} if event is None else event.exchanges).items():
        load, count = one.column("rows"), min(len(one), 24)
        cut = [float(part.sum()) for part in _parts(load, count)]
        rows.append(
            (
                name, len(one), float(one.seconds), int(load.sum()), float(one.column("size").sum()),
                float(one.column("aside").sum()), sparkline(cut),
            )
        )  # fmt: skip
    return Sheet(columns, rows, [f"exchange {row[0]}" for row in rows])


def _parts(column: Any, count: int) -> list[Any]:
    step = len(column) / max(count, 1)
    return [
        column[int(n * step) : max(int((n + 1) * step), int(n * step) + 1)] for n in range(count)
    ]


def partitions(story: Story, of: str | None = None) -> Sheet:
    """The partitions of all exchanges, of one ("exchange X"), or on one site ("site N")."""
    columns = ("partition", "site", "rows in", "rows out", "state", "aside", "marks")
    event, rows = story.newest, []
    for name, one in _asked(story, event, of):
        names = ("starts", "sites", "rows", "rows_out", "size", "aside", "marks")
        for start, site, taken, out, size, aside, marks in zip(
            *(one.column(column).tolist() for column in names), strict=True
        ):
            if of is None or not of.startswith("site ") or of == f"site {site}":
                marked = ", ".join(word for word, bit in MARKS.items() if marks & bit)
                rows.append((f"{name}/{start}", site, int(taken), int(out), size, aside, marked))
    return Sheet(columns, rows, [f"partition {row[0]}" for row in rows])


def _asked(story: Story, event: EpochHappened | None, of: str | None) -> list[tuple[str, Any]]:
    if event is None:
        return []
    kind, _, name = (of or "").partition(" ")
    if kind == "subquery":
        name = _exchange_of(story, name)
    only = name if kind in ("subquery", "exchange") else None
    return [(one, figures) for one, figures in event.exchanges.items() if only in (None, one)]


def decisions(story: Story, of: str | None = None) -> Sheet:
    """What was decided, newest first, with its reason and its effect; of one thing, what is about it."""
    columns = ("epoch", "what", "action", "why", "effect")
    about = _about(story, of)
    found = [one for one in reversed(story.decisions) if about(one)]
    rows: list[tuple[Any, ...]] = [
        (
            one["epoch"], one["what"] if one["accepted"] else f"no {one['what']}", one["action"],
            one["cause"] if one["accepted"] else one["reason"], _effect(one),
        )
        for one in found
    ]  # fmt: skip
    return Sheet(columns, rows, [f"decision {one['run']}/{one['number']}" for one in found])


def _about(story: Story, of: str | None) -> Callable[[dict[str, Any]], bool]:
    """Whether a decision is about a thing: "site 3", "exchange X", "subquery X", "partition X/8"."""
    kind, _, name = (of or "").partition(" ")
    exchange = _exchange_of(story, name) if kind == "subquery" else name
    match kind:
        case "site":
            return lambda one: name in (str(one["source"]), str(one["target"]))
        case "partition":
            return lambda one: f"{one['exchange']}/{one['partition']}" == name
        case "exchange" | "subquery":
            return lambda one: one["exchange"] == exchange
        case _:
            return lambda one: True


def _exchange_of(story: Story, subquery: str) -> str:
    plan = [] if story.started is None else story.started.plan["subqueries"]
    return next((one["exchange"] for one in plan if one["name"] == subquery), subquery)


def _effect(one: dict[str, Any]) -> str:
    if one["cost"] is not None:
        return f"cost × {one['cost']:.2f}"
    before, after = ("–" if n is None else f"{n:.2f}" for n in (one["before"], one["after"]))
    return one["givenUp"] or f"{before} → {after}"


def streams(story: Story, of: str | None = None) -> Sheet:
    """What has been read of each stream, what of it took no part, and how far its time has come."""
    columns = ("stream", "rows", "late", "bad", "newest", "watermark", "backlog")
    told = {} if story.newest is None else {
        one["description"]: one for one in story.newest.progress["sources"]
    }  # fmt: skip
    rows: list[tuple[Any, ...]] = [
        (
            name, one.rows, one.late, bad_input(one.bad_rows, one.bad_files), moment(one.newest),
            moment(one.watermark), told.get(name, {}).get("backlog"),
        )
        for name, one in story.totals.streams.items()
    ]  # fmt: skip
    return Sheet(columns, rows, [f"stream {row[0]}" for row in rows])


VIEWS: dict[str, Callable[[Story, str | None], Sheet]] = {
    "sites": sites, "exchanges": exchanges, "partitions": partitions, "subqueries": subqueries,
    "decisions": decisions, "streams": streams,
}  # fmt: skip


def headline(story: Story, now: float) -> str:
    """How the run stands, in two lines, at a moment."""
    told, totals, newest = story.status(), story.totals, story.newest
    name = "" if story.started is None else f"{story.started.name} "
    state = f"{told['state']}: {told['error']}" if told["error"] else told["state"]
    parts = [f"{name}{state}", several(told["sites"], "site")]
    if told["gone"]:
        parts.append(f"{len(told['gone'])} of them gone")
    if newest is not None:
        age = "" if told["at"] else f", {_ago(now - newest.at)}"
        parts.append(f"epoch {newest.epoch}{age}")
    counts = [several(totals.rows, "row"), several(sum(totals.results.values()), "result")]
    if story.warnings:
        counts.append(several(len(story.warnings), "warning"))
    rate = f"{totals.rates[-1]:,.0f} rows/s {sparkline(totals.rates)}  " if totals.rates else ""
    return f"{', '.join(parts)}\n{rate}{', '.join(counts)}"


def _ago(seconds: float) -> str:
    if seconds < 120:
        return f"{max(seconds, 0):.0f} s ago"
    return f"{seconds / 60:.0f} min ago" if seconds < 7_200 else f"{seconds / 3_600:.0f} h ago"


def words_of(story: Story, key: str) -> str:
    """What there is to say of one thing: a subquery in the words of the plan, a site's executor."""
    kind, _, name = key.partition(" ")
    if kind == "subquery" and story.started is not None:
        for one in story.started.plan["subqueries"]:
            if one["name"] == name:
                reads = ", ".join(one["reads"])
                return f"{one['title']}: {one['words']}; level {one['level']}, reads {reads}."
    if kind == "site" and story.newest is not None:
        for site in story.newest.progress["customMetrics"]["sites"]:
            if str(site["site"]) == name:
                return f"Executor {site['executor'] or 'of the driver'}."
    return ""
