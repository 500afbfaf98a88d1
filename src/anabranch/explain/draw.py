"""The plan as a drawing: an SVG file, written as text. Where things stand is decided in `arrange.py`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from anabranch.amount import in_bytes, in_rows, several
from anabranch.explain.arrange import arrange
from anabranch.explain.explanation import Edge, Explanation, OutputPart, StreamPart, SubqueryPart
from anabranch.explain.layout import LABELS, LINE, Item, Layout, Rect
from anabranch.explain.words import (
    calls_words,
    keys_words,
    operator_words,
    steps_words,
    title_words,
    window_words,
)
from anabranch.language.groups import Aggregate, History
from anabranch.language.ranked import Ranked
from anabranch.language.timeline import Timeline
from anabranch.partitioning.flow import ASSUMED, Flow

BROAD = 0.55
"""The width of a letter against its size: no common face has a greater mean."""
BROADEST = 165
"""Letters of a line above the plan: it is never narrower than streams, a level and outputs."""
SIZE, SMALL = 12, 11
HEAD = 64.0
"""Height of what stands above the plan."""

STYLE = """\
text { font-family: Helvetica, Arial, sans-serif; font-size: 12px; fill: #22303d; }
.title { font-size: 15px; font-weight: bold; }
.name { font-weight: bold; }
.small, .label { font-size: 11px; fill: #4a5865; }
.label { paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }
.warning { fill: #a33a00; }
.frame { fill: #f2f6fa; stroke: #b4c4d4; stroke-dasharray: 5 3; }
.stream { fill: #eaf5ec; stroke: #4b8d5c; }
.subquery { fill: #ffffff; stroke: #46627f; }
.output { fill: #fdf4e3; stroke: #b48a3d; }
.exchange { fill: none; stroke: #d0682a; stroke-width: 3.5; }
.local { fill: none; stroke: #7c8a98; stroke-width: 1.3; }
"""


def draw_svg(told: Explanation) -> str:
    """The plan with streams at the left, a frame for each exchange, and outputs at the right."""
    heading = _heading(told)
    top = HEAD + LINE * len(heading) + 12
    layout = arrange(
        [Item(part.name, len(_stream_lines(part))) for part in told.streams],
        [
            Item(
                part.name, len(_subquery_lines(part)), _origins(part.edges), part.subquery.level,
                part.subquery.exchange,
            )
            for part in told.subqueries
        ],
        [
            Item(part.output.query, len(_output_lines(told, part)), _origins(part.edges))
            for part in told.outputs
        ],
        top,
    )  # fmt: skip
    width, height = max(layout.width, 640), layout.height
    body = [*_top(told, heading, width), *_frames(told, layout), *_lines(told, layout)]
    body += _boxes(told, layout)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}">',
            f"<style>\n{STYLE}</style>",
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
            *body,
            "</svg>\n",
        )
    )


def _origins(edges: Iterable[Edge]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(edge.origin for edge in edges))


# -- texts ----------------------------------------------------------------------------------------


def _text(x: float, y: float, text: str, room: float, style: str = "", full: str = "") -> str:
    """A text that fits its room; what is cut off is told when one points at it."""
    size = SMALL if style in ("small", "label") else 15 if style == "title" else SIZE
    most = max(4, int(room / (size * BROAD)))
    shown = text if len(text) <= most else text[: most - 1].rstrip() + "…"
    if shown != text and text.startswith("/"):
        shown = "…" + text[1 - most :]  # of a path, the end tells more
    told = full or (text if shown != text else "")
    title = f"<title>{escape(told)}</title>" if told else ""
    kind = f" class={quoteattr(style)}" if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{kind}>{escape(shown)}{title}</text>'


def _short(flow: Flow | None) -> str:
    if flow is None:
        return ""
    size = f" / {in_bytes(flow.bytes)}" if flow.bytes else ""
    return f"{in_rows(flow.rows)}{size}{' ?' if flow.basis == ASSUMED else ''}"


def _heading(told: Explanation) -> list[tuple[str, str]]:
    """Lines above the plan, each with its style."""
    most = BROADEST if told.subqueries else BROADEST // 2
    lines = [
        (line, "")
        for part in told.choice.parts
        if told.strategy == "subquery"
        for line in textwrap.wrap(
            f"{', '.join(part.streams)} partitioned by {part.winner.partitioning}. {part.reason}",
            most,
        )
    ]
    if told.better is not None:
        lines.append((f"With the measured rates, {told.better} would be chosen.", "warning"))
    return lines


def _top(told: Explanation, heading: list[tuple[str, str]], width: float) -> Iterator[str]:
    several_of = [
        several(len(told.subqueries), "subquery").replace("subquerys", "subqueries"),
        several(len(told.levels), "level"), several(told.sites, "site"),
    ]  # fmt: skip
    what = "expected in an epoch"
    if told.measured:
        what = f"means of {several(told.measured.epochs, 'epoch')} measured"
    yield _text(24, 28, ", ".join(several_of), width - 48, "title")
    yield '<path class="exchange" d="M24 44 H64"/>'
    yield _text(72, 48, "exchange between sites", 170, "small")
    yield '<path class="local" d="M216 44 H256"/>'
    yield _text(264, 48, f"stays where it is. Rows and bytes: {what}", width - 300, "small")
    for number, (line, style) in enumerate(heading):
        yield _text(24, HEAD + 4 + LINE * number, line, width - 48, style)


# -- parts ----------------------------------------------------------------------------------------


def _stream_lines(part: StreamPart) -> list[str]:
    given = f"comes by {', '.join(part.given)}" if part.given else ""
    flow = part.measured or part.expected
    lines = [part.source, given, f"{_short(flow)} an epoch" if flow else ""]
    return [part.name, *(line for line in lines if line)]


def _subquery_lines(part: SubqueryPart) -> list[str]:
    node = part.subquery.node
    lines = [title_words(node)]
    if isinstance(node, Aggregate | History):
        shown = operator_words(node).removeprefix(f"{title_words(node)}: ")
        window = window_words(node) if isinstance(node, Aggregate) else f"last {node.rows:,} rows"
        lines = [window, f"by {keys_words(node)}" if node.keys else "one group", shown]
    if isinstance(node, Ranked | Timeline):
        lines = [title_words(node), calls_words(node)]
    if part.work is not None:
        work = part.work
        lines.append(f"busy {work.seconds:.3f} s ({work.share:.0%}), skew {work.skew:.2f}")
        lines.append(f"state {in_rows(work.state_rows)} / {in_bytes(work.state_bytes)}")
        if work.aside_partitions:
            lines.append(f"{in_bytes(work.aside_bytes)} of it put aside")
    return [part.name, *lines]


def _output_lines(told: Explanation, part: OutputPart) -> list[str]:
    sink = part.sink or ("no sink" if told.sinks_known else "")
    return [part.output.query, *([sink] if sink else []), ", ".join(part.output.schema)]


def _boxes(told: Explanation, layout: Layout) -> Iterator[str]:
    for stream in told.streams:
        reads = f"{stream.source}; reads {', '.join(stream.plan.columns)}"
        yield from _box("stream", layout.boxes[stream.name], _stream_lines(stream), reads)
    for part in told.subqueries:
        full = f"{part.name}: {operator_words(part.subquery.node)}"
        yield from _box("subquery", layout.boxes[part.name], _subquery_lines(part), full)
    for output in told.outputs:
        rect, lines = layout.boxes[output.output.query], _output_lines(told, output)
        yield from _box("output", rect, lines, f"{output.output.query}: {', '.join(lines[1:])}")


def _box(kind: str, rect: Rect, lines: list[str], full: str) -> Iterator[str]:
    yield f"<g><title>{escape(full)}</title>{_rect(kind, rect, lines[0])}"
    first = rect.middle - LINE * len(lines) / 2 + LINE - 4
    for number, line in enumerate(lines):
        style = "small" if number else "name"
        yield _text(rect.x + 10, first + LINE * number, line, rect.width - 18, style)
    yield "</g>"


def _rect(kind: str, rect: Rect, name: str) -> str:
    return (
        f'<rect class="{kind}" data-name={quoteattr(name)} x="{rect.x:.1f}" y="{rect.y:.1f}" '
        f'width="{rect.width:.1f}" height="{rect.height:.1f}" rx="6"/>'
    )


def _frames(told: Explanation, layout: Layout) -> Iterator[str]:
    opening = {part.name: part for part in told.subqueries if part.opens}
    for exchange, rect in layout.frames.items():
        part = opening[exchange]
        sites = several(part.work.sites if part.work else told.sites, "site")
        shown = part.partitioned.removeprefix("partitioned ")
        shown = f"{shown}, {'one site' if part.single else sites}"
        yield _rect("frame", rect, exchange)
        yield _text(rect.x + 12, rect.y + 18, shown, rect.width - 24)


def _lines(told: Explanation, layout: Layout) -> Iterator[str]:
    """The edges; those between the same two are one line."""
    edges: dict[tuple[str, str], list[Edge]] = {}
    exact: dict[str, float] = {}
    for part in told.subqueries:
        for edge in part.edges:
            edges.setdefault((edge.origin, part.name), []).append(edge)
    for output in told.outputs:
        for edge in output.edges:
            edges.setdefault((edge.origin, output.output.query), []).append(edge)
        if output.rows is not None and len(output.edges) == 1:
            exact[output.output.query] = output.rows
    texts = []
    ordered = sorted(layout.lines, key=lambda line: not edges[line.origin, line.target][0].exchange)
    for line in ordered:
        some = edges[line.origin, line.target]
        kind = "exchange" if some[0].exchange else "local"
        ends = f"data-from={quoteattr(line.origin)} data-to={quoteattr(line.target)}"
        yield f'<path class="{kind}" {ends} d="{_way(line.stretches)}"/>'
        label = in_rows(exact[line.target]) if line.target in exact else _together(some)
        steps = "; ".join(steps_words(edge.path.steps, True) for edge in some if edge.path.steps)
        full = f"{line.origin} to {line.target}{': ' if steps else ''}{steps}"
        if label:
            texts.append(_text(*line.label, label, LABELS - 12, "label", full))
    yield from texts


def _together(edges: list[Edge]) -> str:
    flows = [flow for edge in edges if (flow := edge.best) is not None]
    if len(flows) < len(edges):
        return ""
    rows, size = sum(flow.rows for flow in flows), sum(flow.bytes for flow in flows)
    return _short(Flow(rows, size, flows[0].basis))


def _way(stretches: Iterable[tuple[float, float, float]]) -> str:
    """Level stretches with curves between them."""
    (_, x, y), *rest = stretches
    way = [f"M{x:.1f} {y:.1f}"]
    first = next(iter(stretches))
    if first[0] != first[1]:
        way = [f"M{first[0]:.1f} {y:.1f} H{x:.1f}"]
    for begin, end, height in rest:
        half = (x + begin) / 2
        way.append(f"C{half:.1f} {y:.1f} {half:.1f} {height:.1f} {begin:.1f} {height:.1f}")
        way.append(f"H{end:.1f}")
        x, y = end, height
    return " ".join(way)
