"""Random windows of GROUP BY, and the steps by which DuckDB gets the same groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.testing.fuzz.draw import Draw
from anabranch.testing.fuzz.relation import Time

SECOND = 1_000_000
MONDAY = 946_857_600
"""The seconds up to the third of January 2000."""


@dataclass(frozen=True)
class Window:
    """A window: our GROUP BY, the columns it gives, and how DuckDB numbers the rows of `__t`."""

    ours: str
    index: str | None
    """The column that has the window's number, for windows told by that."""
    number: str
    """SELECT of DuckDB that adds `__w`; `{rows}` is what it reads, `{by}` PARTITION BY the keys."""
    start: str
    end: str
    time: str
    """The column that is the time of the results."""
    unit: int = 1
    size: int | None = None
    """The number of rows of a full window, where others give no result."""
    arrival: bool = False
    moment: bool = False
    """Whether the column that tells the window has its beginning as a time."""


def draw_window(draw: Draw, time: Time, alias: str, arrival: bool, name: str) -> Window:
    """A window over the ordered attribute of some rows."""
    written = draw.pick((time.column, f"{alias}.{time.column}"))
    plain = "SELECT *, floor_div(__t, {size}) AS __w FROM ({rows})"
    kinds = ["tumble", "tumble", "hop", "session", *(["rows"] if arrival else [])]
    if time.stamps:
        kinds += ["bucket", "trunc"]
    else:
        kinds += ["index", "index", "index"]
    kinds.append("shifted")
    kind = draw.pick(kinds)
    length = draw.pick((1, 2, 5, 7, 10, 30, 60, 100))
    scale = SECOND if time.stamps else 1

    def shown(number: int) -> str:
        return f"'{number} seconds'" if time.stamps else str(number)

    size = length * scale
    match kind:
        case "index":
            sign = draw.pick(("/", "/", "//"))
            return Window(
                f"{written} {sign} {length} AS {name}", name, plain.replace("{size}", str(length)), "__w", "",
                name, time.unit * length,
            )  # fmt: skip
        case "bucket" | "trunc":
            # Counted from a Monday, as DuckDB does
            if kind == "trunc":
                unit, size = draw.pick(
                    (("second", SECOND), ("minute", 60 * SECOND), ("hour", 3600 * SECOND))
                )
                ours, origin = f"DATE_TRUNC('{unit}', {written})", 0
            else:
                ours, origin = f"TIME_BUCKET({shown(length)}, {written})", MONDAY * SECOND % size
            return Window(
                f"{ours} AS {name}", name,
                f"SELECT *, floor_div(__t - {origin}, {size}) AS __w FROM ({{rows}})",
                f"__w * {size} + {origin}", "", name, time.unit, moment=True,
            )  # fmt: skip
        case "shifted":
            offset = draw.randint(1, length)
            by = offset * scale % size
            return Window(
                f"TUMBLE({written}, {shown(length)}, {shown(offset)})", None,
                f"SELECT *, floor_div(__t - {by}, {size}) AS __w FROM ({{rows}})",
                f"__w * {size} + {by}", f"__w * {size} + {by + size}", "window_start", time.unit,
            )  # fmt: skip
        case "tumble":
            function = draw.pick(("TUMBLE", "TUMBLE", "window"))
            return Window(
                f"{function}({written}, {shown(length)})", None, plain.replace("{size}", str(size)),
                f"__w * {size}", f"__w * {size} + {size}", "window_start", time.unit,
            )  # fmt: skip
        case "hop":
            slide = draw.randint(max(1, length // 5), length)
            step = slide * scale
            return Window(
                f"HOP({written}, {shown(length)}, {shown(slide)})", None,
                f"SELECT *, unnest(range(floor_div(__t - {size}, {step}) + 1, floor_div(__t, {step}) + 1)) "
                "AS __w FROM ({rows})",
                f"__w * {step}", f"__w * {step} + {size}", "window_start", time.unit,
            )  # fmt: skip
        case "session":
            return Window(
                f"SESSION({written}, {shown(length)})", None,
                "SELECT *, sum(__fresh) OVER ({by} ORDER BY __t) AS __w FROM (SELECT *, CASE WHEN __t - "
                f"lag(__t) OVER ({{by}} ORDER BY __t) < {size} THEN 0 ELSE 1 END AS __fresh FROM ({{rows}}))",
                "min(__t)", f"max(__t) + {size}", "window_end", time.unit,
            )  # fmt: skip
    count = draw.randint(1, 6)
    advance = draw.randint(1, count)
    return Window(
        f"COUNT_WINDOW({count}{f', {advance}' if advance < count or draw.chance(0.3) else ''})", None,
        f"SELECT *, unnest(range(greatest(0, floor_div(__r - {count}, {advance}) + 1), "
        f"floor_div(__r, {advance}) + 1)) AS __w FROM (SELECT *, row_number() OVER ({{by}} ORDER BY __t, "
        "__n) - 1 AS __r FROM ({rows}))",
        "min(__t)", "max(__t)", "window_end", time.unit, count, True,
    )  # fmt: skip


def numbered(window: Window, rows: str, keys: Sequence[str]) -> str:
    """DuckDB's rows with the number of their window."""
    by = f"PARTITION BY {', '.join(keys)}" if keys else ""
    return window.number.replace("{rows}", rows).replace("{by}", by)


def as_time(number: str, stamps: bool) -> str:
    """A count of time as DuckDB shows it."""
    return f"make_timestamp(CAST({number} AS BIGINT))" if stamps else f"CAST({number} AS BIGINT)"
