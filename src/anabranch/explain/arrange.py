"""Where everything of a drawn plan stands: streams, levels and outputs from left to right.

Subqueries on the partitions of one exchange stand in one frame; those that read others of their frame
stand right of them. An edge that passes a column gets a lane there, so that no line runs behind a box.
Between two columns there is room for curves and then for the labels of what the next column reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.explain.layout import (
    CURVES,
    GAP,
    HEADER,
    LABELS,
    LANE,
    PADDING,
    WIDTH,
    Item,
    Layout,
    Line,
    Rect,
    height_of,
)


def arrange(
    streams: Sequence[Item], subqueries: Sequence[Item], outputs: Sequence[Item], top: float
) -> Layout:
    """Places everything below `top`; items come after those they read."""
    return _Arranger(streams, subqueries, outputs, top).run()


class _Arranger:
    def __init__(
        self, streams: Sequence[Item], subqueries: Sequence[Item], outputs: Sequence[Item],
        top: float,
    ) -> None:  # fmt: skip
        self.streams, self.subqueries, self.outputs = streams, subqueries, outputs
        self.top = top
        self.items = {item.name: item for item in (*streams, *subqueries, *outputs)}
        self.made = Layout()
        self.levels = sorted({item.level for item in subqueries})
        self.last = (self.levels[-1] if self.levels else 0) + 1
        """The number of the column of outputs, as levels are counted."""
        self.level_of = {
            **{item.name: 0 for item in streams},
            **{item.name: item.level for item in subqueries},
            **{item.name: self.last for item in outputs},
        }
        self.depths = self._depths()
        self.most = 1 + max(self.depths.values(), default=0)
        self.lanes: dict[tuple[str, int, str, int], tuple[float, float, float]] = {}
        """Of an origin, in a level, inside a frame and at a depth of it; outside: no frame, depth 0."""
        self.edges = dict.fromkeys(self.levels, (0.0, 0.0))
        """From where to where a level reaches."""

    def _depths(self) -> dict[str, int]:
        """How many of its frame stand between a subquery and the exchange."""
        depths: dict[str, int] = {}
        for item in self.subqueries:
            below = [depths[name] + 1 for name in item.reads if self.level_of[name] == item.level]
            depths[item.name] = max(below, default=0)
        return depths

    def run(self) -> Layout:
        x = self._streams(24.0)
        for level in self.levels:
            x = self._place_level(level, x + CURVES + LABELS)
        self._stack_outputs(x + CURVES + LABELS)
        self._center_streams()
        for item in (*self.subqueries, *self.outputs):
            self._connect(item)
        rects = [*self.made.boxes.values(), *self.made.frames.values()]
        ends = [y for line in self.made.lines for _, _, y in line.stretches]
        self.made.width = max(rect.right for rect in rects) + 24
        self.made.height = max([rect.bottom for rect in rects] + ends) + 24
        return self.made

    # -- columns ----------------------------------------------------------------------------------

    def _streams(self, x: float) -> float:
        y = self.top
        for item in self.streams:
            self.made.boxes[item.name] = Rect(x, y, WIDTH, height_of(item))
            y += height_of(item) + GAP
        return x + WIDTH

    def _center_streams(self) -> None:
        """Moves streams to the height of what reads them, as far as they do not meet."""
        y = self.top
        for item in sorted(self.streams, key=lambda item: self._readers(item.name)):
            rect = self.made.boxes[item.name]
            y = max(y, self._readers(item.name) - rect.height / 2)
            self.made.boxes[item.name] = Rect(rect.x, y, rect.width, rect.height)
            y += rect.height + GAP

    def _readers(self, name: str) -> float:
        """The middle of what reads an item next to it, else of its lanes."""
        found = [
            self.made.boxes[item.name].middle
            for item in (*self.subqueries, *self.outputs)
            if name in item.reads
        ]
        return (min(found) + max(found)) / 2 if found else self.top

    def _stack_outputs(self, x: float) -> None:
        y = self.top
        for item in sorted(self.outputs, key=self._wanted):
            y = max(y, self._wanted(item) - height_of(item) / 2)
            self.made.boxes[item.name] = Rect(x, y, WIDTH, height_of(item))
            y += height_of(item) + GAP

    def _wanted(self, item: Item) -> float:
        """The mean height of what comes to an item."""
        found = [self._arrives(name, self.level_of[item.name]) for name in item.reads]
        return sum(found) / len(found) if found else self.top

    def _arrives(self, origin: str, level: int) -> float:
        """At which height the edges of an origin come to a level."""
        below = [number for number in self.levels if number < level]
        for number in reversed(below):
            exchange = self.items[origin].exchange if self.level_of[origin] == number else ""
            lanes = [key for key in self.lanes if key[:3] == (origin, number, exchange)]
            if lanes:
                return self.lanes[max(lanes)][2]
        return self.made.boxes[origin].middle

    # -- a level ----------------------------------------------------------------------------------

    def _place_level(self, level: int, x: float) -> float:
        items = [item for item in self.subqueries if item.level == level]
        exchanges = list(dict.fromkeys(item.exchange for item in items))
        deepest = max(self.depths[item.name] for item in items)
        right = x + PADDING * 2 + WIDTH + deepest * (WIDTH + CURVES + LABELS)
        self.edges[level] = (x, right)
        passing = [name for name in self.made.boxes if self._passes(name, level)]
        order: list[tuple[float, int, str, bool]] = [
            (self._arrives(name, level), 1, name, True) for name in passing
        ]
        for exchange in exchanges:
            members = [item for item in items if item.exchange == exchange]
            heights = [self._wanted(item) for item in members if not self.depths[item.name]]
            order.append((sum(heights) / len(heights), 0, exchange, False))
        y = self.top
        # Frames in the order of the plan where they come from one place, lanes below them
        for wanted, _, name, lane in sorted(order, key=lambda entry: entry[:2]):
            if lane:
                at = max(y + LANE / 2, wanted)
                self.lanes[name, level, "", 0] = (x - LABELS, right, at)
                y = at + LANE / 2
            else:
                y = self._place_frame([item for item in items if item.exchange == name], x, y) + GAP
        return right

    def _passes(self, origin: str, level: int) -> bool:
        """Whether an edge from below the level goes on above it."""
        return self.level_of[origin] < level and any(
            origin in item.reads and self.level_of[item.name] > level
            for item in (*self.subqueries, *self.outputs)
        )

    def _place_frame(self, members: list[Item], x: float, y: float) -> float:
        deepest = max(self.depths[item.name] for item in members)
        top, bottom = y + HEADER, y + HEADER
        for depth in range(deepest + 1):
            left = x + PADDING + depth * (WIDTH + CURVES + LABELS)
            bottom = max(bottom, self._place_column(members, depth, left, top))
        width = PADDING * 2 + WIDTH + deepest * (WIDTH + CURVES + LABELS)
        self.made.frames[members[0].exchange] = Rect(x, y, width, bottom + PADDING - y)
        return bottom + PADDING

    def _place_column(self, members: list[Item], depth: int, x: float, y: float) -> float:
        """The boxes of one depth, and lanes for what passes them; returns where they end."""
        level, exchange = members[0].level, members[0].exchange
        slots: list[tuple[float, str, Item | None]] = []
        for one in members:
            if self.depths[one.name] == depth:
                slots.append((self._inside(one) if depth else 0.0, one.name, one))
        for name in self._passing_inside(members, depth):
            slots.append((self._held(name, level, exchange, depth), name, None))
        end = y
        for wanted, name, item in sorted(slots, key=lambda slot: slot[0]):
            height = LANE if item is None else height_of(item)
            at = max(y, wanted - height / 2) if depth else y
            if item is None:
                # Before the labels: curves do not run through them
                begin = x - LABELS if depth else x
                self.lanes[name, level, exchange, depth] = (begin, x + WIDTH, at + height / 2)
            else:
                self.made.boxes[name] = Rect(x, at, WIDTH, height)
            end = at + height
            y = end + (GAP if item is not None else 0)
        return end

    def _passing_inside(self, members: list[Item], depth: int) -> list[str]:
        """What goes by a column of the frame: results of boxes left of it, and what comes for later."""
        level = members[0].level
        found: dict[str, None] = {}
        mine = {item.name: self.depths[item.name] for item in members}
        for item in (*self.subqueries, *self.outputs):
            for name in item.reads:
                inside, before = mine.get(name), mine.get(item.name, len(members) + 1)
                leaves = inside is not None and inside < depth < before
                enters = inside is None and item.name in mine and depth < mine[item.name]
                if leaves or (enters and self.level_of[name] < level):
                    found[name] = None
        return list(found)

    def _inside(self, item: Item) -> float:
        depth = self.depths[item.name]
        found = [self._held(name, item.level, item.exchange, depth) for name in item.reads]
        return sum(found) / len(found)

    def _held(self, origin: str, level: int, exchange: str, depth: int) -> float:
        """The height of an origin's edges right before a column of a frame."""
        for before in range(depth - 1, -1, -1):
            if (origin, level, exchange, before) in self.lanes:
                return self.lanes[origin, level, exchange, before][2]
            if self.level_of[origin] == level and self.depths[origin] == before:
                return self.made.boxes[origin].middle
        return self._arrives(origin, level)

    # -- edges ------------------------------------------------------------------------------------

    def _connect(self, item: Item) -> None:
        rect = self.made.boxes[item.name]
        routes = [(name, self._route(name, item)) for name in item.reads]
        routes.sort(key=lambda route: route[1][-1][2])
        for number, (name, route) in enumerate(routes, start=1):
            y = rect.y + rect.height * number / (len(routes) + 1)
            frame = self.made.frames.get(item.exchange) if not self.depths.get(item.name) else None
            begin = (frame.x if frame else rect.x) - LABELS
            stretches = (*route, (begin, rect.x, y))
            self.made.lines.append(Line(name, item.name, stretches, (begin + 4, y - 5)))

    def _route(self, origin: str, item: Item) -> list[tuple[float, float, float]]:
        """Where an edge runs level before it comes to the column of its target."""
        source, target = self.level_of[origin], self.level_of[item.name]
        rect = self.made.boxes[origin]
        route = [(rect.right, rect.right, rect.middle)]
        for level in self.levels:
            if level == source:
                exchange, depths = (
                    self.items[origin].exchange,
                    range(self.depths[origin] + 1, self.most),
                )
            elif level == target:
                exchange, depths = item.exchange, range(self.most)
            else:
                exchange, depths = "", range(1)
            if level == target:
                depths = range(depths.start, self.depths[item.name])
            if source <= level <= target:
                keys = [(origin, level, exchange, depth) for depth in depths]
                route += [self.lanes[key] for key in keys if key in self.lanes]
            if level == source and level != target:
                # Frames may end before their level: nothing else stands at this height
                x, _, y = route[-1]
                route[-1] = (x, self.edges[level][1], y)
        return route
