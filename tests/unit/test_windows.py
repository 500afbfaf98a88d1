"""Windows: which sizes are taken, by which names, and what they may cost before the first row."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session, count, count_window, hop
from anabranch.errors import LanguageError
from anabranch.language.window import MOST_WINDOWS, Hop


def session(ordered: str = "time") -> Session:
    made = Session.in_process(sites=2)
    made.stream("tcp", generator="packets", rows=1000, ordered=ordered)
    return made


def window_of(sql: str) -> object:
    node = session().query("q", f"SELECT window_start, COUNT(*) AS n FROM tcp GROUP BY {sql}").node
    return node.inputs[0].window  # type: ignore[attr-defined]


def test_a_slide_above_the_size_is_refused_with_the_order_of_the_two() -> None:
    with pytest.raises(LanguageError, match="the size comes first, hop"):
        window_of("HOP(time, 5, 10)")
    with pytest.raises(LanguageError, match="rows between two windows would be in none"):
        session().from_stream("tcp").group_by(hop(5, 10)).agg(count())
    with pytest.raises(LanguageError, match="the size comes first, count_window"):
        session().from_stream("tcp").group_by(count_window(2, 3)).agg(count())


def test_so_it_is_for_lengths_of_time(tmp_path: Path) -> None:
    """Where other systems have the slide first, this is a text that comes along."""
    pl.DataFrame({"ts": [datetime(2026, 1, 1)]}).write_parquet(tmp_path / "one.parquet")
    made = Session.in_process(sites=2)
    made.stream("at", path=tmp_path, ordered="ts")
    grouped = "SELECT window_start, COUNT(*) AS n FROM at GROUP BY HOP(ts, {})"
    with pytest.raises(LanguageError, match="the size comes first, hop"):
        made.query("q", grouped.format("'5 seconds', '10 seconds'"))
    made.query("q", grouped.format("'10 seconds', '5 seconds'"))


def test_sizes_of_windows_may_be_named_in_any_order() -> None:
    assert window_of("HOP(time, slide => 5, size => 10)") == Hop(10, 5)
    with pytest.raises(LanguageError, match="size => …, slide => …"):
        window_of("HOP(time, 10, slide => 5)")
    with pytest.raises(LanguageError, match="size => …, slide => …"):
        window_of("HOP(time, size => 10, step => 5)")


def test_windows_per_row_are_bounded_and_the_number_is_told() -> None:
    with pytest.raises(LanguageError, match="100,000,000 windows; expected at most 10,000"):
        window_of("HOP(time, 100000000, 1)")
    with pytest.raises(LanguageError, match="windows; expected at most 10,000"):
        session().from_stream("tcp").group_by(count_window(10**12, 1)).agg(count())


def test_the_most_windows_per_row_are_planned_in_seconds() -> None:
    made = session()
    made.query(
        "q", f"SELECT window_start, COUNT(*) AS n FROM tcp GROUP BY HOP(time, {MOST_WINDOWS}, 1)"
    )
    begun = time.monotonic()
    made.explain()
    assert time.monotonic() - begun < 5
