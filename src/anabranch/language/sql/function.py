"""Functions in texts: which there are, how many arguments they take, what their constants may be."""

from __future__ import annotations

import polars as pl
from sqlglot import exp

from anabranch.errors import LanguageError, suggest
from anabranch.language import aggregate
from anabranch.language.expression import FUNCTIONS, Call, Expression, Literal, arity, takes
from anabranch.language.functions import CONSTANTS, misuse
from anabranch.language.shorthand import ALIASES, SHORTHANDS
from anabranch.language.sql.dialect import Scope

_OPERATORS = ("not", "negate", "is_null", "is_not_null", "is_distinct", "case", "like")
NAMED_FUNCTIONS = (
    *(name for name in FUNCTIONS if name.isidentifier() and name not in _OPERATORS),
    *(name for name in SHORTHANDS if name not in FUNCTIONS),
)
"""The scalar functions that a text calls by name; some have other names too."""

_WINDOWS = ("tumble", "hop", "session", "count_window", "window")
_NOT_HERE = {
    **dict.fromkeys(_WINDOWS, "a window: it belongs into GROUP BY"),
    "log": "the natural logarithm in some engines and that to base 10 in others: write LN or LOG10",
    "now": "not the same when an epoch is run again: use the ordered attribute",
    "random": "not the same when an epoch is run again: take bits of a column instead",
}
for _name in (
    "median",
    "quantile",
    "percentile",
    "quantile_cont",
    "quantile_disc",
    "percentile_cont",
):
    _NOT_HERE[_name] = (
        "not available exactly, for it would keep all values: use APPROX_QUANTILE(x, 0.5)"
    )
for _name in ("list", "array_agg", "string_agg", "group_concat", "listagg", "collect_list"):
    _NOT_HERE[_name] = (
        "not available, for it would keep all values: use FIRST, LAST or a UserAggregate"
    )
_NOT_HERE["any_value"] = "not available: use FIRST"
_NOT_HERE["nvl"] = "called COALESCE here"
_NOT_HERE["to_date"] = "not available: write CAST(x AS DATE)"
_NOT_HERE["to_timestamp"] = "not available: write CAST(x AS TIMESTAMP)"
for _window in ("tumble", "hop", "session"):
    for _end in ("start", "end"):
        _NOT_HERE[f"{_window}_{_end}"] = (
            f"not available: a result with a window has the columns window_start and window_end, so write "
            f"window_{_end}"
        )
for _name in ("current_timestamp", "current_date", "getdate", "today"):
    _NOT_HERE[_name] = _NOT_HERE["now"]
for _name in ("rand", "uuid", "gen_random_uuid"):
    _NOT_HERE[_name] = _NOT_HERE["random"]
_RANKS = ("row_number", "rank", "dense_rank", "ntile", "percent_rank", "cume_dist")
_NEIGHBOURS = ("lag", "lead", "first_value", "last_value", "nth_value")


def function_named(written: str, tree: exp.Expr, scope: Scope) -> str:
    """Our name of a function; one that does not exist here is refused, with what to write."""
    name = ALIASES.get(written, written)
    if aggregate.known_as(name) is not None:
        raise scope.error(
            f"{written.upper()} is an aggregate: compute it among the aggregates, give it a name "
            "and use the name here.",
            tree,
        )
    if name in _NOT_HERE:
        raise scope.error(f"{written.upper()} is {_NOT_HERE[name]}.", tree)
    if name in (*_RANKS, *_NEIGHBOURS):
        raise scope.error(f"{written.upper()} is not available: {window_only(name)}.", tree)
    if name == "within_rows":
        raise scope.error(
            "WITHIN_ROWS stands in the ON of a join, with other conditions joined to it by AND.",
            tree,
        )
    if name not in NAMED_FUNCTIONS:
        known = (*NAMED_FUNCTIONS, *ALIASES, *aggregate.FUNCTIONS, *_WINDOWS)
        raise scope.error(f"there is no function '{written}'.{suggest(written, known)}", tree)
    return name


def apply_function(
    written: str, arguments: list[Expression], tree: exp.Expr, scope: Scope
) -> Expression:
    """The function of that name, applied; `tree` is where it stands."""
    name = function_named(written, tree, scope)
    least, most = arity(name)
    if not max(least, 1) <= len(arguments) <= most:
        raise scope.error(f"{written.upper()} {takes(name)}, got {len(arguments)}.", tree)
    _check_constants(name, arguments, tree, scope)
    arguments = _fit(name, arguments, tree, scope)
    if name not in SHORTHANDS:
        return Call(name, tuple(arguments))
    try:
        return SHORTHANDS[name](*arguments)
    except LanguageError as error:
        raise scope.error(str(error), tree) from error


def window_only(name: str) -> str:
    """What to write in place of a function that only exists with OVER."""
    if name in ("ntile", "percent_rank", "cume_dist"):
        return (
            "number the rows with ROW_NUMBER and compute it from that and COUNT(*) OVER the window"
        )
    return f"it belongs to OVER, as in {name.upper()}(…) OVER (PARTITION BY … ORDER BY …)"


def _check_constants(name: str, arguments: list[Expression], tree: exp.Expr, scope: Scope) -> None:
    for place in CONSTANTS.get(name, ()):
        if place < len(arguments):
            argument = arguments[place]
            value = argument.value if isinstance(argument, Literal) else argument
            value = value.lower() if name == "date_trunc" and isinstance(value, str) else value
            wanted = misuse(name, place, value)
            if wanted:
                raise scope.error(
                    f"argument {place + 1} of {name.upper()} is {argument}; expected a constant: {wanted}.",
                    tree,
                )


def _fit(name: str, arguments: list[Expression], tree: exp.Expr, scope: Scope) -> list[Expression]:
    """The arguments after what depends on their types."""
    first, *rest = arguments
    match name:
        case "date_trunc":
            unit = Literal(str(first.value).lower()) if isinstance(first, Literal) else first
            time = rest[0]
            # A date has no hours; DuckDB gives a timestamp for every unit
            return [unit, time.cast("timestamp") if scope.kind(time) == pl.Date else time]
        case "ip_prefix" if scope.kind(first) == pl.String and not isinstance(first, Literal):
            return [Call("ip_number", (first,)), *rest]
        case "ip_prefix" | "ip_text" if not isinstance(first, Literal):
            kind = scope.kind(first)
            if not kind.is_integer():
                raise scope.error(
                    f"{name.upper()} needs an address as an integer, but {first} is {kind}. "
                    "IP_NUMBER reads one from a text.",
                    tree,
                )
            if kind == pl.UInt64:
                # With a mask of 64 bits and a sign it would become a number of 128 bits, which is no key
                return [first.cast("int64"), *rest]
    return arguments
