"""Options given beside a file, on the command line: they count instead of those in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import yaml

from anabranch.errors import SettingsError
from anabranch.settings import read_settings
from anabranch.spec.misplaced import elsewhere
from anabranch.spec.options import RUN, SETTINGS, run_of, settings_of
from anabranch.spec.place import PartPlace
from anabranch.spec.spec import Spec


@dataclass(frozen=True)
class Given(PartPlace):
    """A value of the command line."""

    name: str
    written: str
    file = "the command line"

    def __str__(self) -> str:
        return f"--set {self.name}={self.written}"

    def plain(self) -> Any:
        try:
            return yaml.safe_load(self.written)
        except (yaml.YAMLError, ValueError):
            return self.written


@dataclass(frozen=True)
class Option(PartPlace):
    """An option of the command that has a name of its own, as --trigger."""

    name: str
    given: str | bool
    file = "the command line"

    def __str__(self) -> str:
        return f"--{self.name}"

    def plain(self) -> Any:
        return self.given


def override(
    spec: Spec, assignments: Sequence[str], given: Mapping[str, str | bool | None]
) -> Spec:
    """The specification with `name=value` texts for settings and the run, and what is `given` for the run."""
    parts: dict[str, PartPlace] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise SettingsError(
                f"--set {assignment}: expected name=value, e.g. --set max_rows_per_epoch=100000."
            )
        known = (*RUN, *SETTINGS)
        if name not in known:
            raise SettingsError(
                f"--set {assignment}: there is no option '{name}'.{elsewhere(name, known)}"
            )
        parts[name] = Given(name, value)
    run = run_of({name: part for name, part in parts.items() if name in RUN})
    tuned = {name: part for name, part in parts.items() if name not in RUN}
    settings_of(tuned)  # each alone, so that a fault is told with its option
    run_of({name: Option(name, value) for name, value in given.items() if value is not None})
    plain = {name: part.plain() for name, part in tuned.items()}
    return replace(
        spec,
        settings=read_settings({**msgspec.structs.asdict(spec.settings), **plain}),
        run={
            **spec.run,
            **run,
            **{name: value for name, value in given.items() if value is not None},
        },
    )
