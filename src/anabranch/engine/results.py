"""What leaves a task for the sinks: the rows of queries, as parts of their results."""

from __future__ import annotations

import polars as pl

from anabranch.engine.orders import Orders
from anabranch.engine.report import SiteReport, SplitReport
from anabranch.language.updates import GONE
from anabranch.operators.changes import MARK, without_replaced
from anabranch.operators.stateless import apply


def write_results(
    orders: Orders, origin: str, rows: pl.DataFrame, part: str, report: SplitReport | SiteReport
) -> None:
    """Writes the rows that leave to sinks from here."""
    for number, (output, path) in enumerate(orders.plan.leaving(origin)):
        leaving = without_replaced(apply(path.steps, rows))
        if output.marked:
            leaving = leaving.rename({MARK: GONE})
        leaving = leaving.select(output.schema.names())
        query = output.query
        report.result_rows[query] = report.result_rows.get(query, 0) + leaving.height
        if leaving.height and query in orders.results:
            # A query may have rows from several origins in one task: each is a part of its own
            written = orders.results[query].write_all(leaving, f"{part}-{origin}-{number}")
            report.result_parts.setdefault(query, []).extend(written)
