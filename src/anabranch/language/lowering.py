"""Expressions over columns of known types: the Polars expression of each and the type of its values.

Every call gets the types of its arguments, so that numbers meet in a type that loses nothing: whole numbers
are computed with in 64 bits however narrow their columns are, decimals by the rules of `decimals.py`, and a
constant with a point is a decimal beside decimals, exact beside whole numbers that it is compared with, and
else a float. What is made of constants alone is computed once and is a constant itself.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.arguments import as_meant, as_results_are
from anabranch.language.casts import cast
from anabranch.language.comparing import compare, is_in
from anabranch.language.complaints import in_words
from anabranch.language.decimal_functions import elements_differ, has_decimals, with_decimals
from anabranch.language.decimals import (
    Pointed,
    constant,
    decimal_of,
    fits_decimal,
    product_type,
    sum_type,
)
from anabranch.language.floats import float_remainder
from anabranch.language.functions import CONSTANTS, FUNCTIONS, as_column, misuse, shift
from anabranch.language.kinds import type_named, type_words
from anabranch.language.operands import check_cast, check_operands
from anabranch.language.polars_kind import polars_kind
from anabranch.language.rounding import ROUNDING, round_off
from anabranch.language.spelling import COMPARISONS, shown_name
from anabranch.language.tree import Call, Column, Expression, Literal, parts_of
from anabranch.language.typed import Typed, typed_constant
from anabranch.language.user_function import UserFunction

_ASKING_NULL = frozenset(
    ("is_null", "is_not_null", "is_distinct", "case", "coalesce", "greatest", "least", "in")
)
"""Functions that may be something else than NULL for a NULL."""


def lower(expression: Expression, schema: Mapping[str, pl.DataType]) -> Typed:
    """What computes this expression over a frame with this schema."""
    done: dict[int, Typed] = {}
    for part in parts_of(expression):
        done[id(part)] = lowered(part, schema, done)
    return done[id(expression)]


def lowered(
    part: Expression, schema: Mapping[str, pl.DataType], done: Mapping[int, Typed]
) -> Typed:
    """One part, after its arguments."""
    match part:
        case Column(name):
            return Typed(pl.col(name), schema[name])
        case Literal(value):
            return typed_constant(value)
        case Call(_, arguments):
            return _evaluated(part, [done[id(argument)] for argument in arguments])
    raise LanguageError(f"'{part}' cannot be evaluated as a column expression.")


def columns_of(expression: Expression) -> Iterator[str]:
    """The names of the columns an expression reads."""
    return (part.name for part in parts_of(expression) if isinstance(part, Column))


def _evaluated(call: Call, arguments: Sequence[Typed]) -> Typed:
    """A call over its arguments; of constants alone, its value."""
    try:
        computed = _apply(call, arguments)
        fixed = all(argument.is_constant for argument in arguments)
        if computed.is_constant or computed.kind.is_nested() or not fixed:
            return computed
        found = pl.select(value=computed.expr).to_series()
    except pl.exceptions.PolarsError as error:
        if call.function not in _ASKING_NULL and any(part.kind == pl.Null for part in arguments):
            # Polars has no such function for a column of nothing but NULL
            return typed_constant(None)
        columns = dict.fromkeys(columns_of(call))
        kinds = ", ".join(
            f"{part} {type_words(argument.kind)}"
            for part, argument in zip(call.arguments, arguments, strict=True)
        )
        reason = in_words(error)
        raise LanguageError(
            f"'{call}' cannot be computed from {kinds if columns else 'constants'}: {reason}"
        ) from error
    try:
        value = found.item()
    except ValueError:
        # A time outside the years 1 to 9999, which Python has no value for
        return Typed(pl.lit(found).first(), found.dtype)
    return Typed(pl.lit(value, found.dtype), found.dtype, value)


def _apply(call: Call, arguments: Sequence[Typed]) -> Typed:
    function = call.function
    if isinstance(function, UserFunction):
        return _called(function, call, arguments)
    if function in ("cast", "try_cast"):
        return _cast(arguments[0], str(arguments[1].value), strict=function == "cast")
    if function == "in":
        return is_in(arguments[0], [option.value for option in arguments[1:]])
    if _is_plain(function, arguments):
        return Typed(FUNCTIONS[function](*(part.expr for part in arguments)), pl.Boolean())
    check_operands(call, arguments)
    exact = _of_constants(function, arguments)
    if exact is not None:
        return exact
    arguments = as_meant(function, arguments)
    if function in ROUNDING and arguments[0].kind.is_numeric():
        return round_off(function, arguments[0], arguments[1:])
    if function in COMPARISONS or function == "is_distinct":
        compared = compare(call, arguments)
        if compared is not None:
            return compared
    if any(has_decimals(argument.kind) for argument in arguments) or elements_differ(
        function, arguments
    ):
        arguments, computed = with_decimals(function, arguments)
        if computed is not None:
            return computed
    arguments = as_results_are(function, arguments)
    if function in ("<<", ">>"):
        return _shifted(call, arguments[0], arguments[1])
    if function == "-" and all(part.kind == pl.Date for part in arguments):
        # Days, as everywhere in SQL; Polars has a length of time
        days = FUNCTIONS[function](*(part.expr for part in arguments)).dt.total_days()
        return Typed(days, pl.Int64())
    if function == "coalesce":
        return _coalesced(arguments)
    kind, plain = polars_kind(function, arguments), _plain_arguments(call, arguments)
    if function in ("/", "//", "%") and kind.is_float():
        plain = _row_by_row(arguments, plain, kind)
    if function == "%" and kind.is_float():
        return Typed(float_remainder(plain[0], plain[1], kind), kind)
    expr = FUNCTIONS[function](*plain)
    if kind.is_float() and all(part.is_constant or not part.kind.is_float() for part in arguments):
        # Polars would take what is made of constants alone for as wide as what it meets
        expr = expr.cast(kind)
    return Typed(expr, kind)


def _called(function: UserFunction, call: Call, arguments: Sequence[Typed]) -> Typed:
    """A function of the user's, over arguments that its types take without loss."""
    given = zip(call.arguments, arguments, function.wanted, strict=True)
    parts = []
    for part, argument, wanted in given:
        number = argument.kind.is_numeric() and wanted.is_numeric()
        if argument.kind not in (wanted, pl.Null) and not number:
            raise LanguageError(
                f"{function.upper()} takes {', '.join(function.arguments)}, but {part} is "
                f"{type_words(argument.kind)}."
            )
        parts.append(cast(argument.expr, argument.kind, wanted, strict=True))
    return Typed(function.applied(parts), function.kind)


