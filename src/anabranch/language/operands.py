"""Which types may meet in an operator, before Polars makes something of those that may not.

Polars compares a truth value with a text and adds two of them; DuckDB refuses that, or casts in ways that
depend on the values. Nothing is cast in silence here but numbers among numbers and dates beside timestamps.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.kinds import instance_of, orderable, type_words
from anabranch.language.spelling import COMPARISONS
from anabranch.language.tree import Call, Literal
from anabranch.language.typed import Typed

_ARITHMETIC = frozenset(
    ("+", "-", "*", "/", "//", "%", "negate", "sqrt", "exp", "ln", "log10", "power")
)
_CHOOSING = frozenset(("case", "coalesce", "greatest", "least"))
_ORDERING = frozenset(("<", "<=", ">", ">=", "greatest", "least"))
_ORDERING_ELEMENTS = frozenset(("list_sort", "sort_array", "list_min", "list_max", "list_distinct"))
_OF_ELEMENTS = frozenset(("list", "list_contains", "list_concat"))
_FAMILIES = {
    pl.String: "texts", pl.Binary: "bytes", pl.Boolean: "truth values", pl.Date: "times",
    pl.Datetime: "times", pl.Time: "times of day", pl.Duration: "lengths of time",
    pl.List: "lists", pl.Struct: "structs",
}  # fmt: skip


def family(kind: pl.DataType) -> str | None:
    """What values of a type are; None for NULL, which goes with everything."""
    return "numbers" if kind.is_numeric() else _FAMILIES.get(kind.base_type())


def check_operands(call: Call, arguments: Sequence[Typed]) -> None:
    """Refuses types that cannot meet in this call, with what to write."""
    function = call.function
    _check_nested(call, [part.kind for part in arguments])
    _check_lists(call, arguments)
    if function in COMPARISONS or function == "is_distinct":
        if len(_families(arguments)) > 1:
            raise LanguageError(
                f"'{call}' compares {_told(arguments, ' with ')}; expected two of one kind. "
                f"{_advice(call, arguments)}"
            )
    elif function in _ARITHMETIC:
        families = [family(part.kind) for part in arguments]
        unfit = {"texts", "bytes", "truth values"} & {*families}
        if unfit or families == ["times of day"] * 2:
            raise LanguageError(
                f"'{call}' computes with {_told(arguments, ' and ')}; expected numbers, or times and lengths "
                f"of time. {'|| joins texts. ' if 'texts' in unfit else ''}CAST them, or write "
                "CASE WHEN … THEN 1 ELSE 0 END for a condition."
            )
    elif function in ("concat", "concat_ws"):
        if _families(arguments) & {"lists", "structs"}:
            raise LanguageError(
                f"'{call}' joins {_told(arguments, ' and ')}; expected texts. LIST_CONCAT joins lists."
            )
        if function == "concat" and "bytes" in _families(arguments):
            raise LanguageError(
                f"'{call}' joins {_told(arguments, ' and ')}; expected texts. CAST bytes to VARCHAR, which "
                "writes those that are no letters as \\x00."
            )
    elif function in _OF_ELEMENTS:
        elements = [_element(part.kind) for part in arguments]
        kinds = {name for kind in elements if (name := family(kind))}
        if len(kinds) > 1:
            raise LanguageError(
                f"'{call}' has elements of {_told(arguments, ' and ')} in one list; expected values of one "
                "kind. CAST them to the type that is meant."
            )
    elif function in _CHOOSING:
        chosen = arguments
        if function == "case":
            chosen = [*arguments[1:-1:2], arguments[-1]]
        kinds = _families(chosen)
        if len(kinds) > 1 and kinds != {"numbers", "truth values"}:
            raise LanguageError(
                f"'{call}' chooses among {_told(chosen, ', ')}; expected values of one kind. CAST them to "
                "the type that is meant."
            )


def _check_nested(call: Call, kinds: Sequence[pl.DataType]) -> None:
    """Refuses what cannot be computed of lists and structs; Polars would compute something else."""
    compared: list[pl.DataType] = []
    if call.function in _ORDERING:
        compared = [*kinds]
    elif call.function in _ORDERING_ELEMENTS:
        compared = [instance_of(kind.inner) for kind in kinds if isinstance(kind, pl.List)]
    for kind in compared:
        if not orderable(kind):
            raise LanguageError(
                f"'{call}' compares values of type {type_words(kind)}, which have no order: take a field or "
                "an element of them."
            )
    if call.function == "list" and any(isinstance(kind, pl.List) for kind in kinds):
        raise LanguageError(
            f"'{call}' is a list of lists, which cannot be made here: make structs of them, as in "
            "[{'a': x}], or LIST_CONCAT(x, y)."
        )


NUMBERS_OF_TIMES = (
    "Write EPOCH(ts) or EPOCH_US(ts) for a number, FROM_EPOCH(seconds) or FROM_EPOCH_MS(…) for a time, "
    "DATE_DIFF('day', a, b) for days; in Python call('epoch', col('ts')) and so on."
)


def _check_lists(call: Call, arguments: Sequence[Typed]) -> None:
    """Refuses lists of different kinds of elements where one is compared with, or put for, another."""
    meet = (
        call.function in COMPARISONS or call.function in _CHOOSING or call.function == "is_distinct"
    )
    lists = [part for part in arguments if isinstance(part.kind, pl.List)]
    if meet and len({name for part in lists if (name := family(_element(part.kind)))}) > 1:
        raise LanguageError(
            f"'{call}' has lists of different kinds, {_told(lists, ' and ')}: CAST their elements to one "
            "type where the lists are made."
        )


_UNCASTABLE = (
    ("bytes", {"numbers", "truth values", "times", "times of day", "lengths of time"}),
    ("truth values", {"times", "times of day", "lengths of time"}),
)


def check_cast(kind: pl.DataType, wanted: pl.DataType) -> None:
    """Refuses casts that have no meaning, which would else end the run at the first row."""
    if (kind.is_nested() or wanted.is_nested()) and not (
        kind in (wanted, pl.Null) or (_numbers_in(kind) and _numbers_in(wanted))
    ):
        raise LanguageError(
            f"{type_words(kind)} cannot be cast to {type_words(wanted)}: take fields or elements, and cast "
            "those."
        )
    ends = {family(kind), family(wanted)}
    if "numbers" in ends and ends & {"times", "times of day"}:
        raise LanguageError(
            f"{type_words(kind)} cannot be cast to {type_words(wanted)}, for engines differ in what that "
            f"means. {NUMBERS_OF_TIMES}"
        )
    if "lengths of time" in ends and kind not in (wanted, pl.Null):
        raise LanguageError(
            f"{type_words(kind)} cannot be cast to {type_words(wanted)}: subtract numbers in place of times, "
            "as in EPOCH_US(b) - EPOCH_US(a)."
        )
    clock = pl.Time in (kind, wanted) and {kind.base_type(), wanted.base_type()} & {
        pl.Date,
        pl.Decimal,
    }
    if (
        clock
        or (kind == pl.Time and isinstance(wanted, pl.Datetime))
        or any(one in ends and ends & others for one, others in _UNCASTABLE)
    ):
        raise LanguageError(
            f"{type_words(kind)} cannot be cast to {type_words(wanted)}. A text can be made of every type "
            "and read as any: CAST(CAST(x AS VARCHAR) AS …), if that is what is meant."
        )


def _element(kind: pl.DataType) -> pl.DataType:
    return instance_of(kind.inner) if isinstance(kind, pl.List) else kind


def _numbers_in(kind: pl.DataType) -> bool:
    return isinstance(kind, pl.List) and instance_of(kind.inner).is_numeric()


def _families(arguments: Sequence[Typed]) -> set[str]:
    return {name for part in arguments if (name := family(part.kind))}


def _told(arguments: Sequence[Typed], word: str) -> str:
    """The types, each once, in order."""
    return word.join(
        dict.fromkeys(type_words(part.kind) for part in arguments if part.kind != pl.Null)
    )


def _advice(call: Call, arguments: Sequence[Typed]) -> str:
    families = _families(arguments)
    if "times" in families and families & {"texts", "numbers"}:
        return (
            "Compare with a time: a datetime in Python, DATE '2026-01-31' or "
            "TIMESTAMP '2026-01-31 12:00:00' in SQL."
        )
    if "truth values" in families and any(isinstance(part, Call) for part in call.arguments):
        return "If two comparisons are meant, join them with AND; else CAST one side."
    constant = any(isinstance(part, Literal) for part in call.arguments)
    return "Write the constant as a value of that type." if constant else "CAST one side."
