"""`anabranch top`: a run in the terminal, from the same events as the page. What it shows is in `rows.py`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import DataTable, Footer, Static

from anabranch.errors import AnabranchError
from anabranch.events.event import AnyEvent
from anabranch.observe.story import Story
from anabranch.observe.top.rows import VIEWS, Sheet, headline, shown, words_of

LOOK_SECONDS = 1.0
MOST_ROWS = 1_000
"""Rows of a table: partitions and decisions may be many more."""
INTO = {
    "site": "partitions", "exchange": "partitions", "subquery": "partitions", "partition": "decisions",
}  # fmt: skip
"""What is shown of a thing that one looks into."""


class Top(App[None]):
    """The tables of a story, renewed every second."""

    CSS = """
    #head { height: 2; padding: 0 1; }
    #tabs { height: 1; padding: 0 1; color: $text-muted; }
    #told { height: auto; max-height: 3; padding: 0 1; color: $text-muted; }
    DataTable { height: 1fr; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(number), f"show('{name}')", name, show=False)
            for number, name in enumerate(VIEWS, 1)
        ),
        Binding("tab", "next", "view", priority=True),
        Binding("s", "sort", "sort"),
        Binding("r", "reverse", "reverse"),
        Binding("d", "decisions", "its decisions"),
        Binding("escape,backspace", "all", "of all"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, story: Story, look: Callable[[], list[AnyEvent]]) -> None:
        super().__init__()
        self.story, self._look = story, look
        self.view, self.of = "sites", None
        self.table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=True)
        self._head, self._names, self._told = (
            Static(id=name, markup=False) for name in ("head", "tabs", "told")
        )
        self._orders: dict[str, tuple[int, bool]] = {}
        self._drawn: tuple[object, ...] = ()
        self._lost = ""
        self._same = True
        """Whether the table that is drawn next has the order of the one that is there."""
        self._left_out = 0
        self._whole: dict[str, tuple[object, ...]] = {}

    view: str
    of: str | None

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._head
            yield self._names
            yield self.table
            yield self._told
        yield Footer()

    def on_mount(self) -> None:
        self.draw()
        self.set_interval(LOOK_SECONDS, self.follow)

    async def follow(self) -> None:
        """Takes in what has happened since, and draws it. Keys are answered meanwhile: places may be far."""
        try:
            for event in await asyncio.to_thread(self._look):
                self.story.add(event)
        except (OSError, AnabranchError) as error:
            self._lost = f"The checkpoint cannot be read: {error}"
        else:
            self._lost = ""
        self.draw()

    def draw(self) -> None:
        """Draws the story as it is; the table only if it has changed."""
        self._head.update(headline(self.story, time.time()))
        order = self._orders.get(self.view)
        drawn = self.story.version, self.view, self.of, order, self._lost
        if drawn == self._drawn:
            return
        self._drawn = drawn
        found = VIEWS[self.view](self.story, self.of)
        found = (found if order is None else found.sorted_by(*order)).first(MOST_ROWS)
        self._names.update(self._tabs())
        self._draw(found, order)
        self._tell()

    def _tabs(self) -> str:
        names = (
            f"[{number} {name}]" if name == self.view else f"{number} {name}"
            for number, name in enumerate(VIEWS, 1)
        )
        return "  ".join(names)

    def _draw(self, found: Sheet, order: tuple[int, bool] | None) -> None:
        table = self.table
        row, key = (table.cursor_row, self._key()) if self._same else (0, "")
        self._same = True
        self._whole = dict(zip(found.keys, found.rows, strict=True))
        self._left_out = found.left_out
        table.clear(columns=True)
        for number, name in enumerate(found.columns):
            arrow = "" if order is None or order[0] != number else " ▼" if order[1] else " ▲"
            right = found.rows and not isinstance(found.rows[0][number], str)
            table.add_column(Text(name + arrow, justify="right" if right else "left"))
        for values, name in zip(found.rows, found.keys, strict=True):
            cells = (_cell(*one) for one in zip(found.columns, values, strict=True))
            table.add_row(*cells, key=name)
        # The same thing stays under the cursor, wherever it has gone
        at = found.keys.index(key) if key in found.keys else min(row, len(found.keys) - 1)
        table.move_cursor(row=max(at, 0), animate=False)

    def _key(self) -> str:
        table = self.table
        if not table.row_count or not table.is_valid_row_index(table.cursor_row):
            return ""
        return str(table.ordered_rows[table.cursor_row].key.value)

    def _tell(self) -> None:
        parts = [self._lost] if self._lost else []
        if self.of is not None:
            parts.append(f"Of {self.of} (Esc: of all). {words_of(self.story, self.of)}".strip())
        if self._left_out:
            parts.append(f"{self._left_out:,} more are not shown: sort to see others.")
        if not self._whole:
            parts.append("None." if self.story.newest else "Nothing yet.")
        elif self.view == "decisions":
            _, _, action, why, effect = self._whole.get(self._key(), ("",) * 5)
            parts.append(f"{action}: {why} ({effect})")
        self._told.update(" ".join(parts) or "Enter looks into a row.")

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Looks into what is under the cursor."""
        key = str(event.row_key.value)
        view = INTO.get(key.partition(" ")[0])
        if view is not None:
            self._go(view, key)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """What has no room in the table stands below it."""
        self._tell()

    def _go(self, view: str, of: str | None) -> None:
        self.view, self.of, self._same = view, of, False
        self.draw()

    def _order(self, column: int, descending: bool) -> None:
        self._orders[self.view], self._same = (column, descending), False
        self.draw()

    def action_show(self, view: str) -> None:
        self._go(view, None)

    def action_next(self) -> None:
        names = list(VIEWS)
        self.action_show(names[(names.index(self.view) + 1) % len(names)])

    def action_decisions(self) -> None:
        key = self._key()
        if key.partition(" ")[0] in INTO:
            self._go("decisions", key)

    def action_all(self) -> None:
        self._go(self.view, None)

    def action_sort(self) -> None:
        """By the next column; after the last as it came."""
        column = self._orders.get(self.view, (-1, True))[0] + 1
        if column < len(self.table.columns):
            self._order(column, True)
        else:
            del self._orders[self.view]
            self._go(self.view, self.of)

    def action_reverse(self) -> None:
        column, descending = self._orders.get(self.view, (0, False))
        self._order(column, not descending)


def _cell(column: str, value: object) -> Text:
    return Text(shown(column, value), justify="left" if isinstance(value, str) else "right")
