"""The relation "is a function of" between terms, and the finest term below two.

If a is a function of b, rows that agree on b agree on a: splitting by a keeps together what
splitting by b keeps together. Every claim has a witness: `express` writes a with the values of b in
place of the attributes. What cannot be written so is not claimed; unknown functions are functions of
their arguments and of what is written alike.

>>> from anabranch.language.expression import col
>>> time, source = col("time"), col("srcIP")
>>> print(express(time // 180, (time // 60,)))
#0 // 3
>>> print(meet(time // 60, time // 90), "|", meet(source, source & 0xFFF0))
time // 180 | srcIP & 65520
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from anabranch.language.expression import (
    Call,
    Column,
    Expression,
    Literal,
    substitute,
    type_of,
)
from anabranch.partitioning.cast import loses_nothing, type_name
from anabranch.partitioning.term import (
    LARGEST,
    Attribute,
    Digit,
    Mask,
    Prefix,
    Shape,
    canonical,
    is_whole,
    key_of,
    reads_columns,
    shape_of,
    write,
)

Term: TypeAlias = Expression | tuple[Expression, ...]
Run: TypeAlias = tuple[int, int]
"""The step and the wrap of the digit that a stretch of bits is; see `Digit`."""


def is_function_of(term: Term, other: Term) -> bool:
    """Whether rows that agree on `other` must agree on `term`, as far as known; tuples in all parts."""
    terms = term if isinstance(term, tuple) else (term,)
    others = other if isinstance(other, tuple) else (other,)
    return all(express(part, others) is not None for part in terms)


def meet(left: Expression, right: Expression) -> Expression | None:
    """The finest term known that is a function of both; None if only a constant is."""
    left, right = canonical(left), canonical(right)
    below = [
        term
        for term, other in ((left, right), (right, left))
        if express(term, (other,)) is not None
    ]
    if below:
        # Both, if they only are two ways to write the same: then the same one whoever comes first
        found = min(below, key=lambda term: (len(str(term)), str(term)))
        return None if _is_constant(found) else found
    first, second = shape_of(left), shape_of(right)
    if first is None or second is None or key_of(first.base) != key_of(second.base):
        return None
    coarser = _common(first, second)
    if coarser is None:
        return None
    term = write(coarser)
    return term if all(express(term, (part,)) is not None for part in (left, right)) else None


def hole(number: int) -> Column:
    """What stands for the value of base `number` in an expressed term."""
    return Column(f"#{number}")


def fill(function: Expression, bases: tuple[Expression, ...]) -> Expression:
    """An expressed term with bases in its holes again."""
    return canonical(substitute(function, {hole(n).name: base for n, base in enumerate(bases)}))


def express(term: Expression, bases: tuple[Expression, ...]) -> Expression | None:
    """The term computed from the values of the bases alone, or None if no way is known.

    The result reads `hole(n)` for the value of base n and no attributes.
    """
    return _express(canonical(term), tuple(canonical(base) for base in bases))


def _express(term: Expression, bases: tuple[Expression, ...]) -> Expression | None:
    if not reads_columns(term):
        return term
    for number, base in enumerate(bases):
        found = _through(term, base, hole(number))
        if found is not None:
            return found
    if not isinstance(term, Call):
        return None
    if any(_is_float(part) for part in term.arguments):
        return None
    parts = [_express(part, bases) for part in term.arguments]
    known = tuple(part for part in parts if part is not None)
    return Call(term.function, known) if len(known) == len(parts) else None


@functools.lru_cache(maxsize=4096)
def _float_kind(text: str, term: _Written) -> bool:
    kinds = {attribute.name: attribute.kind for attribute in _attributes(term.expression)}
    return type_of(term.expression, kinds, text).is_float()


@dataclass(frozen=True)
class _Written:
    """A term that is known by its text and the types of its attributes."""

    expression: Expression = field(compare=False)
    kinds: tuple[str, ...]


def _is_float(term: Expression) -> bool:
    """Whether a term is a float, as far as known: 0.0 and -0.0 are equal, but not all made of them is."""
    if not reads_columns(term):
        return False
    known = _attributes(term)
    if not known:
        return False
    return _float_kind(str(term), _Written(term, tuple(f"{a.name} {a.kind}" for a in known)))


def _attributes(term: Expression) -> list[Attribute]:
    if isinstance(term, Attribute):
        return [term]
    parts = term.arguments if isinstance(term, Call) else ()
    return [attribute for part in parts for attribute in _attributes(part)]


def _through(term: Expression, base: Expression, value: Column) -> Expression | None:
    if key_of(term) == key_of(base):
        return value
    first, second = shape_of(term), shape_of(base)
    if first is not None and second is not None and key_of(first.base) == key_of(second.base):
        found = _between(first, second, value)
        if found is not None:
            return canonical(found)
    undone = _undo(base, value)
    if undone is None:
        return None
    inner, inverse = undone
    function = _express(term, (inner,))
    return None if function is None else substitute(function, {hole(0).name: inverse})


def _between(term: Shape, base: Shape, value: Column) -> Expression | None:
    """One shape from another of the same thing."""
    match term, base:
        case Prefix(_, length), Prefix(_, longer) if length <= longer:
            return write(Prefix(value, length))
        case Mask(_, bits), Mask(_, more) if bits & more == bits:
            return write(Mask(value, bits))
        case Digit(_, step, wrap), Mask(_, more) if any(
            _within((step, wrap), run) for run in _runs(more)
        ):
            # Bits keep their places under a mask, so the digit is taken as from the whole
            return write(Digit(value, step, wrap, term.shifts))
        case Mask(_, bits), Digit(_, step, wrap) if all(
            _within(run, (step, wrap)) for run in _runs(bits)
        ):
            placed = Call("*", (value, Literal(step))) if step > 1 else value
            return write(Mask(placed, bits))
        case Digit(_, step, wrap), Digit(_, finer, wider) if _within((step, wrap), (finer, wider)):
            shifts = term.shifts and base.shifts
            return write(Digit(value, step // finer, wrap // finer, shifts))
    return None


def _within(run: Run, other: Run) -> bool:
    """Whether the digit is one of the other: steps and wraps divide (all divide a wrap of 0)."""
    (step, wrap), (finer, wider) = run, other
    return step % finer == 0 and (wider == 0 or (wrap != 0 and wider % wrap == 0))


def _runs(bits: int) -> Iterator[Run]:
    """The stretches of set bits, lowest first; the last one of a negative number has no end."""
    place = 0
    while bits >> place not in (0, -1):
        if bits >> place & 1:
            end = place + 1
            while bits >> end & 1 and bits >> end != -1:
                end += 1
            if bits >> end == -1:
                break
            yield 2**place, 2**end
            place = end
        else:
            place += 1
    if bits < 0:
        yield 2**place, 0


def _common(left: Shape, right: Shape) -> Shape | None:
    """The finest shape below two shapes of the same thing, neither of which is below the other."""
    if isinstance(left, Prefix) or isinstance(right, Prefix):
        return None
    found: list[Run] = []
    for step, wrap in _runs_of(left):
        for other, limit in _runs_of(right):
            lowest, highest = math.lcm(step, other), math.gcd(wrap, limit)
            fits = highest == 0 or (highest % lowest == 0 and highest > lowest)
            if fits and lowest <= LARGEST:
                found.append((lowest, highest))
    if not found:
        return None
    masks = isinstance(left, Mask) or isinstance(right, Mask)
    if masks and all(_is_power(part) for run in found for part in run):
        return Mask(left.base, sum((wrap - step) for step, wrap in found))
    step, wrap = max(found, key=lambda run: (run[1] == 0, run[1] // run[0], -run[0]))
    return Digit(left.base, step, wrap)


def _runs_of(shape: Digit | Mask) -> list[Run]:
    return [(shape.step, shape.wrap)] if isinstance(shape, Digit) else list(_runs(shape.bits))


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


def _is_constant(term: Expression) -> bool:
    match shape_of(term):
        case Digit(_, step, wrap):
            return step == wrap
        case Mask(_, bits):
            return bits == 0
    return not reads_columns(term)


def _undo(base: Expression, value: Column) -> tuple[Expression, Expression] | None:
    """What the base was made from without losing anything, and how to get it back."""
    match base:
        case Call("cast", (Attribute() as inner, Literal(str(name)))):
            back = type_name(inner.kind)
            if back is not None and loses_nothing(inner.kind, name):
                return inner, Call("cast", (value, Literal(back)))
        case Call("negate", (inner,)) if is_whole(inner):
            return inner, Call("negate", (value,))
        case Call("+", (inner, Literal() as number)) if is_whole(base):
            return inner, Call("-", (value, number))
        case Call("+", (Literal() as number, inner)) if is_whole(base):
            return inner, Call("-", (value, number))
        case Call("-", (inner, Literal() as number)) if is_whole(base):
            return inner, Call("+", (value, number))
        case Call("-", (Literal() as number, inner)) if is_whole(base):
            return inner, Call("-", (number, value))
    return None
