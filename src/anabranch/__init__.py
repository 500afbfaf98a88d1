"""Anabranch: continuous queries on Spark, columnar, exactly-once, partitioned.

A name is loaded when it is first asked for: neither the command line nor the workers of a cluster wait for
what they do not need.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from anabranch.processor import WORKER, settle_numpy

if TYPE_CHECKING:
    from anabranch.accelerating import accelerate
    from anabranch.errors import AnabranchError
    from anabranch.language.aggregate import (
        UserAggregate,
        approx_distinct,
        approx_quantile,
        avg,
        bit_and,
        bit_or,
        bit_xor,
        count,
        count_distinct,
        first,
        last,
        max_,
        min_,
        stddev,
        sum_,
        var,
    )
    from anabranch.language.builder import Query
    from anabranch.language.expression import call, col, lit, when
    from anabranch.language.over import (
        dense_rank,
        desc,
        first_value,
        lag,
        last_value,
        lead,
        nth_value,
        over_frame,
        rank,
        row_number,
    )
    from anabranch.language.window_key import count_window, hop, session_window, tumble
    from anabranch.session import Session
    from anabranch.settings import Settings

__version__ = "0.1.0"

if WORKER in os.environ:
    # Nothing else of ours comes before it, and so no NumPy
    settle_numpy()

__all__ = [
    "AnabranchError", "Query", "Session", "Settings", "UserAggregate", "accelerate", "approx_distinct",
    "approx_quantile", "avg", "bit_and", "bit_or", "bit_xor", "call", "col", "count",
    "count_distinct", "count_window", "dense_rank", "desc", "first", "first_value", "hop", "lag", "last",
    "last_value", "lead", "lit", "max_", "min_", "nth_value", "over_frame", "rank", "row_number",
    "session_window", "stddev", "sum_", "tumble", "var", "when",
]  # fmt: skip

_ELSEWHERE = {
    "accelerating": ("accelerate",),
    "errors": ("AnabranchError",), "language.builder": ("Query",), "session": ("Session",),
    "settings": ("Settings",), "language.expression": ("call", "col", "lit", "when"),
    "language.window_key": ("count_window", "hop", "session_window", "tumble"),
    "language.over": ("dense_rank", "desc", "first_value", "lag", "last_value", "lead", "nth_value",
                      "over_frame", "rank", "row_number"),
}  # fmt: skip
"""Where names are defined; all others are aggregates."""
_MODULES = dict.fromkeys(__all__, "language.aggregate") | {
    name: module for module, names in _ELSEWHERE.items() for name in names
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'anabranch' has no attribute '{name}'")
    value = getattr(import_module(f"anabranch.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
