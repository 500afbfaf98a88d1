"""Small drawings for the report, as text of SVG: lines over time, the map of slots and time, the plan."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

WIDTH, HEIGHT = 560, 120
TONES = ("#0e7490", "#b45309", "#7c3aed")
STEPS = np.array([[240, 245, 247], [176, 217, 226], [64, 158, 186], [14, 96, 130], [70, 20, 84]])
"""From nothing to much."""
BOX, TALL, ACROSS, GAP = 190, 46, 90, 16


def lines(
    series: Sequence[tuple[str, Sequence[float | None]]], marks: Sequence[float], label: str
) -> str:
    """Several lines over the same time; marks are moments, as shares of it."""
    known = [value for _, values in series for value in values if value is not None]
    top = max([*known, 1e-9])
    parts = [
        f'<line x1="0" x2="{WIDTH}" y1="{y}" y2="{y}" stroke="#d9e2e5"/>'
        for y in (0, HEIGHT / 2, HEIGHT)
    ]
    for (_, values), tone in zip(series, TONES, strict=False):
        parts.append(
            f'<path d="{_path(values, top)}" fill="none" stroke="{tone}" stroke-width="1.6"/>'
        )
    parts += [
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{HEIGHT}" y2="{HEIGHT + 6}" stroke="#b45309" stroke-width="2"/>'
        for x in (share * WIDTH for share in marks)
    ]
    return (
        f'<svg viewBox="-2 -4 {WIDTH + 4} {HEIGHT + 12}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _path(values: Sequence[float | None], top: float) -> str:
    text, pen = "", "M"
    for at, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        x = at / max(1, len(values) - 1) * WIDTH
        text += f"{pen}{x:.1f} {HEIGHT - value / top * HEIGHT:.1f}"
        pen = "L"
    return text


def heat_map(columns: Sequence[np.ndarray], label: str) -> str:
    """A picture with a column for each epoch and a row for each range of slots."""
    length = max(len(column) for column in columns)
    cells = np.zeros((length, len(columns)))
    for at, column in enumerate(columns):
        cells[: len(column), at] = column
    top = max(float(np.quantile(cells.max(axis=0), 0.9)), 1e-9)
    place = np.clip(cells / top, 0, 1) * (len(STEPS) - 1)
    low = np.minimum(place.astype(int), len(STEPS) - 2)
    share = (place - low)[..., None]
    pixels = np.round(STEPS[low] * (1 - share) + STEPS[low + 1] * share).astype("u1")
    data = base64.b64encode(png(pixels)).decode()
    return f'<img class="heat" alt="{escape(label)}" src="data:image/png;base64,{data}">'


def png(pixels: np.ndarray) -> bytes:
    """Pixels of three bytes each as a PNG file."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )


def plan_drawing(plan: dict[str, Any], notes: dict[str, str]) -> str:
    """The plan from left to right; notes are said of a node, by its name."""
    column: dict[str, int] = {f"s:{one['name']}": 0 for one in plan["streams"]}
    shown = {f"s:{one['name']}": (one["name"], f"by {one['ordered']}") for one in plan["streams"]}
    edges: list[tuple[str, str]] = []

    def origin(name: str) -> str:
        return f"q:{name}" if f"q:{name}" in column else f"s:{name}"

    for one in plan["subqueries"]:
        name, reads = f"q:{one['name']}", [origin(read) for read in one["reads"]]
        column[name] = 1 + max((column.get(read, 0) for read in reads), default=0)
        shown[name] = (one["name"], notes.get(one["name"], one["title"]))
        edges += [(read, name) for read in reads]
    last = 1 + max(column.values(), default=0)
    for one in plan["outputs"]:
        name = f"o:{one['query']}"
        column[name], shown[name] = (
            last,
            (one["query"], notes.get(f"o:{one['query']}", one["sink"])),
        )
        edges += [(origin(read), name) for read in one["reads"]]
    by_column: dict[int, list[str]] = {}
    for name, at in column.items():
        by_column.setdefault(at, []).append(name)
    tallest = max(len(some) for some in by_column.values())
    place = {
        name: (
            8 + at * (BOX + ACROSS),
            8 + (tallest - len(some)) * (TALL + GAP) / 2 + index * (TALL + GAP),
        )
        for at, some in by_column.items()
        for index, name in enumerate(some)
    }
    width, height = 16 + (last + 1) * (BOX + ACROSS) - ACROSS, 16 + tallest * (TALL + GAP)
    drawn = [_arm(place[start], place[end]) for start, end in edges]
    drawn += [_box(*place[name], *shown[name]) for name in column]
    return (
        f'<svg class="plan" viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="The plan">'
        f"{''.join(drawn)}</svg>"
    )


def _arm(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = (start[0] + BOX, start[1] + TALL / 2), (end[0], end[1] + TALL / 2)
    way = f"M{x1} {y1}C{x1 + 40} {y1} {x2 - 40} {y2} {x2} {y2}"
    return f'<path d="{way}" fill="none" stroke="#0e7490" stroke-opacity=".5" stroke-width="3"/>'


def _box(x: float, y: float, title: str, about: str) -> str:
    short = about if len(about) <= 34 else f"{about[:33]}…"
    frame = (
        f'<rect x="{x}" y="{y}" width="{BOX}" height="{TALL}" rx="9" fill="#fff" stroke="#9fb4bc"/>'
    )
    name = f'<text x="{x + 10}" y="{y + 18}" font-weight="600" font-size="13">{escape(title[:26])}</text>'
    note = f'<text x="{x + 10}" y="{y + 35}" font-size="10.5" fill="#4d636c">{escape(short)}</text>'
    return f"<g><title>{escape(about)}</title>{frame}{name}{note}</g>"
