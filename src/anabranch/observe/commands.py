"""What all commands have in common: plain help, `--json`, `--traceback`, and errors told as a paragraph."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

from anabranch.errors import AnabranchError

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
TRACEBACK = "anabranch.traceback"

OPTIONAL = {"--page": "0"}
"""Options that may be given without their number, and what it is then."""

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

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        whole: list[str] = []
        for arg, after in pairwise([*args, ""]):
            whole.append(arg)
            if arg in OPTIONAL and not after.isdecimal():
                whole.append(OPTIONAL[arg])
        return super().parse_args(ctx, whole)


class PlainGroup(_PlainHelp, TyperGroup):
    """A group of commands."""


class LaterGroup(PlainGroup):
    """A group of commands of which help needs only the name: its module is loaded when it is called."""

    module: str

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        group = typer.main.get_command(import_module(self.module).app)
        return group.make_context(*arguments, **options)


class TellingGroup(PlainGroup):
    """Turns Anabranch's errors into a paragraph, for every command below."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except AnabranchError as error:
            if ctx.meta.get(TRACEBACK):
                traceback.print_exception(error)
            else:
                complain(str(error), "red")
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            complain("Interrupted. Committed epochs stay.", "yellow")
            raise typer.Exit(INTERRUPTED) from error


class Commands(typer.Typer):
    """An application or a group of it, with such commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"cls": PlainGroup, "add_completion": False, **options})

    def command(self, name: str | None = None, **options: Any) -> Callable[[F], F]:
        return super().command(name, **{"cls": PlainCommand, **options})

    def later(self, name: str, help: str, module: str) -> None:
        """Adds the group of commands that a module has as `app`, without loading the module."""
        group = type("ThisGroup", (LaterGroup,), {"module": module})
        self.add_typer(typer.Typer(cls=group), name=name, help=help)


def complain(message: str, style: str) -> None:
    Console(stderr=True, soft_wrap=True).print(message, style=style, markup=False, highlight=False)


def _want_traceback(context: typer.Context, wanted: bool) -> bool:
    if wanted:
        context.meta[TRACEBACK] = True
    return wanted


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
ShowTraceback = Annotated[
    bool,
    typer.Option("--traceback", help="Show where an error came from.", callback=_want_traceback),
]
