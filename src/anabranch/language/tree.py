"""Expression trees: frozen, compared and hashed by identity, printed as SQL.

Python's operators build larger trees. What a tree computes is in `expression.py`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from anabranch.errors import LanguageError
from anabranch.language.kinds import castable
from anabranch.language.naming import half_letter
from anabranch.language.spelling import shown_name, spelled, told_constant

_PLAIN = re.compile(r"#?\w+")
"""Names that are shown without quotes."""


Scalar: TypeAlias = (
    bool | int | float | str | bytes | dt.date | dt.datetime | dt.time | dt.timedelta | decimal.Decimal | None
)  # fmt: skip
MOST_PARTS = 1_000_000
"""Parts that an expression may have: planning it, and telling of it, takes time for each."""


def _infix(sign: str, turned: bool = False) -> Callable[[Expression, Any], Expression]:
    """The method of a Python operator; with `turned`, for an expression on its right."""

    def build(self: Expression, other: Any) -> Expression:
        sides = (self, lift(other))
        return Call(sign, sides[::-1] if turned else sides)

    return build


class Expression:
    """A scalar expression; Python's operators build larger ones.

    >>> print((col("time") // 60).alias("tb"))
    time // 60 AS tb
    """

    __hash__ = object.__hash__

    def alias(self, name: str) -> Named:
        if not isinstance(name, str):
            raise LanguageError(f"alias() takes a name as a text, not {name!r}.")
        return Named(name, self)

    def cast(self, type_name: str) -> Expression:
        """The value as another type: int64, float64, decimal(10, 2), string, boolean, date, timestamp, …

        A value that does not fit ends the run; `try_cast` gives NULL for it.
        """
        return Call("cast", (self, Literal(castable(type_name))))

    def try_cast(self, type_name: str) -> Expression:
        """The value as another type, NULL where it does not fit."""
        return Call("try_cast", (self, Literal(castable(type_name))))

    def is_null(self) -> Expression:
        return Call("is_null", (self,))

    def is_not_null(self) -> Expression:
        return Call("is_not_null", (self,))

    def is_in(self, values: list[Scalar]) -> Expression:
        if not isinstance(values, (list, tuple, set, frozenset, range)):
            raise LanguageError(f"is_in() takes a list of values, not {values!r}.")
        return Call("in", (self, *(lift(value) for value in values)))

    def is_distinct_from(self, other: Any) -> Expression:
        """Not equal, with NULL as a value like others: never NULL itself."""
        return Call("is_distinct", (self, lift(other)))

    def like(self, pattern: str) -> Expression:
        """Whether a text fits a pattern, where `%` is any text and `_` any character."""
        return Call("like", (self, Literal(pattern)))

    def between(self, low: Any, high: Any) -> Expression:
        return Call("&", (self >= low, self <= high))

    __add__ = _infix("+")
    __sub__ = _infix("-")
    __mul__ = _infix("*")
    __truediv__ = _infix("/")
    __floordiv__ = _infix("//")
    __mod__ = _infix("%")
    __and__ = _infix("&")
    __or__ = _infix("|")
    __xor__ = _infix("^")
    __lshift__ = _infix("<<")
    __rshift__ = _infix(">>")
    __radd__ = _infix("+", turned=True)
    __rsub__ = _infix("-", turned=True)
    __rmul__ = _infix("*", turned=True)
    __eq__ = _infix("=")  # type: ignore[assignment]
    __ne__ = _infix("<>")  # type: ignore[assignment]
    __lt__ = _infix("<")
    __le__ = _infix("<=")
    __gt__ = _infix(">")
    __ge__ = _infix(">=")

    def __invert__(self) -> Expression:
        return Call("not", (self,))

    def __neg__(self) -> Expression:
        return Call("negate", (self,))

    def __bool__(self) -> bool:
        raise LanguageError(
            f"'{self}' is a column expression and has no truth value here: "
            "combine conditions with & | ~ (not and, or, not), and put each in parentheses."
        )


@dataclass(frozen=True, eq=False)
class Column(Expression):
    """The value of a named column."""

    name: str

    def __str__(self) -> str:
        return self.name if _PLAIN.fullmatch(self.name) else f'"{self.name}"'


@dataclass(frozen=True, eq=False)
class Literal(Expression):
    """A constant."""

    value: Scalar

    def __post_init__(self) -> None:
        if not isinstance(self.value, Scalar):
            raise LanguageError(
                "Expected an expression or a constant (a number, text, bytes, truth value, date, time, "
                f"length of time or None), got {self.value!r}, which is a {type(self.value).__name__}."
            )
        if isinstance(self.value, str) and half_letter(self.value) is not None:
            raise LanguageError(f"Expected a text of Unicode, got {self.value!a}.")

    def __str__(self) -> str:
        return told_constant(self.value)


@dataclass(frozen=True, eq=False)
class Call(Expression):
    """A function or operator applied to arguments."""

    function: str
    arguments: tuple[Expression, ...]
    weight: int = field(init=False, repr=False)
    """Parts of the expression, written out: what is used twice counts twice."""

    def __post_init__(self) -> None:
        weight = 1 + sum(part.weight if isinstance(part, Call) else 1 for part in self.arguments)
        if weight > MOST_PARTS:
            raise LanguageError(
                f"{shown_name(self.function)}: the expression has {weight:,} parts, written out; expected at "
                f"most {MOST_PARTS:,}. Compute some of it in a query below and use its columns."
            )
        object.__setattr__(self, "weight", weight)

    def __str__(self) -> str:
        # With a stack of our own: trees may be deeper than Python's
        told: list[str] = []
        waiting: list[str | Expression] = [self]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Call):
                waiting += reversed(spelled(part.function, part.arguments))
            else:
                told.append(str(part))
        return "".join(told)

    def __reduce__(self) -> Any:
        # Flat, for pickle would go down a deep tree by calling itself
        return rebuild, (flatten(self),)


def parts_of(expression: Expression) -> list[Expression]:
    """The expression and all it is made of, each once, arguments before what they are part of."""
    found: dict[int, Expression] = {}
    waiting: list[tuple[Expression, bool]] = [(expression, False)]
    while waiting:
        part, ready = waiting.pop()
        if id(part) in found:
            continue
        if ready or not isinstance(part, Call):
            found[id(part)] = part
            continue
        waiting.append((part, True))
        waiting += [(inner, False) for inner in reversed(part.arguments)]
    return list(found.values())


Flat: TypeAlias = list[Expression | tuple[str, tuple[int, ...]]]
"""A tree as a list: columns and constants as they are, calls with the places of their arguments."""


def flatten(expression: Expression) -> Flat:
    """A tree as a list, whose last entry is the whole."""
    places: dict[int, int] = {}
    flat: Flat = []
    for part in parts_of(expression):
        places[id(part)] = len(flat)
        if isinstance(part, Call):
            flat.append((part.function, tuple(places[id(inner)] for inner in part.arguments)))
        else:
            flat.append(part)
    return flat


def rebuild(flat: Flat) -> Expression:
    """The tree of a list that `flatten` made."""
    made: list[Expression] = []
    for part in flat:
        if isinstance(part, tuple):
            made.append(Call(part[0], tuple(made[place] for place in part[1])))
        else:
            made.append(part)
    return made[-1]


@dataclass(frozen=True)
class Named:
    """An expression with the name its values get."""

    name: str
    expression: Expression

    def __str__(self) -> str:
        return (
            self.name if str(self.expression) == self.name else f"{self.expression} AS {self.name}"
        )


def col(name: str) -> Column:
    """The column of that name.

    >>> print(col("len") * 8 > 1000)
    (len * 8) > 1000
    """
    if not isinstance(name, str):
        raise LanguageError(
            f"col() takes the name of a column as a text, not {name!r}. A constant is lit({name!r})."
        )
    return Column(name)


def lit(value: Scalar) -> Literal:
    """A constant as an expression."""
    if isinstance(value, Expression):
        raise LanguageError(f"lit() takes a constant; '{value}' is an expression already.")
    lifted = lift(value)
    assert isinstance(lifted, Literal)
    return lifted


def lift(value: Any) -> Expression:
    """Any value as an expression: expressions stay, constants become literals."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, Named):
        raise LanguageError(
            f"'{value}' already has a name: use alias() on the outermost expression."
        )
    return Literal(value)


def when(*cases: tuple[Expression, Any], otherwise: Any = None) -> Expression:
    """CASE WHEN: the first value whose condition holds.

    >>> print(when((col("len") > 1000, "big"), otherwise="small"))
    CASE WHEN len > 1000 THEN 'big' ELSE 'small' END
    """
    given: tuple[Any, ...] = cases
    pairs = [case for case in given if isinstance(case, tuple) and len(case) == 2]
    if not given or len(pairs) < len(given):
        raise LanguageError("when() takes (condition, value) pairs, at least one of them.")
    flat = [lift(part) for pair in pairs for part in pair]
    return Call("case", (*flat, lift(otherwise)))
