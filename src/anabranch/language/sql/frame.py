"""Frames of OVER: ROWS and RANGE, BETWEEN and without, counted or as a length of time."""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from anabranch.language.builder import Query
from anabranch.language.expression import Literal
from anabranch.language.over import SO_FAR, RowFrame
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.expression import translate

UNBOUNDED, CURRENT = "UNBOUNDED", "CURRENT ROW"
WHOLE = RowFrame(None, None, by_time=False)


def read_frame(window: exp.Window, ordered: bool, query: Query, scope: Scope) -> RowFrame:
    """The frame of an OVER clause; without one, all rows up to this one, or all where they have no order."""
    spec = window.args.get("spec")
    if spec is None:
        return SO_FAR if ordered else WHOLE
    if spec.args.get("exclude"):
        raise scope.error("EXCLUDE is not available in OVER.", window)
    kind = str(spec.args.get("kind") or "").upper()
    if kind not in ("ROWS", "RANGE"):
        raise scope.error(f"{kind} frames are not available: write ROWS or RANGE.", window)
    by_time = kind == "RANGE"
    start, start_side = spec.args.get("start"), spec.args.get("start_side") or "PRECEDING"
    end, end_side = spec.args.get("end") or CURRENT, spec.args.get("end_side") or "FOLLOWING"
    before = _places(start, start_side == "FOLLOWING", by_time, window, query, scope)
    after = _places(end, end_side == "PRECEDING", by_time, window, query, scope)
    if (start == UNBOUNDED and start_side == "FOLLOWING") or (
        end == UNBOUNDED and end_side == "PRECEDING"
    ):
        raise scope.error("this frame is empty: it begins after it ends.", window)
    if before is not None and after is not None and -before > after:
        raise scope.error("this frame is empty: it begins after it ends.", window)
    if by_time and (after or (before is not None and before < 0)):
        raise scope.error(
            "RANGE goes up to CURRENT ROW here, or from and to UNBOUNDED: rows that follow are counted, with "
            "ROWS.",
            window,
        )
    if by_time and before == 0 and after is None:
        raise scope.error(
            "RANGE from CURRENT ROW on is not available: count rows with ROWS.", window
        )
    return RowFrame(before, after, by_time)


def _places(
    bound: object, turned: bool, by_time: bool, window: exp.Window, query: Query, scope: Scope
) -> int | None:
    """How many rows, or how much time, one border is away; None: all the way."""
    if bound == UNBOUNDED:
        return None
    if bound == CURRENT:
        return 0
    found = translate(bound, scope) if isinstance(bound, exp.Expr) else None
    value = found.value if isinstance(found, Literal) else None
    stamps = query.node.ordered is not None and query.node.ordered.timestamps
    length = value // dt.timedelta(microseconds=1) if isinstance(value, dt.timedelta) else value
    whole = type(length) is int and length >= 0
    if by_time and (not whole or stamps != isinstance(value, dt.timedelta)):
        wanted = "INTERVAL '5' MINUTE PRECEDING" if stamps else "a number in the unit of the time"
        raise scope.error(f"RANGE needs a length of time: {wanted}.", window)
    if not whole or (not by_time and isinstance(value, dt.timedelta)):
        raise scope.error(
            "OVER needs a number of rows: ROWS n PRECEDING. A stretch of time is RANGE … PRECEDING.",
            window,
        )
    assert isinstance(length, int)
    return -length if turned else length
