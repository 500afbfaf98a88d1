"""Functions in texts: which there are, how many arguments they take, what their constants may be."""

from __future__ import annotations

import polars as pl
from sqlglot import exp

from anabranch.errors import LanguageError, suggest
from anabranch.language import aggregate
from anabranch.language.expression import FUNCTIONS, Call, Expression, Literal, arity, takes
from anabranch.language.functions import CONSTANTS, misuse
from anabranch.language.kinds import type_words
from anabranch.language.shorthand import ALIASES, SHORTHANDS
from anabranch.language.spelling import shown_name
from anabranch.language.sql.column import EPOCH_TIME
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.rewrites import REWRITES

HIDDEN = (
    "not", "negate", "is_null", "is_not_null", "is_distinct", "case", "like", "local_trunc", "to_zone",
    "at_zone", "position_of", "field", "json_text", "strpdate", "add_days", "round_away", "round_digits",
    "initcap_words",
)  # fmt: skip
NAMED_FUNCTIONS = (
    *(name for name in FUNCTIONS if name.isidentifier() and name not in HIDDEN),
    *(name for name in SHORTHANDS if name not in FUNCTIONS),
    *(name for name in REWRITES if name not in FUNCTIONS and name not in SHORTHANDS),
)
"""The scalar functions that a text calls by name; some have other names too."""

_WINDOWS = ("tumble", "hop", "session", "count_window", "window")
_NOT_HERE = {
    **dict.fromkeys(_WINDOWS, "a window: it belongs into GROUP BY"),
    **dict.fromkeys(("now", "getdate", "proctime"), EPOCH_TIME),
    "random": "not the same when an epoch is run again: take bits of a column instead",
}
for _name in ("md5", "sha1", "sha256", "sha2", "crc32", "xxhash64", "hash"):
    _NOT_HERE[_name] = (
        "not available: register a user function over Arrow columns, session.function(…)"
    )
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
    if written in scope.functions:
        return written
    name = written if written in REWRITES else ALIASES.get(written, written)
    if name == "log" and "log" not in scope.spelling.functions:
        raise scope.error(
            "LOG is the natural logarithm in some engines and that to base 10 in others: write LN or LOG10, "
            "or say whose SQL it is with dialect=.",
            tree,
        )
    if aggregate.known_as(name) is not None and name not in ("list", "array_agg"):
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
    if name in scope.functions:
        own = scope.functions[name]
        if len(arguments) != len(own.arguments):
            raise scope.error(
                f"{written.upper()} takes {len(own.arguments)} argument(s), {', '.join(own.arguments)}; got "
                f"{len(arguments)}.",
                tree,
            )
        return Call(own, tuple(arguments))
    if name in REWRITES:
        return _rewritten(name, arguments, tree, scope)
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


def _rewritten(name: str, arguments: list[Expression], tree: exp.Expr, scope: Scope) -> Expression:
    least, most, rewrite = REWRITES[name]
    if not least <= len(arguments) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        raise scope.error(
            f"{name.upper()} takes {count} argument{'' if count == '1' else 's'}, got {len(arguments)}.",
            tree,
        )
    with scope.placed(tree):
        made = rewrite(arguments, scope)
    if isinstance(made, Call):
        _check_constants(made.function, list(made.arguments), tree, scope)
    return made


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
                    f"argument {place + 1} of {shown_name(name)} is {argument}; expected a constant: "
                    f"{wanted}.",
                    tree,
                )


def _fit(name: str, arguments: list[Expression], tree: exp.Expr, scope: Scope) -> list[Expression]:
    """The arguments after what depends on their types."""
    first, *rest = arguments
    match name:
        case "ip_prefix" if scope.kind(first) == pl.String and not isinstance(first, Literal):
            return [Call("ip_number", (first,)), *rest]
        case "ip_prefix" | "ip_text" if not isinstance(first, Literal):
            kind = scope.kind(first)
            if not kind.is_integer():
                raise scope.error(
                    f"{name.upper()} needs an address as an integer, but {first} is {type_words(kind)}. "
                    "IP_NUMBER reads one from a text.",
                    tree,
                )
            if kind == pl.UInt64:
                # With a mask of 64 bits and a sign it would become a number of 128 bits, which is no key
                return [first.cast("int64"), *rest]
    return arguments
