"""Commands whose help reads plainly: flags without a type, arguments without braces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

F = TypeVar("F", bound=Callable[..., Any])


class _PlainHelp:
    """For a command or a group: what its help makes of options and arguments."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""  # typer would write <bool>
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.strip("{}") for piece in pieces]


class PlainCommand(_PlainHelp, TyperCommand):
    """A command."""


class PlainGroup(_PlainHelp, TyperGroup):
    """A group of commands."""


class Commands(typer.Typer):
    """An application or a group of it, with such commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"cls": PlainGroup, "add_completion": False, **options})

    def command(self, name: str | None = None, **options: Any) -> Callable[[F], F]:
        return super().command(name, **{"cls": PlainCommand, **options})
