"""The plan as JSON, for programs; for people there are `explain/text.py` and `explain/draw.py`."""

from __future__ import annotations

from typing import Any

from anabranch.explain.explanation import Edge, Explanation, OutputPart, StreamPart, SubqueryPart
from anabranch.explain.measured import Work
from anabranch.explain.words import operator_words
from anabranch.partitioning.choice import Candidate, ComponentChoice
from anabranch.partitioning.flow import Flow


def describe_plan(told: Explanation) -> dict[str, Any]:
    """Streams, the partitioning and what was considered, subqueries, outputs; plain values only.

    Rows and bytes are those of an epoch, where the name does not say `Total`.
    """
    return {
        "sites": told.sites,
        "partitions": told.partitions,
        "strategy": told.strategy,
        "epochs": told.measured.epochs if told.measured else None,
        "streams": [_stream(told, stream) for stream in told.streams],
        "partitioning": [_part(part) for part in told.choice.parts],
        "betterPartitioning": None if told.better is None else str(told.better),
        "subqueries": [_subquery(told, part) for part in told.subqueries],
        "outputs": [_output(told, output) for output in told.outputs],
    }


def _flow(flow: Flow | None) -> dict[str, Any] | None:
    if flow is None:
        return None
    return {"rows": round(flow.rows, 3), "bytes": round(flow.bytes, 1), "basis": flow.basis}


def _stream(told: Explanation, stream: StreamPart) -> dict[str, Any]:
    plan, measured = stream.plan, told.measured
    return {
        "name": plan.name,
        "source": stream.source,
        "ordered": plan.ordered.column,
        "lateness": plan.lateness,
        "columns": {name: str(plan.schema[name]) for name in plan.columns},
        "partitionedBy": list(stream.given),
        "lanesOf": plan.exchange,
        "expected": _flow(stream.expected),
        "measured": _flow(stream.measured),
        "rowsTotal": measured.stream_rows.get(plan.name, 0) if measured else None,
        "lateRowsTotal": stream.late_rows if measured else None,
    }


def _part(part: ComponentChoice) -> dict[str, Any]:
    return {
        "streams": list(part.streams),
        "set": str(part.winner.partitioning),
        "reason": part.reason,
        "complete": part.complete,
        "candidates": [_candidate(part, one) for one in part.candidates],
    }


def _candidate(part: ComponentChoice, one: Candidate) -> dict[str, Any]:
    return {
        "set": str(one.partitioning),
        "chosen": one is part.winner,
        "madeFor": one.origin,
        "mostBytes": one.cost.most,
        "allBytes": one.cost.total,
        "skew": one.skew,
        "bytesPerNode": dict(one.cost.received),
        "suited": sorted(one.cost.suited),
        "unsuited": sorted(one.cost.unsuited),
    }


def _subquery(told: Explanation, part: SubqueryPart) -> dict[str, Any]:
    subquery = part.subquery
    return {
        "name": subquery.name,
        "query": subquery.query,
        "level": subquery.level,
        "exchange": subquery.exchange,
        "operator": str(subquery.node),
        "words": operator_words(subquery.node),
        "spread": subquery.spread,
        "partitioning": list(subquery.partitioning),
        "terms": part.terms,
        "combines": subquery.combines,
        "merger": subquery.merger or None,
        "sites": part.work.sites if part.work else told.sites,
        "inputs": [_edge(edge) for edge in part.edges],
        "reads": sorted(
            {name for read in subquery.columns for name in read if not name.startswith("__")}
        ),
        "columns": {name: str(kind) for name, kind in subquery.node.schema.items()},
        "expected": _flow(part.expected),
        "measured": _work(part.work) if part.work else None,
    }


def _work(work: Work) -> dict[str, Any]:
    return {
        "rowsIn": round(work.rows_in, 3),
        "rowsReceived": round(work.received.rows, 3),
        "bytesReceived": round(work.received.bytes, 1),
        "rowsOut": round(work.out.rows, 3),
        "bytesOut": round(work.out.bytes, 1),
        "rowsInTotal": work.rows_in_total,
        "rowsReceivedTotal": work.rows_received_total,
        "rowsOutTotal": work.rows_out_total,
        "busySeconds": round(work.seconds, 4),
        "share": round(work.share, 4),
        "skew": round(work.skew, 3),
        "stateRows": work.state_rows,
        "stateBytes": work.state_bytes,
        "asideBytes": work.aside_bytes,
        "asidePartitions": work.aside_partitions,
        "combining": work.combining,
        "shapes": {shape or "m-way": count for shape, count in work.shapes.items()},
        "tracks": [
            {"shape": one.shape or "m-way", "since": one.since, "partitions": one.partitions}
            for one in work.tracks
        ],
    }


def _edge(edge: Edge) -> dict[str, Any]:
    return {
        "origin": edge.origin,
        "steps": [str(step) for step in edge.path.steps],
        "exchange": edge.exchange,
        "lane": edge.lane,
        "expected": _flow(edge.expected),
        "measured": _flow(edge.measured),
    }


def _output(told: Explanation, part: OutputPart) -> dict[str, Any]:
    output, measured = part.output, told.measured
    return {
        "query": output.query,
        "sink": part.sink,
        "columns": {name: str(kind) for name, kind in output.schema.items()},
        "inputs": [_edge(edge) for edge in part.edges],
        "expected": _flow(part.expected),
        "rows": part.rows,
        "rowsTotal": measured.result_rows.get(output.query, 0) if measured else None,
    }
