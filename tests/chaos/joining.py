"""The joins of the crash tests: one of each kind over two parts of a stream, and what they must give.

Rows with an even value meet rows with an odd one that have the same key and are near in time.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch import Query, Session, call, col, count
from anabranch.engine.run import Run

KINDS = ("inner", "left", "right", "full", "semi", "anti")
QUERIES = (*KINDS, "three", "pairs", "grid", "numbered")


def register(place: Session, rows: Query) -> None:
    """All kinds, three inputs as one, and results of windows beside those of the next."""
    even, odd = rows.where(col("v") % 2 == 0), rows.where(col("v") % 2 == 1)
    near = col("time_right").between(col("time") - 15, col("time") + 25)
    for kind in KINDS:
        place.query(kind, even.join(odd, on="k", how=kind, where=near))
    nearer = call("abs", col("time_c") - col("time_right")) <= 9
    place.query(
        "three", even.join(odd, on="k", where=near).join(rows, "k", where=nearer, suffix="c")
    )
    close = call("abs", col("v") - col("v_right")) <= 9
    place.query("grid", even.join(odd, where=near & close))
    # More rows than there are: which ones are the last would depend on the order of equal times
    place.query("numbered", even.join(odd, on="k", where=close, rows=1_000_000))
    flows = rows.group_by((col("time") // 20).alias("tb"), "k").agg(count().alias("n"))
    place.query("pairs", flows.join(flows, on=["k", ("tb", col("tb") + 1)], how="full"))


def register_shaped(place: Session, rows: Query) -> None:
    """A join of three inputs that is nothing to other queries, so that it can have any shape."""
    even, odd = rows.where(col("v") % 2 == 0), rows.where(col("v") % 2 == 1)
    near = col("time_right").between(col("time") - 25, col("time") + 15)
    nearer = call("abs", col("time_c") - col("time")) <= 15
    place.query(
        "trio", even.join(odd, on="k", where=near).join(rows, "k", where=nearer, suffix="c")
    )


def replan(run: Run, changes: Sequence[tuple[int, str, str]], epoch: int) -> None:
    """Wants the last shape that is asked for up to an epoch, and to come to it in that way."""
    asked = [(shape, way) for first, shape, way in changes if first <= epoch]
    for name in run._governor.holdings.shapes.inputs if asked else ():
        shape, way = asked[-1]
        run.replan(name, shape, transition=way)


_EVEN, _ODD = "(FROM plain WHERE v % 2 = 0) AS a", "(FROM plain WHERE v % 2 = 1) AS b"
_ON = "ON a.k = b.k AND b.time BETWEEN a.time - 15 AND a.time + 25"
_PLAIN = "WITH plain AS (SELECT time, k, v FROM rows)"
_FLOWS = "(SELECT time // 20 AS tb, k, COUNT(*) AS n FROM rows GROUP BY ALL)"
ORACLE = {
    **{kind: f"{_PLAIN} SELECT * FROM {_EVEN} {kind.upper()} JOIN {_ODD} {_ON}" for kind in KINDS},
    "three": f"""{_PLAIN} SELECT a.*, b.*, c.* FROM {_EVEN} JOIN {_ODD} {_ON}
                 JOIN plain AS c ON a.k = c.k AND abs(c.time - b.time) <= 9""",
    "grid": f"""{_PLAIN} SELECT * FROM {_EVEN} JOIN {_ODD}
                ON b.time BETWEEN a.time - 15 AND a.time + 25 AND abs(a.v - b.v) <= 9""",
    "numbered": f"{_PLAIN} SELECT * FROM {_EVEN} JOIN {_ODD} ON a.k = b.k AND abs(a.v - b.v) <= 9",
    "pairs": f"SELECT a.*, b.* FROM {_FLOWS} a FULL JOIN {_FLOWS} b ON a.k = b.k AND a.tb = b.tb + 1",
}
SHAPED = {
    "trio": f"""{_PLAIN} SELECT a.*, b.*, c.* FROM {_EVEN} JOIN {_ODD}
                ON a.k = b.k AND b.time BETWEEN a.time - 25 AND a.time + 15
                JOIN plain AS c ON a.k = c.k AND abs(c.time - a.time) <= 15""",
}
"""That which can have any shape."""
