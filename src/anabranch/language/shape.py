"""The shape of a join of several inputs: in which order it brings their rows together (P1).

`(0, 1, 2)` is the flat one, which keeps nothing but the rows of its inputs. A tree keeps what lies between:
`((0, 1), 2)` has an intermediate of the inputs 0 and 1. What an intermediate holds depends on its inputs
alone, not on the shape that it is part of, so two shapes share those of the same inputs.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anabranch.errors import SettingsError

MOST_INPUTS = 6
"""Inputs that a join with a shape may have: single digits, and no more shapes than can be looked at."""
M_WAY, LEFT_DEEP = NAMED = ("m-way", "left-deep")
"""Shapes for any number of inputs."""
Inputs = tuple[int, ...]
"""The numbers of some inputs of a join, in order."""


@dataclass(frozen=True)
class JoinShape:
    """A join of parts, each an input or itself a join.

    >>> shape = read_shape("(2, (1, 0))", 3)
    >>> str(shape), shape.intermediates
    ('((0,1),2)', ((0, 1),))
    """

    parts: tuple[int | JoinShape, ...]

    @functools.cached_property
    def inputs(self) -> Inputs:
        """All its inputs."""
        return tuple(sorted(one for part in self.parts for one in inputs_of(part)))

    @property
    def flat(self) -> bool:
        """Whether nothing lies between its inputs and its results."""
        return all(isinstance(part, int) for part in self.parts)

    @functools.cached_property
    def joins(self) -> tuple[JoinShape, ...]:
        """All joins of it, each after those that it is made of; the last is itself."""
        below = [one for part in self.parts if isinstance(part, JoinShape) for one in part.joins]
        return (*below, self)

    @functools.cached_property
    def intermediates(self) -> tuple[Inputs, ...]:
        """The inputs of each intermediate, each after those that it is made of."""
        return tuple(one.inputs for one in self.joins[:-1])

    def __str__(self) -> str:
        return f"({','.join(map(str, self.parts))})"


def inputs_of(part: int | JoinShape) -> Inputs:
    """The inputs of a part of a shape."""
    return (part,) if isinstance(part, int) else part.inputs


def joined(parts: Sequence[int | JoinShape]) -> JoinShape:
    """The join of these parts, which does not depend on their order."""
    return JoinShape(tuple(sorted(parts, key=inputs_of)))


def flat_shape(inputs: int) -> JoinShape:
    """The shape without intermediates."""
    return JoinShape(tuple(range(inputs)))


def left_deep(order: Sequence[int]) -> JoinShape:
    """The tree that joins inputs one after another, in this order.

    >>> str(left_deep([2, 1, 0]))
    '(0,(1,2))'
    """
    tree: int | JoinShape = order[0]
    for one in order[1:]:
        tree = joined([tree, one])
    assert isinstance(tree, JoinShape)
    return tree


def read_shape(text: str, inputs: int) -> JoinShape:
    """The shape of a join of so many inputs as people write it; SettingsError if it is none."""
    if text == M_WAY:
        return flat_shape(inputs)
    if text == LEFT_DEEP:
        return left_deep(range(inputs))
    shape = written_shape(text)
    if shape.inputs != tuple(range(inputs)):
        raise SettingsError(
            f"The shape {text} is for the inputs {', '.join(map(str, shape.inputs))}; this join has "
            f"{inputs} inputs, 0 to {inputs - 1}, each of which a shape has once."
        )
    return shape


def written_shape(text: str) -> JoinShape:
    """A shape that is written out, of whatever inputs."""
    try:
        tree = _tree(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise SettingsError(
            f"'{text}' is no shape of a join: expected '{M_WAY}', '{LEFT_DEEP}', or the numbers of its "
            "inputs in brackets, such as ((0,1),2)."
        ) from error
    if len(tree.inputs) > MOST_INPUTS:
        raise SettingsError(
            f"The shape {text} has {len(tree.inputs)} inputs; at most {MOST_INPUTS} can have one."
        )
    if tree.inputs != tuple(range(len(tree.inputs))):
        raise SettingsError(
            f"The shape {text} has the inputs {', '.join(map(str, tree.inputs))}: expected every input of "
            "the join once, counted from 0."
        )
    return tree


def _tree(value: object) -> JoinShape:
    if not isinstance(value, tuple) or len(value) < 2:
        raise ValueError(value)
    if any(isinstance(one, bool) or not isinstance(one, (int, tuple)) for one in value):
        raise ValueError(value)
    return joined([one if isinstance(one, int) else _tree(one) for one in value])


def subsets(inputs: Inputs) -> Iterator[Inputs]:
    """All choices of two or more of these inputs, small ones first.

    >>> list(subsets((0, 1, 2)))
    [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    """
    for count in range(2, len(inputs) + 1):
        yield from itertools.combinations(inputs, count)
