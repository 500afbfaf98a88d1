"""What a drawn plan is made of: boxes, frames around them, lines between them, and their measures."""

from __future__ import annotations

from dataclasses import dataclass, field

WIDTH = 236
"""Of a box."""
LINE = 16
"""Height of a line of text."""
CURVES, LABELS = 64, 184
"""Widths between columns: for edges that change their height, and for what is written on them."""
GAP, PADDING, HEADER = 20, 16, 26
LANE = 26
"""Height of a place where an edge passes a column; and between the edges that enter a box."""


@dataclass(frozen=True)
class Item:
    """Something to draw as a box."""

    name: str
    lines: int
    reads: tuple[str, ...] = ()
    """The items its edges come from."""
    level: int = 0
    exchange: str = ""


@dataclass(frozen=True)
class Rect:
    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True)
class Line:
    """The way of an edge: heights, each held from one x to another, and curves between them."""

    origin: str
    target: str
    stretches: tuple[tuple[float, float, float], ...]
    """From x, to x, at y."""
    label: tuple[float, float]
    """Where its text begins, right above the line."""


@dataclass
class Layout:
    """Boxes by name, frames by exchange, and the lines between boxes."""

    boxes: dict[str, Rect] = field(default_factory=dict)
    frames: dict[str, Rect] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    width: float = 0
    height: float = 0


def height_of(item: Item) -> float:
    return max(item.lines * LINE + 16, (len(item.reads) + 1) * LANE)
