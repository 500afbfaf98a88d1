"""A finished or failed run as one HTML file that needs nothing else: something to send to a colleague."""

from __future__ import annotations

import datetime as dt
import platform
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from anabranch.amount import in_bytes, several
from anabranch.observe.drawing import heat_map, lines, plan_drawing
from anabranch.observe.story import Story

MOST_LISTED = 400
Words = Callable[[float], str]
CHARTS: tuple[tuple[str, tuple[str, ...], Words], ...] = (
    ("Throughput (rows/s)", ("rate",), "{:,.0f}".format),
    ("Time of an epoch (s)", ("seconds", "tasks", "commit"), "{:.3f}".format),
    ("State", ("state", "aside"), lambda value: in_bytes(int(value))),
    ("Imbalance of sites", ("imbalance",), "{:.2f}".format),
    ("Rows that took no part, or wait", ("waiting", "late", "bad"), "{:,.0f}".format),
)
"""Title, which figures of an epoch, and how the greatest is said."""
STYLE = resources.files("anabranch.observe").joinpath("report.css").read_text()


def report(story: Story) -> str:
    """The whole file."""
    started, newest = story.started, story.newest
    if started is None:
        raise ValueError("nothing has happened yet")
    state = story.status()["state"]
    ended = story.ended.at if story.ended else (newest.at if newest else started.at)
    parts = [
        f"<h1>{escape(started.name)}</h1><p class='soft'>{escape(started.place)} · run {started.run} · "
        f"{_time(started.at)} to {_time(ended)}</p>",
        _glance(story, state),
        _section("The plan", plan_drawing(started.plan, _notes(story))),
        _section("Over time", _charts(story)),
        *(_section(f"Slots × time: {name}", _map(story, name)) for name in story.heat),
        _section("Sites", _sites(story)),
        _section("Streams", _streams(story)),
        _section("Decisions", _decisions(story)),
        _section("Warnings", _warnings(story)),
        _section("Settings", _table(["setting", "value"], started.settings.items())),
        f"<p class='soft'>Anabranch {escape(started.version)}, Python {platform.python_version()}; written "
        f"{_time(dt.datetime.now(dt.UTC).timestamp())}.</p>",
    ]  # fmt: skip
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(started.name)}: report of a run</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _time(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _section(title: str, body: str, kind: str = "") -> str:
    return f"<section class='{kind}'><h2>{escape(title)}</h2>{body}</section>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    if not body:
        return "<p class='soft'>None.</p>"
    head = "".join(f"<th scope='col'>{escape(one)}</th>" for one in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _glance(story: Story, state: str) -> str:
    totals = story.totals
    figures = {
        "state": state,
        "epochs": f"{totals.epochs:,}",
        "rows": f"{totals.rows:,}",
        "rows/s": f"{totals.rate:,.0f}",
        "late": f"{totals.late:,}",
        "results": f"{sum(totals.results.values()):,}",
        "partitions moved": f"{totals.moved:,}",
        "sites": str(story.sites),
    }
    body = "".join(f"<div><b>{value}</b>{name}</div>" for name, value in figures.items())
    error = story.ended.error if story.ended else None
    said = f"<p><b>It failed:</b> {escape(error)}</p>" if error else ""
    return _section(
        "At a glance", f"<div class='big'>{body}</div>{said}", "failed" if error else ""
    )


def _notes(story: Story) -> dict[str, str]:
    totals, newest = story.totals, story.newest
    state = {} if newest is None else {
        one["operatorName"]: one["memoryUsedBytes"] for one in newest.progress["stateOperators"]
    }  # fmt: skip
    flows = {
        name: f"{flow.rows_in:,} in, {flow.rows_out:,} out, {in_bytes(state.get(name, 0))}"
        for name, flow in totals.subqueries.items()
    }
    return flows | {f"o:{query}": f"{rows:,} rows" for query, rows in totals.results.items()}


def _charts(story: Story) -> str:
    series = list(story.series)
    if not series:
        return "<p class='soft'>There was no epoch.</p>"
    place = {one["epoch"]: at / max(1, len(series) - 1) for at, one in enumerate(series)}
    marks = sorted(
        {place[d["epoch"]] for d in story.decisions if d["accepted"] and d["epoch"] in place}
    )
    delays = sorted({name for one in series for name in one["delay"]})[:3]
    wanted: list[tuple[str, dict[str, list[float | None]], Words]] = [
        *((title, {k: [one[k] for one in series] for k in keys}, words) for title, keys, words in CHARTS),
        ("Watermark delay", {n: [one["delay"].get(n) for one in series] for n in delays}, "{:g}".format),
    ]  # fmt: skip
    figures = []
    for title, columns, words in wanted:
        most = max((v for values in columns.values() for v in values if v is not None), default=0.0)
        label = f"{title}: {', '.join(columns)}; most {words(most)}"
        drawn = lines(list(columns.items()), marks, label)
        figures.append(f"<figure>{drawn}<figcaption>{escape(label)}</figcaption></figure>")
    about = f"<p class='soft'>{several(len(series), 'epoch')}; ticks are decisions.</p>"
    return about + f"<div class='charts'>{''.join(figures)}</div>"


def _map(story: Story, name: str) -> str:
    kept = list(story.heat[name])
    label = f"Rows by slot (down) and epoch (across), epochs {kept[0][0]} to {kept[-1][0]}"
    picture = heat_map([np.frombuffer(rows, "<f4") for _, rows, _ in kept], label)
    return f"<figure>{picture}<figcaption>{escape(label)}</figcaption></figure>"


def _sites(story: Story) -> str:
    told = (
        story.newest.progress["customMetrics"]["adaptation"].get("memory", ())
        if story.newest
        else ()
    )
    memory = {one["site"]: one for one in told}
    rows = [
        [
            site, f"{flow.rows_in:,}", f"{flow.rows_out:,}", f"{story.totals.share(site):.1%}",
            f"{flow.busy_seconds:.2f} s", in_bytes(memory.get(site, {}).get("resident") or 0),
            in_bytes(memory.get(site, {}).get("aside") or 0),
        ]
        for site, flow in sorted(story.totals.sites.items())
    ]  # fmt: skip
    return _table(["site", "rows in", "rows out", "share", "busy", "in memory", "put aside"], rows)


def _streams(story: Story) -> str:
    rows = [
        [name, f"{one.rows:,}", f"{one.late:,}", f"{one.bad:,}", one.newest, one.watermark]
        for name, one in story.totals.streams.items()
    ]
    return _table(["stream", "rows", "late", "bad", "newest", "watermark"], rows)


def _warnings(story: Story) -> str:
    listed = list(story.warnings)[-MOST_LISTED:]
    return _table(["epoch", "warning"], [[one["epoch"], one["text"]] for one in listed])


def _decisions(story: Story) -> str:
    listed = list(story.decisions)[-MOST_LISTED:]
    rows = [
        [
            one["epoch"], one["action"], "carried out" if one["accepted"] else "refused",
            one["cause"] if one["accepted"] else one["reason"], one["origin"],
            "" if one["before"] is None else f"{one['before']:.2f}",
            one["givenUp"] or ("" if one["after"] is None else f"{one['after']:.2f}"),
        ]
        for one in listed
    ]  # fmt: skip
    heads = ["epoch", "what", "verdict", "why", "by", "imbalance before", "after"]
    more = len(story.decisions) - len(listed)
    return (f"<p class='soft'>And {more:,} before them.</p>" if more else "") + _table(heads, rows)
