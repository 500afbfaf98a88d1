"""Bars: what the figures of benchmarks and simulations are held against."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Bar:
    """A figure and the limit it has to keep."""

    name: str
    value: float
    relation: str
    limit: float

    @property
    def met(self) -> bool:
        return COMPARE[self.relation](self.value, self.limit)

    def plain(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": round(self.value, 4),
            "bar": f"{self.relation} {self.limit:g}",
            "met": self.met,
        }


def within(name: str, value: float, low: float, high: float) -> list[Bar]:
    """A figure that has to lie between two limits."""
    return [Bar(name, value, ">=", low), Bar(name, value, "<=", high)]
