"""What of the input or of the state a run has left out of its results, as warnings for its end."""

from __future__ import annotations

from anabranch.amount import several
from anabranch.observe.totals import StreamTotals, Totals

MANY_LATE = 0.05
"""The share of late rows above which something is probably wrong with the order of the input."""


def bad_input(rows: int, files: int) -> str:
    """Counts of bad input: `2 rows and 1 file`, `0`.

    >>> bad_input(2, 1), bad_input(0, 3), bad_input(0, 0)
    ('2 rows and 1 file', '3 files', '0')
    """
    counts = [several(count, noun) for count, noun in ((rows, "row"), (files, "file")) if count]
    return " and ".join(counts) or "0"


def losses(totals: Totals, dead_letter: str | None) -> list[str]:
    """A warning for each stream with bad input, and for each with many late rows."""
    warnings = []
    for name, stream in totals.streams.items():
        if stream.bad:
            kept = (
                f" The dead-letter folder '{dead_letter}' has it, with the reasons."
                if dead_letter
                else ""
            )
            warnings.append(
                f"Stream '{name}': bad input, {bad_input(stream.bad_rows, stream.bad_files)}, took no "
                f"part.{kept}"
            )
        if stream.late > MANY_LATE * stream.rows:
            warnings.append(_late(name, stream))
    return warnings


def _late(name: str, stream: StreamTotals) -> str:
    return (
        f"Stream '{name}': {several(stream.late, 'row')} of {stream.rows:,} "
        f"({stream.late / stream.rows:.0%}) came too late and took no part. Likely causes: files are taken "
        "in another order than that of their rows (see file_order: by the time of their last change, or "
        "by name), or lateness is shorter than rows are out of order."
    )


def waiting(totals: Totals) -> str | None:
    """Told of a run with a checkpoint, so that nobody looks for results that are still to come."""
    rows = _open_rows(totals)
    if not rows:
        return None
    return (
        f"Open windows and the like ({several(rows, 'row')} of state) wait in the checkpoint for later rows. "
        "To end the streams and have their results now: --set at_end=close"
    )


def _open_rows(totals: Totals) -> int:
    operators = totals.last.get("stateOperators", ())
    return sum(one["customMetrics"]["openRows"] for one in operators)


def discarded(totals: Totals) -> str | None:
    """Told of a run without a checkpoint, whose open windows are gone with it."""
    rows = _open_rows(totals)
    if not rows:
        return None
    return (
        f"State of open windows and outer joins ({several(rows, 'row')}) was discarded: there is no "
        "checkpoint to keep it. SET checkpoint = 'folder', or SET at_end = 'close' to have the results."
    )
