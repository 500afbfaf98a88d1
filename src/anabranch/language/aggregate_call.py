"""An aggregate function over expressions, as it stands in a query: its name, arguments and parameter.

The functions that make such calls are in `aggregate.py` and `collecting.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from anabranch.errors import LanguageError, shorten, suggest
from anabranch.language.expression import Column, Expression, Literal, Scalar, lift, when

FUNCTIONS = (
    "count", "count_distinct", "sum", "min", "max", "avg", "var", "stddev", "bit_or", "bit_and",
    "bit_xor", "first", "last", "approx_distinct", "approx_quantile", "var_pop", "stddev_pop",
    "sum_distinct", "avg_distinct", "collect_set", "array_agg", "string_agg", "max_by", "min_by",
    "quantile_cont", "quantile_disc", "corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept",
    "regr_r2", "regr_count",
)  # fmt: skip

IN_ORDER = ("first", "last", "array_agg", "string_agg")
"""Those that depend on the order of rows."""

ALIASES = {
    "or_aggr": "bit_or", "and_aggr": "bit_and", "xor_aggr": "bit_xor", "mean": "avg",
    "variance": "var", "var_samp": "var", "stddev_samp": "stddev",
    "approx_count_distinct": "approx_distinct", "approx_percentile": "approx_quantile",
    "arg_max": "max_by", "arg_min": "min_by", "argmax": "max_by", "argmin": "min_by",
    "list": "array_agg", "collect_list": "array_agg", "listagg": "string_agg", "group_concat": "string_agg",
}  # fmt: skip
"""Other names in texts: those of GSQL, and those of other engines for the very same."""


_GIVEN = ("init", "update", "merge", "finish")
_TYPES = ("state_type", "result_type")
"""What a user gives for an aggregate: functions, and types of Arrow."""


def known_as(name: str) -> str | None:
    """The aggregate that a text calls by this name, in any case; None if there is none."""
    name = name.lower()
    name = ALIASES.get(name, name)
    return name if name in FUNCTIONS else None


@dataclass(frozen=True, eq=False)
class UserAggregate:
    """An aggregate given by four functions over Arrow columns, vectorised over all groups.

    `init()` is the state of an empty group, a Python value of `state_type`;
    `update(states, values, groups)` returns the states after the rows: `values[i]` belongs to group
    `groups[i]`, groups ascend from 0, and `states` holds `init()` for each of them;
    `merge(states, parts, groups)` does the same with states in place of rows;
    `finish(states)` turns states into results of `result_type`. NULLs reach `update` as they are.

    >>> import pyarrow.compute as pc
    >>> def add(states, values, groups):
    ...     table = pa.table({"g": groups, "v": values}).group_by("g", use_threads=False)
    ...     return pc.add(states, table.aggregate([("v", "sum")])["v_sum"].combine_chunks())
    >>> doubled = UserAggregate("doubled", lambda: 0, add, add,
    ...                         lambda states: pc.multiply(states, 2), pa.int64(), pa.int64())
    >>> print(doubled("len"))
    DOUBLED(len) -> int64 -> int64
    """

    name: str
    init: Callable[[], Any]
    update: Callable[[pa.Array, pa.Array, pa.Array], pa.Array]
    merge: Callable[[pa.Array, pa.Array, pa.Array], pa.Array]
    finish: Callable[[pa.Array], pa.Array]
    state_type: pa.DataType
    result_type: pa.DataType

    def __post_init__(self) -> None:
        for field, fits, wanted in (
            ("name", isinstance(self.name, str), "a text"),
            *((one, callable(getattr(self, one)), "a function") for one in _GIVEN),
            *(
                (one, isinstance(getattr(self, one), pa.DataType), "a type of Arrow")
                for one in _TYPES
            ),
        ):
            if not fits:
                raise LanguageError(
                    f"The {field} of an aggregate of your own is {shorten(repr(getattr(self, field)), 100)}; "
                    f"expected {wanted}."
                )
        if self.name in FUNCTIONS:
            raise LanguageError(f"'{self.name}' is a built-in aggregate: give yours another name.")

    def __call__(self, argument: Expression | str) -> AggregateCall:
        return AggregateCall(self.name, (column_of(argument),), user=self)


@dataclass(frozen=True, eq=False)
class AggregateCall:
    """One aggregate function applied to expressions; name its value with `alias`."""

    function: str
    arguments: tuple[Expression, ...]
    parameter: Scalar = None
    user: UserAggregate | None = None

    def __post_init__(self) -> None:
        if self.user is None and self.function not in FUNCTIONS:
            raise LanguageError(
                f"There is no aggregate '{self.function}'.{suggest(self.function, FUNCTIONS)}"
            )

    def alias(self, name: str) -> NamedAggregate:
        return NamedAggregate(name, self)

    def filter(self, condition: Expression) -> AggregateCall:
        """The same over the rows for which a condition is true, as SQL's FILTER (WHERE …).

        >>> print(count().filter(Column("len") > 1000))
        COUNT(CASE WHEN len > 1000 THEN 1 ELSE NULL END)
        """
        if self.function in ("first", "last") or self.user is not None:
            raise LanguageError(
                f"FILTER is not available for {self.function.upper()}, which counts NULL as a value: "
                "use WHERE."
            )
        value = self.arguments[0] if self.arguments else Literal(1)
        return replace(self, arguments=(when((condition, value)),))

    def __str__(self) -> str:
        inner = ", ".join(str(argument) for argument in self.arguments) or "*"
        extra = "" if self.parameter is None else f", {self.parameter!s}"
        kind = f" -> {self.user.state_type} -> {self.user.result_type}" if self.user else ""
        return f"{self.function.upper()}({inner}{extra}){kind}"


@dataclass(frozen=True)
class NamedAggregate:
    """An aggregate with the name its values get."""

    name: str
    call: AggregateCall

    def __str__(self) -> str:
        return f"{self.call} AS {self.name}"


def column_of(argument: Expression | str) -> Expression:
    """An argument as an expression; a text is the name of a column."""
    return Column(argument) if isinstance(argument, str) else lift(argument)