_PLAIN_KINDS = frozenset((pl.Int64, pl.String, pl.Boolean))


def _is_plain(function: str, arguments: Sequence[Typed]) -> bool:
    """Whether it is a comparison of like with like, or AND or OR of conditions: most of what is written."""
    kinds = {part.kind.base_type() for part in arguments}
    if len(arguments) != 2 or len(kinds) != 1 or not kinds <= _PLAIN_KINDS:
        return False
    return function in COMPARISONS or (function in ("&", "|") and pl.Boolean in kinds)


def _plain_arguments(call: Call, arguments: Sequence[Typed]) -> list[Any]:
    """The arguments as the function wants them: Polars expressions, some of them plain values."""
    fixed = CONSTANTS.get(call.function, ())
    plain: list[Any] = []
    for place, argument in enumerate(arguments):
        if place not in fixed:
            plain.append(argument.expr)
            continue
        value = argument.value if argument.is_constant else call.arguments[place]
        wanted = misuse(call.function, place, value)
        if wanted:
            raise LanguageError(
                f"argument {place + 1} of {shown_name(call.function)} is {call.arguments[place]}; "
                f"expected a constant: {wanted}."
            )
        plain.append(value)
    return plain


def _row_by_row(
    arguments: Sequence[Typed], plain: list[pl.Expr], kind: pl.DataType
) -> list[pl.Expr]:
    """The operands with a constant divisor as a column, for Polars would multiply by 1 / constant.

    That is 0 for 49.0 // 49.0 and 0.30000000000000004 for 3 / 10.0, but not in a batch of one row.
    """
    value, by = plain
    if arguments[0].is_constant or not arguments[1].is_constant:
        return plain
    return [value, as_column(by, value, kind)]


_CONSTANT_SUMS: Mapping[str, Callable[..., decimal.Decimal]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "negate": lambda a: -a,
    "%": lambda a, b: (a % b + b) % b,
}  # fmt: skip


def _of_constants(function: str, arguments: Sequence[Typed]) -> Typed | None:
    """Constants with a point added and multiplied as they are written."""
    if function not in _CONSTANT_SUMS or not any(part.is_written for part in arguments):
        return None
    if not all(part.is_written or type(part.value) is int for part in arguments):
        return None
    values = [part.value for part in arguments]
    if function == "%" and not values[1]:
        return None
    with decimal.localcontext(decimal.Context(prec=100)):
        result = _CONSTANT_SUMS[function](*map(decimal.Decimal, values))
    digits = [part.decimal for part in arguments]
    own = digits[0]
    if len(digits) == 2 and digits[0] and digits[1]:
        own = (product_type if function == "*" else sum_type)(digits[0], digits[1])
    if not fits_decimal(result) or own is None:
        return None
    return Typed(pl.lit(float(result)), pl.Float64(), Pointed(result), own)


def _coalesced(arguments: Sequence[Typed]) -> Typed:
    """The first that is not NULL. Nothing after a constant counts: Polars would forget the rows' number."""
    kind = polars_kind("coalesce", arguments)
    able = [part for part in arguments if part.value is not None] or arguments[:1]
    last = next((n for n, part in enumerate(able) if part.is_constant), len(able) - 1)
    if last == 0:
        return Typed(able[0].expr.cast(kind), kind)
    return Typed(FUNCTIONS["coalesce"](*(part.expr for part in able[: last + 1])).cast(kind), kind)


def _shifted(call: Call, value: Typed, bits: Typed) -> Typed:
    left = call.function == "<<"
    if left and type(bits.value) is int and not 0 <= bits.value <= 63:
        raise LanguageError(f"'{call}' shifts by {bits.value} bits; expected 0 to 63.")
    unsigned = value.kind == pl.UInt64
    by = bits.value if type(bits.value) is int else bits.expr.cast(pl.Int64)
    kind = pl.UInt64() if unsigned else pl.Int64()
    return Typed(shift(value.expr.cast(kind), by, left, unsigned), kind)


def _cast(value: Typed, name: str, strict: bool) -> Typed:
    wanted = type_named(name)
    assert wanted is not None
    check_cast(value.kind, wanted)
    if value.is_written and not wanted.is_float():
        # What is written has its digits: 0.1 is no float on the way to a decimal or a text
        own = decimal_of(value.kind, value.value)
        assert own is not None
        value = Typed(constant(value.value, own), own)
    return Typed(cast(value.expr, value.kind, wanted, strict), wanted)
