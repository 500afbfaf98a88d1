"""What workers know of a run from one epoch to the next, so that an epoch tells them only what is new.

State and maps may be large and change little. The driver tells all of it once, and then what each epoch has
changed; a worker keeps what it has heard and takes in what it has missed. When all that was told since is
as long as the beginning, the driver begins anew, so a new worker never has more than twice that to hear.
"""

from __future__ import annotations

import pickle
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from anabranch.engine.orders import Orders
from anabranch.routing.partition_map import PartitionMap
from anabranch.state.shelf import Shelf, ShelfChange

MOST_WORDS = 64
"""Epochs after which all is told again, however little they have changed."""
LITTLE = 65_536
"""Bytes that it does not matter to tell again."""
MOST_RUNS = 4
"""Runs of which a worker keeps what it has heard."""
_UNTOLD: Any = {}
"""In place of what is told apart."""


@dataclass(frozen=True)
class News:
    """What an epoch tells a worker besides its orders."""

    run: str
    beginning: int
    """Which telling of everything it builds on."""
    since: tuple[bytes, ...]
    """What has changed since then, epoch by epoch."""


class Teller:
    """The driver's side: what has been told so far."""

    def __init__(self) -> None:
        self._run = uuid.uuid4().hex
        self._number = 0
        self.beginning = b""
        """The last telling of everything."""
        self._since: list[bytes] = []
        self._shelves: dict[str, int] = {}
        self._maps: dict[str, PartitionMap] = {}

    def tell(self, orders: Orders) -> tuple[Orders, News]:
        """The orders without what is told apart, and that."""
        changed = self._words(orders)
        length = sum(map(len, self._since)) + len(changed)
        much = length > max(LITTLE, len(self.beginning))
        if not self.beginning or much or len(self._since) >= MOST_WORDS:
            self._shelves, self._maps = {}, {}
            self.beginning, self._since = self._words(orders), []
            self._number += 1
        elif changed:
            self._since.append(changed)
        self._shelves = {name: shelf.number for name, shelf in orders.shelves.items()}
        self._maps = dict(orders.maps)
        news = News(self._run, self._number, tuple(self._since))
        return replace(orders, shelves=_UNTOLD, maps=_UNTOLD), news

    def _words(self, orders: Orders) -> bytes:
        """What is not known yet of shelves and maps."""
        shelves = {
            name: _change(shelf, self._shelves.get(name))
            for name, shelf in orders.shelves.items()
            if shelf.number != self._shelves.get(name)
        }
        maps = {
            name: known for name, known in orders.maps.items() if self._maps.get(name) is not known
        }
        nothing = bool(self.beginning) and not shelves and not maps
        return b"" if nothing else pickle.dumps((msgspec.msgpack.encode(shelves), maps))


def _change(shelf: Shelf, known: int | None) -> tuple[bool, ShelfChange]:
    """What makes a shelf of the one that is known, or of nothing: then the first is True."""
    if known is not None and shelf.made_of == known:
        return False, shelf.made_by
    return True, ShelfChange([], list(shelf))


@dataclass
class _Heard:
    beginning: int = 0
    words: int = 0
    shelves: Mapping[str, Shelf] = field(default_factory=dict)
    maps: Mapping[str, PartitionMap] = field(default_factory=dict)


class Listener:
    """A worker's side: what it has heard of its runs."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, _Heard] = OrderedDict()

    def hear(self, orders: Orders, news: News, beginning: Callable[[], bytes]) -> Orders:
        """The orders with all that was told; `beginning` is asked for only if it is not known."""
        known = self._runs.get(news.run)
        if known is None or known.beginning != news.beginning or known.words > len(news.since):
            known = _taken(_Heard(news.beginning), beginning())
        for words in news.since[known.words :]:
            known = replace(_taken(known, words), words=known.words + 1)
        self._runs[news.run] = known
        self._runs.move_to_end(news.run)
        while len(self._runs) > MOST_RUNS:
            self._runs.popitem(last=False)
        return replace(orders, shelves=known.shelves, maps=known.maps)


def _taken(known: _Heard, words: bytes) -> _Heard:
    encoded, maps = pickle.loads(words)
    changes = msgspec.msgpack.decode(encoded, type=dict[str, tuple[bool, ShelfChange]])
    shelves = dict(known.shelves)
    for name, (anew, change) in changes.items():
        shelves[name] = (Shelf() if anew else shelves[name]).after(change)
    return replace(known, shelves=shelves, maps={**known.maps, **maps})
