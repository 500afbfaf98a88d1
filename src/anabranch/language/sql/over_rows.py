"""OVER beyond the last rows of a group: numbers, LAG and LEAD, frames, in windows or in the order of time.

Where PARTITION BY has a window of the ordered attribute, any order will do (`language/ranked.py`); else ORDER
BY must be the ordered attribute (`language/timeline.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from anabranch.language.builder import Query
from anabranch.language.expression import Column, Expression, Literal, Named, columns_of
from anabranch.language.nearness import near_of
from anabranch.language.order import Ordered, told_by, tumble_size
from anabranch.language.over import NUMBERS, PICKS, SHIFTS, NamedRowCall, RowCall, Sort
from anabranch.language.ranked import Ranked
from anabranch.language.sql.aggregate import outside_queries, translate_aggregate
from anabranch.language.sql.column import resolved
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.expression import translate
from anabranch.language.sql.frame import read_frame
from anabranch.language.sql.window import read_window
from anabranch.language.stateless import retimed
from anabranch.language.timeline import Timeline
from anabranch.language.window import Tumble

Item = tuple[exp.Expr, str]
"""A column of the SELECT list and its name."""


@dataclass(frozen=True)
class Over:
    """One OVER clause, read."""

    tree: exp.Window
    name: str
    """The column that its values get."""
    call: RowCall
    keys: tuple[Expression, ...]
    order: tuple[Sort, ...]
    window: tuple[str, int] | None
    """The column that tells the time of the window it is within, and its length; None if there is none."""

    @property
    def place(self) -> str:
        """What tells which others are in the same partitions and order."""
        return f"{self.window} {'; '.join(map(str, self.keys))} {'; '.join(map(str, self.order))}"


def windows_in(trees: Iterable[exp.Expr]) -> list[exp.Window]:
    """The OVER clauses outside of sub-queries."""
    return [
        node for tree in trees for node in outside_queries(tree) if isinstance(node, exp.Window)
    ]


def read_over(
    items: list[Item], conditions: list[exp.Expr], query: Query, scope: Scope
) -> tuple[Query, list[Item], list[exp.Expr], Scope]:
    """The rows with what OVER asks for as columns, and the items and conditions that read these."""
    trees = [*(item for item, _ in items), *conditions]
    query, computed_times = _with_times(windows_in(trees), query, scope)
    found: dict[str, Over] = {}
    for window in windows_in(trees):
        written = window.sql()
        if written not in found:
            found[written] = _read(window, written, query, scope, computed_times)
    query, scope = _needed(trees, found, query, scope)
    in_time = [over for over in found.values() if over.window is None]
    if in_time:
        query = _timeline(in_time, query, scope)
    by_place: dict[str, list[Over]] = {}
    for over in found.values():
        if over.window is not None:
            by_place.setdefault(over.place, []).append(over)
    for some in by_place.values():
        query = _ranked(some, query, scope)
    after = replace(scope, schema=query.node.schema)
    computed = [(_replaced(item, found), name) for item, name in items]
    return query, computed, [_replaced(tree, found) for tree in conditions], after


def within_window(window: exp.Window, query: Query, scope: Scope) -> bool:
    """Whether PARTITION BY has a window of the ordered attribute."""
    times = told_by(query.node.ordered) if query.node.ordered else []
    keys = window.args.get("partition_by") or ()
    return any(_window_of(tree, times, query, scope) for tree in keys)


def _with_times(
    windows: list[exp.Window], query: Query, scope: Scope
) -> tuple[Query, dict[str, str]]:
    """The rows with columns for what PARTITION BY computes of the time, and which column is what."""
    time, computed = query.node.ordered, {}
    keys = {
        key.sql(): translate(key, scope)
        for window in windows
        for key in window.args.get("partition_by") or ()
        if not (isinstance(key, exp.Anonymous) and str(key.this).lower() == "tumble")
    }
    for written, expression in keys.items():
        if isinstance(expression, Column) or time is None or tumble_size(expression, time):
            continue
        name = f"{written} as a window"
        if near_of(name, expression, time, query.node.schema) is not None:
            computed[written] = name
            query = query.select(*query.node.schema, Named(name, expression))
    return query, computed


def _read(
    window: exp.Window, name: str, query: Query, scope: Scope, computed: Mapping[str, str]
) -> Over:
    keys: list[Expression] = []
    within: tuple[str, int] | None = None
    times = told_by(query.node.ordered) if query.node.ordered else []
    for tree in window.args.get("partition_by") or ():
        own = computed.get(tree.sql())
        told = (own, 1) if own is not None else _window_of(tree, times, query, scope)
        if told is None:
            keys.append(translate(tree, scope))
        elif within is None or told[1] > within[1]:
            # The longer one tells when all rows are there; the shorter one parts them further
            keys += [] if within is None else [_number(within)]
            within = told
        elif told != within:
            keys.append(translate(tree, scope))
    parts = window.args["order"].expressions if window.args.get("order") else ()
    order = tuple(
        Sort(
            translate(part.this, scope),
            bool(part.args.get("desc")),
            bool(part.args.get("nulls_first")),
        )
        for part in parts
    )
    call = _call(window, bool(order), query, scope)
    over = Over(window, name, call, tuple(keys), order, within)
    if within is None:
        _check_in_time(over, query, scope)
    elif call.function in (*NUMBERS, *SHIFTS) and not order:
        raise scope.error(f"{call.function.upper()} needs ORDER BY in OVER.", window)
    return over


def _window_of(
    tree: exp.Expr, times: list[Ordered], query: Query, scope: Scope
) -> tuple[str, int] | None:
    """The time and the length of the window that an expression of PARTITION BY is; None if it is none."""
    if isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "tumble":
        key = read_window(tree, query, scope)
        time = next((one for one in times if key.column in (None, one.column)), None)
        size = key.resolve(time)
        assert time is not None
        assert isinstance(size, Tumble)
        return time.column, size.size
    expression = translate(tree, scope)
    for time in times:
        length = tumble_size(expression, time)
        if length is not None:
            return time.column, length
    return None


def _number(window: tuple[str, int]) -> Expression:
    column, size = window
    return Column(column) if size == 1 else Column(column) // size


def _check_in_time(over: Over, query: Query, scope: Scope) -> None:
    """Without a window, rows must come in the order of time."""
    ordered = query.node.ordered
    name = ordered.column if ordered else "the ordered attribute"
    window = f"PARTITION BY … {name}/60 or TUMBLE({name}, …)"
    by = [sort.expression for sort in over.order]
    in_time = len(by) == 1 and isinstance(by[0], Column) and by[0].name == name
    if over.order and in_time and not over.order[0].descending:
        return
    what = over.call.function.upper()
    if in_time:
        raise scope.error(
            f"{what} … ORDER BY {name} DESC: which row is the last of its group is never known in an endless "
            f"stream. OVER needs ORDER BY {name}, ascending, or a window: {window}.",
            over.tree,
        )
    raise scope.error(
        f"{what}: OVER needs ORDER BY {name}, ascending, or a window that ends: {window}. Within a window "
        "any order will do.",
        over.tree,
    )


def _call(window: exp.Window, ordered: bool, query: Query, scope: Scope) -> RowCall:
    """What is called, with its frame."""
    tree = window.this
    if isinstance(tree, (exp.IgnoreNulls, exp.RespectNulls)):
        raise scope.error(
            "IGNORE NULLS is not available: filter rows with NULL in a sub-query.", window
        )
    frame = read_frame(window, ordered, query, scope)
    name = str(tree.this).lower() if isinstance(tree, exp.Anonymous) else ""
    if name not in (*NUMBERS, *SHIFTS, *PICKS):
        call = translate_aggregate(tree, scope)
        if call.function in ("first", "last"):
            raise scope.error(
                f"{call.function.upper()} with this OVER: write {call.function.upper()}_VALUE.",
                window,
            )
        return RowCall(call.function, (), frame=frame, aggregate=call)
    arguments = list(tree.expressions)
    wanted = {"nth_value": (2, 2), "lag": (1, 3), "lead": (1, 3)}.get(name, (1, 1))
    wanted = (0, 0) if name in NUMBERS else wanted
    if not wanted[0] <= len(arguments) <= wanted[1]:
        raise scope.error(
            f"{name.upper()} takes {' to '.join(map(str, dict.fromkeys(wanted)))} arguments, got "
            f"{len(arguments)}.",
            window,
        )
    for part in arguments:
        if isinstance(part, (exp.IgnoreNulls, exp.RespectNulls)):
            raise scope.error(
                "IGNORE NULLS is not available: filter rows with NULL in a sub-query.", window
            )
    number = 1
    if len(arguments) > 1:
        constant = translate(arguments[1], scope)
        if not isinstance(constant, Literal) or type(constant.value) is not int:
            raise scope.error(f"the second argument of {name.upper()} is a whole number.", window)
        number = constant.value
    values = [translate(part, scope) for at, part in enumerate(arguments) if at != 1]
    return RowCall(name, tuple(values), number, frame)


def _needed(
    trees: list[exp.Expr], found: dict[str, Over], query: Query, scope: Scope
) -> tuple[Query, Scope]:
    """The rows with only the columns that the SELECT reads: those that tell rows in one place apart."""
    read = {over.window[0] for over in found.values() if over.window is not None}
    for over in found.values():
        for part in (*over.keys, *(sort.expression for sort in over.order), *over.call.arguments):
            read |= set(columns_of(part))
        for part in over.call.aggregate.arguments if over.call.aggregate else ():
            read |= set(columns_of(part))
    for tree in trees:
        rest = _replaced(tree, found)
        for column in (part for part in outside_queries(rest) if isinstance(part, exp.Column)):
            if column.name not in found:
                read |= set(columns_of(translate(column, scope)))
    if query.node.ordered is not None:
        read.add(query.node.ordered.column)
    kept = [name for name in query.node.schema if name in read]
    query = query.select(*kept)
    return query, replace(scope, schema=query.node.schema)


def _timeline(overs: list[Over], query: Query, scope: Scope) -> Query:
    places = {over.place for over in overs}
    if len(places) > 1:
        raise scope.error(
            "all OVER clauses of a SELECT without a window must have the same PARTITION BY: use a sub-query "
            "for the others.",
            overs[1].tree,
        )
    keys = tuple(Named(f"key{at}", key) for at, key in enumerate(overs[0].keys))
    calls = tuple(NamedRowCall(over.name, over.call) for over in overs)
    with scope.placed(overs[0].tree):
        return Query(Timeline(query.node, keys, calls))


def _ranked(overs: list[Over], query: Query, scope: Scope) -> Query:
    first = overs[0]
    assert first.window is not None
    column, size = first.window
    with scope.placed(first.tree):
        node = retimed(query.node, column)
        if node is None:
            raise scope.error(
                "these OVER clauses cannot meet in one SELECT: use a sub-query for one of them.",
                first.tree,
            )
        keys = tuple(Named(f"key{at}", key) for at, key in enumerate(first.keys))
        calls = tuple(NamedRowCall(over.name, over.call) for over in overs)
        return Query(Ranked(node, size, keys, first.order, calls))


def _replaced(tree: exp.Expr, found: dict[str, Over]) -> exp.Expr:
    """The tree with the columns of OVER clauses in their place."""
    whole = exp.Paren(this=tree.copy())
    for window in windows_in([whole]):
        over = found[window.sql()]
        window.replace(resolved(over.name))
    inner = whole.this
    assert isinstance(inner, exp.Expr)
    return inner.pop()
