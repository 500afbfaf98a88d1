"""Terms: scalar expressions over source attributes, brought to one form and read as shapes.

A shape is what `lattice` can reason about: digits of a number (`x // 60`, `x >> 4`, `x % 10`,
`(x // 60) % 24`), bits of a number (`x & 0xFFF0`), the beginning of a string. Everything else is a
function that is only compared. Nothing is evaluated here.

The laws of numbers hold for integers. A plain column counts as an integer where it is used as one;
an `Attribute` knows its type, and floats are left alone: `x // 180` of a float is not exactly
`(x // 60) // 3`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl

from anabranch.language.expression import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    parts_of,
)
from anabranch.partitioning.cast import is_integer_type, loses_nothing

LARGEST = 2**63 - 1
"""Literals are 64-bit integers."""


@dataclass(frozen=True, eq=False)
class Attribute(Column):
    """A column of a source stream, with what is known of it."""

    kind: pl.DataType
    ordered: bool = False
    position: int = 0


@dataclass(frozen=True, eq=False)
class Digit:
    """The value (base // step) % (wrap // step); with wrap 0 it does not wrap around."""

    base: Expression
    step: int
    wrap: int
    shifts: bool = False
    """Whether the step is written as `>>`; floor division by the power of two is the same."""


@dataclass(frozen=True, eq=False)
class Mask:
    """The value base & bits, in two's complement: negative bits reach up without end."""

    base: Expression
    bits: int


@dataclass(frozen=True, eq=False)
class Prefix:
    """The first `length` characters of base."""

    base: Expression
    length: int


Shape: TypeAlias = Digit | Mask | Prefix

_WHOLE = {"+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "negate", "abs"}
_COUNTS = {"length", "year", "month", "day", "hour", "minute"}


def canonical(term: Expression) -> Expression:
    """The same value in the form that all ways of writing it share, as far as known.

    >>> from anabranch.language.expression import col
    >>> print(canonical((col("x") // 60) // 3), "|", canonical((col("x") & 0xFFF0) & 0xFF))
    x // 180 | x & 240
    """
    shape = shape_of(term)
    return _plain(term) if shape is None else write(shape)


def _plain(term: Expression) -> Expression:
    match term:
        case Call("cast", (Attribute() as inner, Literal(str(name)))):
            # Only where the hash stays the same too: it does not see the width of an integer
            # A condition is no number: what computes with the cast could not do without it
            integer = inner.kind.is_integer() and is_integer_type(name)
            if integer and loses_nothing(inner.kind, name):
                return inner
        case Call(function, parts):
            return Call(function, tuple(canonical(part) for part in parts))
    return term


def shape_of(term: Expression) -> Shape | None:
    """How the term takes digits, bits or a beginning of something; None for other functions."""
    match term:
        case Call("//" | ">>" | "%" as sign, (inner, Literal(int(number)))) if _size(sign, number):
            return _digits(sign, inner, _size(sign, number))
        case Call("&", (inner, Literal(int(bits)))) | Call("&", (Literal(int(bits)), inner)) if (
            type(bits) is int
        ):
            return _bits(inner, bits)
        case Call("substring", (inner, Literal(1), Literal(int(length)))) if length >= 1:
            shape = shape_of(inner)
            if isinstance(shape, Prefix):
                return Prefix(shape.base, min(length, shape.length))
            return Prefix(canonical(inner), length)
    return Digit(_plain(term), 1, 0) if is_whole(term) else None


def _size(sign: str, number: int) -> int:
    """The divisor, or 0 where the laws of division do not hold."""
    if type(number) is not int:
        return 0
    if sign == ">>":
        return 2**number if 0 <= number <= 62 else 0
    return number if 1 <= number <= LARGEST else 0


def _digits(sign: str, inner: Expression, size: int) -> Digit | None:
    shape = shape_of(inner)
    if shape is None or isinstance(shape, Prefix):
        return None
    digit = Digit(write(shape), 1, 0) if isinstance(shape, Mask) else shape
    count = digit.wrap // digit.step
    if sign == "%":
        if count % size == 0:
            return Digit(digit.base, digit.step, digit.step * size, digit.shifts)
        return Digit(write(digit), 1, size)
    shifts = sign == ">>" and (digit.shifts or digit.step == 1)
    if count % size == 0 and digit.step * size <= LARGEST:
        return Digit(digit.base, digit.step * size, digit.wrap, shifts)
    return Digit(write(digit), size, 0, sign == ">>")


def _bits(inner: Expression, bits: int) -> Mask | None:
    match shape_of(inner):
        case Mask(base, already):
            return Mask(base, already & bits)
        case Digit(base, 1, wrap) if wrap == 0 or (
            bits >= 0 and wrap % 2 ** bits.bit_length() == 0
        ):
            return Mask(base, bits)
        case Digit() as digit:
            return Mask(write(digit), bits)
    return None


def write(shape: Shape) -> Expression:
    """The expression of a shape."""
    match shape:
        case Mask(base, bits):
            return Call("&", (base, Literal(bits)))
        case Prefix(base, length):
            return Call("substring", (base, Literal(1), Literal(length)))
        case Digit(base, step, wrap, shifts):
            term = base
            if step > 1 and shifts:
                term = Call(">>", (term, Literal(step.bit_length() - 1)))
            elif step > 1:
                term = Call("//", (term, Literal(step)))
            return Call("%", (term, Literal(wrap // step))) if wrap else term


def is_whole(term: Expression) -> bool:
    """Whether the values are integers, so that the laws of division and of bits hold."""
    match term:
        case Attribute():
            return term.kind.is_integer()
        case Column():
            return True
        case Literal(value):
            return type(value) is int
        case Call("cast", (_, Literal(str(name)))):
            return is_integer_type(name)
        case Call(function, parts):
            return function in _COUNTS or (function in _WHOLE and all(map(is_whole, parts)))
    return False


def reads_columns(term: Expression) -> bool:
    return next(columns_of(term), None) is not None


def key_of(term: Expression) -> Hashable:
    """Equal for terms that are built alike; texts can be alike by accident."""
    match term:
        case Column(name):
            return ("column", name)
        case Literal(value):
            return ("literal", type(value).__name__, value)
        case Call(function, parts):
            return (function, *map(key_of, parts))
    return id(term)


def alike(left: Expression, right: Expression) -> bool:
    """Whether two terms are known to have the same value on every row."""
    left, right = canonical(left), canonical(right)
    if key_of(left) == key_of(right):
        return True
    match shape_of(left), shape_of(right):
        case Digit(base, step, wrap), Digit(other, other_step, other_wrap):
            return (key_of(base), step, wrap) == (key_of(other), other_step, other_wrap)
    return False


@dataclass(frozen=True, eq=False)
class _Hexadecimal(Literal):
    value: int

    def __str__(self) -> str:
        return f"0x{self.value:X}"


@dataclass(frozen=True, eq=False)
class _Quoted(Column):
    def __str__(self) -> str:
        return f'"{self.name}"'


def text_of(term: Expression) -> str:
    """The term as people read it: masks in hexadecimal, names in quotes that are no plain names.

    >>> from anabranch.language.expression import col
    >>> print(text_of(col("srcIP") & 0xFFF0))
    srcIP & 0xFFF0
    """
    return str(_shown(term))


def _shown(term: Expression) -> Expression:
    shown: dict[int, Expression] = {}
    for part in parts_of(term):
        new = part
        match part:
            case Column(name) if not name.isidentifier():
                new = _Quoted(name)
            case Call("&", (inner, Literal(int(bits)))) if type(bits) is int and bits >= 0:
                new = Call("&", (shown[id(inner)], _Hexadecimal(bits)))
            case Call(function, arguments):
                new = Call(function, tuple(shown[id(inner)] for inner in arguments))
        shown[id(part)] = new
    return shown[id(term)]
