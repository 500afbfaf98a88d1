"""Public functions that check what they are given by their own annotations, before they do anything.

Only what a value is gets checked, not what is in a list or mapping. True is no number here.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from anabranch.errors import AnabranchError, LanguageError

F = TypeVar("F", bound=Callable[..., Any])

_WORDS: dict[Any, str] = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false",
    type(None): "None", collections.abc.Callable: "a function", collections.abc.Mapping: "a mapping",
    collections.abc.Sequence: "a list",
}  # fmt: skip


def checked(function: F, error: type[AnabranchError] = LanguageError) -> F:
    """The function, refusing arguments of other types than it is annotated with."""
    signature = inspect.signature(function)
    wanted: dict[str, tuple[Any, ...]] = {}

    @functools.wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        if not wanted:
            wanted.update(_wanted(function, signature))
        # A call that does not fit at all is Python's to complain about
        for name, given in signature.bind(*positional, **named).arguments.items():
            several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            for value in given if several else (given,):
                if wanted.get(name) and not any(_fits(value, kind) for kind in wanted[name]):
                    raise error(
                        f"{function.__name__}(): {name} is {shown_value(value)}; expected "
                        f"{' or '.join(map(_told, wanted[name]))}."
                    )
        return function(*positional, **named)

    return call  # type: ignore[return-value]


def _wanted(function: Any, signature: inspect.Signature) -> dict[str, tuple[Any, ...]]:
    wanted: dict[str, tuple[Any, ...]] = {"": ()}
    for name, parameter in signature.parameters.items():
        if name == "self" or parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        try:
            hint = eval(str(parameter.annotation), function.__globals__)
            wanted[name] = tuple(_kinds(hint, function.__globals__))
        except (NameError, TypeError):
            wanted[name] = ()  # a type that only type checkers know
    return wanted


def _kinds(hint: Any, names: dict[str, Any]) -> list[Any]:
    if isinstance(hint, (str, typing.ForwardRef)):
        written = hint if isinstance(hint, str) else hint.__forward_arg__
        return _kinds(eval(written, names), names)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [kind for part in typing.get_args(hint) for kind in _kinds(part, names)]
    kind = type(None) if hint is None else typing.get_origin(hint) or hint
    return [kind]


def _fits(value: Any, kind: Any) -> bool:
    if kind is Any or kind is object:
        return True
    if isinstance(value, bool) and kind in (int, float):
        return False
    if kind is float and isinstance(value, int):
        return True
    if kind is collections.abc.Callable:
        return callable(value)
    return isinstance(value, kind)


def shown_value(value: Any) -> str:
    """What was given instead of what was expected, as far as it helps."""
    shown = (
        f"{value!r}"
        if isinstance(value, (str, int, float, bytes, type(None)))
        else type(value).__name__
    )
    return shown if len(shown) <= 80 else f"{shown[:80]}…"


def _told(kind: Any) -> str:
    return _WORDS.get(kind) or f"a {getattr(kind, '__name__', kind)}"
